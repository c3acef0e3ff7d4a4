/* frames.c: columns of the database file in memory, while they are needed.
 *
 * A frame is an address range that is reserved when the file is opened, so that segments and whatever
 * points into them never change, and pages that come and go. It is empty, being filled, or full; a
 * full one is held by so many, or rests in one of two lists until the budget has no room
 * (memory.idle): those that were asked for once go first, see rest and first_to_go. Held bytes count
 * as used, resting ones as idle. Whoever holds an empty one fills it: reads the extent, looks at its
 * checksum and at what the codes and offsets in it can be, since nobody asks again. Pages of an empty
 * frame cannot be read: who forgets to hold one finds out at once.
 *
 * The extent stays where it is as long as the frame lives, also when the file has newer states: see
 * frames_spans. Small columns are never given back: a page each is less than their frames are.
 *
 * A packed column of numbers may be wanted as it lies, by a card that unpacks it: for that a frame has
 * a twin, a frame of the same extent that is made when first asked for and comes and goes by itself.
 *
 * Where memory has no room for a column and whoever asks has no other way, its pages are those of a block of
 * temporary space until nobody holds it (decision 0087). An empty frame of the room is as before.
 *
 * Three threads read ahead, and unpack: while one waits for the disk others compute. The system is told
 * beforehand only of what comes through its cache (column_goes_past; decision 0085).
 *
 * One lock for all frames of a file: what it guards takes nanoseconds, except that pages are given
 * back under it, which a reservation waits for anyway. Reading happens without it. */
#include "store/frames.h"

#include "store/frames_int.h"
#include "base/temp.h"
#include "store/packed.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef WF_HARD
enum { SMALL_BYTES = 0 }; /* test builds: all of them come and go, as soon as they can */
bool frames_go_at_once = true;
#else
enum { SMALL_BYTES = 1 << 16 };
bool frames_go_at_once = false;
#endif

enum {
    READERS = 3, /* threads that read ahead */
    STAYS_OF = 8, /* one of so many that were read once */
    /* Of a limit, what columns leave that may lie aside, and those that are held until a statement ends. */
    SMALL_SHARE = 4096, /* of a limit, what a small column is at most */
    SPARE_SHARE = 8,
    LONG_SHARE = 2,
    SPARE_BYTES = 64 << 20, /* ... at most */
};
/* Workers of a scan hold a column one after the other: it rests for moments, and not for long in all. */
static const i64 same_scan_ns = 100000000, one_scan_ns = 2000000000;
/* What was asked for again, but not for so long, is no better than what was asked for once. */
i64 frames_stale_ns = 60000000000;

enum frame_state { FRAME_EMPTY, FRAME_FILLING, FRAME_FULL };

struct seg_frame {
    struct frames *frames;
    struct buffer *buf;
    struct frame_form form;
    struct buffer *twin;            /* the same column, packed; or NULL */
    i64 room;                       /* bytes of the address range; 0 = it is a block of its own */
    u8 *aside;                      /* FULL: its bytes are a block of temporary space; NULL = of memory */
    u8 state;                       /* enum frame_state */
    b8 is_unasked;                  /* FULL: nobody has asked for it yet */
    b8 is_ahead;                    /* and it was read ahead: somebody will */
    b8 is_reused;                   /* FULL: it was asked for again, later than by one scan */
    b8 is_expected;                 /* EMPTY: the disk knows that it will be read */
    b8 is_queued;                   /* to be read ahead; not any more where others were faster */
    b8 is_unsaved;                  /* FULL, and not in the file: it holds itself */
    b8 was_here;                    /* EMPTY: it was FULL before */
    i32 holds;                      /* FULL: 0 = it rests */
    i64 read_ns;                    /* when it was first asked for */
    i64 rest_ns;                    /* since when it rests */
    struct seg_frame *newer, *older; /* of those that rest */
    struct seg_frame *next, *before; /* of all */
    i64 bytes;                      /* of this block, names included */
};

/* Frames that rest; the oldest goes first. */
struct resting {
    struct seg_frame *newest, *oldest;
    i64 bytes;
};

struct frames {
    _Atomic i32 refs; /* frames, and the file */
    struct memory *mem;
    struct mutex lock; /* of all that follows, and of the frames' states */
    struct cond filled;
    struct db_file *file; /* NULL: closed */
    struct seg_frame *all;
    i64 count; /* of all */
    struct resting once, again; /* asked for at most once; again, see is_reused */
    i64 ahead_bytes;            /* of `once`, that were read ahead */
    u64 rested;                 /* how often one of `once` did */
    struct temp aside;          /* of columns that memory has no room for */
    /* Reading ahead. */
    struct thread *readers[READERS];
    i32 reader_count; /* as many as there was work for */
    i32 waiting; /* of them, for work */
    struct cond wanted;
    struct buffer *queue[64];
    i32 queued;
    b8 stop;
};

struct frames *frames_retain(struct frames *frames) {
    atomic_fetch_add(&frames->refs, 1);
    return frames;
}

void frames_release(struct frames *frames) {
    if (!frames || atomic_fetch_sub(&frames->refs, 1) != 1) {
        return;
    }
    struct idle *idle = &frames->mem->idle[IDLE_COLUMNS];
    if (idle->owner == frames) {
        idle->owner = NULL;
        idle->give_back = NULL;
    }
    temp_fini(&frames->aside, NULL);
    cond_fini(&frames->wanted);
    cond_fini(&frames->filled);
    mutex_fini(&frames->lock);
    mem_free(frames->mem, frames, (i64)sizeof *frames);
}

static void free_frame(struct buffer *buf);

static struct seg_frame *frame_of(const struct buffer *buf) {
    return buf && buf->free_data == free_frame ? buf->owner : NULL;
}

/* --- those that rest --- */

static struct resting *list_of(const struct seg_frame *f) {
    return f->is_reused ? &f->frames->again : &f->frames->once;
}

/* Of what was read once the newest goes first, so that a scan of more than there is room for throws out
 * what it has read itself, and not the part of its own rows that it will find here next time; but some
 * of it stays, or nothing new ever would. */
static void rest(struct seg_frame *f) {
    struct frames *frames = f->frames;
    struct resting *list = list_of(f);
    bool stays = f->is_reused || f->is_ahead || frames->rested++ % STAYS_OF == 0;
    if (stays) {
        f->newer = NULL;
        f->older = list->newest;
        *(list->newest ? &list->newest->newer : &list->oldest) = f;
        list->newest = f;
    } else {
        f->older = NULL;
        f->newer = list->oldest;
        *(list->oldest ? &list->oldest->older : &list->newest) = f;
        list->oldest = f;
    }
    f->rest_ns = clock_ns();
    list->bytes += f->room;
    frames->ahead_bytes += f->is_ahead ? f->room : 0;
    memory_rest(frames->mem, IDLE_COLUMNS, f->room);
}

/* It rests no more. Whoever calls sees to the budget. */
static void unlist(struct seg_frame *f) {
    struct resting *list = list_of(f);
    *(f->newer ? &f->newer->older : &list->newest) = f->older;
    *(f->older ? &f->older->newer : &list->oldest) = f->newer;
    list->bytes -= f->room;
    f->frames->ahead_bytes -= f->is_ahead ? f->room : 0;
    ASSERT(list->bytes >= 0 && f->frames->ahead_bytes >= 0);
}

/* What others use stays while there is anything else, unless they have stopped using it. */
static struct seg_frame *first_to_go(const struct frames *frames, i64 now) {
    struct seg_frame *again = frames->again.oldest;
    bool stale = again && now - again->rest_ns > frames_stale_ns;
    return stale || !frames->once.oldest ? again : frames->once.oldest;
}

/* Its pages go. It does not rest any more. */
static void empty(struct seg_frame *f) {
    if (atomic_load(&f->buf->pinned) && buffer_unpin) {
        buffer_unpin(f->buf);
    }
    if (f->aside) {
        temp_hide(&f->frames->aside, f->buf->data, f->room);
        temp_free(&f->frames->aside, f->aside, f->room);
        f->aside = NULL;
    } else {
        room_empty(f->buf->data, f->room);
    }
    f->state = FRAME_EMPTY;
}

static void give_back(void *owner, i64 bytes) {
    struct frames *frames = owner;
    mutex_lock(&frames->lock);
    i64 now = clock_ns();
    for (struct seg_frame *f; bytes > 0 && (f = first_to_go(frames, now));) {
        unlist(f);
        atomic_fetch_sub(&frames->mem->idle[IDLE_COLUMNS].bytes, f->room);
        empty(f);
        bytes -= f->room;
    }
    mutex_unlock(&frames->lock);
}

/* --- all of them --- */

struct frames *frames_open(struct memory *mem, struct db_file *file) {
    struct frames *frames = mem_alloc(mem, (i64)sizeof *frames);
    if (!frames) {
        return NULL;
    }
    memset(frames, 0, sizeof *frames);
    atomic_init(&frames->refs, 1);
    frames->mem = mem;
    frames->file = file;
    temp_init(&frames->aside, "/tmp", 0, mem->limit_bytes / WARM_SHARE);
    mutex_init(&frames->lock);
    cond_init(&frames->filled);
    cond_init(&frames->wanted);
    return frames;
}

void frames_set_aside(struct frames *frames, const char *folder, i64 limit_bytes) {
    temp_fini(&frames->aside, NULL);
    temp_init(&frames->aside, folder, limit_bytes, frames->mem->limit_bytes / WARM_SHARE);
}

wf_status frames_check(struct frames *frames, struct error *err) {
    return frames ? temp_check(&frames->aside, err) : ERR_OK;
}

void frames_close(struct frames *frames) {
    if (!frames) {
        return;
    }
    mutex_lock(&frames->lock);
    frames->stop = 1;
    cond_broadcast(&frames->wanted);
    mutex_unlock(&frames->lock);
    for (i32 i = 0; i < frames->reader_count; i++) {
        thread_join(frames->readers[i]);
    }
    mutex_lock(&frames->lock);
    frames->file = NULL;
    mutex_unlock(&frames->lock);
    frames_release(frames);
}

/* Room comes first: a reservation may have to give back frames, under the lock. */
bool frames_spans(struct frames *frames, struct spans *out) {
    mutex_lock(&frames->lock);
    while (out->cap - out->count < frames->count) {
        i64 wanted = frames->count;
        mutex_unlock(&frames->lock);
        if (!spans_reserve(out, wanted)) {
            return false;
        }
        mutex_lock(&frames->lock);
    }
    for (const struct seg_frame *f = frames->all; f; f = f->next) {
        if (f->form.extent.bytes) {
            out->items[out->count++] = (struct span){f->form.extent.at, f->form.extent.bytes};
        }
    }
    mutex_unlock(&frames->lock);
    return true;
}

/* The first one that can go tells the budget whom to ask. Of several files, one's do. */
static void register_idle(struct frames *frames) {
    struct idle *idle = &frames->mem->idle[IDLE_COLUMNS];
    if (!idle->owner) {
        idle->owner = frames;
        idle->give_back = give_back;
    }
}

static void free_frame(struct buffer *buf) {
    struct seg_frame *f = buf->owner;
    struct frames *frames = f->frames;
    mutex_lock(&frames->lock);
    ASSERT(f->holds == f->is_unsaved && f->state != FRAME_FILLING);
    frames->count--;
    *(f->before ? &f->before->next : &frames->all) = f->next;
    if (f->next) {
        f->next->before = f->before;
    }
    if (f->is_unsaved) {
        memory_release(frames->mem, f->room);
    } else if (f->room && f->state == FRAME_FULL) {
        unlist(f);
        atomic_fetch_sub(&frames->mem->idle[IDLE_COLUMNS].bytes, f->room);
    }
    mutex_unlock(&frames->lock);
    buffer_release(f->twin);
    if (f->room) {
        room_close(buf->data, f->room);
    } else {
        mem_free(frames->mem, buf->data, f->form.lay.total + FRAME_PAD);
    }
    mem_free(frames->mem, f, f->bytes);
    frames_release(frames);
}

static struct seg_frame *frame_alloc(struct memory *mem, const struct frame_form *form) {
    i64 table = (i64)strlen(form->table) + 1, column = (i64)strlen(form->column) + 1;
    i64 bytes = (i64)sizeof(struct seg_frame) + table + column;
    struct seg_frame *f = mem_alloc(mem, bytes);
    if (f) {
        memset(f, 0, sizeof *f);
        f->bytes = bytes;
        f->form = *form;
        f->form.table = memcpy(f + 1, form->table, (size_t)table);
        f->form.column = memcpy((char *)(f + 1) + table, form->column, (size_t)column);
    }
    return f;
}

/* Small columns stay in memory once they are there, so of little memory they are smaller. */
static bool is_small(const struct frames *frames, i64 total) {
    i64 most = MAX_OF(frames->mem->limit_bytes / SMALL_SHARE, PAGE_BYTES);
    return total + FRAME_PAD <= MIN_OF(SMALL_BYTES, most);
}

struct buffer *frame_new(struct frames *frames, const struct frame_form *form) {
    struct memory *mem = frames->mem;
    i64 total = form->lay.total;
    struct seg_frame *f = frame_alloc(mem, form);
    if (!f) {
        return NULL;
    }
    bool small = is_small(frames, total);
    f->frames = frames;
    f->room = small ? 0 : ALIGN_UP(total + FRAME_PAD, 4096);
    u8 *data = small ? mem_alloc(mem, total + FRAME_PAD) : room_open(f->room);
    f->buf = data ? buffer_wrap(mem, data, total, free_frame, f) : NULL;
    if (!f->buf) {
        if (data && f->room) {
            room_close(data, f->room);
        } else if (data) {
            mem_free(mem, data, total + FRAME_PAD);
        }
        mem_free(mem, f, f->bytes);
        return NULL;
    }
    atomic_fetch_add(&frames->refs, 1);
    mutex_lock(&frames->lock);
    register_idle(frames);
    f->next = frames->all;
    if (f->next) {
        f->next->before = f;
    }
    frames->all = f;
    frames->count++;
    mutex_unlock(&frames->lock);
    return f->buf;
}

struct buffer *frame_new_full(struct frames *frames, const struct frame_form *form,
                              bool *out_small) {
    i64 total = form->lay.total, room = ALIGN_UP(total + FRAME_PAD, 4096);
    *out_small = is_small(frames, total);
    if (*out_small || !memory_reserve(frames->mem, room)) {
        return NULL;
    }
    struct buffer *buf = frame_new(frames, form);
    struct seg_frame *f = frame_of(buf);
    if (!f || !room_fill(buf->data, room)) {
        memory_release(frames->mem, room);
        buffer_release(buf);
        return NULL;
    }
    memset(buf->data + total, 0, FRAME_PAD);
    f->state = FRAME_FULL;
    f->holds = 1;
    f->is_unsaved = f->was_here = 1;
    return buf;
}

bool frame_of_file(const struct buffer *buf, const struct db_file *file) {
    const struct seg_frame *f = frame_of(buf);
    return f && f->frames->file == file;
}

/* --- filling --- */

static FALLIBLE frame_damaged(const struct seg_frame *f, const char *what, struct error *err) {
    error_set(err, ERR_DAMAGED, -1,
              "%s \"%.60s\" of table \"%.60s\" in \"%.120s\" is damaged: %s (%lld bytes at %lld)",
              f->form.is_key ? "key" : "column", f->form.column, f->form.table, db_file_path(f->frames->file), what,
              (long long)f->form.extent.bytes, (long long)f->form.extent.at);
    error_hint(err, "Nothing was changed. Other columns and tables can be read: copy out what is "
                    "left, or take the table from a backup; CALL check_database() lists all damage.");
    return err->code;
}

/* Codes must be some of the dictionary, offsets must ascend to the end of the text. */
static bool codes_fit(const struct frame_form *form, const u8 *data) {
    u32 top = 0;
    bool fine = true;
    const u32 *words = (const u32 *)(const void *)data;
    if (form->encoding == ENC_STR) {
        for (i64 i = 1; i < form->rows; i++) {
            fine &= words[i] >= words[i - 1];
        }
        return fine && (i64)words[form->rows - 1] == form->text_bytes;
    }
    for (i64 i = 0; i < form->rows; i++) { /* 0 where a row is NULL */
        u32 code = form->width == 1   ? data[i]
                   : form->width == 2 ? ((const u16 *)(const void *)data)[i]
                                      : words[i];
        top = MAX_OF(top, code);
    }
    return (i64)top < form->dict_len || (form->dict_len == 0 && top == 0 && form->has_valid);
}

/* The extent as it was written, where there are `room` bytes. */
static FALLIBLE extent_bytes(const struct seg_frame *f, u8 *to, i64 room, struct error *err) {
    const struct extent *extent = &f->form.extent;
    struct db_file *file = f->frames->file;
    i64 code = column_read(file, extent, f->was_here, to, room);
    if (code) {
        return disk_failed(err, "read", file->path, code);
    }
    return bytes_sum(to, extent->bytes, 0) == extent->sum
               ? ERR_OK
               : frame_damaged(f, "the checksum is wrong", err);
}

static u8 *scratch_take(struct frames *frames, i64 bytes, bool aside) {
    u8 *block = mem_alloc(frames->mem, bytes);
    return block || !aside ? block : temp_alloc(&frames->aside, bytes);
}

void *frames_scratch(struct frames *frames, i64 bytes) {
    return scratch_take(frames, bytes, true);
}

void frames_scratch_end(struct frames *frames, void *block, i64 bytes) {
    if (block && temp_owns(&frames->aside, block)) {
        temp_free(&frames->aside, block, bytes);
    } else {
        mem_free(frames->mem, block, bytes);
    }
}

static FALLIBLE aside_refused(struct frames *frames, struct error *err, i64 bytes) {
    bool failed = temp_failed(&frames->aside);
    return failed ? temp_refused(&frames->aside, err) : memory_refused(frames->mem, err, bytes);
}

/* Into the frame, as it lies. */
static FALLIBLE bytes_here(const struct seg_frame *f, struct error *err) {
    i64 bytes = f->form.extent.bytes;
    TRY(extent_bytes(f, f->buf->data, f->room, err));
    memset(f->buf->data + bytes, 0, (size_t)(f->form.lay.total + FRAME_PAD - bytes));
    return ERR_OK;
}

/* Into the frame, unpacked. */
static FALLIBLE unpacked_here(const struct seg_frame *f, const struct packed_form *packed, bool aside,
                              struct error *err) {
    i64 bytes = f->form.extent.bytes, room = ALIGN_UP(bytes, PAGE_BYTES);
    i64 all = mem_huge(f->frames->mem, room + packed_scratch_bytes(packed) + PAGE_BYTES);
    u8 *block = scratch_take(f->frames, all, aside), *at = (u8 *)ALIGN_UP((size_t)block, (size_t)PAGE_BYTES);
    if (!block) {
        return aside_refused(f->frames, err, all);
    }
    memset(f->buf->data + f->form.lay.total, 0, FRAME_PAD);
    wf_status status = extent_bytes(f, at, room, err);
    bool fits = status || column_unpack(at, bytes, packed, at + room, f->buf->data);
    frames_scratch_end(f->frames, block, all);
    return status || fits ? status : frame_damaged(f, "it cannot be unpacked", err);
}

static FALLIBLE frame_read(struct seg_frame *f, bool aside, struct error *err) {
    const struct frame_form *form = &f->form;
    u8 *data = f->buf->data;
    if (!f->frames->file) {
        FAIL(err, IO, "the database is closed");
    }
    struct packed_form packed = {form->rows, form->width, form->lay, form->text_bytes};
    if (form->is_packed) {
        TRY(bytes_here(f, err));
        u32 *starts = (u32 *)(void *)(data + ALIGN_UP(form->extent.bytes, 8));
        return packed_starts(data, form->extent.bytes, &packed, starts)
                   ? ERR_OK
                   : frame_damaged(f, "it cannot be unpacked", err);
    }
    TRY(form->extent.packed ? unpacked_here(f, &packed, aside, err) : bytes_here(f, err));
    bool text = form->encoding == ENC_DICT || form->encoding == ENC_STR;
    return text && !codes_fit(form, data) ? frame_damaged(f, "its text cannot be", err) : ERR_OK;
}

/* Its pages are those of a block of temporary space, at its own addresses. */
static FALLIBLE fill_aside(struct seg_frame *f, struct error *err) {
    struct temp *temp = &f->frames->aside;
    temp_forget(temp);
    u8 *block = temp_alloc(temp, f->room);
    if (!block || !temp_show(temp, block, f->buf->data, f->room)) {
        if (block) {
            temp_free(temp, block, f->room);
        }
        return aside_refused(f->frames, err, f->room);
    }
    f->aside = block;
    wf_status status = frame_read(f, true, err);
    if (status) {
        empty(f);
    }
    return status;
}

static FALLIBLE frame_fill(struct seg_frame *f, enum column_hold how, struct error *err) {
    struct memory *mem = f->frames->mem;
    bool aside = how != HOLD_IN_MEMORY, long_held = how == HOLD_LONG;
    if (!f->room) {
        return frame_read(f, aside, err);
    }
    i64 spare = MIN_OF(mem->limit_bytes / (long_held ? LONG_SHARE : SPARE_SHARE), SPARE_BYTES);
    if (aside && memory_left(mem) < f->room + spare) { /* for what is made of the rows that are read */
        return fill_aside(f, err);
    }
    if (!memory_reserve(mem, f->room)) {
        return aside ? fill_aside(f, err) : memory_refused(mem, err, f->room);
    }
    wf_status status = room_fill(f->buf->data, f->room)
                           ? frame_read(f, aside, err)
                           : memory_refused(mem, err, f->room);
    if (status) {
        room_empty(f->buf->data, f->room);
        memory_release(mem, f->room);
    }
    return status;
}

/* --- holding --- */

static void drop_locked(struct seg_frame *f) {
    ASSERT(f->holds > 0);
    if (--f->holds == 0 && f->aside) {
        empty(f);
    } else if (f->holds == 0 && f->room) {
        rest(f);
        if (frames_go_at_once) {
            unlist(f);
            atomic_fetch_sub(&f->frames->mem->idle[IDLE_COLUMNS].bytes, f->room);
            empty(f);
        }
    }
}

/* Under the lock, which is let go while the frame is filled. */
static FALLIBLE hold_locked(struct seg_frame *f, enum column_hold how, struct error *err) {
    struct frames *frames = f->frames;
    while (f->state == FRAME_FILLING) {
        cond_wait(&frames->filled, &frames->lock);
    }
    if (f->state == FRAME_FULL) {
        if (f->holds++ == 0 && f->room) {
            i64 now = clock_ns();
            unlist(f);
            f->is_reused |= !f->is_unasked && (now - f->rest_ns > same_scan_ns ||
                                               now - f->read_ns > one_scan_ns);
            f->read_ns = f->is_unasked ? now : f->read_ns;
            f->is_unasked = f->is_ahead = 0;
            memory_wake(frames->mem, IDLE_COLUMNS, f->room);
        }
        return ERR_OK;
    }
    f->state = FRAME_FILLING;
    f->is_expected = f->is_queued = 0;
    mutex_unlock(&frames->lock);
    wf_status status = frame_fill(f, how, err);
    mutex_lock(&frames->lock);
    f->state = status ? FRAME_EMPTY : FRAME_FULL;
    f->was_here |= !status;
    f->holds = status ? 0 : 1;
    f->read_ns = clock_ns();
    f->is_unasked = f->is_ahead = f->is_reused = 0;
    cond_broadcast(&frames->filled);
    return status;
}

static FALLIBLE hold(struct seg_frame *f, enum column_hold how, struct error *err) {
    mutex_lock(&f->frames->lock);
    wf_status status = hold_locked(f, how, err);
    mutex_unlock(&f->frames->lock);
    return status;
}

static void drop(struct seg_frame *f) {
    mutex_lock(&f->frames->lock);
    drop_locked(f);
    mutex_unlock(&f->frames->lock);
}

/* Whoever is reading it reads from where it was; so does who holds its twin. */
void frame_place(struct buffer *buf, const struct extent *extent) {
    struct seg_frame *f = frame_of(buf);
    mutex_lock(&f->frames->lock);
    while (f->state == FRAME_FILLING) {
        cond_wait(&f->frames->filled, &f->frames->lock);
    }
    f->form.extent = *extent;
    struct buffer *twin = f->twin;
    f->twin = NULL;
    mutex_unlock(&f->frames->lock);
    buffer_release(twin);
}

void frame_saved(struct buffer *buf) {
    struct seg_frame *f = frame_of(buf);
    mutex_lock(&f->frames->lock);
    if (f->is_unsaved) {
        f->is_unsaved = 0;
        drop_locked(f);
        f->is_unasked = f->holds == 0; /* who made it has not asked for it */
    }
    mutex_unlock(&f->frames->lock);
}

/* A tail's columns have several buffers, and no frame. */
static struct seg_frame *column_frame(const struct tablet *tablet, u32 col) {
    return tablet->framed && !tablet->tail ? frame_of(tablet->buffers[col]) : NULL;
}

wf_status column_hold(const struct tablet *tablet, u32 col, enum column_hold how, struct error *err) {
    struct seg_frame *f = column_frame(tablet, col);
    return f ? hold(f, how, err) : ERR_OK;
}

void column_drop(const struct tablet *tablet, u32 col) {
    struct seg_frame *f = column_frame(tablet, col);
    if (f) {
        drop(f);
    }
}

/* All columns that come and go are of one file. */
wf_status columns_check(const struct table_version *version, struct error *err) {
    for (i64 t = 0; t < version->tablet_count; t++) {
        for (u32 c = 0; c < version->tablets[t]->col_count && version->tablets[t]->framed; c++) {
            struct seg_frame *f = column_frame(version->tablets[t], c);
            if (f) {
                return frames_check(f->frames, err);
            }
        }
    }
    return ERR_OK;
}

i64 column_missing_bytes(const struct tablet *tablet, u32 col) {
    struct seg_frame *f = column_frame(tablet, col);
    if (!f) {
        return 0;
    }
    mutex_lock(&f->frames->lock);
    i64 bytes = f->state == FRAME_FULL ? 0 : f->form.lay.total;
    mutex_unlock(&f->frames->lock);
    return bytes;
}

/* --- twins --- */

/* The packed form of a column that is in memory in neither, or in this one; counted. NULL: there is
 * none, memory is short, or the column itself is there. */
static struct buffer *twin_of(struct seg_frame *f) {
    struct frames *frames = f->frames;
    mutex_lock(&frames->lock);
    struct frame_form form = f->form;
    bool numbers = form.encoding == ENC_INT || form.encoding == ENC_DICT;
    bool wanted = f->room && form.extent.packed && numbers && !form.is_key && f->state == FRAME_EMPTY;
    struct buffer *twin = wanted && f->twin ? buffer_retain(f->twin) : NULL;
    mutex_unlock(&frames->lock);
    if (twin || !wanted) {
        return twin;
    }
    form.is_packed = 1;
    form.lay.total = ALIGN_UP(form.extent.bytes, 8) + 4 * packed_block_count(form.rows);
    twin = frame_new(frames, &form);
    mutex_lock(&frames->lock);
    struct buffer *other = f->twin;
    if (twin && !other && f->form.extent.at == form.extent.at) {
        f->twin = buffer_retain(twin);
    } else if (twin && other) {
        buffer_retain(other);
    } /* else the column has been moved: this one is the caller's alone */
    mutex_unlock(&frames->lock);
    if (twin && other) {
        buffer_release(twin);
        twin = other;
    }
    return twin;
}

/* --- reading ahead --- */

/* Is there room for it, and for what the statement itself is about to hold, beside what others use and
 * what was read ahead before? */
static bool room_ahead(const struct seg_frame *f) {
    i64 wanted = f->frames->again.bytes + f->frames->ahead_bytes;
    return memory_left(f->frames->mem) - wanted > 16 * f->room;
}

/* Under the lock: reads a column that nobody is reading, for whoever asks for it next. */
static void fill_unasked(struct seg_frame *f) {
    struct error ignored; /* who needs it meets it again */
    error_reset(&ignored);
    if (f->state == FRAME_EMPTY && room_ahead(f) && !hold_locked(f, HOLD_IN_MEMORY, &ignored)) {
        f->is_unasked = f->is_ahead = 1;
        drop_locked(f);
    }
}

static void read_ahead(void *arg) {
    struct frames *frames = arg;
    mutex_lock(&frames->lock);
    while (!frames->stop) {
        if (!frames->queued) {
            frames->waiting++;
            cond_wait(&frames->wanted, &frames->lock);
            frames->waiting--;
            continue;
        }
        struct buffer *buf = frames->queue[0];
        memmove(frames->queue, frames->queue + 1, (size_t)--frames->queued * sizeof *frames->queue);
        struct seg_frame *f = frame_of(buf);
        bool wanted = f->is_queued;
        f->is_queued = 0;
        if (wanted) {
            fill_unasked(f);
        }
        mutex_unlock(&frames->lock);
        buffer_release(buf);
        mutex_lock(&frames->lock);
    }
    while (frames->queued) {
        struct buffer *buf = frames->queue[--frames->queued];
        mutex_unlock(&frames->lock);
        buffer_release(buf);
        mutex_lock(&frames->lock);
    }
    mutex_unlock(&frames->lock);
}

/* The disk begins with it; once for every time that it is filled. The system takes its time to make
 * room for it, for which nobody else waits. False: it is to come past the system's cache. */
static bool expect(struct seg_frame *f) {
    mutex_lock(&f->frames->lock);
    struct db_file *file = f->frames->file;
    bool wanted = f->state == FRAME_EMPTY && !f->is_expected && file, again = f->was_here;
    struct extent extent = f->form.extent;
    mutex_unlock(&f->frames->lock);
    if (wanted && column_goes_past(file, &extent, again)) {
        return false;
    }
    mutex_lock(&f->frames->lock);
    wanted = wanted && f->state == FRAME_EMPTY && !f->is_expected;
    f->is_expected |= wanted;
    mutex_unlock(&f->frames->lock);
    if (wanted) {
        disk_now->expect(file->file, extent.at, extent.bytes);
    }
    return true;
}

/* The column's frame, or its twin; counted. NULL: it does not come and go. */
static struct buffer *coming(const struct tablet *tablet, u32 col, bool packed) {
    struct seg_frame *f = column_frame(tablet, col);
    if (!f || !f->room || frames_go_at_once) {
        return NULL;
    }
    struct buffer *twin = packed ? twin_of(f) : NULL;
    return twin ? twin : buffer_retain(f->buf);
}

static void read_soon(struct seg_frame *f) {
    struct frames *frames = f->frames;
    mutex_lock(&frames->lock);
    bool wanted = f->state == FRAME_EMPTY && !f->is_queued && !frames->stop &&
                  frames->queued < (i32)COUNT_OF(frames->queue) && room_ahead(f);
    if (wanted && frames->waiting == 0 && frames->reader_count < READERS) {
        frames->readers[frames->reader_count] = thread_start(read_ahead, frames);
        frames->reader_count += frames->readers[frames->reader_count] != NULL;
    }
    if (wanted && frames->reader_count) {
        f->is_queued = 1;
        frames->queue[frames->queued++] = buffer_retain(f->buf);
        cond_broadcast(&frames->wanted);
    }
    mutex_unlock(&frames->lock);
}

void column_ahead(const struct tablet *tablet, u32 col, bool packed) {
    struct buffer *buf = coming(tablet, col, packed);
    if (buf) {
        (void)expect(frame_of(buf));
        read_soon(frame_of(buf));
        buffer_release(buf);
    }
}

/* What goes past the system's cache is read by a thread. */
void column_expect(const struct tablet *tablet, u32 col, bool packed) {
    struct buffer *buf = coming(tablet, col, packed);
    struct seg_frame *f = frame_of(buf);
    if (f) {
        if (!expect(f)) {
            read_soon(f);
        }
        buffer_release(buf);
    }
}

void column_help(const struct tablet *tablet, u32 col, bool packed) {
    struct buffer *buf = coming(tablet, col, packed);
    struct seg_frame *f = frame_of(buf);
    if (f) {
        mutex_lock(&f->frames->lock);
        fill_unasked(f);
        mutex_unlock(&f->frames->lock);
        buffer_release(buf);
    }
}

/* --- sets of held columns --- */

void pins_init(struct pins *pins, struct memory *mem) {
    *pins = (struct pins){.mem = mem};
    error_reset(&pins->err);
}

void pins_fini(struct pins *pins) {
    for (i64 i = 0; i < pins->cap; i++) {
        if (pins->items[i]) {
            drop(frame_of(pins->items[i]));
            buffer_release(pins->items[i]);
        }
    }
    mem_free(pins->mem, pins->items, pins->cap * (i64)sizeof *pins->items);
    pins->items = NULL;
    pins->count = pins->cap = pins->bytes = 0;
}

/* Where it is, or would be. */
static struct buffer **pins_at(const struct pins *pins, const struct buffer *buf) {
    u64 at = hash_u64((u64)(size_t)buf) & (u64)(pins->cap - 1);
    while (pins->items[at] && pins->items[at] != buf) {
        at = (at + 1) & (u64)(pins->cap - 1);
    }
    return &pins->items[at];
}

static bool pins_grow(struct pins *pins) {
    struct pins grown = *pins;
    grown.cap = MAX_OF(pins->cap * 2, 16);
    i64 item = (i64)sizeof *grown.items;
    grown.items = mem_alloc(pins->mem, grown.cap * item);
    if (!grown.items) {
        return false;
    }
    memset(grown.items, 0, (size_t)(grown.cap * item));
    for (i64 i = 0; i < pins->cap; i++) {
        if (pins->items[i]) {
            *pins_at(&grown, pins->items[i]) = pins->items[i];
        }
    }
    mem_free(pins->mem, pins->items, pins->cap * item);
    pins->items = grown.items;
    pins->cap = grown.cap;
    return true;
}

/* Takes over a hold. */
static FALLIBLE pins_keep_frame(struct pins *pins, struct seg_frame *f, struct error *err) {
    bool has = pins->cap && *pins_at(pins, f->buf);
    bool room = has || pins->count * 2 < pins->cap || pins_grow(pins);
    if (has || !room) {
        drop(f);
        return room ? ERR_OK : memory_refused(pins->mem, err, pins->cap * 16);
    }
    *pins_at(pins, f->buf) = buffer_retain(f->buf);
    pins->count++;
    pins->bytes += f->room;
    return ERR_OK;
}

wf_status pins_keep(struct pins *pins, const struct tablet *tablet, u32 col, struct error *err) {
    struct seg_frame *f = column_frame(tablet, col);
    return f ? pins_keep_frame(pins, f, err) : ERR_OK;
}

static FALLIBLE pins_hold_frame(struct pins *pins, struct seg_frame *f, struct error *err) {
    if (pins->cap && *pins_at(pins, f->buf)) {
        return ERR_OK;
    }
    TRY(hold(f, HOLD_LONG, err));
    return pins_keep_frame(pins, f, err);
}

wf_status pins_hold(struct pins *pins, const struct tablet *tablet, u32 col, struct error *err) {
    struct seg_frame *f = column_frame(tablet, col);
    return f ? pins_hold_frame(pins, f, err) : ERR_OK;
}

wf_status pins_hold_all(struct pins *pins, const struct tablet *tablet, struct error *err) {
    for (u32 c = 0; tablet->framed && c < tablet->col_count; c++) {
        TRY(pins_hold(pins, tablet, c, err));
    }
    return ERR_OK;
}

wf_status pins_hold_packed(struct pins *pins, const struct tablet *tablet, u32 col,
                           struct column_packed *out, struct error *err) {
    *out = (struct column_packed){0};
    struct seg_frame *f = column_frame(tablet, col);
    struct buffer *twin = f ? twin_of(f) : NULL;
    if (!twin) {
        return ERR_OK;
    }
    wf_status status = pins_hold_frame(pins, frame_of(twin), err);
    if (!status) {
        const struct frame_form *form = &frame_of(twin)->form;
        *out = (struct column_packed){
            .buf = twin,
            .bytes = form->lay.total,
            .starts_at = ALIGN_UP(form->extent.bytes, 8),
            .valid_at = form->extent.bytes - form->lay.valid_bytes,
            .block_count = packed_block_count(form->rows),
            .valid_words = form->lay.valid_bytes / 8,
            .code_count = form->encoding == ENC_DICT ? MAX_OF(form->dict_len, 1) : 0,
            .rows = form->rows,
            .width = form->width};
    }
    buffer_release(twin); /* held, it stays */
    return status;
}

static bool need(struct pins *pins, struct seg_frame *f) {
    if (!f || (pins->cap && *pins_at(pins, f->buf))) {
        return true;
    }
    if (pins->status) { /* what failed once is not tried for every row */
        return false;
    }
    pins->status = pins_hold_frame(pins, f, &pins->err);
    return !pins->status;
}

bool pins_need_slowly(struct pins *pins, const struct tablet *tablet, u32 col) {
    return need(pins, column_frame(tablet, col));
}

bool pins_need_frame(struct pins *pins, struct buffer *buf) {
    return need(pins, frame_of(buf));
}

wf_status pins_check(struct pins *pins, struct error *err) {
    if (pins->status) {
        *err = pins->err;
        return pins->status;
    }
    for (i64 i = 0; i < pins->cap; i++) {
        if (pins->items[i]) { /* all are of one file */
            return frames_check(frame_of(pins->items[i])->frames, err);
        }
    }
    return ERR_OK;
}
