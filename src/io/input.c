/* input.c: the bytes a load reads: a file mapped, a pipe or terminal read to its end, an archive
 * unpacked.
 *
 * A plain file is mapped, which copies nothing. Everything else is read into memory that counts
 * against the statement's budget, since a load goes over its bytes several times; a pipe that never
 * ends meets the budget, the deadline or a cancellation. */
#include "io/input.h"

#include "io/pack.h"

enum { CHUNK_BYTES = 1 << 18, SAMPLE_CHUNK_BYTES = 1 << 14 };

static wf_status check_progress(void *arg, struct error *err) {
    return load_progress_check(arg, err);
}

struct end_mark {
    i64 line;      /* where the line begins whose end has not come yet */
    i64 at, after; /* the line `\.` alone, once found; at -1 before */
};

static bool is_mark(const char *line, i64 len) {
    len -= len > 0 && line[len - 1] == '\r';
    return len == 2 && line[0] == '\\' && line[1] == '.';
}

/* Looks at bytes [from, end) of data, which follow those it has seen. */
static bool find_mark(struct end_mark *mark, const char *data, i64 from, i64 end) {
    const char *newline;
    for (; (newline = memchr(data + from, '\n', (size_t)(end - from))); from = mark->line) {
        i64 stop = newline - data;
        if (is_mark(data + mark->line, stop - mark->line)) {
            mark->at = mark->line;
            mark->after = stop + 1;
            return true;
        }
        mark->line = stop + 1;
    }
    return false;
}

static FALLIBLE read_all(struct input *in, struct file_in *file, bool end_mark, struct error *err) {
    struct file_bytes *own = &in->owned;
    struct end_mark mark = {.at = -1};
    for (bool more = true; more;) {
        i64 got = 0;
        TRY(file_bytes_reserve(own, CHUNK_BYTES, err));
        TRY(file_in_read(file, own->data + own->len, CHUNK_BYTES, &got, err));
        own->len += got;
        more = got > 0 && !(end_mark && find_mark(&mark, own->data, own->len - got, own->len));
    }
    if (end_mark && mark.at < 0 && is_mark(own->data + mark.line, own->len - mark.line)) {
        mark.at = mark.line; /* the last line, without its end */
    }
    in->data = own->data;
    in->bytes = mark.at >= 0 ? mark.at : own->len;
    return ERR_OK;
}

/* As far as `most` bytes; 0 = to its end. */
static FALLIBLE unpack_all(struct input *in, struct file_in *file, struct unpack *unpack, i64 most,
                           const struct load_progress *progress, struct error *err) {
    struct file_bytes *own = &in->owned;
    struct file_bytes packed = {.mem = own->mem};
    wf_status status = file_bytes_reserve(&packed, CHUNK_BYTES, err);
    i64 chunk = most ? SAMPLE_CHUNK_BYTES : CHUNK_BYTES;
    for (i64 got = 1; !status && got > 0 && !in->cut;) {
        status = file_in_read(file, packed.data, chunk, &got, err);
        status = status ? status : unpack_push(unpack, packed.data, got, own, progress, err);
        in->cut = most && own->len >= most;
    }
    status = status || in->cut ? status : unpack_end(unpack, err);
    file_bytes_free(&packed);
    in->data = own->data ? own->data : "";
    in->bytes = own->len;
    return status;
}

static FALLIBLE view_all(struct input *in, struct file_in *file, bool end_mark, struct error *err) {
    TRY(file_in_view(file, &in->view, err));
    in->data = in->view.data;
    in->bytes = in->view.bytes;
    struct end_mark mark = {.at = -1};
    if (end_mark && find_mark(&mark, in->data, 0, in->bytes)) {
        file_in_seek(file, mark.after);
        in->bytes = mark.at;
    }
    return ERR_OK;
}

/* How a file is read. */
struct way {
    enum packing packing;
    bool end_mark;    /* it may end before the file does */
    i64 sample_bytes; /* 0 = all of it */
};

static FALLIBLE open_input(struct input *out, const char *path, struct way way, struct memory *mem,
                           struct load_progress *progress, struct error *err) {
    struct file_in file;
    struct file_wait wait = {check_progress, progress};
    *out = (struct input){.path = path, .data = "", .view.guard = -1, .owned.mem = mem};
    TRY(file_in_open(&file, path, wait, err));
    bool is_stdin = strcmp(path, "/dev/stdin") == 0;
    enum packing packing = way.packing == PACKING_BY_NAME ? packing_of(path) : way.packing;
    out->again = file.again;
    out->packing = (u8)packing;
    out->stamp = file.stamp;
    i64 sample_bytes = file.again ? way.sample_bytes : 0;
    struct unpack *unpack = NULL;
    wf_status status = packing ? unpack_open(&unpack, packing, path, mem, err) : ERR_OK;
    if (!status) {
        status = unpack       ? unpack_all(out, &file, unpack, sample_bytes, progress, err)
                 : file.plain ? view_all(out, &file, way.end_mark && is_stdin, err)
                              : read_all(out, &file, way.end_mark, err);
    }
    unpack_close(unpack);
    file_in_close(&file);
    if (status) {
        input_close(out);
    }
    return status;
}

wf_status input_open(struct input *out, const char *path, enum packing packing, bool end_mark,
                     struct memory *mem, struct load_progress *progress, struct error *err) {
    return open_input(out, path, (struct way){packing, end_mark, 0}, mem, progress, err);
}

wf_status input_open_sample(struct input *out, const char *path, enum packing packing,
                            i64 sample_bytes, struct memory *mem, struct load_progress *progress,
                            struct error *err) {
    return open_input(out, path, (struct way){packing, false, sample_bytes}, mem, progress, err);
}

void input_close(struct input *in) {
    file_view_close(&in->view);
    file_bytes_free(&in->owned);
}

bool input_torn(const struct input *in) {
    return file_view_torn(&in->view);
}
