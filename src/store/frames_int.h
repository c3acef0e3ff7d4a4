/* frames_int.h: frames, to those who read tables out of a file and write others to it. */
#ifndef WF_STORE_FRAMES_INT_H
#define WF_STORE_FRAMES_INT_H

#include "store/file_int.h"
#include "store/frames.h"
#include "store/saved_int.h"

enum { FRAME_PAD = 64 }; /* as buffers have */

/* The frames of one file; they outlive it, but are not filled any more. */
struct frames *frames_open(struct memory *mem, struct db_file *file); /* NULL: refused */
void frames_close(struct frames *frames); /* the file is about to be closed */
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
    i32 dict_len;      /* DICT: codes are below */
    i64 text_bytes;    /* STR */
    const char *table; /* for messages; copied */
    const char *column;
};
/* A buffer at a fixed address with nothing in it yet; NULL when refused. */
struct buffer *frame_new(struct frames *frames, const struct frame_form *form);

#endif
