/* input.h: the bytes a load reads, wherever they come from. */
#ifndef WF_IO_INPUT_H
#define WF_IO_INPUT_H

#include "base/file.h"
#include "io/io.h"

/* A whole file in memory: mapped, or read and unpacked. It is read once, so that what looks at it
 * first and what loads it then see the same, also of a pipe. */
struct input {
    const char *path;
    const char *data;
    i64 bytes;
    struct file_view view;   /* of a plain file */
    struct file_bytes owned; /* of anything else */
    b8 cut;                  /* only its beginning was unpacked */
    b8 again;                /* opened anew it would give the same */
    u8 packing;              /* enum packing: how it is packed */
    struct file_stamp stamp; /* of such a one */
};
/* ERR_NO_DATA_FILE, ERR_IO; 53200 when the bytes do not fit into `mem`. The wait for a pipe can be
 * cancelled through progress, which may be NULL. `end_mark`: of a pipe, and of standard input, only
 * what stands before a line `\.` is taken. */
FALLIBLE input_open(struct input *out, const char *path, enum packing packing, bool end_mark,
                    struct memory *mem, struct load_progress *progress, struct error *err);
/* The same for a look at its beginning: of an archive that can be opened again no more than about
 * so many bytes are unpacked. */
FALLIBLE input_open_sample(struct input *out, const char *path, enum packing packing,
                           i64 sample_bytes, struct memory *mem, struct load_progress *progress,
                           struct error *err);
void input_close(struct input *in);
/* Another program changed the file while it was read, and the bytes are not its own. */
bool input_torn(const struct input *in);

#endif
