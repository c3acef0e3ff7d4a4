/* join_expand.h: part of reljoin.h: tiles with much output, in chunks. */
#ifndef WF_JOIN_EXPAND_H
#define WF_JOIN_EXPAND_H

struct element { /* of a tile's output */
    u64 first, end;
    i64 x, y; /* y of its first row; -1: none */
};

/* What k_expand knows of a tile, in shared memory: each thread's first row, and its matches. */
struct expanded {
    u64 *first;
    u32 *is_x, *is_y, *same, *x, *y, *start;
};

/* The element of an output row. */
FN struct element element_at(const struct expanded *s, const struct place p, u64 row, i64 back) {
    u32 lo = 0; /* the last thread that starts at or before the row */
    u32 hi = JOIN_THREADS;
    while (hi - lo > 1) {
        u32 mid = (lo + hi) / 2;
        if (s->first[mid] <= row) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    struct element e;
    struct cursor c;
    u32 xi = s->x[lo];
    c.y = s->y[lo];
    c.start = s->start[lo];
    e.first = e.end = s->first[lo];
    e.x = e.y = -1;
    for (u32 k = 0; k < TUPLE_VT && e.end <= row; k++) {
        u32 is_x = s->is_x[lo] >> k & 1u;
        u32 range = merged_range(&c, is_x, s->same[lo] >> k & 1u);
        e.first = e.end;
        e.end += rows_of(range, is_x, s->is_y[lo] >> k & 1u, back);
        if (is_x) {
            u32 start = range >> 16;
            u32 pairs = (KIND & REL_PAIRS) && range_count(range, back);
            e.x = p.x + (i64)xi;
            e.y = !pairs ? -1 : start == RANGE_BEFORE ? p.y - back : p.y + (i64)start;
        } else {
            e.x = -1;
            e.y = p.y + (i64)(range & 0xffffu);
        }
        xi += is_x;
    }
    return e;
}

/* The heavy tile that a chunk belongs to. */
FN u64 heavy_of(const struct krel_heavy *heavy, u64 count, u64 chunk) {
    u64 lo = 0;
    u64 hi = count;
    while (hi - lo > 1) {
        u64 mid = (lo + hi) / 2;
        if (heavy[mid].chunk <= chunk) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

FN void t_expand(const struct krel_join *a, const struct krel_heavy *h, u64 first, u64 end,
                 struct place p, i64 back, const struct expanded *s) {
    struct element e;
    e.first = e.end = 0;
    e.x = e.y = -1;
    for (u64 row = first + t_id(); row < end; row += JOIN_THREADS) {
        if (row >= e.end) {
            e = element_at(s, p, row, back);
        }
        i64 y = e.y < 0 ? -1 : e.y + (i64)(row - e.first);
        put_row(a, (i64)(h->base + row), e.x, y);
    }
}

KERNEL(k_expand, struct krel_join, JOIN_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u64, s_first, JOIN_THREADS);
    SHARED(u32, s_is_x, JOIN_THREADS);
    SHARED(u32, s_is_y, JOIN_THREADS);
    SHARED(u32, s_same, JOIN_THREADS);
    SHARED(u32, s_x, JOIN_THREADS);
    SHARED(u32, s_y, JOIN_THREADS);
    SHARED(u32, s_start, JOIN_THREADS);
    SHARED(u64, s_sums, JOIN_WARPS);
    SHARED(u32, s_ticket, 1);
    u32 *ticket = (u32 *)&args.counters[REL_EXPAND];
    u64 heavy = args.counters[REL_HEAVY];
    u64 chunks = heavy >> 24;
    struct expanded s;
    s.first = s_first;
    s.is_x = s_is_x;
    s.is_y = s_is_y;
    s.same = s_same;
    s.x = s_x;
    s.y = s_y;
    s.start = s_start;
    for (u64 chunk = b_ticket(ticket, s_ticket); chunk < chunks;
         chunk = b_ticket(ticket, s_ticket)) {
        struct krel_heavy h = args.heavy[heavy_of(args.heavy, heavy & 0xffffffu, chunk)];
        struct tiles t;
        struct matches m;
        u64 total;
        struct place p = tile_open(&args, (i64)h.tile, &t);
        b_load(&args, p, (IN_W *)(void *)s_bytes, &t);
        t_merge(&t, &m);
        s_first[t_id()] =
            b_sum_before_u64(rows_of_thread(&m, t.back, 1), JOIN_THREADS, s_sums, &total);
        s_is_x[t_id()] = m.is_x;
        s_is_y[t_id()] = m.is_y;
        s_same[t_id()] = m.same;
        s_x[t_id()] = m.x_first;
        s_y[t_id()] = m.y_first;
        s_start[t_id()] = m.start;
        b_sync();
        u64 first = (chunk - h.chunk) * EXPAND_ROWS;
        u64 end = first + EXPAND_ROWS < h.total ? first + EXPAND_ROWS : h.total;
        t_expand(&args, &h, first, end, p, t.back, &s);
    }
}

#endif
