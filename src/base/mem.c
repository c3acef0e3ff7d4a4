/* mem.c: budgets, blocks, arenas, buffers and growing text.
 *
 * Budgets nest: a reservation counts in the statement's budget and in the database's. The counters
 * are atomic, so workers allocate without a lock. An arena that meets a refusal goes on with
 * unaccounted memory and remembers it: plans and programs are small, and a check at the end of each
 * stage costs nothing, whereas a test after every allocation would be most of the code.
 * See decision 0003 and decision 0006. */
#define _DEFAULT_SOURCE /* MADV_HUGEPAGE */
#include "base/mem.h"

#include "base/temp.h"

#include <stdarg.h>
#include <stdio.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>

/* Of a limit, what large blocks leave: half of it to small ones, half to pages of temporary space that
 * were looked at (WARM_SHARE). */
enum { SPARE_SHARE = WARM_SHARE / 2 };

static _Atomic i64 fail_at;
static _Atomic i64 reserve_count;

void memory_init(struct memory *mem, struct memory *parent, i64 limit_bytes, const char *setting) {
    mem->parent = parent;
    atomic_init(&mem->used_bytes, 0);
    atomic_init(&mem->peak_bytes, 0);
    mem->limit_bytes = limit_bytes;
    mem->setting = setting;
    mem->program_bytes = 0;
    for (i32 i = 0; i < IDLE_KINDS; i++) {
        atomic_init(&mem->idle[i].bytes, 0);
        mem->idle[i].give_back = NULL;
        mem->idle[i].owner = NULL;
    }
    mem->temp = NULL;
    for (i32 i = 0; i < IDENTITY_KINDS; i++) {
        atomic_init(&mem->identities[i], 0);
    }
}

u64 memory_identity(struct memory *mem, enum identity kind) {
    while (mem->parent) {
        mem = mem->parent;
    }
    return atomic_fetch_add_explicit(&mem->identities[kind], 1, memory_order_relaxed) + 1;
}

i64 memory_fail_at(i64 nth) {
    i64 made = atomic_exchange(&reserve_count, 0);
    atomic_store(&fail_at, nth);
    return made;
}

static bool fails_now(void) {
    i64 nth = atomic_fetch_add_explicit(&reserve_count, 1, memory_order_relaxed) + 1;
    return nth == atomic_load_explicit(&fail_at, memory_order_relaxed);
}

/* Blocks of column size that were freed, kept for the next statement: fresh pages cost more to
 * fault in than a result costs to compute. At most KEEP_BYTES stay, and no more than the budget that
 * asks next has room for, whoever asks: blocks, arenas, columns of the file. Test builds keep none, so
 * that the sanitizers see each use after free. */
enum {
    KEEP_MIN_SHIFT = 16, /* from 64 KiB */
    KEEP_CLASSES = 64,   /* four per power of two */
};
#ifdef WF_HARD
static const i64 keep_bytes_max = 0;
#else
static const i64 keep_bytes_max = 512LL << 20;
#endif

/* Blocks of column size are pages of their own and go back to the system when they are given up: the
 * allocator would keep what lies between others, a sixth of a budget of 2 GB. Large ones ask for huge
 * pages (room.c). */
enum { PAGE = 4096 };

static bool is_mapped(i64 size) {
    return size > 1LL << KEEP_MIN_SHIFT && keep_bytes_max > 0;
}

static void *block_map(i64 size) {
    i64 bytes = ALIGN_UP(size, PAGE);
    void *at = room_open(bytes);
    if (at && !room_fill(at, bytes)) {
        room_close(at, bytes);
        return NULL;
    }
    return at;
}

static void *block_alloc(i64 size) {
    return is_mapped(size) ? block_map(size) : aligned_alloc(64, (size_t)size);
}

static void block_free(void *ptr, i64 size) {
    if (is_mapped(size)) {
        room_close(ptr, ALIGN_UP(size, PAGE));
    } else {
        free(ptr);
    }
}

struct kept {
    struct kept *next;
    i64 size;
};

static struct {
    atomic_flag busy;
    _Atomic i64 bytes; /* changed under the lock */
    struct kept *lists[KEEP_CLASSES];
    u64 used[KEEP_CLASSES]; /* when a block was last taken or put, by `ticks` */
    u64 ticks;
} keep = {.busy = ATOMIC_FLAG_INIT};

static void keep_lock(void) {
    while (atomic_flag_test_and_set_explicit(&keep.busy, memory_order_acquire)) {
    }
}

static void keep_unlock(void) {
    atomic_flag_clear_explicit(&keep.busy, memory_order_release);
}

/* The class of a size and the size its blocks have; -1 when such blocks are not kept. */
static i32 keep_class(i64 bytes, i64 *out_size) {
    *out_size = bytes;
    if (bytes <= 1LL << KEEP_MIN_SHIFT || keep_bytes_max == 0) {
        return -1;
    }
    i32 shift = 63 - __builtin_clzll((u64)(bytes - 1)); /* 2^shift < bytes <= 2^(shift + 1) */
    i64 quarter = (1LL << shift) / 4;
    i64 quarters = (bytes - (1LL << shift) + quarter - 1) / quarter; /* 1 to 4 */
    i32 class = (shift - KEEP_MIN_SHIFT) * 4 + (i32)quarters - 1;
    if (class >= KEEP_CLASSES) {
        return -1;
    }
    *out_size = (1LL << shift) + quarters * quarter;
    return class;
}

static void *keep_take(i32 class, i64 size) {
    keep_lock();
    struct kept *block = keep.lists[class];
    keep.used[class] = ++keep.ticks;
    if (block) {
        keep.lists[class] = block->next;
        keep.bytes -= size;
    }
    keep_unlock();
    return block;
}

/* A block of the size that was wanted least recently, out of the lists; NULL when there is none but
 * of `class`. Under the lock. */
static struct kept *keep_oldest(i32 class) {
    i32 oldest = -1;
    for (i32 c = 0; c < KEEP_CLASSES; c++) {
        if (c != class && keep.lists[c] && (oldest < 0 || keep.used[c] < keep.used[oldest])) {
            oldest = c;
        }
    }
    struct kept *block = oldest < 0 ? NULL : keep.lists[oldest];
    if (block) {
        keep.lists[oldest] = block->next;
        keep.bytes -= block->size;
    }
    return block;
}

static void free_kept(struct kept *gone) {
    while (gone) {
        struct kept *next = gone->next;
        block_free(gone, gone->size);
        gone = next;
    }
}

/* Makes room by giving up sizes that nobody asked for lately: what a load left behind must not keep
 * the blocks of queries out. */
static bool keep_put(i32 class, i64 size, void *ptr) {
    struct kept *block = ptr;
    struct kept *gone = NULL;
    keep_lock();
    keep.used[class] = ++keep.ticks;
    bool room = keep.bytes + size <= keep_bytes_max;
    while (!room) {
        struct kept *old = size <= keep_bytes_max ? keep_oldest(class) : NULL;
        if (!old) {
            break;
        }
        old->next = gone;
        gone = old;
        room = keep.bytes + size <= keep_bytes_max;
    }
    if (room) {
        block->size = size;
        block->next = keep.lists[class];
        keep.lists[class] = block;
        keep.bytes += size;
    }
    keep_unlock();
    free_kept(gone);
    return room;
}

/* So many bytes of kept blocks go back to the system, or all there are. */
static void keep_give_back(i64 bytes) {
    struct kept *gone = NULL;
    keep_lock();
    for (i64 least = keep.bytes - bytes; keep.bytes > MAX_OF(least, 0);) {
        struct kept *block = keep_oldest(-1);
        block->next = gone;
        gone = block;
    }
    keep_unlock();
    free_kept(gone);
}

static i64 keep_bytes(void) {
    return atomic_load_explicit(&keep.bytes, memory_order_relaxed);
}

static i64 idle_bytes(const struct memory *mem) {
    i64 bytes = 0;
    for (i32 i = 0; i < IDLE_KINDS; i++) {
        bytes += atomic_load_explicit(&mem->idle[i].bytes, memory_order_acquire);
    }
    return bytes;
}

/* What may be used of a limit; large: by blocks that leave a part of it to others. */
static i64 room_of(const struct memory *mem, bool large) {
    return mem->limit_bytes - mem->program_bytes - (large ? mem->limit_bytes / SPARE_SHARE : 0);
}

/* Kept blocks first: the others have to be made again. Then sorted rows and columns: blocks for transfers
 * are needed soon. */
static void give_back(struct memory *mem, i64 bytes) {
    i64 kept = mem->parent ? 0 : keep_bytes();
    if (kept > 0) {
        keep_give_back(bytes);
        bytes -= kept;
    }
    for (i32 i = IDLE_KINDS; i-- > 0 && bytes > 0;) {
        i64 idle = atomic_load_explicit(&mem->idle[i].bytes, memory_order_acquire);
        if (idle > 0 && mem->idle[i].give_back) {
            mem->idle[i].give_back(mem->idle[i].owner, MIN_OF(bytes, idle));
            bytes -= idle;
        }
    }
}

static bool reserve_one(struct memory *mem, i64 bytes, bool large) {
    i64 used = atomic_fetch_add_explicit(&mem->used_bytes, bytes, memory_order_relaxed) + bytes;
    if (mem->limit_bytes && used > room_of(mem, large)) {
        atomic_fetch_sub_explicit(&mem->used_bytes, bytes, memory_order_relaxed);
        return false;
    }
    i64 idle = mem->limit_bytes ? idle_bytes(mem) + (mem->parent ? 0 : keep_bytes()) : 0;
    if (idle > 0 && used + idle > room_of(mem, false)) {
        give_back(mem, used + idle - room_of(mem, false));
    }
    return true;
}

/* When nobody has refused: what was asked for is no peak. */
static void note_peak(struct memory *mem) {
    i64 used = atomic_load_explicit(&mem->used_bytes, memory_order_relaxed);
    i64 peak = atomic_load_explicit(&mem->peak_bytes, memory_order_relaxed);
    while (used > peak &&
           !atomic_compare_exchange_weak_explicit(&mem->peak_bytes, &peak, used,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

static bool reserve_all(struct memory *mem, i64 bytes, bool large) {
    for (struct memory *m = mem; m; m = m->parent) {
        if (!reserve_one(m, bytes, large)) {
            for (struct memory *undo = mem; undo != m; undo = undo->parent) {
                atomic_fetch_sub_explicit(&undo->used_bytes, bytes, memory_order_relaxed);
            }
            return false;
        }
    }
    for (struct memory *m = mem; m; m = m->parent) {
        note_peak(m);
    }
    return true;
}

bool memory_reserve(struct memory *mem, i64 bytes) {
    return !fails_now() && reserve_all(mem, bytes, false);
}

void memory_release(struct memory *mem, i64 bytes) {
    for (struct memory *m = mem; m; m = m->parent) {
        i64 before = atomic_fetch_sub_explicit(&m->used_bytes, bytes, memory_order_relaxed);
        ASSERT(before >= bytes);
        UNUSED(before);
    }
}

void memory_rest(struct memory *mem, enum idle_kind kind, i64 bytes) {
    atomic_fetch_add_explicit(&mem->idle[kind].bytes, bytes, memory_order_acq_rel);
    memory_release(mem, bytes);
}

void memory_wake(struct memory *mem, enum idle_kind kind, i64 bytes) {
    for (struct memory *m = mem; m; m = m->parent) {
        atomic_fetch_add_explicit(&m->used_bytes, bytes, memory_order_relaxed);
    }
    atomic_fetch_sub_explicit(&mem->idle[kind].bytes, bytes, memory_order_acq_rel);
}

static i64 memory_free_bytes(struct memory *mem) {
    if (!mem->limit_bytes) {
        return I64_MAX;
    }
    i64 used = atomic_load_explicit(&mem->used_bytes, memory_order_relaxed);
    return MAX_OF(room_of(mem, false) - used, 0);
}

i64 memory_left(const struct memory *mem) {
    i64 left = I64_MAX;
    for (const struct memory *m = mem; m; m = m->parent) {
        i64 used = atomic_load_explicit(&m->used_bytes, memory_order_relaxed);
        i64 room = room_of(m, true) - used;
        left = m->limit_bytes ? MIN_OF(left, MAX_OF(room, 0)) : left;
    }
    return left;
}

wf_status memory_refused(struct memory *mem, struct error *err, i64 bytes) {
    if (mem->temp && temp_failed(mem->temp)) {
        return temp_refused(mem->temp, err);
    }
    struct memory *tight = mem; /* the budget that has least left */
    for (struct memory *m = mem->parent; m; m = m->parent) {
        tight = memory_free_bytes(m) < memory_free_bytes(tight) ? m : tight;
    }
    bool first = err->code == ERR_OK;
    const char *setting = tight->setting ? tight->setting : "memory";
    wf_status code = error_set(
        err, ERR_OUT_OF_MEMORY, -1, "out of host memory: %lld bytes asked, %lld free of %lld",
        bytes, tight->limit_bytes ? memory_free_bytes(tight) : 0, tight->limit_bytes);
    if (first) {
        bool opens = strcmp(setting, "statement_memory") != 0;
        error_hint(err,
                   opens ? "Raise the setting \"%s\" (--%s SIZE when the database is opened)."
                         : "Raise the setting \"%s\".",
                   setting, setting);
    }
    return code;
}

/* What rows at rest may still take: half of what others leave to the statement. */
static i64 left_for_rows(const struct memory *mem) {
    i64 own = atomic_load_explicit(&mem->used_bytes, memory_order_relaxed);
    i64 left = I64_MAX;
    for (const struct memory *m = mem; m; m = m->parent) {
        i64 others = atomic_load_explicit(&m->used_bytes, memory_order_relaxed) - own;
        i64 room = room_of(m, true) - others;
        left = m->limit_bytes ? MIN_OF(left, room / 2 - own) : left;
    }
    return left;
}

bool mem_in_temp(const struct memory *mem, const void *ptr) {
    return mem->temp && temp_owns(mem->temp, ptr);
}

/* One that is kept, or a new one; NULL when the budget refuses. A kept one is taken before it is
 * reserved, so that it does not count twice. */
static void *block_take(struct memory *mem, i32 class, i64 size, bool large) {
    void *ptr = class >= 0 ? keep_take(class, size) : NULL;
    if (!reserve_all(mem, size, large)) {
        if (ptr && !keep_put(class, size, ptr)) {
            block_free(ptr, size);
        }
        return NULL;
    }
    ptr = ptr ? ptr : block_alloc(size);
    if (!ptr) {
        memory_release(mem, size);
    }
    return ptr;
}

void *mem_alloc(struct memory *mem, i64 bytes) {
    i64 size;
    i32 class = keep_class(ALIGN_UP(MAX_OF(bytes, 1), 64), &size);
    if (fails_now()) {
        return NULL;
    }
    bool spills = mem->temp && size >= TEMP_LEAST;
    void *ptr = block_take(mem, class, size, spills);
    return ptr || !spills ? ptr : temp_alloc(mem->temp, bytes);
}

void mem_copy(const struct memory *mem, void *to, const void *from, i64 bytes) {
    if (mem->temp && temp_owns(mem->temp, to) && temp_owns(mem->temp, from)) {
        temp_fill(mem->temp, to, from, bytes);
    } else if (mem->temp && temp_owns(mem->temp, to)) {
        temp_write(mem->temp, to, from, bytes);
    } else if (mem->temp && temp_owns(mem->temp, from)) {
        temp_read(mem->temp, to, from, bytes);
    } else {
        memcpy(to, from, (size_t)bytes);
    }
}

void mem_pass(const struct memory *mem, const void *at, i64 bytes) {
    if (mem->temp && temp_owns(mem->temp, at)) {
        temp_pass(mem->temp, at, bytes);
    }
}

static void *alloc_aside(struct memory *mem, i64 bytes) {
    return fails_now() ? NULL : temp_alloc(mem->temp, bytes);
}

void *mem_alloc_rest(struct memory *mem, i64 bytes) {
    bool aside = mem->temp && bytes >= TEMP_LEAST && left_for_rows(mem) < bytes;
    return aside ? alloc_aside(mem, bytes) : mem_alloc(mem, bytes);
}

void *mem_alloc_aside(struct memory *mem, i64 bytes) {
    return mem->temp ? alloc_aside(mem, bytes) : mem_alloc(mem, bytes);
}

void *mem_alloc_at(struct memory *mem, i64 bytes, enum mem_place place) {
    if (place == MEM_HALF && mem->temp && bytes >= TEMP_LEAST && left_for_rows(mem) < bytes) {
        return NULL;
    }
    return place == MEM_HALF    ? mem_try(mem, bytes)
           : place == MEM_ASIDE ? mem_alloc_aside(mem, bytes)
                                : mem_alloc(mem, bytes);
}

void mem_trim(void) {
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

void *mem_try(struct memory *mem, i64 bytes) {
    i64 size;
    i32 class = keep_class(ALIGN_UP(MAX_OF(bytes, 1), 64), &size);
    bool large = mem->temp && size >= TEMP_LEAST;
    return fails_now() ? NULL : block_take(mem, class, size, large);
}

i64 mem_size(i64 bytes) {
    i64 size;
    (void)keep_class(ALIGN_UP(MAX_OF(bytes, 1), 64), &size);
    return size;
}

i64 mem_huge(const struct memory *mem, i64 bytes) {
    enum { HUGE_PAGE = 2 << 20, LEAST = 1 << 18, SHARE = 64 };
    i64 whole = ALIGN_UP(bytes, (i64)HUGE_PAGE);
    return bytes >= LEAST && memory_left(mem) / SHARE > whole ? whole : bytes;
}

void memory_lift(struct memory *mem, i64 size) {
    for (struct memory *m = mem; m->parent; m = m->parent) {
        i64 before = atomic_fetch_sub_explicit(&m->used_bytes, size, memory_order_relaxed);
        ASSERT(before >= size);
        UNUSED(before);
    }
}

void mem_free(struct memory *mem, void *ptr, i64 bytes) {
    if (!ptr) {
        return;
    }
    if (mem->temp && temp_owns(mem->temp, ptr)) {
        temp_free(mem->temp, ptr, bytes);
        return;
    }
    i64 size;
    i32 class = keep_class(ALIGN_UP(MAX_OF(bytes, 1), 64), &size);
    memory_release(mem, size); /* before it is kept: it does not count twice */
    if (class < 0 || !keep_put(class, size, ptr)) {
        block_free(ptr, size);
    }
}

struct arena_block {
    struct arena_block *next;
    i64 bytes;
    i64 accounted; /* 0 when the budget refused */
    i64 in_temp;   /* it came from mem_alloc */
};

struct arena_hook {
    struct arena_hook *next;
    void (*run)(void *);
    void *arg;
};

enum { ARENA_BLOCK_MIN = 4096, ARENA_BLOCK_MAX = 1 << 20 };

void arena_init(struct arena *arena, struct memory *mem) {
    memset(arena, 0, sizeof *arena);
    arena->mem = mem;
}

static void arena_put_block(struct arena *arena, struct arena_block *block, i64 size,
                            i64 accounted) {
    block->bytes = size;
    block->accounted = accounted;
    block->next = arena->head;
    arena->head = block;
    arena->next = (u8 *)(block + 1);
    arena->end = (u8 *)block + size;
}

/* Arenas of so many bytes grow with rows: they take what rows at rest may. */
static bool arena_spills(const struct memory *mem, i64 size) {
    bool rows = size >= ARENA_BLOCK_MAX && left_for_rows(mem) < size;
    return mem->temp && size >= TEMP_LEAST && (rows || memory_left(mem) < size);
}

/* False when the budget refuses a block that may be refused. */
static bool arena_add_block(struct arena *arena, i64 bytes, bool may_refuse) {
    i64 size = arena->head ? MIN_OF(arena->head->bytes * 2, ARENA_BLOCK_MAX) : ARENA_BLOCK_MIN;
    size = MAX_OF(size, bytes + (i64)sizeof(struct arena_block));
    if (arena_spills(arena->mem, size)) {
        struct arena_block *spilled = mem_alloc_aside(arena->mem, size);
        if (spilled) {
            temp_fill(arena->mem->temp, spilled, NULL, size);
            spilled->in_temp = 1;
            arena_put_block(arena, spilled, size, 0);
            return true;
        }
    }
    bool granted = memory_reserve(arena->mem, size);
    struct arena_block *block = granted || !may_refuse ? calloc(1, (size_t)size) : NULL;
    if (!block && may_refuse) {
        memory_release(arena->mem, granted ? size : 0);
        return false;
    }
    CHECK(block != NULL);
    if (!granted) {
        arena->refused_bytes = size;
    }
    arena_put_block(arena, block, size, granted ? size : 0);
    return true;
}

void *arena_alloc(struct arena *arena, i64 bytes) {
    CHECK(bytes >= 0);
    i64 size = ALIGN_UP(MAX_OF(bytes, 1), 16);
    if (arena->end - arena->next < size) {
        arena_add_block(arena, size, false);
    }
    void *ptr = arena->next;
    arena->next += size;
    return ptr;
}

void *arena_try(struct arena *arena, i64 bytes) {
    i64 size = ALIGN_UP(MAX_OF(bytes, 1), 16);
    bool fits = arena->end - arena->next >= size || arena_add_block(arena, size, true);
    return fits ? arena_alloc(arena, bytes) : NULL;
}

void arena_on_reset(struct arena *arena, void (*run)(void *), void *arg) {
    struct arena_hook *hook = NEW(arena, struct arena_hook);
    hook->run = run;
    hook->arg = arg;
    hook->next = arena->hooks;
    arena->hooks = hook;
}

void arena_fini(struct arena *arena) {
    while (arena->hooks) { /* a hook may free what a later hook's arena memory describes: newest
                              first */
        struct arena_hook *hook = arena->hooks;
        arena->hooks = hook->next;
        hook->run(hook->arg);
    }
    struct arena_block *block = arena->head;
    while (block) {
        struct arena_block *next = block->next;
        if (block->accounted) {
            memory_release(arena->mem, block->accounted);
        }
        if (block->in_temp) {
            mem_free(arena->mem, block, block->bytes);
        } else {
            free(block);
        }
        block = next;
    }
    struct memory *mem = arena->mem;
    memset(arena, 0, sizeof *arena);
    arena->mem = mem;
}

void arena_reset(struct arena *arena) {
    arena_fini(arena);
}

wf_status arena_check(struct arena *arena, struct error *err) {
    if (arena->refused_bytes) {
        return memory_refused(arena->mem, err, arena->refused_bytes);
    }
    return ERR_OK;
}

struct sv arena_sv(struct arena *arena, struct sv s) {
    char *copy = arena_alloc(arena, s.len + 1);
    if (s.len) {
        memcpy(copy, s.ptr, (size_t)s.len);
    }
    return (struct sv){copy, s.len};
}

char *arena_printf(struct arena *arena, const char *format, ...) {
    CHECK(format != NULL);
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    CHECK(len >= 0);
    char *out = arena_alloc(arena, len + 1);
    vsnprintf(out, (size_t)len + 1, format, again);
    va_end(again);
    return out;
}

void *vec_grow(struct arena *arena, const void *items, i64 *cap, i64 count, i64 item_bytes) {
    i64 grown = MAX_OF(*cap * 2, 8);
    void *out = arena_alloc(arena, grown * item_bytes);
    if (count) {
        mem_copy(arena->mem, out, items, count * item_bytes);
    }
    *cap = grown;
    return out;
}

void (*buffer_unpin)(struct buffer *buf);

struct buffer *buffer_wrap(struct memory *mem, u8 *data, i64 bytes,
                           void (*free_data)(struct buffer *buf), void *owner) {
    struct buffer *buf = malloc(sizeof *buf);
    if (!buf) {
        return NULL;
    }
    atomic_init(&buf->refs, 1);
    atomic_init(&buf->pinned, 0);
    buf->device_addr = 0;
    buf->mem = mem;
    buf->bytes = bytes;
    buf->data = data;
    buf->free_data = free_data;
    buf->owner = owner;
    return buf;
}

struct buffer *buffer_new(struct memory *mem, i64 bytes) {
    return buffer_new_at(mem, bytes, BUFFER_REST);
}

static void stored_free(struct memory *mem, void *data, i64 bytes) {
    block_free(data, ALIGN_UP(bytes + BUFFER_PAD, 64));
    memory_release(mem, ALIGN_UP(bytes + BUFFER_PAD, 64));
}

static void stored_free_data(struct buffer *buf) {
    stored_free(buf->mem, buf->data, buf->bytes);
}

static struct buffer *buffer_new_stored(struct memory *mem, i64 bytes) {
    i64 size = ALIGN_UP(bytes + BUFFER_PAD, 64);
    u8 *data = fails_now() ? NULL : block_take(mem, -1, size, false);
    struct buffer *buf = data ? buffer_wrap(mem, data, bytes, stored_free_data, NULL) : NULL;
    if (buf) {
        memset(data + bytes, 0, BUFFER_PAD);
    } else if (data) {
        stored_free(mem, data, bytes);
    }
    return buf;
}

struct buffer *buffer_new_at(struct memory *mem, i64 bytes, enum buffer_place place) {
    i64 all = bytes + BUFFER_PAD;
    if (place == BUFFER_STORED) {
        return buffer_new_stored(mem, bytes);
    }
    bool aside = place == BUFFER_ASIDE && mem->temp; /* small ones, too: they may be many */
    u8 *data = aside                  ? alloc_aside(mem, all)
               : place == BUFFER_WORK ? mem_alloc(mem, all)
                                      : mem_alloc_rest(mem, all);
    struct buffer *buf = data ? buffer_wrap(mem, data, bytes, NULL, NULL) : NULL;
    if (!buf) {
        mem_free(mem, data, bytes + BUFFER_PAD);
        return NULL;
    }
    memset(data + bytes, 0, BUFFER_PAD);
    return buf;
}

void buffer_rest(struct buffer *buf) {
    struct memory *mem = buf ? buf->mem : NULL;
    i64 all = buf ? buf->bytes + BUFFER_PAD : 0;
    if (!buf || !mem->temp || buf->free_data || all < TEMP_LEAST || left_for_rows(mem) >= 0 ||
        mem_in_temp(mem, buf->data)) {
        return;
    }
    u8 *to = alloc_aside(mem, all);
    if (to) { /* or it stays where it is */
        mem_copy(mem, to, buf->data, all);
        mem_free(mem, buf->data, all);
        buf->data = to;
    }
}

struct buffer *buffer_retain(struct buffer *buf) {
    atomic_fetch_add_explicit(&buf->refs, 1, memory_order_relaxed);
    return buf;
}

void buffer_release(struct buffer *buf) {
    if (!buf || atomic_fetch_sub_explicit(&buf->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (buf->pinned && buffer_unpin) {
        buffer_unpin(buf);
    }
    if (buf->free_data) {
        buf->free_data(buf);
    } else {
        mem_free(buf->mem, buf->data, buf->bytes + BUFFER_PAD);
    }
    free(buf);
}

void text_init(struct text *out, struct arena *arena) {
    out->arena = arena;
    out->len = 0;
    out->cap = 256;
    out->ptr = arena_alloc(arena, out->cap);
}

static void text_reserve(struct text *out, i64 more) {
    if (out->len + more + 1 <= out->cap) {
        return;
    }
    i64 cap = MAX_OF(out->cap * 2, out->len + more + 1);
    char *grown = arena_alloc(out->arena, cap);
    memcpy(grown, out->ptr, (size_t)out->len + 1);
    out->ptr = grown;
    out->cap = cap;
}

void text_append(struct text *out, struct sv s) {
    text_reserve(out, s.len);
    if (s.len) {
        memcpy(out->ptr + out->len, s.ptr, (size_t)s.len);
    }
    out->len += s.len;
    out->ptr[out->len] = 0;
}

/* Most prints fit into what is left, so formatting is tried there before the length is known. */
void text_print(struct text *out, const char *format, ...) {
    CHECK(format != NULL);
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    i64 room = out->cap - out->len;
    int len = vsnprintf(out->ptr + out->len, (size_t)room, format, args);
    va_end(args);
    CHECK(len >= 0);
    if (len >= room) {
        out->ptr[out->len] = 0;
        text_reserve(out, len);
        vsnprintf(out->ptr + out->len, (size_t)len + 1, format, again);
    }
    va_end(again);
    out->len += len;
}
