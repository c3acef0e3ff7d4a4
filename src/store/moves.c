/* moves.c: where rows have gone that a compaction moved.
 *
 * A transaction that began before a compaction knows rows by the slots and positions they had then.
 * When it commits, the rows it deleted are looked for where they are now (change.c); without this
 * they would seem to be somebody else's change. A version has the moves of the compactions it comes
 * after, the newest first. Since a compaction keeps the order of rows, the place of a row is its
 * number among the live ones of its run of tablets, which the bitmap of that time gives. Moves that
 * no open transaction can ask for are dropped by the next compaction. */
#include "store/store_int.h"

struct moves {
    _Atomic i32 refs;
    struct memory *mem;
    i64 bytes;
    i64 depth; /* with the older ones */
    struct moves *older;
    i64 from_count, to_count;
    struct moved_from *from;
    struct moved_to *to;
};

struct moves *moves_retain(struct moves *moves) {
    if (moves) {
        atomic_fetch_add_explicit(&moves->refs, 1, memory_order_relaxed);
    }
    return moves;
}

void moves_release(struct moves *moves) {
    while (moves && atomic_fetch_sub_explicit(&moves->refs, 1, memory_order_acq_rel) == 1) {
        struct moves *older = moves->older;
        for (i64 i = 0; i < moves->from_count; i++) {
            buffer_release(moves->from[i].deleted);
        }
        mem_free(moves->mem, moves, moves->bytes);
        moves = older;
    }
}

i64 moves_depth(const struct moves *moves) {
    return moves ? moves->depth : 0;
}

static i64 words_of(i64 rows) {
    return (rows + 63) / 64;
}

/* How many live rows a tablet has before each word of its bitmap. */
static void count_ranks(const struct moved_from *from, u32 *ranks) {
    const u64 *gone = (const u64 *)(const void *)from->deleted->data;
    u32 live = 0;
    for (i64 w = 0; w < words_of(from->rows); w++) {
        ranks[w] = live;
        live += 64 - (u32)__builtin_popcountll(gone[w]);
    }
}

/* A row's place is found by its number: the tablets of a run follow each other. */
static bool in_order(const struct moved_to *to, i64 count) {
    bool fine = true;
    for (i64 i = 1; i < count && fine; i++) {
        bool next = to[i].first == to[i - 1].first + to[i - 1].rows;
        fine = to[i].run == to[i - 1].run ? next : to[i].run > to[i - 1].run;
    }
    return fine;
}

struct moves *moves_new(struct memory *mem, const struct moved_from *from, i64 from_count,
                        const struct moved_to *to, i64 to_count, struct moves *older) {
    i64 from_at = ALIGN_UP((i64)sizeof(struct moves), 64);
    i64 to_at = from_at + from_count * (i64)sizeof *from;
    i64 ranks_at = to_at + to_count * (i64)sizeof *to, bytes = ranks_at;
    for (i64 i = 0; i < from_count; i++) {
        bytes += from[i].deleted ? words_of(from[i].rows) * (i64)sizeof(u32) : 0;
    }
    u8 *block = mem_alloc(mem, bytes);
    if (!block) {
        return NULL;
    }
    struct moves *moves = (struct moves *)(void *)block;
    *moves = (struct moves){.mem = mem,
                            .bytes = bytes,
                            .depth = moves_depth(older) + 1,
                            .older = moves_retain(older),
                            .from_count = from_count,
                            .to_count = to_count,
                            .from = (struct moved_from *)(void *)(block + from_at),
                            .to = (struct moved_to *)(void *)(block + to_at)};
    atomic_init(&moves->refs, 1);
    u32 *ranks = (u32 *)(void *)(block + ranks_at);
    ASSERT(in_order(to, to_count));
    for (i64 i = 0; i < to_count; i++) {
        moves->to[i] = to[i];
    }
    for (i64 i = 0; i < from_count; i++) {
        struct moved_from *own = &moves->from[i];
        *own = from[i];
        if (own->deleted) {
            buffer_retain(own->deleted);
            count_ranks(own, ranks);
            own->ranks = ranks;
            ranks += words_of(own->rows);
        }
    }
    return moves;
}

/* Where row `pos` of a tablet has gone; false when it was deleted before. */
static bool follow(const struct moves *moves, const struct moved_from *from, u32 *io_slot,
                   u32 *io_pos) {
    u32 pos = *io_pos;
    i64 rank = from->before + pos;
    if (pos >= from->rows) {
        return false;
    }
    if (from->deleted) {
        u64 gone = ((const u64 *)(const void *)from->deleted->data)[pos >> 6];
        if (gone >> (pos & 63) & 1) {
            return false;
        }
        u64 below = ~gone & ((1ULL << (pos & 63)) - 1);
        rank = from->before + from->ranks[pos >> 6] + __builtin_popcountll(below);
    }
    for (i64 i = 0; i < moves->to_count; i++) {
        const struct moved_to *to = &moves->to[i];
        if (to->run == from->run && rank >= to->first && rank < to->first + to->rows) {
            *io_slot = to->slot;
            *io_pos = (u32)(rank - to->first);
            return true;
        }
    }
    return false;
}

bool moves_find(const struct moves *moves, u32 *io_slot, u32 *io_pos) {
    const struct moves *chain[MOVES_MAX + 1];
    i64 count = 0;
    bool moved = false;
    for (; moves && count <= MOVES_MAX; moves = moves->older) {
        chain[count++] = moves;
    }
    while (count-- > 0) { /* the oldest first */
        const struct moves *m = chain[count];
        for (i64 i = 0; i < m->from_count; i++) {
            if (m->from[i].slot == *io_slot) {
                if (!follow(m, &m->from[i], io_slot, io_pos)) {
                    return false;
                }
                moved = true;
                break;
            }
        }
    }
    return moved;
}
