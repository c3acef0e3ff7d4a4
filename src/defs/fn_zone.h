/* fn_zone.h: how far a zone's clocks are from Greenwich, by a table of their changes that was made
 * before. Kernel text (see fn_int.h); needs fn_format.h.
 *
 * The table is a block of bytes, made by host/zone_table.c: this head, and behind it `count` changes in
 * ascending order. */
#ifndef WF_DEFS_FN_ZONE_H
#define WF_DEFS_FN_ZONE_H

#define ZONE_DAY 86400LL
#define ZONE_CYCLE (146097LL * ZONE_DAY) /* 400 years: a rule's years repeat themselves */

struct zone_table {
    u32 count;
    i32 first; /* offset before the first change */
};

struct zone_change {
    i64 at; /* seconds since 1970 UTC */
    i32 offset;
    i32 told; /* the same, as whoever foresees the change is told */
};

/* Far in the future the rule's years are those of a cycle, behind all changes listed. */
FN i64 fn_zone_cycle(i64 utc) {
    return utc > 2 * ZONE_CYCLE ? utc % ZONE_CYCLE + ZONE_CYCLE : utc;
}

/* The offset of what clocks show, which is `before` a day earlier and `after` from `change` on. What
 * they show twice is the later moment, what they leave out is read by the offset before, as in
 * PostgreSQL. */
FN i32 fn_zone_choose(i64 local, i32 before, i32 after, i64 change) {
    i64 by_before = local - before;
    i64 by_after = local - after;
    if (change == I64_MAX || (by_before < change && by_after < change)) {
        return before;
    }
    if (by_before > change && by_after >= change) {
        return after;
    }
    return by_before > by_after ? before : after;
}

FN u32 fn_zone_until(const struct zone_table *t, i64 utc) { /* changes that lie at or before it */
    const struct zone_change *changes = (const struct zone_change *)(t + 1);
    u32 lo = 0;
    u32 hi = t->count;
    while (lo < hi) {
        u32 mid = (lo + hi) / 2;
        b8 past = (b8)(changes[mid].at <= utc);
        lo = past ? mid + 1 : lo;
        hi = past ? hi : mid;
    }
    return lo;
}

FN i32 fn_zone_offset(const struct zone_table *t, u32 until) {
    return until ? ((const struct zone_change *)(t + 1))[until - 1].offset : t->first;
}

/* `zone`: the table. */
FN_SLOW i64 fn_local_ahead(i64 a, str zone, u8 *f) {
    const struct zone_table *t = (const struct zone_table *)zone.addr;
    if (fn_ts_infinite(a)) {
        return a;
    }
    i64 utc = fn_zone_cycle(fn_floor_div(a, SECOND_US));
    return fn_ts_zone(a, fn_zone_offset(t, fn_zone_until(t, utc)), f);
}

FN_SLOW i64 fn_global_ahead(i64 a, str zone, u8 *f) {
    const struct zone_table *t = (const struct zone_table *)zone.addr;
    if (fn_ts_infinite(a)) {
        return a;
    }
    i64 local = fn_zone_cycle(fn_floor_div(a, SECOND_US));
    u32 next = fn_zone_until(t, local - ZONE_DAY);
    i32 before = fn_zone_offset(t, next);
    const struct zone_change *change = (const struct zone_change *)(t + 1) + next;
    b8 some = (b8)(next < t->count);
    i32 offset =
        fn_zone_choose(local, before, some ? change->told : before, some ? change->at : I64_MAX);
    return fn_ts_zone(a, -offset, f);
}

/* As text, with the offset. */
FN_SLOW i64 fn_zoned_ahead(u8 *out, i64 a, str zone) {
    const struct zone_table *t = (const struct zone_table *)zone.addr;
    i64 utc = fn_zone_cycle(fn_floor_div(a, SECOND_US));
    return fn_moment_text(out, a, 1, fn_zone_offset(t, fn_zone_until(t, utc)));
}

#endif
