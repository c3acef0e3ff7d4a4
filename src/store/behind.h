/* behind.h: columns that a load has packed, to the file while the next ones are being packed. */
#ifndef WF_STORE_BEHIND_H
#define WF_STORE_BEHIND_H

#include "store/packed.h"

struct behind;
struct behind *behind_open(struct memory *mem, struct db_file *file); /* NULL: refused */
void behind_close(struct behind *behind); /* NULL is fine */

/* A column whose frame names its pages already. */
struct column_write {
    struct buffer *frame;
    struct extent made; /* where it goes, */
    struct extent *place; /* which is noted here when it is there */
    const u8 *from;       /* whole pages can be read: on the desk, or in the frame */
    i32 *left;            /* of a load, that are on their way */
    struct desk desk;     /* for insiders */
};
/* Writes it, now or soon; a desk with it is taken over then. */
void column_put(struct behind *behind, struct column_write *write, struct desk *desk);
/* All of a load that could be written are. */
void write_wait(struct behind *behind, const i32 *left);

#endif
