/* share_equal.c: equal parts of one statement are computed once.
 *
 * Views and derived tables are often written several times in a statement. Of parts of the plan
 * that are equal (plan/equal.c) the first becomes the input of a SHARED, and the others are SHAREDs
 * over it that make the columns they made before. The largest equal parts are taken first.
 *
 * A shared part ends in a variable, which pays where it ends there anyway (aggregates, windows),
 * and where its result is much smaller than what it reads (joins, filters). Parts with volatile
 * functions stay apart. The pass runs behind those that move conditions and semi joins into a part:
 * what made two uses differ was worth more than sharing. */
#include "opt/opt_int.h"

#ifdef WF_HARD
enum { ROWS_MIN = 2 }; /* tests have small tables */
#else
enum { ROWS_MIN = 10000 }; /* read by a part, to be worth a thought */
#endif
enum { WORTH = 8 };

struct part {
    struct rel *rel;
    struct rel *parent;
    i32 which;
    u64 hash;
    i64 end;  /* what is below it stands up to there */
    i64 read; /* rows of the scans below */
    b8 gone;  /* below a part that is shared now */
};

struct parts {
    struct opt *o;
    VEC(struct part) items; /* parents first, each followed by all that is below it */
};

static u64 mix(u64 hash, u64 value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

static i64 collect(struct parts *p, struct rel *rel, struct rel *parent, i32 which) {
    struct part part = {.rel = rel, .parent = parent, .which = which, .hash = rel_hash(rel)};
    i64 at = p->items.count;
    VEC_PUSH(p->o->plan->arena, &p->items, part);
    part.read = rel->kind == REL_SCAN ? rel->scan.table_rows : 0;
    for (i32 i = 0; i < rel->input_count; i++) {
        if (rel_shares(rel) && !opt_first_visit(p->o, rel->inputs[i])) {
            continue;
        }
        i64 below = collect(p, rel->inputs[i], rel, i);
        if (!rel_shares(rel)) { /* what is shared is not read again, and compared by its place */
            part.hash = mix(part.hash, p->items.items[below].hash);
            part.read += p->items.items[below].read;
        }
    }
    part.end = p->items.count;
    p->items.items[at] = part;
    return at;
}

static bool is_worth(const struct part *part) {
    const struct rel *rel = part->rel;
    if (!part->parent || part->parent->kind == REL_SHARED || part->read < ROWS_MIN) {
        return false;
    }
    if (rel->kind == REL_AGG || rel->kind == REL_WINDOW) {
        return true;
    }
    return (rel->kind == REL_JOIN || rel->kind == REL_FILTER) && rel->rows <= part->read / WORTH;
}

/* Whether all that the second part hands on is handed on by the first. */
static bool covers(struct expr *const *map, const struct rel *a, const struct rel *b) {
    for (i64 i = 0; i < b->out.count; i++) {
        const struct expr *first = map[b->out.items[i]];
        if (!first || !rel_has_out(a, first->col)) {
            return false;
        }
    }
    return true;
}

static void forget_below(struct parts *p, const struct part *part) {
    for (i64 i = part - p->items.items; i < part->end; i++) {
        p->items.items[i].gone = 1;
    }
}

/* The second part becomes another use of the first. */
static void join_use(struct parts *p, struct expr *const *map, struct part *first,
                     struct part *second) {
    struct plan *plan = p->o->plan;
    const col_list *as = &second->rel->out;
    u32 *cols = NEW_ARRAY(plan->arena, u32, as->count + 1);
    for (i64 i = 0; i < as->count; i++) {
        cols[i] = map[as->items[i]]->col;
    }
    second->parent->inputs[second->which] = rel_shared(plan, first->rel, cols, as->items, as->count);
    forget_below(p, second);
}

static void consider(struct parts *p, i64 at) {
    struct plan *plan = p->o->plan;
    struct part *first = &p->items.items[at];
    bool shared = false;
    for (i64 i = at + 1; i < p->items.count; i++) {
        struct part *second = &p->items.items[i];
        if (second->gone || second->hash != first->hash || !second->parent ||
            second->parent->kind == REL_SHARED) {
            continue;
        }
        struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
        if (rel_equal(plan, first->rel, second->rel, map) && covers(map, first->rel, second->rel)) {
            join_use(p, map, first, second);
            shared = true;
        }
    }
    if (shared) {
        opt_share(plan, first->parent, first->which);
        forget_below(p, first);
    }
}

FALLIBLE pass_share_equal(struct opt *o) {
    enum { MOST = 400 }; /* operators: the search is quadratic */
    struct parts p = {.o = o};
    estimate_rel(o, o->plan->root);
    o->visited.count = 0;
    collect(&p, o->plan->root, NULL, 0);
    for (i64 i = 0; i < p.items.count && p.items.count <= MOST; i++) {
        if (!p.items.items[i].gone && is_worth(&p.items.items[i])) {
            consider(&p, i);
        }
    }
    return ERR_OK;
}
