/* file.h: the database file: headers, extents with checksums, and the log beside it.
 *
 * What the file holds is a tree of extents, from the root that the header names: an extent is never
 * changed, a state that follows shares those that stay and writes the others where neither header
 * reaches. `save` writes such a state and switches the header. Between saves, changes are records of
 * the log. docs/file-format.md has every byte; who knows what the extents mean is the catalog.
 *
 * A failed sync is never tried again: nobody knows what is on the disk then. The file takes no
 * further writes (58030), and what was read stays readable. */
#ifndef WF_STORE_FILE_H
#define WF_STORE_FILE_H

#include "base/mem.h"

/* Where some bytes lie in the file. They do as long as `stamp` is the file's. */
struct extent {
    i64 at, bytes;
    u64 sum;   /* XXH3, 64 bits */
    u64 stamp; /* of the save that had it last; 0 = it is nowhere */
    b8 packed; /* a column that is not as it lies in memory */
};

/* Who saves changes extents that hang on tablets while others may copy them (ALTER TABLE). */
void extents_lock(void);
void extents_unlock(void);

struct db_file;
/* Opens, or makes, the file, and locks it. The log is not looked at yet: see log_replay. Of a file that was there
 * nothing is written before db_file_claim, so that one which turns out to be damaged stays as it is. */
FALLIBLE db_file_open(struct memory *mem, const char *path, bool read_only, struct db_file **out,
                      struct error *err);
/* What it holds was read, and is well: this process has it from now on, and says so in the log. */
FALLIBLE db_file_claim(struct db_file *file, struct error *err);
/* A statement has failed, a transaction was rolled back: pages that their loads took behind the last one in use go. */
void db_file_tidy(struct db_file *file);
/* Where columns lie that memory has no room for while they are read. */
void db_file_set_aside(struct db_file *file, const char *folder, i64 limit_bytes);
void db_file_close(struct db_file *file); /* leaves everything as it is */
const char *db_file_path(const struct db_file *file);
/* What the header names; 0 bytes: nothing has been saved. */
struct extent db_file_root(const struct db_file *file);
u64 db_file_stamp(const struct db_file *file);
bool db_file_is_read_only(const struct db_file *file);
bool db_file_is_clean(const struct db_file *file); /* no commit is in the log alone */
i64 db_file_bytes(const struct db_file *file);
/* Reads an extent; XX001 when it is not what was written. */
FALLIBLE db_file_read(const struct db_file *file, const struct extent *extent, void *to,
                      struct error *err);
/* While the root is read for the first time: the extent is in use. False: it cannot be one. */
bool db_file_note(struct db_file *file, const struct extent *extent);
/* All that was noted is there; XX001 when two of them overlap. */
FALLIBLE db_file_noted(struct db_file *file, struct error *err);
/* 58030 or 25006 when nothing may be written. */
FALLIBLE db_file_check(const struct db_file *file, struct error *err);

/* One state of the database on its way to the file. */
struct save;
/* Of the records that are in the log now. `stop` (NULL: none) may be set by others: the save fails
 * with 57014 at the next thing it is to write. */
FALLIBLE save_open(struct db_file *file, const _Atomic bool *stop, struct save **out,
                   struct error *err);
u64 save_number(const struct save *save); /* no other one of the process has it */
/* Whether the extent is in the file already, and then stays there; it must live until the save is
 * closed. False where memory is refused, too. */
bool save_has(struct save *save, struct extent *extent);
bool save_knows(const struct save *save, const struct extent *extent); /* whether it is there */
/* Writes bytes; `out` must live until the save is closed. */
FALLIBLE save_put(struct save *save, const void *from, i64 bytes, struct extent *out,
                  struct error *err);
/* All that was put is on the disk, which may take its time; save_finish then takes little. */
FALLIBLE save_sync(struct save *save, struct error *err);
/* Makes this state the file's, in which the log's records up to save_open are contained. `is_last`:
 * and there will be no log. Nobody appends to the log meanwhile, nor while a save is opened. */
FALLIBLE save_finish(struct save *save, struct extent *root, bool is_last, struct error *err);
/* What lies from there on counts as not there: it is written once more, nearer to the start. */
void save_move(struct save *save, i64 from);
/* Bytes that the file would have without gaps. */
i64 db_file_least_bytes(const struct db_file *file);
void save_close(struct save *save); /* after finish, or to give up */
/* A file that is not there yet, to be saved into once and closed for good; 42710 when it is there. */
FALLIBLE db_file_make(struct memory *mem, const char *path, struct db_file **out,
                      struct error *err);
void db_file_made(struct db_file *file, bool fine); /* closes it; it goes where that failed */
/* The state in force as a database file of its own, under a name that is free. Nobody saves
 * meanwhile. `stop` as in save_open. */
FALLIBLE db_file_copy(struct db_file *file, const char *path, const _Atomic bool *stop,
                      struct error *err);

/* The log. Records are numbered; what log_append writes is durable once log_sync has returned. */
enum { LOG_RECORD_MOST = 1 << 20 };
typedef wf_status (*log_reader)(void *arg, const u8 *payload, i64 bytes, struct error *err);
/* Hands out the records behind the state that the header names; payloads stay until the file is
 * closed or saved. */
FALLIBLE log_replay(struct db_file *file, log_reader reader, void *arg, i64 *out_count,
                    struct error *err);
FALLIBLE log_append(struct db_file *file, const void *payload, i64 bytes, u64 *out_number,
                    struct error *err);
FALLIBLE log_sync(struct db_file *file, u64 number, struct error *err);
/* Records were read that no save has taken since: the log takes no others. */
bool log_is_replayed(const struct db_file *file);
i64 log_bytes(const struct db_file *file); /* of records that are in the log alone */
/* The log goes: everything in it is saved. Not an error where it stays. */
void log_remove(struct db_file *file);

/* What an error of the disk means to a user; `what` was being done to `path`. */
wf_status disk_failed(struct error *err, const char *what, const char *path, i64 code);

#endif
