/* input.c: the bytes a load reads: a file mapped, a pipe or terminal read to its end, an archive
 * unpacked.
 *
 * A plain file is mapped, which copies nothing. Everything else is read into memory that counts
 * against the statement's budget, since a load goes over its bytes several times; a pipe that never
 * ends meets the budget, the deadline or a cancellation. Whoever goes over an archive once only
 * slides a window over it. */
#include "io/input.h"

#include "io/pack.h"

enum { CHUNK_BYTES = 1 << 18, SLIDE_BYTES = 1 << 20 };

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

/* Until so many bytes are there. */
static FALLIBLE unpack_more(struct input *in, i64 bytes, const struct load_progress *progress,
                            struct error *err) {
    bool end = false;
    wf_status status = unpack_fill(in->unpack, &in->owned, bytes, progress, &end, err);
    in->cut = !end;
    in->data = in->owned.data ? in->owned.data : "";
    in->bytes = in->owned.len;
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

static FALLIBLE read_input(struct input *in, struct way way, struct load_progress *progress,
                           struct error *err) {
    bool is_stdin = strcmp(in->path, "/dev/stdin") == 0;
    if (in->packing) {
        bool sample = in->again && way.sample_bytes;
        TRY(unpack_open(&in->unpack, (enum packing)in->packing, &in->file, in->owned.mem, err));
        return unpack_more(in, sample ? way.sample_bytes : I64_MAX, progress, err);
    }
    return in->file.plain ? view_all(in, &in->file, way.end_mark && is_stdin, err)
                          : read_all(in, &in->file, way.end_mark, err);
}

static void close_file(struct input *in) {
    unpack_close(in->unpack);
    in->unpack = NULL;
    in->cut = 0;
    file_in_close(&in->file);
}

static FALLIBLE open_input(struct input *out, const char *path, struct way way, struct memory *mem,
                           struct load_progress *progress, struct error *err) {
    struct file_wait wait = {check_progress, progress};
    *out = (struct input){.path = path, .data = "", .view.guard = -1, .owned.mem = mem};
    TRY(file_in_open(&out->file, path, wait, err));
    out->again = out->file.again;
    out->packing = (u8)(way.packing == PACKING_BY_NAME ? packing_of(path) : way.packing);
    out->stamp = out->file.stamp;
    wf_status status = read_input(out, way, progress, err);
    if (status || !out->cut) {
        close_file(out);
    }
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

wf_status input_slide(struct input *in, i64 forget_bytes, const struct load_progress *progress,
                      struct error *err) {
    struct file_bytes *own = &in->owned;
    ASSERT(in->cut && forget_bytes <= own->len);
    own->len -= forget_bytes;
    memmove(own->data, own->data + forget_bytes, (size_t)own->len);
    return unpack_more(in, own->len + MAX_OF(own->len, SLIDE_BYTES), progress, err);
}

void input_close(struct input *in) {
    if (in->unpack) {
        close_file(in);
    }
    file_view_close(&in->view);
    file_bytes_free(&in->owned);
}

bool input_torn(const struct input *in) {
    return file_view_torn(&in->view);
}
