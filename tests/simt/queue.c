/* queue.c: streams and events; nothing runs until somebody waits for it.
 *
 * Copies, fills, launches, records and waits are queued with a sequence number. A synchronisation
 * runs what it has to and no more: the work of its stream up to the point asked for, and through
 * event waits and the default stream what that depends on. So work nobody waited for has visibly
 * not happened, and a host buffer changed between an asynchronous copy and its synchronisation is
 * copied as changed. With a seed, other streams run ahead at random, which shows the opposite
 * mistakes. */
#define _GNU_SOURCE
#include "simt.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKED = -1 }; /* a stream got ahead as far as something that waits for one that is at work */
enum op_kind { OP_COPY, OP_SET_BYTES, OP_SET_WORDS, OP_LAUNCH, OP_RECORD, OP_WAIT };

struct event {
    struct event *next;
    struct stream *stream; /* of the last record */
    u64 seq;               /* of the last record; 0 = never recorded */
    u64 done_seq;
    u64 done_ns;
    u32 refs; /* queued operations that name it */
    u32 queries;
    unsigned flags;
    b8 destroyed;
};

struct op {
    struct op *next;
    enum op_kind kind;
    u64 seq;
    u64 to;
    u64 from;
    u64 bytes;
    u32 value;
    struct simt_launch *launch;
    struct event *event;
    struct stream *wait_stream;
    u64 wait_seq;
};

struct stream {
    struct stream *next;
    struct op *head;
    struct op *tail;
    unsigned flags;
    b8 destroyed;
    b8 busy;
};

static struct stream default_stream;
static struct stream *streams;
static struct event *events;
static u64 last_seq;
static u64 dice;

static struct stream *find_stream(void *handle) {
    if (handle == NULL) {
        return &default_stream;
    }
    struct stream *s = streams;
    while (s != NULL && s != handle) {
        s = s->next;
    }
    return s == NULL || s->destroyed ? NULL : s;
}

static struct event *find_event(void *handle) {
    struct event *e = events;
    while (e != NULL && e != handle) {
        e = e->next;
    }
    return e == NULL || e->destroyed ? NULL : e;
}

static void drop_event(struct event *event) {
    if (!event->destroyed || event->refs != 0) {
        return;
    }
    struct event **at = &events;
    while (*at != event) {
        at = &(*at)->next;
    }
    *at = event->next;
    free(event);
}

static void free_op(struct op *op) {
    if (op->event != NULL) {
        op->event->refs--;
        drop_event(op->event);
    }
    free(op->launch);
    free(op);
}

static void drop_op(struct stream *stream) {
    struct op *op = stream->head;
    stream->head = op->next;
    if (stream->head == NULL) {
        stream->tail = NULL;
    }
    free_op(op);
}

static void drop_all(void) {
    while (default_stream.head != NULL) {
        drop_op(&default_stream);
    }
    for (struct stream *s = streams; s != NULL; s = s->next) {
        while (s->head != NULL) {
            drop_op(s);
        }
    }
}

/* Streams destroyed by the user that have nothing left to do. */
static void sweep_streams(void) {
    struct stream **at = &streams;
    while (*at != NULL) {
        struct stream *s = *at;
        if (s->destroyed && s->head == NULL && !s->busy) {
            *at = s->next;
            for (struct event *e = events; e != NULL; e = e->next) {
                e->stream = e->stream == s ? NULL : e->stream;
            }
            free(s);
        } else {
            at = &s->next;
        }
    }
}

void simt_queue_reset(void) {
    drop_all();
    while (streams != NULL) {
        struct stream *s = streams;
        streams = s->next;
        free(s);
    }
    while (events != NULL) {
        struct event *e = events;
        events = e->next;
        free(e);
    }
}

static struct op *new_op(struct stream *stream, enum op_kind kind) {
    struct op *op = calloc(1, sizeof(*op));
    if (op == NULL) {
        return NULL;
    }
    op->kind = kind;
    op->seq = ++last_seq;
    if (stream->tail != NULL) {
        stream->tail->next = op;
    } else {
        stream->head = op;
    }
    stream->tail = op;
    return op;
}

static int run_until(struct stream *stream, u64 seq);

static void *address(u64 addr) {
    void *p;
    memcpy(&p, &addr, sizeof(p));
    return p;
}

static int execute(struct op *op) {
    u32 *words;
    switch (op->kind) {
    case OP_COPY:
        memcpy(address(op->to), address(op->from), op->bytes);
        return 0;
    case OP_SET_BYTES:
        memset(address(op->to), (int)op->value, op->bytes);
        return 0;
    case OP_SET_WORDS:
        words = address(op->to);
        for (u64 i = 0; i < op->bytes / 4; i++) {
            words[i] = op->value;
        }
        return 0;
    case OP_LAUNCH:
        return simt_run_launch(op->launch);
    case OP_RECORD:
        if (op->event->done_seq < op->seq) {
            op->event->done_seq = op->seq;
            op->event->done_ns = simt_now_ns();
        }
        return 0;
    case OP_WAIT:
        return op->wait_stream == NULL || op->event->done_seq >= op->wait_seq
                   ? 0
                   : run_until(op->wait_stream, op->wait_seq);
    }
    return SIMT_UNKNOWN;
}

/* The default stream waits for what was queued before it in the blocking streams, and they for it.
 */
static int run_default_order(struct stream *stream, u64 seq) {
    if (stream != &default_stream) {
        return (stream->flags & 1) != 0 ? 0 : run_until(&default_stream, seq);
    }
    for (struct stream *s = streams; s != NULL; s = s->next) {
        int code = (s->flags & 1) != 0 ? 0 : run_until(s, seq);
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

static int run_head(struct stream *stream) {
    struct op *op = stream->head;
    stream->busy = 1;
    int code = run_default_order(stream, op->seq);
    if (code == 0) {
        code = execute(op);
    }
    stream->busy = 0;
    if (code == 0) {
        drop_op(stream);
    }
    return code;
}

/* With a seed, sometimes another stream is faster, by up to four things that were queued on it. */
static int run_ahead(void) {
    dice = dice * 6364136223846793005u + simt_settings.seed;
    if (simt_settings.seed == 0 || (dice >> 33) % 4 != 0) {
        return 0;
    }
    u32 skip = (u32)(dice >> 40) % 4;
    for (struct stream *s = streams; s != NULL; s = s->next) {
        if (s->head != NULL && !s->busy && skip-- == 0) {
            int code = 0;
            for (u32 n = (u32)(dice >> 50) % 4 + 1; n && code == 0 && s->head && !s->busy; n--) {
                code = run_head(s);
            }
            return code == BLOCKED ? 0 : code;
        }
    }
    return 0;
}

/* BLOCKED: what was asked for is behind something that began and waits. */
static int run_until(struct stream *stream, u64 seq) {
    while (stream->head != NULL && !stream->busy && stream->head->seq <= seq) {
        int code = run_ahead();
        if (code == 0 && stream->head != NULL && stream->head->seq <= seq) {
            code = run_head(stream);
        }
        if (code != 0) {
            return code;
        }
    }
    return stream->head != NULL && stream->busy && stream->head->seq <= seq ? BLOCKED : 0;
}

static int finish(int code) {
    simt_memory_lock();
    if (code != 0) {
        simt_lose(code);
        for (struct stream *s = streams; s != NULL; s = s->next) {
            s->busy = 0;
        }
        default_stream.busy = 0;
        drop_all();
    }
    sweep_streams();
    return code;
}

static int force(struct stream *stream, u64 seq) {
    if (stream->head == NULL || stream->head->seq > seq) {
        return 0;
    }
    simt_memory_unlock();
    return finish(run_until(stream, seq));
}

int simt_force_all(void) {
    int code = simt_lost(); /* what was queued went with the context */
    simt_memory_unlock();
    for (struct stream *s = streams; s != NULL && code == 0; s = s->next) {
        code = run_until(s, UINT64_MAX);
    }
    if (code == 0) {
        code = run_until(&default_stream, UINT64_MAX);
    }
    return finish(code);
}

int simt_queue_launch(void *handle, struct simt_launch *launch) {
    struct stream *stream = find_stream(handle);
    struct op *op = stream == NULL ? NULL : new_op(stream, OP_LAUNCH);
    if (op == NULL) {
        free(launch);
        return stream == NULL ? SIMT_INVALID_HANDLE : SIMT_OUT_OF_MEMORY;
    }
    op->launch = launch;
    return 0;
}

static b8 on_device(u64 addr, u64 bytes) {
    return simt_device_range(addr, bytes) || simt_host_range(addr, bytes);
}

static int queue_copy(void *handle, u64 to, u64 from, u64 bytes) {
    struct stream *stream = find_stream(handle);
    if (stream == NULL) {
        return SIMT_INVALID_HANDLE;
    }
    if (bytes == 0) {
        return 0;
    }
    struct op *op = new_op(stream, OP_COPY);
    if (op == NULL) {
        return SIMT_OUT_OF_MEMORY;
    }
    op->to = to;
    op->from = from;
    op->bytes = bytes;
    return 0;
}

int cuMemcpyHtoDAsync_v2(u64 dst, const void *src, size_t bytes, void *stream) {
    int code = simt_enter("cuMemcpyHtoDAsync_v2", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    if (bytes != 0 && (!on_device(dst, bytes) || simt_in_device((u64)src))) {
        return simt_leave(SIMT_INVALID_VALUE);
    }
    return simt_leave(queue_copy(stream, dst, (u64)src, bytes));
}

int cuMemcpyDtoHAsync_v2(void *dst, u64 src, size_t bytes, void *stream) {
    int code = simt_enter("cuMemcpyDtoHAsync_v2", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    if (bytes != 0 && (!on_device(src, bytes) || simt_in_device((u64)dst))) {
        return simt_leave(SIMT_INVALID_VALUE);
    }
    return simt_leave(queue_copy(stream, (u64)dst, src, bytes));
}

int cuMemcpyDtoDAsync_v2(u64 dst, u64 src, size_t bytes, void *stream) {
    int code = simt_enter("cuMemcpyDtoDAsync_v2", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    b8 overlap = dst < src + bytes && src < dst + bytes;
    if (bytes != 0 && (!on_device(dst, bytes) || !on_device(src, bytes) || overlap)) {
        return simt_leave(SIMT_INVALID_VALUE);
    }
    return simt_leave(queue_copy(stream, dst, src, bytes));
}

static int queue_set(void *handle, enum op_kind kind, u64 to, u32 value, u64 bytes) {
    struct stream *stream = find_stream(handle);
    if (stream == NULL) {
        return SIMT_INVALID_HANDLE;
    }
    if (bytes == 0) {
        return 0;
    }
    if (!on_device(to, bytes) || (kind == OP_SET_WORDS && to % 4 != 0)) {
        return SIMT_INVALID_VALUE;
    }
    struct op *op = new_op(stream, kind);
    if (op == NULL) {
        return SIMT_OUT_OF_MEMORY;
    }
    op->to = to;
    op->value = value;
    op->bytes = bytes;
    return 0;
}

int cuMemsetD8Async(u64 dst, unsigned char value, size_t count, void *stream) {
    int code = simt_enter("cuMemsetD8Async", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    return simt_leave(queue_set(stream, OP_SET_BYTES, dst, value, count));
}

int cuMemsetD32Async(u64 dst, unsigned value, size_t count, void *stream) {
    int code = simt_enter("cuMemsetD32Async", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    return simt_leave(queue_set(stream, OP_SET_WORDS, dst, value, (u64)count * 4));
}

int cuStreamCreate(void **out, unsigned flags) {
    int code = simt_enter("cuStreamCreate", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    struct stream *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return simt_leave(SIMT_OUT_OF_MEMORY);
    }
    s->flags = flags;
    s->next = streams;
    streams = s;
    *out = s;
    return simt_leave(0);
}

/* What is queued still happens, when something else makes it. */
int cuStreamDestroy_v2(void *handle) {
    int code = simt_enter("cuStreamDestroy_v2", SIMT_CTX | SIMT_ALWAYS);
    if (code != 0) {
        return code;
    }
    struct stream *s = handle == NULL ? NULL : find_stream(handle);
    if (s == NULL) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    s->destroyed = 1;
    sweep_streams();
    return simt_leave(0);
}

int cuStreamSynchronize(void *handle) {
    int code = simt_enter("cuStreamSynchronize", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    struct stream *s = find_stream(handle);
    return simt_leave(s == NULL ? SIMT_INVALID_HANDLE : force(s, UINT64_MAX));
}

int cuStreamWaitEvent(void *handle, void *event, unsigned flags) {
    int code = simt_enter("cuStreamWaitEvent", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    struct stream *s = find_stream(handle);
    struct event *e = find_event(event);
    if (s == NULL || e == NULL || flags != 0) {
        return simt_leave(flags != 0 ? SIMT_INVALID_VALUE : SIMT_INVALID_HANDLE);
    }
    if (e->seq == 0 || e->done_seq >= e->seq) {
        return simt_leave(0);
    }
    struct op *op = new_op(s, OP_WAIT);
    if (op == NULL) {
        return simt_leave(SIMT_OUT_OF_MEMORY);
    }
    op->event = e;
    op->wait_stream = e->stream;
    op->wait_seq = e->seq;
    e->refs++;
    return simt_leave(0);
}

int cuEventCreate(void **out, unsigned flags) {
    int code = simt_enter("cuEventCreate", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    struct event *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return simt_leave(SIMT_OUT_OF_MEMORY);
    }
    e->flags = flags;
    e->next = events;
    events = e;
    *out = e;
    return simt_leave(0);
}

int cuEventDestroy_v2(void *event) {
    int code = simt_enter("cuEventDestroy_v2", SIMT_CTX | SIMT_ALWAYS);
    if (code != 0) {
        return code;
    }
    struct event *e = find_event(event);
    if (e == NULL) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    e->destroyed = 1;
    drop_event(e);
    return simt_leave(0);
}

int cuEventRecord(void *event, void *handle) {
    int code = simt_enter("cuEventRecord", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    struct stream *s = find_stream(handle);
    struct event *e = find_event(event);
    if (s == NULL || e == NULL) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    struct op *op = new_op(s, OP_RECORD);
    if (op == NULL) {
        return simt_leave(SIMT_OUT_OF_MEMORY);
    }
    op->event = e;
    e->refs++;
    e->stream = s;
    e->seq = op->seq;
    e->queries = 0;
    return simt_leave(0);
}

static b8 pending(const struct event *e) {
    return e->done_seq < e->seq;
}

int cuEventSynchronize(void *event) {
    int code = simt_enter("cuEventSynchronize", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    struct event *e = find_event(event);
    if (e == NULL) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    return simt_leave(pending(e) ? force(e->stream, e->seq) : 0);
}

/* Twice `not ready`, then the work is done: pollers get to see both. */
int cuEventQuery(void *event) {
    int code = simt_enter("cuEventQuery", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    struct event *e = find_event(event);
    if (e == NULL) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    if (!pending(e)) {
        return simt_leave(0);
    }
    return simt_leave(e->queries++ < 2 ? SIMT_NOT_READY : force(e->stream, e->seq));
}

int cuEventElapsedTime(float *ms, void *start, void *end) {
    int code = simt_enter("cuEventElapsedTime", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    const struct event *a = find_event(start);
    const struct event *b = find_event(end);
    if (a == NULL || b == NULL || a->seq == 0 || b->seq == 0 || ((a->flags | b->flags) & 2) != 0) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    if (pending(a) || pending(b)) {
        return simt_leave(SIMT_NOT_READY);
    }
    *ms = (float)((double)(i64)(b->done_ns - a->done_ns) / 1e6);
    return simt_leave(0);
}
