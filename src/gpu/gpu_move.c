/* gpu_move.c: columns that statements miss on the card, brought there in the background.
 *
 * Under `device = auto` a statement whose columns are not on the card may be better off on the CPU,
 * though the card would be much faster: bringing them costs more than the statement. What it lost
 * that way is added up, column by column; once that is more than bringing the column costs, it is
 * brought, by a thread and a worker of the card that serve nothing else. So no statement waits, and
 * at most twice is spent of what the best choice would have cost, had it been known beforehand.
 *
 * A tablet is copied at a time, so that a reset, the end of the card or of the version waits for
 * one copy at most. It takes memory that is free, or that of columns which no step has used since
 * the loss began; an eighth of the budget is left to steps. Where there is no room, the column is
 * given up, and has to be missed twice as much the next time.
 *
 * Columns are known by the number of their version and forgotten when their place is wanted. A
 * column in the queue holds its version; when nobody else does, it is given up. */
#include "gpu/gpu_int.h"

enum { QUEUE_MOST = 64, REFUSALS_MOST = 8 };
#define LEFT_SHARE 8 /* of the budget, to steps */

struct gpu_move {
    struct table_version *version;
    u32 col;
    u64 since_no;
    struct gpu_move *next;
};

void gpu_moves_init(struct gpu_card *card) {
    mutex_init(&card->moves.lock);
    cond_init(&card->moves.wake);
}

void gpu_moves_fini(struct gpu_card *card) {
    ASSERT(!card->moves.thread && !card->moves.queue);
    cond_fini(&card->moves.wake);
    mutex_fini(&card->moves.lock);
}

/* --- what is where --- */

/* With the card's lock. It takes the place of the one that was asked for longest ago. */
static struct gpu_column *find_column(struct gpu_card *card, u64 version_id, u32 col) {
    struct gpu_moves *m = &card->moves;
    struct gpu_column *set = m->columns[hash_u64(version_id * 4096 + col) % COLUMN_SETS];
    struct gpu_column *out = &set[0];
    for (i32 i = 0; i < COLUMN_WAYS; i++) {
        if (set[i].version_id == version_id && set[i].col == col) {
            set[i].used = ++m->clock;
            return &set[i];
        }
        out = set[i].used < out->used ? &set[i] : out;
    }
    *out = (struct gpu_column){.version_id = version_id, .col = col, .used = ++m->clock};
    return out;
}

struct gpu_column gpu_column_of(struct gpu_card *card, const struct table_version *version,
                                u32 col) {
    mutex_lock(&card->lock);
    struct gpu_column *c = find_column(card, version->id, col);
    if (!c->known || c->change_no != card->cache.change_no) {
        gpu_cache_count(card, version, col, &c->bytes, &c->missing_bytes);
        c->change_no = card->cache.change_no;
        c->known = 1;
    }
    struct gpu_column out = *c;
    mutex_unlock(&card->lock);
    return out;
}

/* --- moving --- */

/* Told to, or nobody but this and what is in the queue holds the version. */
static bool should_stop(struct gpu_card *card, const struct gpu_move *move) {
    i32 own = 1;
    mutex_lock(&card->moves.lock);
    bool stop = card->moves.stop;
    for (const struct gpu_move *other = card->moves.queue; other; other = other->next) {
        own += other->version == move->version;
    }
    mutex_unlock(&card->moves.lock);
    return stop || atomic_load(&move->version->refs) <= own;
}

static bool has_room(struct gpu *g, i64 bytes, u64 since_no) {
    struct gpu_card *card = g->card;
    i64 wanted = bytes + GPU_ALIGN + card->heap.budget_bytes / LEFT_SHARE;
    i64 short_of = wanted - gpu_heap_available(card);
    return short_of <= 0 || gpu_cache_evict_older(g, short_of, since_no) >= short_of;
}

/* Inside a step of the mover's own. */
static FALLIBLE move_tablet(struct gpu *g, const struct gpu_move *move, i64 t, struct error *err) {
    const struct tablet *tablet = move->version->tablets[t];
    i64 rows = move->version->tablet_rows[t];
    i64 bytes = gpu_segment_bytes(tablet, move->col, rows).total_bytes;
    struct cached *cached = NULL;
    i64 moved = 0;
    if (!gpu_cache_has(g->card, tablet->id, move->col) && !has_room(g, bytes, move->since_no)) {
        FAIL(err, DEVICE_MEMORY, "no room for a column that statements miss");
    }
    wf_status status = gpu_cache_load(g, tablet, move->col, rows, &cached, &moved, err);
    int code = g->api->stream_synchronize(g->streams[0]);
    status = status ? status : gpu_check(g->card, code, "stream_synchronize", err);
    return status ? status : gpu_bring_check(g, err);
}

/* False: it was given up. */
static bool move_column(struct gpu *g, const struct gpu_move *move) {
    struct gpu_card *card = g->card;
    for (i64 t = 0; t < move->version->tablet_count; t++) {
        struct error err;
        error_reset(&err);
        if (card->broken || should_stop(card, move) || gpu_enter(g, &err)) {
            return false;
        }
        wf_status status = move_tablet(g, move, t, &err);
        gpu_leave(g);
        if (status) {
            return false;
        }
    }
    return true;
}

static void settle(struct gpu_card *card, const struct gpu_move *move, bool done) {
    mutex_lock(&card->lock);
    struct gpu_column *c = find_column(card, move->version->id, move->col);
    c->moving = 0;
    c->lost_ns = 0;
    c->refusals = done ? 0 : (u8)MIN_OF(c->refusals + 1, REFUSALS_MOST);
    mutex_unlock(&card->lock);
    atomic_fetch_add(done ? &card->moves.moved_count : &card->moves.dropped_count, 1);
}

static void drop_move(struct gpu_card *card, struct gpu_move *move) {
    version_release(move->version);
    mem_free(card->mem, move, (i64)sizeof *move);
    atomic_fetch_sub(&card->moves.busy, 1);
}

static void move_all(void *arg) {
    struct gpu_card *card = arg;
    struct gpu_moves *m = &card->moves;
    char why[300];
    struct gpu *g = gpu_worker_open(card, true, why);
    mutex_lock(&m->lock);
    while (!m->stop) {
        struct gpu_move *move = m->queue;
        if (!move) {
            cond_wait(&m->wake, &m->lock);
            continue;
        }
        m->queue = move->next;
        mutex_unlock(&m->lock);
        settle(card, move, g && move_column(g, move));
        drop_move(card, move);
        mutex_lock(&m->lock);
    }
    mutex_unlock(&m->lock);
    if (g) {
        gpu_worker_close(g);
    }
}

void gpu_moves_stop(struct gpu_card *card) {
    struct gpu_moves *m = &card->moves;
    mutex_lock(&m->lock);
    struct thread *thread = m->thread;
    m->stop = 1;
    m->thread = NULL;
    cond_broadcast(&m->wake);
    mutex_unlock(&m->lock);
    if (thread) {
        thread_join(thread);
    }
    while (m->queue) {
        struct gpu_move *move = m->queue;
        m->queue = move->next;
        drop_move(card, move);
    }
}

/* False: the queue is full, memory is short, or there is no thread. */
static bool enqueue(struct gpu_card *card, struct table_version *version, u32 col, u64 since_no) {
    struct gpu_moves *m = &card->moves;
    struct gpu_move *move = mem_alloc(card->mem, (i64)sizeof *move);
    if (!move) {
        return false;
    }
    mutex_lock(&m->lock);
    bool open = !m->stop && atomic_load(&m->busy) < QUEUE_MOST;
    m->thread = open && !m->thread ? thread_start(move_all, card) : m->thread;
    open = open && m->thread;
    if (open) {
        *move = (struct gpu_move){version_retain(version), col, since_no, NULL};
        struct gpu_move **end = &m->queue;
        while (*end) {
            end = &(*end)->next;
        }
        *end = move;
        atomic_fetch_add(&m->busy, 1);
        cond_broadcast(&m->wake);
    }
    mutex_unlock(&m->lock);
    if (!open) {
        mem_free(card->mem, move, (i64)sizeof *move);
    }
    return open;
}

void gpu_column_lost(struct gpu_card *card, struct table_version *version, u32 col, f64 lost_ns,
                     f64 move_ns) {
    mutex_lock(&card->lock);
    struct gpu_column *c = find_column(card, version->id, col);
    c->since_no = c->lost_ns > 0 ? c->since_no : card->run_count + 1;
    c->lost_ns += lost_ns;
    bool worth = !c->moving && c->lost_ns > move_ns * (f64)(1u << c->refusals);
    c->moving = c->moving || worth;
    u64 since_no = c->since_no;
    mutex_unlock(&card->lock);
    if (worth && !enqueue(card, version, col, since_no)) {
        mutex_lock(&card->lock);
        find_column(card, version->id, col)->moving = 0;
        mutex_unlock(&card->lock);
    }
}
