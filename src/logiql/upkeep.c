/* upkeep.c: rows of derived predicates that are kept: what they depend on, and the plans that bring
 * them up to date.
 *
 * A component is predicates that derive each other, or a single one. Where inputs have lost rows,
 * LOST finds every tuple with a derivation that used one of them, directly or through tuples found
 * that way: too many, since a tuple may have other derivations. GAINED then starts from what is left
 * and finds tuples that were lost and have a derivation still, those with a derivation that uses a
 * new row, and what follows from both. Each is a union of rules read in part (struct lq_part_of): one
 * atom reads what changed, or what the recursion has found, the others all rows there are. So they
 * are plans like any others; where predicates derive each other, a FIX.
 *
 * Of a predicate that one rule aggregates or numbers, changed rows decide groups, by the rule read as one that derives
 * its keys: LOST are their rows, GAINED what the rule gives for them alone.
 *
 * Rows that are said to be gone but are not, or to be new though they were there, do no harm. */
#include "logiql/bind_int.h"

#include "codes/func.h"

/* --- what there is to keep --- */

static bool storable(const struct object *view) {
    for (u32 i = 0; i < view->col_count; i++) {
        if (view->col_types[i].id == TYPE_UNKNOWN) {
            return false;
        }
    }
    return view->col_count > 0;
}

static bool holds_entities(const struct lq_pred *pred) {
    bool found = false;
    for (i32 i = 0; pred->kinds && i < pred->arity && !found; i++) {
        found = pred->kinds[i].len > 0;
    }
    return found;
}

/* Where there are entities, only plans tell which columns hold them, and which literals read the
 * tables that name them. */
static FALLIBLE find_kinds(struct lq_bind *b) {
    bool found = false;
    for (i64 i = 0; i < b->order.count && !found; i++) {
        const struct lq_pred *pred = b->order.items[i];
        const struct object *object = pred->entry ? pred->entry->object : NULL;
        found = pred->is_entity || pred->makes || pred->refmode.len > 0 ||
                pred->identifies.len > 0 || holds_entities(pred) ||
                (object && object->kind == OBJECT_VIEW && object->logical &&
                 strstr(object->text, "lang:new"));
    }
    return found ? relations_bind(b) : ERR_OK;
}

/* What a literal reads it reads wherever the literal stands; a value takes the place of a default. */
static u8 negation_of(struct lq_bind *b, const struct lq_pred *pred, const struct lq_pred *other) {
    if (other->fallback) {
        return LQ_ABOUT_ALL;
    }
    for (i64 i = 0; i < pred->also.count; i++) {
        if (pred->also.items[i] == other) {
            return LQ_ABOUT_ALL;
        }
    }
    return strata_negates(b, pred, other);
}

static FALLIBLE add_inputs(struct lq_bind *b, const struct lq_pred *pred,
                           struct lq_component *out) {
    lq_preds reads = {0};
    strata_reads(b, pred, &reads);
    for (i64 i = 0; i < reads.count; i++) {
        const struct lq_pred *other = reads.items[i];
        struct lq_input input = {other->entry, negation_of(b, pred, other)};
        const struct object *object = other->entry ? other->entry->object : NULL;
        bool derived = object && object->kind == OBJECT_VIEW && object->logical;
        bool table = object && object->kind == OBJECT_TABLE && !object->table->provider;
        if (other->component == pred->component) {
            continue;
        }
        if (!derived && !table) {
            out->closed = 0;
            return ERR_OK;
        }
        bool seen = false;
        for (i64 k = 0; k < out->inputs.count && !seen; k++) { /* t:a and t:b are one table */
            seen = out->inputs.items[k].entry == input.entry;
            if (seen) {
                u8 *negation = &out->inputs.items[k].negation;
                *negation = MAX_OF(*negation, input.negation);
            }
        }
        if (!seen) {
            VEC_PUSH(b->arena, &out->inputs, input);
        }
    }
    return ERR_OK;
}

FALLIBLE logiql_component(struct arena *arena, struct snapshot *snap, const struct object *view,
                          struct lq_component *out, struct error *err) {
    struct lq_bind *b = NEW(arena, struct lq_bind);
    struct plan *plan = NEW(arena, struct plan);
    struct rule_keeper *keeper = snap->keeper;
    struct lq_pred *root = NULL;
    bool best = false;
    *out = (struct lq_component){.closed = 1};
    TRY(arena_check(arena, err));
    *plan = (struct plan){.arena = arena};
    lq_bind_init(b, plan, snap, err);
    snap->keeper = NULL; /* rules are what is looked at */
    wf_status status = pred_of_view(b, view, &root);
    status = status ? status : strata_add(b, root);
    status = status ? status : find_kinds(b);
    snap->keeper = keeper;
    TRY(status);
    for (i64 i = 0; i < b->order.count; i++) {
        const struct lq_pred *pred = b->order.items[i];
        if (pred->component != root->component) {
            continue;
        }
        const struct object *object = pred->entry ? pred->entry->object : NULL;
        out->closed = out->closed && object && object->logical && storable(object);
        out->recursive = out->recursive || pred->recursive;
        const struct sv *kinds = holds_entities(pred) ? pred->kinds : NULL;
        VEC_PUSH(arena, &out->members, object);
        VEC_PUSH(arena, &out->kinds, kinds);
        for (i64 r = 0; r < pred->rules.count; r++) {
            out->folds = out->folds || pred->rules.items[r]->clause->fold;
        }
        best = best || pred->best;
        TRY(add_inputs(b, pred, out));
    }
    for (i64 i = 0; best && i < out->inputs.count; i++) { /* a best value may become a worse one */
        out->inputs.items[i].negation = LQ_ABOUT_ALL;
    }
    return arena_check(arena, err);
}

/* --- rules in part --- */

static i64 member_of(const struct lq_upkeep *request, const struct lq_pred *pred) {
    for (i64 i = 0; pred->entry && i < request->member_count; i++) {
        if (request->members[i]->oid == pred->entry->object->oid) {
            return i;
        }
    }
    return -1;
}

static struct rel *rows_rel(struct lq_bind *b, const struct lq_pred *pred,
                            const struct snapshot_table *rows) {
    return scan_new(b->plan, rows, pred->name.ptr, -1);
}

static const struct lq_changed *change_of(const struct lq_upkeep *request,
                                          const struct lq_pred *pred) {
    const struct table *table = pred->origin == ORIGIN_KEPT ? pred->kept.table
                                : pred->entry               ? pred->entry->object->table
                                                            : NULL;
    for (i64 i = 0; table && i < request->change_count; i++) {
        if (request->changes[i].table_id == table->id) {
            return &request->changes[i];
        }
    }
    return NULL;
}

FALLIBLE part_rel(struct lq_bind *b, struct lq_scope *scope, struct lq_pred *pred, bool is_same,
                  struct rel **out) {
    struct lq_part_of *part = b->part;
    i64 atom = scope->atom;
    i64 member = member_of(part->request, pred);
    part->atom_count = MAX_OF(part->atom_count, atom + 1);
    if (atom >= PART_ATOMS_MOST) {
        FAIL(b->err, TOO_COMPLEX, "a rule has more than %d atoms", PART_ATOMS_MOST);
    }
    u64 bit = 1ULL << atom;
    if (member >= 0) {
        part->members |= bit;
        *out = part->found & bit ? fix_atom(pred->draft, pred->relation)
                                 : rows_rel(b, pred, &part->request->rows[member]);
        return ERR_OK;
    }
    const struct lq_changed *changed = change_of(part->request, pred);
    if (!changed) {
        return ERR_OK;
    }
    part->changes |= bit;
    if (atom == part->changed) {
        part->is_same = is_same;
        *out = rows_rel(b, pred, &changed->rows);
    }
    return ERR_OK;
}

struct upkeep {
    struct lq_bind b;
    const struct lq_upkeep *request;
    struct lq_pred **preds; /* the members */
    struct fix_draft *draft;
    struct rel **found; /* by member: rows of what no round finds; NULL = none */
};

static struct rel *by_all_columns(struct lq_bind *b, enum join_kind kind, struct rel *left,
                                  struct rel *right, i64 count) {
    struct rel *join = rel_join(b->plan, kind, left, right);
    for (i64 i = 0; i < count; i++) {
        VEC_PUSH(b->arena, &join->join.left_keys, expr_col(b->plan, left->out.items[i], -1));
        VEC_PUSH(b->arena, &join->join.right_keys, expr_col(b->plan, right->out.items[i], -1));
        VEC_PUSH(b->arena, &join->join.null_safe, (b8)0);
    }
    join->rows = left->rows;
    return join;
}

/* Rows of a term of every round that the member has not: an index of all its rows serves them all. */
static struct rel *not_there(struct upkeep *u, i64 member, struct rel *term) {
    struct rel *there = rows_rel(&u->b, u->preds[member], &u->request->rows[member]);
    return by_all_columns(&u->b, JOIN_ANTI, term, there, term->out.count);
}

/* The same of few rows, once: those of the member that are among them are looked for, so that nobody
 * makes an index of all. */
static struct rel *few_not_there(struct upkeep *u, i64 member, struct rel *rows) {
    struct lq_bind *b = &u->b;
    struct rel *few = lq_distinct(b, rows);
    struct rel *mine = rel_shared(b->plan, few, few->out.items, NULL, few->out.count);
    struct rel *asked = rel_shared(b->plan, few, few->out.items, NULL, few->out.count);
    struct rel *all = rows_rel(b, u->preds[member], &u->request->rows[member]);
    mine->rows = asked->rows = few->rows;
    struct rel *there = by_all_columns(b, JOIN_SEMI, all, asked, few->out.count);
    there->rows = few->rows;
    return by_all_columns(b, JOIN_ANTI, mine, there, few->out.count);
}

/* One more plan whose rows the member gains or loses; `again`: in every round. */
static void add_term(struct upkeep *u, i64 member, struct rel *term, bool again) {
    if (again) {
        bool gains = u->request->kind == LQ_GAINED;
        fix_rule(u->draft, (u32)member, gains ? not_there(u, member, term) : term);
        return;
    }
    struct rel *before = u->found[member];
    u->found[member] = before ? rel_unite(&u->b, before, term) : term;
}

/* The rule once for every atom of which something changed. */
static FALLIBLE add_changes(struct upkeep *u, i64 member, const struct lq_rule *rule,
                            const struct lq_part_of *met) {
    for (i64 i = 0; i < met->atom_count; i++) {
        if (!(met->changes >> i & 1)) {
            continue;
        }
        struct lq_part_of part = {.request = u->request, .changed = i};
        struct rel *term = NULL;
        u->b.part = &part;
        TRY(rule_term(&u->b, rule, NULL, &term));
        if (!part.is_same) { /* else the atom before it has the same rows */
            add_term(u, member, term, false);
        }
    }
    return ERR_OK;
}

/* The rule once for every choice of atoms that read what the recursion found. What may be lost needs
 * one of them: everything that is found there is there at the others, too. */
static FALLIBLE add_rounds(struct upkeep *u, i64 member, const struct lq_rule *rule,
                           const struct lq_part_of *met) {
    enum { ATOMS_MOST = 4 };
    i64 atoms[ATOMS_MOST];
    i64 count = 0;
    for (i64 i = 0; i < met->atom_count; i++) {
        if (met->members >> i & 1) {
            if (count == ATOMS_MOST) {
                FAIL(u->b.err, TOO_COMPLEX, "a rule reads its own component more than %d times",
                     ATOMS_MOST);
            }
            atoms[count++] = i;
        }
    }
    for (u32 choice = 1; choice < 1u << count; choice++) {
        bool one = (choice & (choice - 1)) == 0;
        if (u->request->kind == LQ_LOST && !one) {
            continue;
        }
        struct lq_part_of part = {.request = u->request, .changed = -1};
        struct rel *term = NULL;
        for (i64 i = 0; i < count; i++) {
            part.found |= (u64)(choice >> i & 1) << atoms[i];
        }
        u->b.part = &part;
        TRY(rule_term(&u->b, rule, NULL, &term));
        add_term(u, member, term, true);
    }
    return ERR_OK;
}

/* --- groups --- */

/* The rule as one that derives the keys of its groups. */
static struct lq_rule *rule_of_keys(struct lq_bind *b, const struct lq_rule *rule, i32 keys) {
    struct lq_rule *out = NEW(b->arena, struct lq_rule);
    struct lq_clause *clause = NEW(b->arena, struct lq_clause);
    struct lq_atom *head = NEW(b->arena, struct lq_atom);
    *clause = *rule->clause;
    clause->fold = LQ_NO_FOLD;
    *head = *rule->head;
    head->form = LQ_PLAIN;
    head->keys = head->values = (lq_exprs){0};
    for (i32 i = 0; i < keys; i++) {
        VEC_PUSH(b->arena, &head->keys, (struct lq_expr *)(size_t)atom_arg(rule->head, i));
    }
    struct lq_pred *pred = NEW(b->arena, struct lq_pred);
    *pred = *rule->pred;
    pred->key_count = -1;
    pred->arity = keys;
    *out = *rule;
    out->pred = pred;
    out->clause = clause;
    out->head = head;
    return out;
}

/* Groups that may have other values than before: those of bindings with a row that changed, and of GAINED those that
 * rows were lost of. NULL in u->found: none. */
static FALLIBLE find_groups(struct upkeep *u, i64 member, const struct lq_rule *rule, i32 keys) {
    struct lq_bind *b = &u->b;
    const struct lq_upkeep *request = u->request;
    const struct snapshot_table *lost = request->lost ? &request->lost[member] : NULL;
    struct lq_part_of met = {.request = request, .changed = -1};
    const struct lq_rule *of_keys = rule_of_keys(b, rule, keys);
    struct rel *term = NULL;
    b->part = &met;
    TRY(rule_term(b, of_keys, NULL, &term)); /* shows what atoms there are */
    TRY(add_changes(u, member, of_keys, &met));
    if (request->kind == LQ_GAINED && lost && lost->table) {
        struct rel *rows = rows_rel(b, u->preds[member], lost);
        struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, keys + 1);
        for (i32 i = 0; i < keys; i++) {
            exprs[i] = expr_col(b->plan, rows->out.items[i], -1);
        }
        add_term(u, member, lq_project(b, rows, exprs, u->preds[member]->names, keys), false);
    }
    return ERR_OK;
}

static FALLIBLE add_groups(struct upkeep *u, i64 member, const struct lq_rule *rule, i32 keys) {
    TRY(find_groups(u, member, rule, keys));
    struct rel *groups = u->found[member];
    if (!groups || u->request->kind == LQ_LOST) {
        return ERR_OK;
    }
    struct lq_part_of whole = {.request = u->request, .changed = -1};
    u->b.part = &whole;
    return rule_term(&u->b, rule, lq_distinct(&u->b, groups), &u->found[member]);
}

static FALLIBLE add_rule_parts(struct upkeep *u, i64 member, const struct lq_rule *rule) {
    const struct lq_upkeep *request = u->request;
    const struct snapshot_table *lost = request->lost ? &request->lost[member] : NULL;
    bool again = request->kind == LQ_GAINED && lost && lost->table;
    struct lq_part_of met = {.request = request, .changed = -1};
    struct rel *among = again ? rows_rel(&u->b, u->preds[member], lost) : NULL;
    struct rel *term = NULL;
    i32 keys = 0;
    if (fold_is_grouped(u->preds[member], &keys)) {
        return add_groups(u, member, rule, keys);
    }
    if (rule->clause->fold && !again) { /* nothing it reads has changed */
        return ERR_OK;
    }
    u->b.part = &met;
    TRY(rule_term(&u->b, rule, among, &term)); /* shows what atoms there are */
    if (again) {
        add_term(u, member, term, false);
    }
    TRY(add_changes(u, member, rule, &met));
    return u->draft ? add_rounds(u, member, rule, &met) : ERR_OK;
}

/* --- what the members gain or lose, as one answer --- */

static struct expr *number_of(struct lq_bind *b, i64 number) {
    struct expr *e = expr_int(b->t, 0, -1);
    e->type = type_of(TYPE_BIGINT);
    const_set_exact(e, number);
    return e;
}

/* Rows of the member whose first columns are among those found; the last column is the number of each. */
static struct rel *rows_among(struct upkeep *u, i64 member, struct rel *found) {
    struct lq_bind *b = &u->b;
    struct rel *scan = rows_rel(b, u->preds[member], &u->request->rows[member]);
    i64 count = found->out.count;
    struct scan_col number = {
        .col = plan_col_new(b->plan, "row", type_of(TYPE_BIGINT), false),
        .table_col = ROWID_COL,
        .range = range_of_value(0),
        .no_nulls = 1,
        .unique = 1,
        .distinct = scan->scan.table_rows};
    number.range.hi = (i128)1 << 52;
    VEC_PUSH(b->arena, &scan->scan.cols, number);
    VEC_PUSH(b->arena, &scan->out, number.col);
    struct rel *join = by_all_columns(b, JOIN_SEMI, scan, found, count);
    join->rows = found->rows;
    return join;
}

static struct rel *row_numbers(struct upkeep *u, i64 member, struct rel *found) {
    struct lq_bind *b = &u->b;
    struct rel *rows = rows_among(u, member, found);
    struct expr *only[1] = {expr_col(b->plan, rows->out.items[rows->out.count - 1], -1)};
    const char *names[1] = {"row"};
    return lq_project(b, rows, only, names, 1);
}

static struct rel *use_again(struct lq_bind *b, struct rel *rel) {
    struct rel *use = rel_shared(b->plan, rel, rel->out.items, NULL, rel->out.count);
    use->rows = rel->rows;
    return use;
}

/* The same of groups, and of how many there is none: one whose values were undefined has no row. */
static struct rel *group_numbers(struct upkeep *u, i64 member, struct rel *found) {
    struct lq_bind *b = &u->b;
    i64 keys = found->out.count;
    struct rel *rows = rows_among(u, member, use_again(b, found));
    struct rel *mine = use_again(b, rows);
    struct rel *theirs = use_again(b, rows);
    struct expr *number[1] = {expr_col(b->plan, mine->out.items[mine->out.count - 1], -1)};
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, keys + 1);
    for (i64 i = 0; i < keys; i++) {
        exprs[i] = expr_col(b->plan, theirs->out.items[i], -1);
    }
    struct rel *there = lq_distinct(b, lq_project(b, theirs, exprs, u->preds[member]->names, keys));
    struct rel *agg = rel_new(b->plan, REL_AGG,
                              by_all_columns(b, JOIN_ANTI, use_again(b, found), there, keys), NULL);
    struct agg_call call = {.agg = AGG_COUNT_STAR, .position = -1};
    const char *names[1] = {"row"};
    call.col = plan_col_new(b->plan, "count", type_of(TYPE_BIGINT), false);
    VEC_PUSH(b->arena, &agg->agg.calls, call);
    VEC_PUSH(b->arena, &agg->out, call.col);
    agg->rows = 1;
    struct expr *below[1] = {expr_call(b->arena, FUNC_SUB, type_of(TYPE_BIGINT), -1, 2,
                                       number_of(b, -1), expr_col(b->plan, call.col, -1))};
    return rel_unite(b, lq_project(b, mine, number, names, 1), lq_project(b, agg, below, names, 1));
}

/* The member's rows among columns of all of them. */
static struct rel *numbered(struct upkeep *u, i64 member, struct rel *rel, bool wide) {
    struct lq_bind *b = &u->b;
    i64 most = 1 + rel->out.count;
    for (i64 m = 0; m < u->request->member_count; m++) {
        most += u->preds[m]->arity;
    }
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, most);
    const char **names = NEW_ARRAY(b->arena, const char *, most);
    i64 count = 0;
    names[count] = "member";
    exprs[count++] = number_of(b, member);
    for (i64 m = 0; m < u->request->member_count; m++) {
        const struct lq_pred *pred = u->preds[m];
        for (i32 c = 0; wide && c < pred->arity; c++) {
            names[count] = pred->names[c];
            exprs[count++] = m == member ? expr_col(b->plan, rel->out.items[c], -1)
                                         : expr_null(b->t, pred->types[c], -1);
        }
    }
    if (!wide) {
        names[count] = "row";
        exprs[count++] = expr_col(b->plan, rel->out.items[0], -1);
    }
    return lq_project(b, rel, exprs, names, count);
}

static struct rel *no_rows(struct upkeep *u, i64 member) {
    struct lq_bind *b = &u->b;
    const struct lq_pred *pred = u->preds[member];
    struct rel *row = one_row(b);
    for (i32 i = 0; i < pred->arity; i++) {
        u32 col = plan_col_new(b->plan, pred->names[i], pred->types[i], true);
        VEC_PUSH(b->arena, &row->out, col);
        VEC_PUSH(b->arena, &row->values.exprs, expr_null(b->t, pred->types[i], -1));
    }
    struct rel *none = rel_new(b->plan, REL_FILTER, row, NULL);
    VEC_PUSH(b->arena, &none->filter.conds, expr_bool(b->t, false, -1));
    none->rows = 1;
    return none;
}

static struct rel *answer_of(struct upkeep *u, struct rel *const *members) {
    const struct lq_upkeep *request = u->request;
    struct rel *all = NULL;
    for (i64 m = 0; m < request->member_count; m++) {
        bool numbers = request->kind == LQ_LOST;
        i32 keys = 0;
        bool groups = numbers && fold_is_grouped(u->preds[m], &keys) && u->found[m];
        struct rel *rel = groups    ? group_numbers(u, m, members[m])
                          : numbers ? row_numbers(u, m, members[m])
                                    : members[m];
        if (request->member_count > 1) {
            rel = numbered(u, m, rel, !numbers);
        }
        all = all ? rel_unite(&u->b, all, rel) : rel;
    }
    return all;
}

static FALLIBLE open_members(struct upkeep *u) {
    struct lq_bind *b = &u->b;
    const struct lq_upkeep *request = u->request;
    for (i64 m = 0; m < request->member_count; m++) {
        const struct object *view = request->members[m];
        struct lq_pred *pred = pred_known(b, sv_from(view->name));
        if (!pred) {
            TRY(pred_of_view(b, view, &pred));
        }
        u->preds[m] = pred;
        TRY(strata_add(b, pred));
    }
    return ERR_OK;
}

/* Columns have the types of the rows that are kept. */
static void type_members(struct upkeep *u) {
    struct lq_bind *b = &u->b;
    for (i64 m = 0; m < u->request->member_count; m++) {
        struct lq_pred *pred = u->preds[m];
        const struct sv *kinds = u->request->kinds ? u->request->kinds[m] : NULL;
        pred->types = NEW_ARRAY(b->arena, struct type, pred->arity + 1);
        pred->kinds = NEW_ARRAY(b->arena, struct sv, pred->arity + 1);
        pred->declared = 1;
        pred->relation = (u32)m;
        for (i32 i = 0; i < pred->arity; i++) {
            pred->types[i] = u->request->members[m]->col_types[i];
            pred->kinds[i] = kinds ? kinds[i] : (struct sv){NULL, 0};
        }
    }
}

static void open_recursion(struct upkeep *u) {
    struct lq_bind *b = &u->b;
    i64 count = u->request->member_count;
    bool recursive = false;
    for (i64 m = 0; m < count; m++) {
        recursive = recursive || u->preds[m]->recursive;
    }
    u->draft = recursive ? fix_open(b->plan, (u32)count) : NULL;
    for (i64 m = 0; m < count && recursive; m++) {
        struct lq_pred *pred = u->preds[m];
        struct plan_col *cols = NEW_ARRAY(b->arena, struct plan_col, pred->arity + 1);
        for (i32 c = 0; c < pred->arity; c++) {
            cols[c] = (struct plan_col){pred->names[c], pred->types[c], 0};
        }
        pred->draft = u->draft;
        fix_relation(u->draft, (u32)m, cols, pred->arity, true);
    }
}

static FALLIBLE bind_parts(struct upkeep *u, struct rel **members) {
    struct lq_bind *b = &u->b;
    i64 count = u->request->member_count;
    type_members(u);
    open_recursion(u);
    for (i64 m = 0; m < count; m++) {
        for (i64 r = 0; r < u->preds[m]->rules.count; r++) {
            TRY(add_rule_parts(u, m, u->preds[m]->rules.items[r]));
        }
    }
    b->part = NULL;
    for (i64 m = 0; m < count; m++) {
        if (u->found[m] && u->request->kind == LQ_GAINED) {
            u->found[m] = few_not_there(u, m, u->found[m]);
        } else if (u->found[m]) {
            u->found[m] = lq_distinct(b, u->found[m]);
        }
        if (u->found[m] && u->draft) {
            fix_base(u->draft, (u32)m, u->found[m]);
        }
    }
    struct rel *fix = u->draft ? fix_close(u->draft) : NULL;
    if (fix && u->request->enough) {
        fix->fix.limit = number_of(b, u->request->enough);
    }
    for (i64 m = 0; m < count; m++) {
        members[m] = fix           ? fix_read(b->plan, fix, (u32)m)
                     : u->found[m] ? u->found[m]
                                   : no_rows(u, m);
    }
    return ERR_OK;
}

/* Everything anew, in the types of the rows that are kept. */
static FALLIBLE bind_whole(struct upkeep *u, struct rel **members) {
    struct lq_bind *b = &u->b;
    TRY(relations_bind(b));
    for (i64 m = 0; m < u->request->member_count; m++) {
        const struct object *view = u->request->members[m];
        struct lq_pred *pred = u->preds[m];
        if (pred->fix && u->request->enough) {
            pred->fix->fix.limit = number_of(b, u->request->enough);
        }
        struct rel *rel = pred_read(b, pred);
        struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, pred->arity + 1);
        for (i32 i = 0; i < pred->arity; i++) {
            TRY(coerce_to(b->t, expr_col(b->plan, rel->out.items[i], -1), view->col_types[i],
                          &exprs[i]));
        }
        members[m] = lq_project(b, rel, exprs, pred->names, pred->arity);
    }
    return ERR_OK;
}

FALLIBLE logiql_upkeep(struct plan *plan, struct snapshot *snap, const struct lq_upkeep *request,
                       struct error *err) {
    struct upkeep *u = NEW(plan->arena, struct upkeep);
    TRY(arena_check(plan->arena, err));
    u->request = request;
    lq_bind_init(&u->b, plan, snap, err);
    u->b.members = request->members;
    u->b.member_count = request->member_count;
    u->preds = NEW_ARRAY(plan->arena, struct lq_pred *, request->member_count);
    u->found = NEW_ARRAY(plan->arena, struct rel *, request->member_count);
    struct rel **members = NEW_ARRAY(plan->arena, struct rel *, request->member_count);
    TRY(arena_check(plan->arena, err));
    TRY(open_members(u));
    TRY(request->kind == LQ_ALL ? bind_whole(u, members) : bind_parts(u, members));
    plan->root = answer_of(u, members);
    for (i64 i = 0; i < plan->root->out.count; i++) {
        VEC_PUSH(plan->arena, &plan->names, plan->cols.items[plan->root->out.items[i]].name);
    }
    return arena_check(plan->arena, err);
}
