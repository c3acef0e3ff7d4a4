/* list.c: the rules that a database has, by strata; where a clause ends.
 *
 * A stratum is what can be computed when those below it are complete: predicates that read tables
 * alone are in the first. */
#include "logiql/bind_int.h"

static i32 level_of(struct lq_bind *b, const struct lq_pred *pred, const i32 *levels) {
    lq_preds reads = {0};
    i32 level = 1;
    strata_reads(b, pred, &reads);
    for (i64 i = 0; i < reads.count; i++) {
        const struct lq_pred *other = reads.items[i];
        if (other->origin == ORIGIN_RULES && other->component != pred->component) {
            level = MAX_OF(level, levels[other->component] + 1);
        }
    }
    return level;
}

static FALLIBLE add_all(struct lq_bind *b) {
    for (struct edition_walk at = edition_walk(b->snap->edition); edition_step(&at);) {
        const struct object *object = at.entry->object;
        struct sv name = sv_from(object->name);
        struct lq_pred *pred;
        if (object->kind == OBJECT_VIEW && object->logical &&
            snapshot_lookup(b->snap, (struct sv){NULL, 0}, name) == at.entry) {
            TRY(pred_get(b, name, -1, &pred));
            TRY(strata_add(b, pred));
        }
    }
    return ERR_OK;
}

/* What LogiQL declared of tables: kinds of entities, and whose entities columns hold. */
static FALLIBLE list_declared(struct lq_bind *b, struct lq_list *out) {
    for (struct edition_walk at = edition_walk(b->snap->edition); edition_step(&at);) {
        const struct object *object = at.entry->object;
        if (object->kind == OBJECT_TABLE && object->logical && object->text && object->text[0] &&
            snapshot_lookup(b->snap, (struct sv){NULL, 0}, sv_from(object->name)) == at.entry) {
            struct lq_listed listed = {.predicate = object->name, .text = object->text};
            VEC_PUSH(b->arena, &out->items, listed);
        }
    }
    return arena_check(b->arena, b->err);
}

FALLIBLE logiql_list(struct arena *arena, struct snapshot *snap, struct lq_list *out,
                     struct error *err) {
    struct lq_bind *b = NEW(arena, struct lq_bind);
    struct plan *plan = NEW(arena, struct plan);
    *out = (struct lq_list){0};
    TRY(arena_check(arena, err));
    *plan = (struct plan){.arena = arena};
    TRY(snapshot_open(snap, err));
    lq_bind_init(b, plan, snap, err);
    TRY(add_all(b));
    i32 *levels = NEW_ARRAY(arena, i32, b->component_count + 1);
    TRY(arena_check(arena, err));
    for (i64 i = 0; i < b->order.count; i++) { /* what is read comes first */
        struct lq_pred *pred = b->order.items[i];
        levels[pred->component] = MAX_OF(levels[pred->component], level_of(b, pred, levels));
    }
    i32 most = 0;
    for (i64 i = 0; i < b->order.count; i++) {
        most = MAX_OF(most, levels[b->order.items[i]->component]);
    }
    TRY(list_declared(b, out));
    for (i32 level = 1; level <= most; level++) {
        for (i64 i = 0; i < b->order.count; i++) {
            const struct lq_pred *pred = b->order.items[i];
            if (pred->origin == ORIGIN_RULES && levels[pred->component] == level) {
                struct lq_listed listed = {.stratum = level,
                                           .component = pred->component,
                                           .predicate = pred->name.ptr,
                                           .recursive = pred->recursive,
                                           .text = pred->entry->object->text};
                VEC_PUSH(arena, &out->items, listed);
            }
        }
    }
    return arena_check(arena, err);
}

size_t logiql_scan(struct arena *arena, struct sv text, bool *out_blank) {
    lq_mistakes none = {0};
    struct lq_lexer lexer = {arena, text, 0, &none};
    *out_blank = true;
    for (;;) {
        struct lq_token token = lq_next(&lexer);
        if (token.kind == TOKEN_END) {
            return 0;
        }
        if (token.kind == TOKEN_POINT) {
            return (size_t)token.end;
        }
        *out_blank = false;
    }
}
