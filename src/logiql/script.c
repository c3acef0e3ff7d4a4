/* script.c: what a text of clauses does to a database.
 *
 * All of it is checked before anything is done, so that a text shows its mistakes at once: types,
 * arities and strata of the rules together with those the database has, facts and changes against
 * the predicates they are for. A predicate is a table, or it has rules; what is stated of neither
 * becomes a table. */
#include "logiql/script_int.h"

struct file *script_file(struct script *s, struct sv name) {
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

const struct edition_entry *script_entry(struct script *s, struct sv name) {
    return snapshot_lookup(s->b.snap, (struct sv){NULL, 0}, name);
}

static bool is_derived(const struct edition_entry *entry) {
    return entry && entry->object->kind == OBJECT_VIEW && entry->object->logical;
}

/* A column of a table of entities, though the database reads it by a rule. */
static bool is_stored_name(struct script *s, struct sv name) {
    const struct lq_pred *pred = pred_look(&s->b, name);
    return pred && pred->identifies.len > 0 && kind_is_stored(&s->b, pred->identifies);
}

bool script_has_rules(struct script *s, struct sv name) {
    const struct file *file = script_file(s, name);
    if (file && file->exports) {
        return false;
    }
    if (is_derived(script_entry(s, name))) {
        if (is_stored_name(s, name)) {
            return false;
        }
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

void script_list(struct script *s, lq_preds *list, struct lq_pred *pred) {
    if (!is_listed(list, pred)) {
        VEC_PUSH(s->b.arena, list, pred);
    }
}

struct lq_clause *script_with_head(struct script *s, const struct lq_clause *clause,
                                   const struct lq_atom *head, struct sv name) {
    struct lq_clause *only = NEW(s->b.arena, struct lq_clause);
    struct lq_atom *atom = NEW(s->b.arena, struct lq_atom);
    *only = *clause;
    *atom = *head;
    atom->delta = LQ_STATE;
    atom->form = head->form == LQ_REFMODE ? LQ_KEYED : head->form;
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
    if (pred->is_entity || pred->makes) {
        FAIL_AT(b->err, WRONG_OBJECT, head->position,
                "entities of \"%.*s\" are made by changes: rules cannot derive it",
                (int)MIN_OF(head->name.len, 100), head->name.ptr);
    }
    bool all = pred->key && pred->key->col_count == (u32)pred->arity;
    pred->key_count = all ? -1 : pred->key_count;
    pred->origin = ORIGIN_RULES;
    pred->declared = 1;
    return ERR_OK;
}

static FALLIBLE install(struct script *s, const struct lq_clause *clause,
                        const struct lq_atom *head) {
    struct lq_bind *b = &s->b;
    const struct edition_entry *entry = script_entry(s, head->name);
    struct lq_pred *pred = pred_known(b, head->name);
    if (entry && is_stored_name(s, head->name)) {
        FAIL_AT(b->err, WRONG_OBJECT, head->position,
                "\"%.*s\" names entities of a table: rules cannot derive it",
                (int)MIN_OF(head->name.len, 100), head->name.ptr);
    }
    if (entry && (!pred || pred->origin != ORIGIN_RULES)) {
        if (is_derived(entry)) {
            TRY(pred_get(b, head->name, head->position, &pred));
        } else {
            TRY(table_to_rules(s, entry, head, &pred));
        }
    }
    struct lq_clause *only = script_with_head(s, clause, head, head->name);
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
    script_list(s, &s->installed, pred_known(b, head->name));
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
    if (!script_file(s, key->text)) {
        struct file file = {.name = key->text};
        VEC_PUSH(arena, &s->files, file);
    }
    struct file *file = script_file(s, key->text);
    if (flag) {
        file->header = value->truth;
    } else if (sv_eq(property, SV("filePath"))) {
        file->path = arena_sv(arena, value->text).ptr;
    } else if (sv_eq(property, SV("delimiter"))) {
        file->delimiter = arena_sv(arena, value->text).ptr;
    } else {
        file->exports = sv_eq(value->text, SV("export"));
        if (!file->exports && !sv_eq(value->text, SV("import"))) {
            FAIL_AT(s->b.err, INVALID_PARAMETER, value->position,
                    "the mode of a file is \"import\" or \"export\"");
        }
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
    if (sv_eq(head->name, SV("lang:entity")) || sv_eq(head->name, SV("lang:constructor"))) {
        FAIL_AT(b->err, SYNTAX, head->position, "%.*s takes a predicate, as in lang:entity(`p).",
                (int)MIN_OF(head->name.len, 100), head->name.ptr);
    }
    if (sv_eq(head->name, SV("lang:derivationType"))) {
        bool known = value && value->kind == LQ_STRING &&
                     (sv_eq(value->text, SV("Derived")) || sv_eq(value->text, SV("Extensional")) ||
                      sv_eq(value->text, SV("DerivedAndStored")));
        if (!known || !key || key->kind != LQ_PREDICATE) {
            FAIL_AT(b->err, INVALID_PARAMETER, head->position,
                    "lang:derivationType[`p] is \"Derived\", \"DerivedAndStored\" or "
                    "\"Extensional\"");
        }
        return ERR_OK; /* that rules derive it or none do shows, and what is kept is up to us */
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

static bool is_rule(struct script *s, const struct lq_clause *clause, const struct lq_atom *head) {
    const struct file *file = script_file(s, head->name);
    bool exports = file && file->exports;
    return head->delta == LQ_STATE && !exports &&
           (clause->kind == LQ_RULE || script_has_rules(s, head->name));
}

static FALLIBLE add_head(struct script *s, struct lq_clause *clause, const struct lq_atom *head) {
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
    if (!is_rule(s, clause, head)) {
        return change_add(s, clause, head);
    }
    TRY(clause_check_stages(s, clause));
    return install(s, clause, head);
}

/* An entity of a table: that has the name, too, and a predicate reads it from there. */
static FALLIBLE create_entity(struct script *s, struct lq_pred *pred) {
    struct lq_bind *b = &s->b;
    struct lq_pred *rows = entity_rows(s, pred);
    script_list(s, &s->created, rows);
    if (pred->refmode.len == 0) {
        return ERR_OK;
    }
    struct lq_pred *refmode = pred_known(b, pred->refmode);
    struct sv column = sv_from(arena_printf(b->arena, "%s:%s", pred->name.ptr, rows->names[1]));
    refmode->stored = pred->name.ptr;
    if (sv_eq(column, pred->refmode)) {
        return ERR_OK;
    }
    struct lq_pred *col = pred_new(b, column, ORIGIN_LATER);
    col->arity = 2;
    col->key_count = 1;
    col->names = rows->names;
    col->types = rows->types;
    col->kinds = rows->kinds;
    col->stored = pred->name.ptr;
    struct lq_program program;
    const char *text =
        arena_printf(b->arena, "%s[x] = n <- %s[x] = n.", refmode->name.ptr, column.ptr);
    TRY(lq_parse(b->arena, sv_from(text), &program, b->err));
    TRY(clause_rules(b, program.clauses.items[0], false));
    script_list(s, &s->installed, refmode);
    return ERR_OK;
}

/* Declared predicates become tables, unless rules derive them. */
static FALLIBLE place_declared(struct script *s, struct lq_pred *pred) {
    struct lq_bind *b = &s->b;
    struct lq_pred *refmode = pred->refmode.len > 0 ? pred_known(b, pred->refmode) : NULL;
    if (script_has_rules(s, pred->name)) {
        pred->origin = ORIGIN_RULES;
        script_list(s, &s->installed, pred);
        if (refmode && script_has_rules(s, refmode->name)) {
            refmode->origin = ORIGIN_RULES;
            script_list(s, &s->installed, refmode);
        }
        return ERR_OK;
    }
    if (pred->is_entity) {
        return create_entity(s, pred);
    }
    script_list(s, &s->created, pred);
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

static FALLIBLE add_clause(struct script *s, struct lq_clause *clause) {
    if (clause->taken) {
        return ERR_OK;
    }
    if (clause->kind == LQ_CONSTRAINT) {
        struct lq_clause *rule = NULL;
        TRY(constraint_rule(&s->b, clause, &rule));
        return install_constraint(s, clause, rule);
    }
    for (i64 i = 0; i < clause->heads.count; i++) {
        TRY(add_head(s, clause, clause->heads.items[i]));
    }
    return ERR_OK;
}

/* Whether its heads are rules, not changes. */
static bool derives(struct script *s, const struct lq_clause *clause) {
    return is_rule(s, clause, clause->heads.items[0]);
}

/* Of functional predicates whose rules do not say by themselves that a key has one value, this is a
 * constraint. */
static FALLIBLE add_dependencies(struct script *s) {
    struct lq_bind *b = &s->b;
    i64 count = s->installed.count;
    for (i64 i = 0; i < count; i++) {
        const struct lq_pred *pred = s->installed.items[i];
        for (i32 c = pred->key_count; is_dependent(pred) && c < pred->arity; c++) {
            struct lq_clause *rule = dependency_rule(b, pred, c);
            TRY(install(s, rule, rule->heads.items[0]));
            struct lq_pred *made = pred_known(b, rule->heads.items[0]->name);
            made->position = pred->position;
            made->comment = dependency_text(b, pred);
            TRY(strata_add(b, made));
        }
    }
    return relations_bind(b);
}

/* --- what comes of it --- */

static FALLIBLE check_all(struct script *s) {
    struct lq_bind *b = &s->b;
    for (i32 pass = 0; pass < 2; pass++) { /* facts first: they give types to what rules read */
        for (i64 i = 0; i < s->changes.count; i++) {
            if (s->changes.items[i]->reads == (pass == 1)) {
                TRY(change_type(s, s->changes.items[i]));
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
            const char *name = other->entry    ? other->entry->object->name
                               : other->stored ? other->stored
                                               : other->name.ptr;
            VEC_PUSH(s->b.arena, &action->reads, name);
        }
    }
}

static const char *rules_text(struct script *s, const struct lq_pred *pred) {
    struct text out;
    const struct object *object = pred->entry ? pred->entry->object : NULL;
    text_init(&out, s->b.arena);
    if (!pred->declarations.count && object && object->kind == OBJECT_TABLE && object->text) {
        text_append(&out, (struct sv){object->text, (i64)strlen(object->text)}); /* the table's */
    }
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

/* Tables of entities that columns of the declared one are of. */
static const char **refers_of(struct script *s, const struct lq_pred *pred) {
    struct lq_bind *b = &s->b;
    const char **refers = NEW_ARRAY(b->arena, const char *, pred->arity + 1);
    for (i32 i = 0; pred->members && i < pred->arity; i++) {
        const struct lq_pred *member =
            pred->members[i].len > 0 ? pred_known(b, pred->members[i]) : NULL;
        bool table = member && (member->origin == ORIGIN_TABLE || member->origin == ORIGIN_LATER);
        bool made = pred->makes && i == pred->arity - 1; /* before the entity itself */
        refers[i] = table && member != pred && !made ? member->name.ptr : NULL;
    }
    return refers;
}

static bool has_kinds(const struct lq_pred *pred) {
    for (i32 i = 0; i < pred->arity; i++) {
        if (kind_of(pred, i).len > 0) {
            return true;
        }
    }
    return false;
}

/* Tables that others refer to come before them. */
static void create_actions(struct script *s) {
    struct arena *arena = s->b.arena;
    for (i32 pass = 0; pass < 3; pass++) {
        for (i64 i = 0; i < s->created.count; i++) {
            const struct lq_pred *pred = s->created.items[i];
            struct lq_action action = {
                .kind = LQ_CREATE, .name = pred->name.ptr, .position = pred->position};
            i32 mine = pred->is_entity ? 0 : pred->arity == 1 ? 1 : 2;
            const struct file *file = script_file(s, pred->name);
            if (mine != pass || (file && file->exports)) {
                continue;
            }
            action_columns(&action, pred);
            action.refers = refers_of(s, pred);
            action.is_unique = pred->is_entity && pred->arity == 2;
            action.text =
                pred->is_entity || has_kinds(pred) || pred->fallback ? rules_text(s, pred) : NULL;
            if (file && file->path) {
                action.kind = LQ_FILE;
                action.text = file->path;
                action.comment = file->delimiter;
                action.has_body = file->header;
            }
            VEC_PUSH(arena, &s->out->actions, action);
        }
    }
}

static void give_actions(struct script *s) {
    struct arena *arena = s->b.arena;
    create_actions(s);
    for (i64 i = 0; i < s->b.order.count; i++) { /* those that are read first */
        const struct lq_pred *pred = s->b.order.items[i];
        if (!is_listed(&s->installed, pred)) {
            continue;
        }
        struct lq_action action = {
            .kind = LQ_INSTALL, .name = pred->name.ptr, .position = pred->position};
        action_columns(&action, pred);
        action.text = rules_text(s, pred);
        action.comment = pred->comment;
        action.replaces = pred->entry && pred->entry->object->kind == OBJECT_TABLE;
        note_reads(s, pred, &action);
        VEC_PUSH(arena, &s->out->actions, action);
    }
    change_actions(s);
}

/* Declarations, then what heads create, then rules, facts and changes. */
static FALLIBLE add_all(struct script *s) {
    struct lq_pred nobody = {0};
    lq_preds declared = {0};
    i64 count = s->program.clauses.count;
    TRY(declarations_add(&s->b, &s->program, &declared));
    for (i64 i = 0; i < count; i++) {
        TRY(lq_noted(&s->b, clause_makes(&s->b, s->program.clauses.items[i]), &nobody));
    }
    for (i64 i = 0; i < declared.count; i++) {
        TRY(lq_noted(&s->b, place_declared(s, declared.items[i]), &nobody));
    }
    for (i64 i = 0; i < count; i++) {
        struct lq_clause *clause = s->program.clauses.items[i];
        bool changes = clause->kind != LQ_CONSTRAINT && clause->heads.count > 0 && !clause->taken;
        if (changes && derives(s, clause)) {
            clause_solve_makes(&s->b, clause);
        } else if (changes) {
            TRY(lq_noted(&s->b, clause_stage(s, clause), &nobody));
        }
    }
    TRY(lq_noted(&s->b, deltas_add(s), &nobody));
    for (i64 i = 0; i < count && s->out->mistakes.count < MISTAKES_MOST; i++) {
        TRY(lq_noted(&s->b, add_clause(s, s->program.clauses.items[i]), &nobody));
    }
    return ERR_OK;
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
    map_init(&s->wanted, arena);
    text_init(&s->delta_text, arena);
    TRY(lq_parse(arena, arena_sv(arena, text), &s->program, err));
    out->mistakes = s->program.mistakes;
    s->b.mistakes = &out->mistakes;
    struct lq_pred nobody = {0};
    for (i64 i = 0; i < s->program.clauses.count; i++) {
        TRY(lq_noted(&s->b, add_files(s, s->program.clauses.items[i]), &nobody));
    }
    TRY(add_all(s));
    if (out->mistakes.count == 0) {
        TRY(lq_noted(&s->b, check_all(s), &nobody));
    }
    lq_sort_mistakes(&out->mistakes);
    if (out->mistakes.count == 0) {
        give_actions(s);
    }
    return arena_check(arena, err);
}
