/* change.c: facts and changes: rows for tables, and entities that they create.
 *
 * Clauses for one table and one way to change it are rules of a predicate of their own: their rows
 * are computed as any rules' are. A column for an entity that is created, or that a literal names,
 * is not computed: the rows have the keys of its maker instead, and the number is looked up when
 * they are written (struct lq_slot), behind the making of those that are new. */
#include "logiql/script_int.h"

static FALLIBLE check_target(struct script *s, const struct lq_atom *head) {
    if (script_has_rules(s, head->name)) {
        FAIL_AT(s->b.err, WRONG_OBJECT, head->position,
                "\"%.*s\" is derived by rules: it cannot be changed",
                (int)MIN_OF(head->name.len, 100), head->name.ptr);
    }
    return ERR_OK;
}

/* The table a change is for: one of the database, declared in this text, or made for it. */
static FALLIBLE target_of(struct script *s, const struct lq_atom *head, struct lq_pred **out) {
    struct lq_bind *b = &s->b;
    struct lq_pred *pred = *out = pred_known(b, head->name);
    TRY(check_target(s, head));
    if (!pred && script_entry(s, head->name)) {
        TRY(pred_get(b, head->name, head->position, &pred));
    }
    if (!pred) {
        pred = pred_new(b, head->name, ORIGIN_LATER);
        pred->position = head->position;
        pred->arity = atom_arity(head);
        pred->names = head_names(b->arena, head);
        pred->key_count = head->form == LQ_PLAIN ? -1 : (i32)head->keys.count;
        script_list(s, &s->created, pred);
    }
    if (pred->identifies.len > 0 && kind_is_stored(b, pred->identifies)) {
        pred = entity_rows(s, pred_known(b, pred->identifies));
    } else if (pred->is_entity) {
        pred = head->delta == LQ_REMOVE ? entity_rows(s, pred) : pred;
        *out = pred;
        return ERR_OK;
    }
    *out = pred;
    const struct file *file = script_file(s, pred->name);
    bool reads = file && file->path && !file->exports;
    if ((pred->origin != ORIGIN_TABLE && pred->origin != ORIGIN_LATER) || reads) {
        FAIL_AT(b->err, WRONG_OBJECT, head->position, "\"%.100s\" is not a table", pred->name.ptr);
    }
    if (pred->arity != atom_arity(head)) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, head->position,
                "predicate \"%.100s\" has %d arguments, not %d", pred->name.ptr, pred->arity,
                atom_arity(head));
    }
    if (head->form != LQ_PLAIN && pred->key_count != head->keys.count) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, head->position,
                "predicate \"%.100s\" has %d keys, not %d", pred->name.ptr,
                MAX_OF(pred->key_count, 0), (int)head->keys.count);
    }
    return ERR_OK;
}

/* How many arguments stand before those that are _. */
static FALLIBLE leading_args(struct script *s, const struct lq_atom *head, i32 *out) {
    *out = 0;
    for (i32 i = 0; i < atom_arity(head); i++) {
        bool any = atom_arg(head, i)->kind == LQ_ANY;
        if (!any && *out < i) {
            FAIL_AT(s->b.err, NOT_SUPPORTED, head->position,
                    "only the last arguments of what is removed can be _");
        }
        *out += !any;
        if (any && head->delta != LQ_REMOVE) {
            FAIL_AT(s->b.err, SYNTAX, atom_arg(head, i)->position, "_ cannot be stated");
        }
    }
    return ERR_OK;
}

/* --- entities --- */

struct lq_pred *entity_rows(struct script *s, struct lq_pred *entity) {
    struct lq_bind *b = &s->b;
    if (entity->rows || entity->refmode.len == 0) {
        return entity->rows ? entity->rows : entity;
    }
    struct lq_pred *rows = entity->rows = NEW(b->arena, struct lq_pred);
    const struct lq_pred *refmode = pred_look(b, entity->refmode);
    *rows = *entity;
    rows->arity = 2;
    rows->key_count = 1;
    rows->names = NEW_ARRAY(b->arena, const char *, 3);
    rows->types = refmode ? refmode->types : entity->types;
    rows->kinds = NEW_ARRAY(b->arena, struct sv, 3);
    rows->kinds[0] = entity->name;
    rows->names[0] = entity_column(entity, 0);
    rows->names[1] = entity_column(entity, 1);
    return rows;
}

static FALLIBLE slot_of(struct script *s, const struct lq_clause *clause, const struct lq_expr *arg,
                        struct sv kind, lq_exprs *plain, struct lq_slot *out);

/* The slot of what a maker makes of keys. */
static FALLIBLE slot_made(struct script *s, const struct lq_clause *clause, struct sv name,
                          const lq_exprs *keys, lq_exprs *plain, struct lq_slot *out) {
    struct lq_bind *b = &s->b;
    struct lq_pred *maker;
    TRY(pred_get(b, name, keys->count ? keys->items[0]->position : -1, &maker)); /* it may have been dropped */
    bool names = maker->identifies.len > 0;
    const struct lq_pred *rows = names ? entity_rows(s, pred_look(b, maker->identifies)) : maker;
    out->table = rows->name.ptr;
    out->id = rows->names[names ? 0 : rows->arity - 1];
    out->key_count = (i32)keys->count;
    out->key_names = rows->names + names;
    out->keys = NEW_ARRAY(b->arena, struct lq_slot, keys->count + 1);
    for (i32 i = 0; i < out->key_count; i++) {
        TRY(slot_of(s, clause, keys->items[i], kind_of(rows, i + names), plain, &out->keys[i]));
    }
    return ERR_OK;
}

static FALLIBLE slot_of(struct script *s, const struct lq_clause *clause, const struct lq_expr *arg,
                        struct sv kind, lq_exprs *plain, struct lq_slot *out) {
    struct lq_bind *b = &s->b;
    for (i64 i = 0; arg->kind == LQ_VARIABLE && i < clause->makes.count; i++) {
        const struct lq_make *make = &clause->makes.items[i];
        if (sv_eq(make->variable, arg->text)) {
            return slot_made(s, clause, make->maker, &make->keys, plain, out);
        }
    }
    if (kind.len > 0 && is_literal(arg) && kind_is_stored(b, kind)) {
        struct sv refmode;
        lq_exprs keys = {0};
        TRY(entity_refmode(b, kind, arg, &refmode));
        VEC_PUSH(b->arena, &keys, (struct lq_expr *)(size_t)arg);
        return slot_made(s, clause, refmode, &keys, plain, out);
    }
    out->col = (i32)plain->count;
    VEC_PUSH(b->arena, plain, (struct lq_expr *)(size_t)arg);
    return ERR_OK;
}

static void print_slot(const struct lq_slot *slot, struct text *out) {
    text_print(out, slot->table ? "%s(" : "%s", slot->table ? slot->table : "");
    for (i32 i = 0; slot->table && i < slot->key_count; i++) {
        print_slot(&slot->keys[i], out);
    }
    text_print(out, slot->table ? ")" : "%d,", slot->col);
}

/* Types and kinds of the source's columns, where those of the target say them. */
static void source_types(struct script *s, struct change *change, const struct lq_slot *slot,
                         const struct lq_pred *of, i32 col) {
    struct lq_pred *source = change->source;
    if (!slot->table) {
        source->types[slot->col] = of->types[col];
        source->kinds[slot->col] = kind_of(of, col);
        return;
    }
    struct lq_pred *maker = pred_look(&s->b, sv_from(slot->table));
    bool names = maker->is_entity;
    const struct lq_pred *rows = names ? entity_rows(s, maker) : maker;
    for (i32 i = 0; i < slot->key_count; i++) {
        source_types(s, change, &slot->keys[i], rows, i + names);
    }
}

/* --- changes --- */

static struct change *change_of(struct script *s, const struct change *like, i32 source_count) {
    struct lq_bind *b = &s->b;
    for (i64 i = 0; i < s->changes.count; i++) {
        struct change *change = s->changes.items[i];
        if (change->target == like->target && change->kind == like->kind &&
            change->arg_count == like->arg_count && change->reads == like->reads &&
            change->is_final == like->is_final && change->reads_deltas == like->reads_deltas &&
            strcmp(change->shape, like->shape) == 0) {
            return change;
        }
    }
    struct change *change = NEW(b->arena, struct change);
    *change = *like;
    text_init(&change->text, b->arena);
    const char *name = arena_printf(b->arena, "+%lld", (long long)s->changes.count);
    change->source = pred_new(b, sv_from(name), ORIGIN_RULES);
    change->source->arity = source_count;
    change->source->names = NEW_ARRAY(b->arena, const char *, source_count + 1);
    for (i32 i = 0; i < source_count; i++) {
        change->source->names[i] = arena_printf(b->arena, "x%d", i + 1);
    }
    VEC_PUSH(b->arena, &s->changes, change);
    return change;
}

/* One more clause of a change: its rows are `plain`. */
static FALLIBLE state(struct script *s, const struct lq_clause *clause, struct change *like,
                      const lq_exprs *plain) {
    struct lq_bind *b = &s->b;
    struct text shape;
    bool some = false;
    text_init(&shape, b->arena);
    for (i32 i = 0; i < (like->kind == LQ_MAKE ? 1 : like->arg_count); i++) {
        some = some || like->slots[i].table;
        print_slot(&like->slots[i], &shape);
    }
    like->shape = some ? shape.ptr : "";
    like->slots = some ? like->slots : NULL;
    like->reads = clause->body != NULL;
    like->is_final = clause->is_final;
    like->reads_deltas = clause->reads_deltas;
    struct change *change = change_of(s, like, (i32)plain->count);
    struct lq_atom head = {.form = LQ_PLAIN, .position = like->position, .keys = *plain};
    TRY(clause_rules(b, script_with_head(s, clause, &head, change->source->name), true));
    lq_print_clause(script_with_head(s, clause, &head, SV(LQ_ROWS)), &change->text);
    text_append(&change->text, SV("\n"));
    return arena_check(b->arena, b->err);
}

/* Entities that the clause creates, or that a literal of its heads names. */
static FALLIBLE make_entities(struct script *s, const struct lq_clause *clause, struct sv maker,
                              const lq_exprs *keys, i32 position) {
    struct lq_bind *b = &s->b;
    lq_exprs plain = {0};
    struct lq_pred *pred;
    struct change change = {.kind = LQ_MAKE, .position = position};
    TRY(pred_get(b, maker, position, &pred)); /* it may have been dropped */
    bool names = pred->identifies.len > 0;
    change.target = names ? entity_rows(s, pred_look(b, pred->identifies)) : pred;
    change.arg_count = (i32)keys->count;
    change.slots = NEW_ARRAY(b->arena, struct lq_slot, 1);
    if (!names && !kind_is_stored(b, kind_of(pred, pred->arity - 1))) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "rules derive the entities of \"%.100s\": changes cannot create some", maker.ptr);
    }
    TRY(slot_made(s, clause, maker, keys, &plain, &change.slots[0]));
    return state(s, clause, &change, &plain);
}

/* Literals in the places of entities name some, which are created where they are not there. */
static FALLIBLE make_named(struct script *s, const struct lq_clause *clause,
                           const struct lq_pred *target, const struct lq_atom *head, i32 count) {
    struct lq_bind *b = &s->b;
    for (i32 i = 0; i < count; i++) {
        const struct lq_expr *arg = atom_arg(head, i);
        struct sv refmode;
        lq_exprs keys = {0};
        if (kind_of(target, i).len > 0 && is_literal(arg) &&
            kind_is_stored(b, kind_of(target, i))) {
            TRY(entity_refmode(b, kind_of(target, i), arg, &refmode));
            VEC_PUSH(b->arena, &keys, (struct lq_expr *)(size_t)arg);
            TRY(make_entities(s, clause, refmode, &keys, arg->position));
        }
    }
    return ERR_OK;
}

/* What the clause creates by this head has its number and its row by being made. */
static bool is_made_by(const struct lq_clause *clause, const struct lq_pred *target,
                       const struct lq_atom *head) {
    for (i64 i = 0; i < clause->makes.count; i++) {
        const struct lq_make *make = &clause->makes.items[i];
        bool entity = target->is_entity && atom_arity(head) == 1 &&
                      sv_eq(atom_arg(head, 0)->text, make->variable);
        if (entity || (sv_eq(make->maker, head->name) && make->position == head->position)) {
            return true;
        }
    }
    return false;
}

static FALLIBLE make_all(struct script *s, struct lq_clause *clause) {
    for (i64 i = 0; i < clause->makes.count && !clause->taken; i++) {
        const struct lq_make *make = &clause->makes.items[i];
        TRY(make_entities(s, clause, make->maker, &make->keys, make->position));
    }
    clause->taken = 1;
    return ERR_OK;
}

static FALLIBLE check_determined(struct script *s, const struct lq_clause *clause,
                                 const struct lq_pred *entity, const struct lq_expr *arg) {
    if (arg->kind == LQ_VARIABLE && !formula_names(clause->body, arg->text)) {
        error_set(s->b.err, ERR_UNDEFINED_COLUMN, arg->position,
                  "nothing determines the entity %.*s", (int)MIN_OF(arg->text.len, 100),
                  arg->text.ptr);
        error_hint(s->b.err, "Name it, as in +%.60s(x), +%.60s(x:\"…\").", entity->name.ptr,
                   entity->refmode.ptr);
        return s->b.err->code;
    }
    return ERR_OK;
}

static FALLIBLE check_export(struct script *s, const struct file *file,
                             const struct lq_atom *head) {
    if (head->delta == LQ_REMOVE || head->delta == LQ_UPSERT || !file->path) {
        FAIL_AT(s->b.err, SYNTAX, head->position,
                file->path ? "a file that is written is stated: +%.*s(…) <- …"
                           : "lang:physical:filePath[`%.*s] does not say which file it is",
                (int)MIN_OF(head->name.len, 100), head->name.ptr);
    }
    return ERR_OK;
}

FALLIBLE change_add(struct script *s, struct lq_clause *clause, const struct lq_atom *head) {
    static const u8 kinds[] = {LQ_ADD, LQ_ADD, LQ_TAKE, LQ_PUT};
    struct lq_bind *b = &s->b;
    struct change change = {.kind = kinds[head->delta], .position = head->position};
    lq_exprs plain = {0};
    TRY(leading_args(s, head, &change.arg_count));
    TRY(make_all(s, clause));
    TRY(target_of(s, head, &change.target));
    if (head->delta == LQ_UPSERT && change.target->is_entity) {
        FAIL_AT(b->err, NOT_SUPPORTED, head->position, "what names an entity cannot change");
    }
    if (is_made_by(clause, change.target, head)) {
        return ERR_OK;
    }
    const struct file *file = script_file(s, head->name);
    if (file && file->exports) {
        TRY(check_export(s, file, head));
        change.kind = LQ_EXPORT;
    }
    bool unary = change.target->is_entity && atom_arity(head) == 1;
    if (head->delta != LQ_REMOVE) {
        TRY(make_named(s, clause, change.target, head, change.arg_count));
        if (unary && change.target->refmode.len > 0) { /* named, or there already */
            return check_determined(s, clause, change.target, atom_arg(head, 0));
        }
    }
    change.slots = NEW_ARRAY(b->arena, struct lq_slot, change.arg_count + 1);
    for (i32 i = 0; i < change.arg_count; i++) {
        TRY(slot_of(s, clause, atom_arg(head, i), kind_of(change.target, i), &plain,
                    &change.slots[i]));
    }
    return state(s, clause, &change, &plain);
}

/* Values of these types are kept as their class has it. */
static struct type stored_type(struct type type) {
    return type_is_integer(type)                             ? type_of(TYPE_BIGINT)
           : type.id == TYPE_DECIMAL                         ? type_decimal(DECIMAL_DIGITS_MAX, 10)
           : type_is_string(type) || type.id == TYPE_UNKNOWN ? type_of(TYPE_TEXT)
                                                             : type;
}

/* The entities that slots stand for are of their maker's kind. */
static FALLIBLE target_types(struct script *s, struct change *change) {
    struct lq_bind *b = &s->b;
    struct lq_pred *target = change->target;
    struct lq_pred *source = change->source;
    target->types = NEW_ARRAY(b->arena, struct type, target->arity + 1);
    target->kinds = NEW_ARRAY(b->arena, struct sv, target->arity + 1);
    for (i32 i = 0; i < target->arity; i++) {
        const struct lq_slot *slot = change->slots ? &change->slots[i] : NULL;
        i32 col = slot ? slot->col : i;
        if (slot && slot->table) {
            const struct lq_pred *maker = pred_look(b, sv_from(slot->table));
            target->types[i] = type_of(TYPE_BIGINT);
            target->kinds[i] = kind_of(maker, maker->is_entity ? 0 : maker->arity - 1);
            continue;
        }
        target->types[i] = stored_type(source->types[col]);
        target->kinds[i] = kind_of(source, col);
    }
    return arena_check(b->arena, b->err);
}

FALLIBLE change_type(struct script *s, struct change *change) {
    struct lq_bind *b = &s->b;
    struct lq_pred *target = change->target;
    struct lq_pred *source = change->source;
    if (target->types) {
        source->types = NEW_ARRAY(b->arena, struct type, source->arity + 1);
        source->kinds = NEW_ARRAY(b->arena, struct sv, source->arity + 1);
        source->declared = 1;
        for (i32 i = 0; change->kind != LQ_MAKE && i < change->arg_count; i++) {
            struct lq_slot plain = {.col = i};
            source_types(s, change, change->slots ? &change->slots[i] : &plain, target, i);
        }
        if (change->kind == LQ_MAKE) {
            source_types(s, change, &change->slots[0], target, 0);
        }
    }
    TRY(strata_add(b, source));
    TRY(relations_bind(b));
    bool whole = change->kind != LQ_MAKE && change->arg_count == target->arity;
    return !target->types && source->types && whole ? target_types(s, change) : ERR_OK;
}

/* --- actions --- */

void action_columns(struct lq_action *action, const struct lq_pred *pred) {
    action->col_count = pred->arity;
    action->key_count = pred->key_count < 0 ? pred->arity : pred->key_count;
    action->names = pred->names;
    action->types = pred->types;
}

static void change_action(struct script *s, const struct change *change) {
    struct lq_action action = {.kind = change->kind,
                               .name = change->target->name.ptr,
                               .text = change->text.ptr,
                               .position = change->position,
                               .slots = change->slots,
                               .source_count = change->source->arity,
                               .is_final = change->is_final,
                               .has_body = change->reads};
    if (change->reads_deltas) {
        action.text = arena_printf(s->b.arena, "%s%s", change->text.ptr, s->delta_text.ptr);
    }
    action_columns(&action, change->target);
    action.col_count = change->arg_count;
    if (change->kind == LQ_MAKE && !change->target->is_entity) {
        action.entity = kind_of(change->target, change->target->arity - 1).ptr;
    }
    if (change->kind == LQ_EXPORT) {
        const struct file *file = script_file(s, change->target->name);
        action.name = file->path;
        action.comment = file->delimiter;
        action.has_names = file->header;
        action.is_numbered = change->target->key_count == 1 && change->target->arity > 1;
    }
    VEC_PUSH(s->b.arena, &s->out->actions, action);
}

/* Entities are made first, those that others are made of before them (the order in which clauses say
 * so); they go last. */
void change_actions(struct script *s) {
    static const u8 order[] = {LQ_MAKE, LQ_TAKE, LQ_PUT, LQ_ADD, LQ_EXPORT};
    for (i64 i = 0; i < s->kept.count; i++) {
        VEC_PUSH(s->b.arena, &s->out->actions, s->kept.items[i]);
    }
    for (i64 k = 0; k < COUNT_OF(order); k++) {
        for (i32 pass = 0; pass < 2; pass++) {
            for (i64 i = 0; i < s->changes.count; i++) {
                const struct change *change = s->changes.items[i];
                bool late = change->target->is_entity == (order[k] == LQ_TAKE);
                if (change->kind == order[k] && late == (pass == 1)) {
                    change_action(s, change);
                }
            }
        }
    }
}
