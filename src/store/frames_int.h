/* frames_int.h: frames, to those who read tables out of a file and write others to it. */
#ifndef WF_STORE_FRAMES_INT_H
#define WF_STORE_FRAMES_INT_H

#include "store/file_int.h"
#include "store/frames.h"
#include "store/saved_int.h"

enum { FRAME_PAD = 64 }; /* as buffers have */

/* Columns go as soon as nobody holds them: so in test builds, but for tests of what stays. */
extern bool frames_go_at_once;
extern i64 frames_stale_ns; /* what was asked for again is as good as new no longer: tests do not wait */

/* The frames of one file; they outlive it, but are not filled any more. */
struct frames *frames_open(struct memory *mem, struct db_file *file); /* NULL: refused */
/* Where columns lie that memory has no room for, before any is held; 0 = as much as temporary space may take. */
void frames_set_aside(struct frames *frames, const char *folder, i64 limit_bytes);
/* Memory for a while, or a block of temporary space; NULL: there is neither. */
void *frames_scratch(struct frames *frames, i64 bytes);
void frames_scratch_end(struct frames *frames, void *block, i64 bytes); /* NULL is fine */
FALLIBLE frames_check(struct frames *frames, struct error *err); /* 58030: the disk did not give back one of them */
void frames_close(struct frames *frames); /* the file is about to be closed */
struct frames *frames_retain(struct frames *frames);
void frames_release(struct frames *frames); /* NULL is fine */
/* Where the columns lie that have a frame, whatever state of the file they belong to: somebody may
 * still read them. False: refused. */
bool frames_spans(struct frames *frames, struct spans *out);

/* What a frame holds, and where that lies in the file. */
struct frame_form {
    struct extent extent;
    struct segment_layout lay;
    u32 rows;
    u8 encoding, width; /* as of the segment */
    b8 has_valid;
    b8 is_packed; /* it stays as it lies, and where its blocks begin stands behind it (packed_starts) */
    b8 is_key; /* hashes or places of a key (key_part.c), as they lie; `column` is its name */
    i32 dict_len;      /* DICT: codes are below */
    i64 text_bytes;    /* STR */
    const char *table; /* for messages; copied */
    const char *column;
};
/* A buffer at a fixed address with nothing in it yet; NULL when refused. */
struct buffer *frame_new(struct frames *frames, const struct frame_form *form);
/* The same for a column that is being made: it has memory, to be filled, which stays there until the
 * column is in the file (frame_saved). form->extent is none yet. Small columns are no frames: NULL, with
 * *out_small set. */
struct buffer *frame_new_full(struct frames *frames, const struct frame_form *form,
                              bool *out_small);
bool frame_of_file(const struct buffer *buf, const struct db_file *file);
/* Where the column is read from when it is read next; 0 bytes: it is nowhere. */
void frame_place(struct buffer *buf, const struct extent *extent);
void frame_saved(struct buffer *buf); /* what it holds lies there */
/* save.c: when the state is in force, the frame (or another buffer, which stays as it is) has that
 * place, which lives as long as the save does. */
FALLIBLE save_move_frame(struct save *save, struct buffer *frame, const struct extent *to,
                         struct error *err);
/* As pins_need, of a buffer that may be a frame. */
bool pins_need_frame(struct pins *pins, struct buffer *buf);

#endif
