/* script.c: what a text of clauses does to a database.
 *
 * All of it is checked before anything is done, so that a text shows its mistakes at once: types,
 * arities and strata of the rules together with those the database has, facts and changes against
 * the predicates they are for. A predicate is a table, or it has rules; what is stated of neither
 * becomes a table. */
#include "logiql/bind_int.h"

struct change { /* rows for a table, or to go from it */
    struct lq_pred *target;
    struct lq_pred *source; /* a predicate of its own, whose rules are what the clauses say */
    u8 delta;
    b8 reads; /* a body */
    i32 arg_count;
    struct text text;
    i32 position;
};

struct file { /* of a predicate whose rows a file has */
    struct sv name;
    const char *path, *delimiter;
    b8 header;
};

struct script {
    struct lq_bind b;
    VEC(struct file) files;
    struct lq_script *out;
    struct lq_program program;
    lq_preds installed;
    lq_preds created;
    VEC(struct change *) changes;
};

static struct file *file_of(struct script *s, struct sv name) {
    for (i64 i = 0; i < s->files.count; i++) {
        if (sv_eq(s->files.items[i].name, name)) {
            return &s->files.items[i];
        }
    }
    return NULL;
}

static bool starts_with(struct sv name, const char *prefix) {
    i64 len = (i64)strlen(prefix);
    return name.len >= len && memcmp(name.ptr, prefix, (size_t)len) == 0;
}

static const struct edition_entry *entry_of(struct script *s, struct sv name) {
    return snapshot_lookup(s->b.snap, (struct sv){NULL, 0}, name);
}

static bool is_derived(const struct edition_entry *entry) {
    return entry && entry->object->kind == OBJECT_VIEW && entry->object->logical;
}

/* Whether rules derive the predicate: those of the database, or of this text. */
static bool has_rules(struct script *s, struct sv name) {
    if (is_derived(entry_of(s, name))) {
        return true;
    }
    for (i64 i = 0; i < s->program.clauses.count; i++) {
        const struct lq_clause *clause = s->program.clauses.items[i];
        for (i64 h = 0; clause->kind == LQ_RULE && h < clause->heads.count; h++) {
            const struct lq_atom *head = clause->heads.items[h];
            if (head->delta == LQ_STATE && sv_eq(head->name, name)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_listed(const lq_preds *list, const struct lq_pred *pred) {
    for (i64 i = 0; i < list->count; i++) {
        if (list->items[i] == pred) {
            return true;
        }
    }
    return false;
}

static void list_once(struct script *s, lq_preds *list, struct lq_pred *pred) {
    if (!is_listed(list, pred)) {
        VEC_PUSH(s->b.arena, list, pred);
    }
}

static struct lq_clause *with_head(struct script *s, const struct lq_clause *clause,
                                   const struct lq_atom *head, struct sv name) {
    struct lq_clause *only = NEW(s->b.arena, struct lq_clause);
    struct lq_atom *atom = NEW(s->b.arena, struct lq_atom);
    *only = *clause;
    *atom = *head;
    atom->delta = LQ_STATE;
    atom->name = name;
    only->heads.items = NULL;
    only->heads.count = only->heads.cap = 0;
    VEC_PUSH(s->b.arena, &only->heads, atom);
    return only;
}

/* --- rules --- */

static bool is_empty_declared(struct script *s, const struct edition_entry *entry) {
    struct snapshot_table found = snapshot_of(s->b.snap, entry);
    return entry->object->logical && found.version->live_rows == 0;
}

/* A table that LogiQL declared and that is empty makes room for rules, which keep its types. */
static FALLIBLE table_to_rules(struct script *s, const struct edition_entry *entry,
                               const struct lq_atom *head, struct lq_pred **out) {
    struct lq_bind *b = &s->b;
    const struct object *object = entry->object;
    if (object->kind != OBJECT_TABLE) {
        FAIL_AT(b->err, WRONG_OBJECT, head->position, "\"%.*s\" is not a predicate of rules",
                (int)MIN_OF(head->name.len, 100), head->name.ptr);
    }
    if (!is_empty_declared(s, entry)) {
        error_set(b->err, ERR_WRONG_OBJECT, head->position,
                  "\"%.*s\" is a table: rules cannot derive it", (int)MIN_OF(head->name.len, 100),
                  head->name.ptr);
        error_hint(b->err, "Write its facts together with the rules, or choose another name.");
        return b->err->code;
    }
    TRY(pred_get(b, head->name, head->position, out));
    struct lq_pred *pred = *out;
    bool all = pred->key && pred->key->col_count == (u32)pred->arity;
    pred->key_count = all ? -1 : pred->key_count;
    pred->origin = ORIGIN_RULES;
    pred->declared = 1;
    return ERR_OK;
}

static FALLIBLE install(struct script *s, const struct lq_clause *clause,
                        const struct lq_atom *head) {
    struct lq_bind *b = &s->b;
    const struct edition_entry *entry = entry_of(s, head->name);
    struct lq_pred *pred = pred_known(b, head->name);
    if (entry && (!pred || pred->origin != ORIGIN_RULES)) {
        if (is_derived(entry)) {
            TRY(pred_get(b, head->name, head->position, &pred));
        } else {
            TRY(table_to_rules(s, entry, head, &pred));
        }
    }
    struct lq_clause *only = with_head(s, clause, head, head->name);
    struct text mine;
    text_init(&mine, b->arena);
    lq_print_clause(only, &mine);
    for (i64 i = 0; pred && i < pred->rules.count; i++) { /* said before, it adds nothing */
        struct text old;
        text_init(&old, b->arena);
        lq_print_clause(pred->rules.items[i]->clause, &old);
        if (sv_eq((struct sv){mine.ptr, mine.len}, (struct sv){old.ptr, old.len})) {
            return ERR_OK;
        }
    }
    TRY(clause_rules(b, only, true));
    list_once(s, &s->installed, pred_known(b, head->name));
    return ERR_OK;
}

/* --- facts and changes --- */

static FALLIBLE check_target(struct script *s, const struct lq_atom *head) {
    if (has_rules(s, head->name)) {
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
    if (!pred && entry_of(s, head->name)) {
        TRY(pred_get(b, head->name, head->position, &pred));
    }
    if (!pred) {
        pred = pred_new(b, head->name, ORIGIN_LATER);
        pred->position = head->position;
        pred->arity = atom_arity(head);
        pred->names = head_names(b->arena, head);
        pred->key_count = head->form == LQ_PLAIN ? -1 : (i32)head->keys.count;
        list_once(s, &s->created, pred);
    }
    *out = pred;
    const struct file *file = file_of(s, pred->name);
    if ((pred->origin != ORIGIN_TABLE && pred->origin != ORIGIN_LATER) || (file && file->path)) {
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

static struct change *change_of(struct script *s, struct lq_pred *target, u8 delta, i32 count,
                                bool reads) {
    struct lq_bind *b = &s->b;
    for (i64 i = 0; i < s->changes.count; i++) {
        struct change *change = s->changes.items[i];
        if (change->target == target && change->delta == delta && change->arg_count == count &&
            change->reads == reads) {
            return change;
        }
    }
    struct change *change = NEW(b->arena, struct change);
    change->target = target;
    change->delta = delta;
    change->arg_count = count;
    change->reads = reads;
    text_init(&change->text, b->arena);
    const char *name = arena_printf(b->arena, "+%lld", (long long)s->changes.count);
    change->source = pred_new(b, sv_from(name), ORIGIN_RULES);
    change->source->arity = count;
    change->source->names = target->names;
    VEC_PUSH(b->arena, &s->changes, change);
    return change;
}

static FALLIBLE add_change(struct script *s, const struct lq_clause *clause,
                           const struct lq_atom *head) {
    struct lq_bind *b = &s->b;
    struct lq_pred *target;
    i32 count;
    TRY(leading_args(s, head, &count));
    TRY(target_of(s, head, &target));
    u8 delta = head->delta == LQ_STATE ? LQ_INSERT : head->delta;
    struct change *change = change_of(s, target, delta, count, clause->body != NULL);
    change->position = change->position ? change->position : head->position;
    struct lq_atom *plain = NEW(b->arena, struct lq_atom);
    *plain = (struct lq_atom){.form = LQ_PLAIN, .position = head->position};
    for (i32 i = 0; i < count; i++) {
        VEC_PUSH(b->arena, &plain->keys, (struct lq_expr *)(size_t)atom_arg(head, i));
    }
    TRY(clause_rules(b, with_head(s, clause, plain, change->source->name), true));
    lq_print_clause(with_head(s, clause, plain, SV("_")), &change->text);
    text_append(&change->text, SV("\n"));
    return ERR_OK;
}

/* --- clauses --- */

static FALLIBLE add_action(struct script *s, u8 kind, const char *name, const char *text,
                           i32 position) {
    struct lq_action action = {.kind = kind, .name = name, .text = text, .position = position};
    VEC_PUSH(s->b.arena, &s->out->actions, action);
    return ERR_OK;
}

static FALLIBLE bad_property(struct script *s, const struct lq_atom *head) {
    FAIL_AT(s->b.err, SYNTAX, head->position,
            "%.*s takes a predicate and a value, as in lang:physical:filePath[`p] = \"f.csv\".",
            (int)MIN_OF(head->name.len, 60), head->name.ptr);
}

/* lang:physical:filePath[`p] = "…" and its kin. */
static FALLIBLE add_file_property(struct script *s, const struct lq_atom *head) {
    struct arena *arena = s->b.arena;
    const struct lq_expr *key = head->keys.count == 1 ? head->keys.items[0] : NULL;
    const struct lq_expr *value = head->values.count == 1 ? head->values.items[0] : NULL;
    struct sv property = {head->name.ptr + 14, head->name.len - 14}; /* behind lang:physical: */
    bool flag = sv_eq(property, SV("hasColumnNames"));
    if (!key || !value || key->kind != LQ_PREDICATE ||
        value->kind != (flag ? LQ_BOOL : LQ_STRING)) {
        return bad_property(s, head);
    }
    if (!file_of(s, key->text)) {
        struct file file = {.name = key->text};
        VEC_PUSH(arena, &s->files, file);
    }
    struct file *file = file_of(s, key->text);
    if (flag) {
        file->header = value->truth;
    } else if (sv_eq(property, SV("filePath"))) {
        file->path = arena_sv(arena, value->text).ptr;
    } else if (sv_eq(property, SV("delimiter"))) {
        file->delimiter = arena_sv(arena, value->text).ptr;
    } else if (!sv_eq(value->text, SV("import"))) {
        FAIL_AT(s->b.err, NOT_SUPPORTED, head->position, "not supported yet: writing files");
    }
    return ERR_OK;
}

static bool is_file_property(struct sv name) {
    return sv_eq(name, SV("lang:physical:filePath")) ||
           sv_eq(name, SV("lang:physical:delimiter")) ||
           sv_eq(name, SV("lang:physical:hasColumnNames")) ||
           sv_eq(name, SV("lang:physical:fileMode"));
}

/* lang:…: settings of ours, and properties that say nothing here. */
static FALLIBLE add_pragma(struct script *s, const struct lq_atom *head) {
    struct lq_bind *b = &s->b;
    const struct lq_expr *key = head->keys.count == 1 ? head->keys.items[0] : NULL;
    const struct lq_expr *value = head->values.count == 1 ? head->values.items[0] : NULL;
    if (is_file_property(head->name)) { /* taken before */
        return ERR_OK;
    }
    if (sv_eq(head->name, SV("lang:setting"))) {
        if (!key || !value || key->kind != LQ_STRING || value->kind != LQ_STRING) {
            FAIL_AT(b->err, SYNTAX, head->position,
                    "settings are texts, as in lang:setting[\"device\"] = \"cpu\".");
        }
        return add_action(s, LQ_SETTING, arena_sv(b->arena, key->text).ptr,
                          arena_sv(b->arena, value->text).ptr, head->position);
    }
    if (sv_eq(head->name, SV("lang:entity")) || sv_eq(head->name, SV("lang:constructor")) ||
        sv_eq(head->name, SV("lang:defaultValue"))) {
        FAIL_AT(b->err, NOT_SUPPORTED, head->position, "not supported yet: %.*s",
                (int)MIN_OF(head->name.len, 100), head->name.ptr);
    }
    const char *text = arena_printf(b->arena, "%.*s has no effect",
                                    (int)MIN_OF(head->name.len, 100), head->name.ptr);
    VEC_PUSH(b->arena, &s->out->notices, text);
    return ERR_OK;
}

/* Files are known before the declarations of their predicates, wherever they are named. */
static FALLIBLE add_files(struct script *s, const struct lq_clause *clause) {
    for (i64 i = 0; clause->kind == LQ_FACT && i < clause->heads.count; i++) {
        if (is_file_property(clause->heads.items[i]->name)) {
            TRY(add_file_property(s, clause->heads.items[i]));
        }
    }
    return ERR_OK;
}

static FALLIBLE add_head(struct script *s, const struct lq_clause *clause,
                         const struct lq_atom *head) {
    if (starts_with(head->name, "lang:")) {
        return add_pragma(s, head);
    }
    if (sv_eq(head->name, SV("_"))) {
        error_set(s->b.err, ERR_SYNTAX, head->position, "a query cannot be installed");
        error_hint(s->b.err, "Ask it with SELECT * FROM logiql('…'), or at the LogiQL prompt.");
        return s->b.err->code;
    }
    if (head->stage == LQ_FINAL || head->stage == LQ_START) {
        FAIL_AT(s->b.err, SYNTAX, head->position, "a head has no stage");
    }
    if (head->form == LQ_REFMODE) {
        FAIL_AT(s->b.err, NOT_SUPPORTED, head->position, "not supported yet: refmodes");
    }
    bool rule = head->delta == LQ_STATE && (clause->kind == LQ_RULE || has_rules(s, head->name));
    return rule ? install(s, clause, head) : add_change(s, clause, head);
}

static FALLIBLE add_declaration(struct script *s, const struct lq_clause *clause) {
    struct lq_bind *b = &s->b;
    struct lq_pred *pred = NULL;
    struct sv name;
    TRY(declared_name(b, clause, &name));
    const struct edition_entry *entry = entry_of(s, name);
    if (entry && !pred_known(b, name)) {
        TRY(pred_get(b, name, clause->position, &pred));
        if (pred->origin != ORIGIN_RULES) {
            return declaration_fits(b, clause, pred);
        }
    }
    TRY(declare(b, clause, &pred));
    if (has_rules(s, name)) {
        pred->origin = ORIGIN_RULES;
        list_once(s, &s->installed, pred);
    } else {
        list_once(s, &s->created, pred);
    }
    return ERR_OK;
}

static FALLIBLE install_constraint(struct script *s, const struct lq_clause *clause,
                                   const struct lq_clause *rule) {
    struct text text;
    TRY(install(s, rule, rule->heads.items[0]));
    text_init(&text, s->b.arena);
    text_append(&text, SV("constraint \""));
    lq_print_clause(clause, &text);
    text_append(&text, SV("\""));
    pred_known(&s->b, rule->heads.items[0]->name)->comment = text.ptr;
    return ERR_OK;
}

static FALLIBLE add_clause(struct script *s, const struct lq_clause *clause) {
    if (clause->kind == LQ_CONSTRAINT) {
        if (is_declaration(s->b.arena, clause)) {
            return add_declaration(s, clause);
        }
        struct lq_clause *rule = NULL;
        TRY(constraint_rule(&s->b, clause, &rule));
        return install_constraint(s, clause, rule);
    }
    for (i64 i = 0; i < clause->heads.count; i++) {
        TRY(add_head(s, clause, clause->heads.items[i]));
    }
    return ERR_OK;
}

/* Of functional predicates whose rules do not say by themselves that a key has one value, this is a
 * constraint. */
static FALLIBLE add_dependencies(struct script *s) {
    struct lq_bind *b = &s->b;
    i64 count = s->installed.count;
    for (i64 i = 0; i < count; i++) {
        const struct lq_pred *pred = s->installed.items[i];
        if (pred->key_count < 0 || pred->key_count == pred->arity || pred->one_value) {
            continue;
        }
        for (i32 c = pred->key_count; c < pred->arity; c++) {
            struct lq_clause *rule = dependency_rule(b, pred, c);
            TRY(install(s, rule, rule->heads.items[0]));
            struct lq_pred *made = pred_known(b, rule->heads.items[0]->name);
            made->position = pred->position;
            made->comment = arena_printf(b->arena, "that %s[…] has one value", pred->name.ptr);
            TRY(strata_add(b, made));
        }
    }
    return relations_bind(b);
}

/* --- what comes of it --- */

/* Values of these types are kept as their class has it. */
static struct type stored_type(struct type type) {
    return type_is_integer(type)                             ? type_of(TYPE_BIGINT)
           : type.id == TYPE_DECIMAL                         ? type_decimal(DECIMAL_DIGITS_MAX, 10)
           : type_is_string(type) || type.id == TYPE_UNKNOWN ? type_of(TYPE_TEXT)
                                                             : type;
}

/* A target without types gets those of what is stated of it; others give theirs. */
static FALLIBLE type_change(struct script *s, struct change *change) {
    struct lq_bind *b = &s->b;
    struct lq_pred *target = change->target;
    struct lq_pred *source = change->source;
    if (target->types) {
        source->types = target->types;
        source->declared = 1;
    }
    TRY(strata_add(b, source));
    TRY(relations_bind(b));
    if (!target->types && source->types && change->arg_count == target->arity) {
        target->types = NEW_ARRAY(b->arena, struct type, target->arity + 1);
        for (i32 i = 0; i < target->arity; i++) {
            target->types[i] = stored_type(source->types[i]);
        }
    }
    return ERR_OK;
}

static FALLIBLE check_all(struct script *s) {
    struct lq_bind *b = &s->b;
    for (i32 pass = 0; pass < 2; pass++) { /* facts first: they give types to what rules read */
        for (i64 i = 0; i < s->changes.count; i++) {
            if (s->changes.items[i]->reads == (pass == 1)) {
                TRY(type_change(s, s->changes.items[i]));
            }
        }
        for (i64 i = 0; pass == 0 && i < s->installed.count; i++) {
            TRY(strata_add(b, s->installed.items[i]));
        }
        TRY(relations_bind(b));
    }
    if (s->out->mistakes.count == 0) {
        TRY(add_dependencies(s));
    }
    for (i64 i = 0; i < s->created.count && s->out->mistakes.count == 0; i++) {
        const struct lq_pred *pred = s->created.items[i];
        if (!pred->types) {
            FAIL_AT(b->err, UNDEFINED_TABLE, pred->position, "predicate \"%.100s\" is not defined",
                    pred->name.ptr);
        }
    }
    return ERR_OK;
}

/* Predicates that derive each other read what any of them reads. */
static void note_reads(struct script *s, const struct lq_pred *pred, struct lq_action *action) {
    lq_preds reads = {0};
    for (i64 i = 0; i < s->b.order.count; i++) {
        if (s->b.order.items[i]->component == pred->component) {
            strata_reads(&s->b, s->b.order.items[i], &reads);
        }
    }
    for (i64 i = 0; i < reads.count; i++) {
        const struct lq_pred *other = reads.items[i];
        if (other->component != pred->component) {
            const char *name = other->entry ? other->entry->object->name : other->name.ptr;
            VEC_PUSH(s->b.arena, &action->reads, name);
        }
    }
}

static const char *rules_text(struct script *s, const struct lq_pred *pred) {
    struct text out;
    text_init(&out, s->b.arena);
    for (i64 i = 0; i < pred->declarations.count; i++) {
        lq_print_clause(pred->declarations.items[i], &out);
        text_append(&out, SV("\n"));
    }
    const struct lq_clause *last = NULL;
    for (i64 i = 0; i < pred->rules.count; i++) { /* alternatives of one clause follow each other */
        if (pred->rules.items[i]->clause != last) {
            last = pred->rules.items[i]->clause;
            lq_print_clause(last, &out);
            text_append(&out, SV("\n"));
        }
    }
    return out.ptr;
}

static void columns_of(struct lq_action *action, const struct lq_pred *pred) {
    action->col_count = pred->arity;
    action->key_count = pred->key_count < 0 ? pred->arity : pred->key_count;
    action->names = pred->names;
    action->types = pred->types;
}

static void give_actions(struct script *s) {
    struct arena *arena = s->b.arena;
    for (i64 i = 0; i < s->created.count; i++) {
        const struct lq_pred *pred = s->created.items[i];
        struct lq_action action = {
            .kind = LQ_CREATE, .name = pred->name.ptr, .position = pred->position};
        columns_of(&action, pred);
        const struct file *file = file_of(s, pred->name);
        if (file && file->path) {
            action.kind = LQ_FILE;
            action.text = file->path;
            action.comment = file->delimiter;
            action.has_body = file->header;
        }
        VEC_PUSH(arena, &s->out->actions, action);
    }
    for (i64 i = 0; i < s->b.order.count; i++) { /* those that are read first */
        const struct lq_pred *pred = s->b.order.items[i];
        if (!is_listed(&s->installed, pred)) {
            continue;
        }
        struct lq_action action = {
            .kind = LQ_INSTALL, .name = pred->name.ptr, .position = pred->position};
        columns_of(&action, pred);
        action.text = rules_text(s, pred);
        action.comment = pred->comment;
        action.replaces = pred->entry && pred->entry->object->kind == OBJECT_TABLE;
        note_reads(s, pred, &action);
        VEC_PUSH(arena, &s->out->actions, action);
    }
    static const u8 order[][2] = {{LQ_REMOVE, LQ_TAKE}, {LQ_UPSERT, LQ_PUT}, {LQ_INSERT, LQ_ADD}};
    for (i64 k = 0; k < COUNT_OF(order); k++) {
        for (i64 i = 0; i < s->changes.count; i++) {
            const struct change *change = s->changes.items[i];
            if (change->delta == order[k][0]) {
                struct lq_action action = {.kind = order[k][1],
                                           .name = change->target->name.ptr,
                                           .text = change->text.ptr,
                                           .position = change->position,
                                           .has_body = change->reads};
                columns_of(&action, change->target);
                action.col_count = change->arg_count;
                VEC_PUSH(arena, &s->out->actions, action);
            }
        }
    }
}

FALLIBLE logiql_script(struct arena *arena, struct snapshot *snap, struct sv text,
                       struct lq_script *out, struct error *err) {
    struct script *s = NEW(arena, struct script);
    struct plan *plan = NEW(arena, struct plan);
    *out = (struct lq_script){0};
    TRY(arena_check(arena, err));
    *plan = (struct plan){.arena = arena};
    s->out = out;
    TRY(snapshot_open(snap, err));
    lq_bind_init(&s->b, plan, snap, err);
    TRY(lq_parse(arena, arena_sv(arena, text), &s->program, err));
    out->mistakes = s->program.mistakes;
    s->b.mistakes = &out->mistakes;
    struct lq_pred nobody = {0};
    for (i64 i = 0; i < s->program.clauses.count; i++) {
        TRY(lq_noted(&s->b, add_files(s, s->program.clauses.items[i]), &nobody));
    }
    for (i64 i = 0; i < s->program.clauses.count; i++) {
        wf_status status = add_clause(s, s->program.clauses.items[i]);
        TRY(lq_noted(&s->b, status, &nobody));
    }
    if (out->mistakes.count == 0) {
        TRY(lq_noted(&s->b, check_all(s), &nobody));
    }
    if (out->mistakes.count == 0) {
        give_actions(s);
    }
    return arena_check(arena, err);
}
