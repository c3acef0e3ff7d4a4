/* file_int.h: what file.c, save.c and log.c share. */
#ifndef WF_STORE_FILE_INT_H
#define WF_STORE_FILE_INT_H

#include "base/disk.h"
#include "base/thread.h"
#include "store/file.h"

enum {
    FILE_FORMAT = 5,
    FORMAT_LEAST = 1, /* that is read. 1: the log is of the header's generation, from the start; 2: no column is
                       * packed; 3: no text lies in words, no tablet has parts of keys */
    PAGE_BYTES = 4096,
    HEADER_BYTES = 128,       /* of a slot, its checksum last; the rest of the page is 0 */
    FILE_START = 2 * PAGE_BYTES, /* of extents, and of the log's records */
    HOLDER_AT = 512, /* in the log: who has the database open, as text */
    HOLDER_BYTES = 256,
};
#define FILE_MAGIC "Warpfox database"
#define LOG_MAGIC "Warpfox log file"

enum { HEADER_LOG = 1 }; /* flags: commits may be in the log */
struct header {
    u8 magic[16];
    u32 format;
    u32 page_bytes;
    u64 id;         /* of the database */
    u64 generation; /* one more with every header */
    i64 root_at, root_bytes;
    u64 root_sum;
    i64 end;         /* of the extents */
    u64 last_record; /* of the log, contained in what the root names */
    u32 flags;
    u32 none;
    u64 log_generation; /* of the log's records */
    i64 log_from;       /* where in the log the record behind the last one lies */
    u8 zero[16];
    u64 sum; /* of all before it */
};
_Static_assert(sizeof(struct header) == HEADER_BYTES, "header");

struct span {
    i64 at, bytes;
};
struct spans {
    struct memory *mem;
    struct span *items;
    i64 count, cap;
};
bool spans_push(struct spans *spans, i64 at, i64 bytes); /* false: refused */
bool spans_reserve(struct spans *spans, i64 more);
void spans_sort(struct spans *spans);
void spans_fini(struct spans *spans);

struct db_file {
    struct memory *mem;
    char *path, *log_path;
    i64 path_bytes;
    i64 file, log; /* -1: not open */
    i64 direct; /* the file past the system's cache; negative: not to be had */
    _Atomic i64 direct_bytes, direct_ns; /* read there, and how long each read took */
    b8 read_only;
    struct header header; /* the one in force */
    _Atomic u64 second_written, second_synced; /* how often the second slot was */
    u64 stamp;
    struct frames *frames; /* columns in memory */
    struct behind *behind; /* columns on their way */
    struct spans used; /* by the header in force: whole pages, in order once noted */
    u64 frame_stamp;   /* of extents that a frame names: they are there as long as it lives */
    /* Free pages (space.c). */
    struct mutex space;
    struct spans gaps;
    i64 end; /* behind it all is free */
    i64 least_end; /* of the header in force: the file is never shorter */
    b8 is_mapped;
    b8 is_saving; /* pages are taken that nothing names yet */
    _Atomic bool has_more; /* pages were taken behind the end since it was as short as it can be */
    /* The log. */
    struct mutex lock; /* of what follows */
    struct cond synced_more;
    _Atomic bool failed; /* a sync did: nothing is written any more */
    b8 syncing; /* somebody is at it, without the lock */
    b8 log_ready; /* it takes records of the header's generation */
    i64 log_at;    /* where the next one goes */
    i64 log_limit; /* and how far: behind it lie records that are needed */
    i64 log_room;  /* bytes of the log that were written, be it with zeros */
    i64 log_next;  /* where it goes on then */
    i64 log_live;  /* bytes of records that are in no state of the file */
    b8 log_replayed; /* it has records that were read and not saved since */
    b8 log_jumped; /* it went on elsewhere since a save began */
    u64 last, synced; /* numbers of records */
    struct header first; /* as the first slot had it when the file was opened */
    b8 second_differs;   /* then: to be written again */
    u8 *log_read; /* what log_replay handed out */
    i64 log_read_bytes;
};

/* space.c: a save begins: the pages that are free now, by the header in force and by frames. False: refused. */
bool space_map(struct db_file *file);
/* For a save, which ends with space_settle. `bytes` of whole pages; *out_bytes may become more, up to `most`,
 * where they lie together. */
i64 space_take(struct db_file *file, i64 bytes, i64 most, i64 *out_bytes);
bool space_give(struct db_file *file, i64 at, i64 bytes); /* not needed after all. False: refused */
/* Pages for io->bytes, which the frame names from then on; false: refused. */
struct buffer;
bool space_take_frame(struct db_file *file, struct buffer *frame, struct extent *io);
/* No save is on its way any more. */
void space_settle(struct db_file *file);
/* Pages behind the last one in use go. A save has switched the header, whose extents end at `least`. */
void space_trim(struct db_file *file, i64 least);

/* A column, where there are `room` bytes, which may all be written. `again`: it was in memory and had to go. */
i64 column_read(struct db_file *file, const struct extent *extent, bool again, u8 *to, i64 room);
/* Whether that goes past the system's cache, of which the system cannot know beforehand. */
bool column_goes_past(struct db_file *file, const struct extent *extent, bool again);

u64 file_stamp_new(void); /* that no file of the process had */
/* Both slots of a file without a log, for what `like` names, under a number of its own; synced. */
i64 headers_put(const struct header *like, i64 to);
u64 bytes_sum(const void *from, i64 bytes, u64 seed);
/* Writes the header to both slots, one after the other; counts its generation. */
FALLIBLE header_write(struct db_file *file, struct header *header, struct error *err);
FALLIBLE file_damaged(const struct db_file *file, struct error *err, const char *what);
FALLIBLE file_sync(struct db_file *file, struct error *err);
/* The disk's answer to a sync: a failure is for good. */
FALLIBLE sync_done(struct db_file *file, const char *path, i64 code, struct error *err);
/* log.c: opens the log beside the file, where there is one. */
FALLIBLE log_open(struct db_file *file, struct error *err);
/* The header is read: it says whether there must be a log. A writer makes one, and says who it is. */
FALLIBLE log_look(struct db_file *file, struct error *err); /* is it there, where it is needed? */
FALLIBLE log_claim(struct db_file *file, struct error *err);
/* Where a save begins: what is in the log up to here will be in the file. */
struct log_mark {
    u64 record; /* the last one */
    i64 at, live;
};
struct log_mark log_mark(struct db_file *file);
/* Before the header is switched: where its log begins. */
void log_header(const struct db_file *file, const struct log_mark *mark, struct header *header);
/* After that: what lies before the mark is not needed any more. */
void log_saved(struct db_file *file, const struct log_mark *mark);

#endif
