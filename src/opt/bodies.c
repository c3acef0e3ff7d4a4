/* bodies.c: rules of one recursion that join the same rows do so once.
 *
 * A clause with several heads is several rules over one body, and programs repeat bodies under other
 * names. Each rule of a recursion is an arm of what a round adds to its relation. Where the joins of
 * several arms are equal (plan/equal.c), in which rows of the round are equal to themselves, the first becomes the
 * input of a SHARED, with the conditions that all arms have, and each arm goes on from there with those
 * of its own. Only arms that have the first one's conditions take part: what the SHARED makes is then what
 * that arm needs.
 *
 * The pass runs before conditions move: what a head asks for would part bodies that are written alike.
 * Arms without a join are left alone: their rows are read again as quickly as a copy of them. See decision 0057. */
#include "opt/opt_int.h"

struct body {
    struct rel *parent; /* of the filter, or of the joins where there is none */
    i32 which;
    struct rel *filter; /* NULL = none */
    struct rel *joins;
    struct expr **map; /* its columns by those of the first of its group */
    b8 gone;
};

struct bodies {
    struct opt *o;
    u32 fix;
    VEC(struct body) items;
};

static bool is_joined(const struct rel *rel) {
    return rel->kind == REL_JOIN || (rel->kind == REL_FILTER && is_joined(rel_input(rel)));
}

/* What stands above the bodies of a relation's rules: it unites them, and keeps what is new of them. */
static bool is_above(const struct rel *rel) {
    switch (rel->kind) {
    case REL_PROJECT:
    case REL_AGG:
    case REL_UNION:
        return true;
    case REL_FILTER:
        return rel_input(rel)->kind == REL_FILTER || is_above(rel_input(rel));
    case REL_JOIN:
        return rel->join.kind == JOIN_ANTI && is_above(rel_left(rel));
    default:
        return false;
    }
}

static void find_bodies(struct bodies *b, struct rel *parent, i32 which) {
    struct rel *rel = parent->inputs[which];
    if (is_above(rel)) {
        i32 count = rel->kind == REL_JOIN ? 1 : rel->input_count;
        for (i32 i = 0; i < count; i++) {
            find_bodies(b, rel, i);
        }
    } else if (is_joined(rel)) {
        bool filtered = rel->kind == REL_FILTER;
        struct body body = {.parent = parent,
                            .which = which,
                            .filter = filtered ? rel : NULL,
                            .joins = filtered ? rel_input(rel) : rel};
        VEC_PUSH(b->o->plan->arena, &b->items, body);
    }
}

static bool covers(struct expr *const *map, const struct rel *a, const struct rel *b) {
    for (i64 i = 0; i < b->out.count; i++) {
        const struct expr *first = map[b->out.items[i]];
        if (!first || !rel_has_out(a, first->col)) {
            return false;
        }
    }
    return true;
}

/* Whether one of the conditions is `cond`, which names the first body's columns. */
static bool has_cond(struct bodies *b, const struct body *body, const struct expr *cond) {
    const expr_list *conds = body->filter ? &body->filter->filter.conds : NULL;
    bool found = false;
    for (i64 i = 0; conds && i < conds->count && !found; i++) {
        struct expr *mine = conds->items[i];
        mine = body->map ? expr_map(b->o->plan->arena, mine, body->map) : mine;
        found = expr_equal(mine, cond);
    }
    return found;
}

/* Conditions of the first that all have. */
static expr_list common_conds(struct bodies *b, struct body *const *group, i64 count) {
    expr_list common = {0};
    const expr_list *conds = group[0]->filter ? &group[0]->filter->filter.conds : NULL;
    for (i64 i = 0; conds && i < conds->count; i++) {
        bool all = !expr_is_volatile(conds->items[i]);
        for (i64 k = 1; k < count && all; k++) {
            all = has_cond(b, group[k], conds->items[i]);
        }
        if (all) {
            VEC_PUSH(b->o->plan->arena, &common, conds->items[i]);
        }
    }
    return common;
}

static void drop_conds(struct bodies *b, const struct body *body, const expr_list *common) {
    expr_list own = {0};
    struct arena *arena = b->o->plan->arena;
    for (i64 i = 0; i < body->filter->filter.conds.count; i++) {
        struct expr *cond = body->filter->filter.conds.items[i];
        struct expr *named = body->map ? expr_map(arena, cond, body->map) : cond;
        bool found = false;
        for (i64 k = 0; k < common->count && !found; k++) {
            found = expr_equal(named, common->items[k]);
        }
        if (!found) {
            VEC_PUSH(arena, &own, cond);
        }
    }
    body->filter->filter.conds = own;
}

static bool is_not_null(const struct expr *cond) {
    return cond->kind == EXPR_NOT && cond->args[0]->kind == EXPR_IS_NULL;
}

/* Whether `body` has the first one's conditions, so that its rows are among those the first one needs. Joins
 * alone may be products of everything, which no rule asks for; tests for NULL leave out little. */
static bool is_within(struct bodies *b, const struct body *first, const struct body *body) {
    const expr_list *conds = first->filter ? &first->filter->filter.conds : NULL;
    bool within = true;
    for (i64 i = 0; conds && i < conds->count && within; i++) {
        within = is_not_null(conds->items[i]) || has_cond(b, body, conds->items[i]);
    }
    return within;
}

/* The group's joins, and the conditions that all have, once. */
static void share(struct bodies *b, struct body *const *group, i64 count) {
    struct plan *plan = b->o->plan;
    expr_list common = common_conds(b, group, count);
    struct body *first = group[0];
    struct rel *shared = first->joins;
    if (common.count > 0) {
        shared = rel_new(plan, REL_FILTER, first->joins, NULL);
        shared->filter.conds = common;
        shared->rows = first->filter->rows;
        shared->position = first->filter->position;
    }
    for (i64 k = 1; k < count; k++) {
        const struct body *body = group[k];
        const col_list *as = &body->joins->out;
        u32 *cols = NEW_ARRAY(plan->arena, u32, as->count + 1);
        for (i64 i = 0; i < as->count; i++) {
            cols[i] = body->map[as->items[i]]->col;
        }
        struct rel *use = rel_shared(plan, shared, cols, as->items, as->count);
        use->rows = shared->rows;
        if (body->filter) {
            drop_conds(b, body, &common);
            rel_set_input(body->filter, use);
        } else {
            body->parent->inputs[body->which] = use;
        }
    }
    struct rel *parent = first->filter ? first->filter : first->parent;
    i32 which = first->filter ? 0 : first->which;
    if (first->filter) {
        drop_conds(b, first, &common);
    }
    parent->inputs[which] = shared;
    opt_share(plan, parent, which);
}

static void consider(struct bodies *b, i64 at) {
    struct plan *plan = b->o->plan;
    struct body **group = NEW_ARRAY(plan->arena, struct body *, b->items.count - at);
    i64 count = 0;
    group[count++] = &b->items.items[at];
    for (i64 i = at + 1; i < b->items.count; i++) {
        struct body *body = &b->items.items[i];
        if (body->gone || rel_hash(body->joins) != rel_hash(group[0]->joins)) {
            continue;
        }
        body->map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
        if (rel_equal_round(plan, group[0]->joins, body->joins, body->map, b->fix) &&
            covers(body->map, group[0]->joins, body->joins) && is_within(b, group[0], body)) {
            body->gone = 1;
            group[count++] = body;
        }
    }
    if (count > 1) {
        share(b, group, count);
    }
}

struct search {
    struct bodies *b;
    bool rounds, fixes;
};

static void note_rounds(struct rel *rel, void *arg) {
    struct search *s = arg;
    s->rounds = s->rounds || (rel->kind == REL_WORK && rel->work.fix == s->b->fix);
    s->fixes = s->fixes || rel->kind == REL_FIX;
}

struct inner {
    struct bodies *b;
    bool found;
};

/* Recursions within a round are left where they are. */
static bool note_inner(struct rel *rel, void *arg) {
    struct inner *in = arg;
    in->found = in->found || rel->kind == REL_FIX;
    if (rel_shares(rel)) {
        struct search s = {.b = in->b};
        rel_each(in->b->o->plan->arena, rel_input(rel), note_rounds, &s);
        in->found = in->found || (s.rounds && s.fixes);
    }
    return !in->found && !rel_shares(rel);
}

FALLIBLE pass_bodies(struct opt *o) {
    enum { MOST = 1000 }; /* bodies: each is compared with each */
    rel_all fixes = opt_all_of(o, REL_FIX);
    for (i64 f = 0; f < fixes.count; f++) {
        struct rel *fix = fixes.items[f];
        struct bodies b = {.o = o, .fix = fix->fix.number};
        for (i32 i = 1; i < fix->input_count; i += 2) {
            find_bodies(&b, fix, i);
        }
        for (i64 i = 0; i < b.items.count; i++) {
            struct inner in = {&b, false};
            rel_walk(o->plan->arena, b.items.items[i].joins, note_inner, &in);
            b.items.items[i].gone = in.found;
        }
        for (i64 i = 0; i < b.items.count && b.items.count <= MOST; i++) {
            if (!b.items.items[i].gone) {
                consider(&b, i);
            }
        }
    }
    return arena_check(o->plan->arena, o->err);
}
