/* input.h: the bytes a load reads, wherever they come from. */
#ifndef WF_IO_INPUT_H
#define WF_IO_INPUT_H

#include "base/file.h"
#include "io/io.h"

/* A whole file in memory: mapped, or read and unpacked; or, of an archive, a window of it. It is
 * read once, so that what looks at it first and what loads it then see the same, also of a pipe. */
struct input {
    const char *path;
    const char *data;
    i64 bytes;
    struct file_view view;   /* of a plain file */
    struct file_bytes owned; /* of anything else */
    b8 cut;                  /* more of it can be unpacked: input_slide */
    b8 again;                /* opened anew it would give the same */
    u8 packing;              /* enum packing: how it is packed */
    struct file_stamp stamp; /* of such a one */
    struct unpack *unpack;   /* of a sample that is cut: what gives the rest of `file` */
    struct file_in file;
};
/* ERR_NO_DATA_FILE, ERR_IO; 53200 when the bytes do not fit into `mem`. The wait for a pipe can be
 * cancelled through progress, which may be NULL. `end_mark`: of a pipe, and of standard input, only
 * what stands before a line `\.` is taken. */
FALLIBLE input_open(struct input *out, const char *path, enum packing packing, bool end_mark,
                    struct memory *mem, struct load_progress *progress, struct error *err);
/* The same for a look at its beginning: of an archive that can be opened again no more than about
 * so many bytes are unpacked. The input must stay where it is until it is closed. */
FALLIBLE input_open_sample(struct input *out, const char *path, enum packing packing,
                           i64 sample_bytes, struct memory *mem, struct load_progress *progress,
                           struct error *err);
/* Of a sample that is cut: forgets its first bytes and unpacks more behind the others, at least as
 * many as these are. */
FALLIBLE input_slide(struct input *in, i64 forget_bytes, const struct load_progress *progress,
                     struct error *err);
void input_close(struct input *in);
/* Another program changed the file while it was read, and the bytes are not its own. */
bool input_torn(const struct input *in);

#endif
