/* parse.c: LogiQL tokens to clauses, by recursive descent.
 *
 * A mistake ends the clause it is in: reading goes on behind the next point, so that a text shows
 * all its mistakes at once. What a clause is, shows only at its arrow: atoms are read as literals
 * first and become heads there. */
#include "logiql/logiql_int.h"

#include "base/stop.h"
#include "host/chars.h"

enum { DEPTH_MOST = 500, CHAIN_MOST = 5000 };

struct parser {
    struct arena *arena;
    struct lq_lexer lexer;
    struct lq_token now;
    struct lq_token next;
    lq_mistakes *mistakes;
    bool failed;  /* in this clause */
    bool is_head; /* before the arrow: - removes, it does not negate */
    i32 depth;
    i32 operators; /* of this clause */
};

/* --- tokens --- */

static void advance(struct parser *p) {
    p->now = p->next;
    p->next = lq_next(&p->lexer);
}

static bool is_text(const struct lq_token *t, u8 kind, const char *text) {
    return t->kind == kind && sv_eq(t->text, sv_from(text));
}

static bool at(const struct parser *p, const char *mark) {
    return is_text(&p->now, TOKEN_MARK, mark);
}

static bool next_is(const struct parser *p, const char *mark) {
    return is_text(&p->next, TOKEN_MARK, mark);
}

static bool take(struct parser *p, const char *mark) {
    bool found = at(p, mark);
    if (found) {
        advance(p);
    }
    return found;
}

static struct sv keep(struct parser *p, struct sv text) {
    return arena_sv(p->arena, text);
}

/* The first mistake of a clause; what follows from it is not one. */
static void fail(struct parser *p, i32 position, const char *hint, const char *message) {
    if (!p->failed) {
        lq_mistake(p->arena, p->mistakes, ERR_SYNTAX, position, hint, "%s", message);
    }
    p->failed = true;
}

static void fail_here(struct parser *p, const char *expected) {
    const struct lq_token *t = &p->now;
    struct sv written = {p->lexer.text.ptr + t->position, t->end - t->position};
    if (t->kind == TOKEN_END) {
        fail(p, t->position, "Every clause ends with a point.",
             arena_printf(p->arena, "unexpected end of the text: %s expected", expected));
    } else {
        i64 left = p->lexer.text.len - t->position;
        bool prolog = left > 1 && memcmp(written.ptr, ":-", 2) == 0;
        fail(p, t->position, prolog ? "A rule is written with <-, as in p(x) <- q(x)." : NULL,
             arena_printf(p->arena, "unexpected \"%.*s\": %s expected",
                          (int)MIN_OF(written.len, 40), written.ptr, expected));
    }
}

static void expect(struct parser *p, const char *mark) {
    if (!p->failed && !take(p, mark)) {
        fail_here(p, arena_printf(p->arena, "\"%s\"", mark));
    }
}

static bool enter(struct parser *p) {
    if (++p->depth > DEPTH_MOST && !p->failed) {
        lq_mistake(p->arena, p->mistakes, ERR_TOO_COMPLEX, p->now.position, NULL,
                   "the clause is nested deeper than %d", DEPTH_MOST);
        p->failed = true;
    }
    return !p->failed;
}

/* --- expressions --- */

static struct lq_expr *parse_expr(struct parser *p);

static struct lq_expr *new_expr(struct parser *p, u8 kind, const struct lq_token *t) {
    struct lq_expr *e = NEW(p->arena, struct lq_expr);
    e->kind = kind;
    e->position = t->position;
    e->text = keep(p, t->text);
    return e;
}

/* Expressions up to a mark that is not taken. */
static lq_exprs parse_exprs(struct parser *p, const char *end) {
    lq_exprs list = {0};
    if (at(p, end)) {
        return list;
    }
    do {
        VEC_PUSH(p->arena, &list, parse_expr(p));
    } while (!p->failed && take(p, ","));
    return list;
}

static u8 parse_stage(struct parser *p) {
    if (!take(p, "@")) {
        return LQ_NOW;
    }
    static const struct {
        const char *name;
        u8 stage;
    } stages[] = {
        {"start", LQ_START}, {"previous", LQ_START}, {"prev", LQ_START}, {"final", LQ_FINAL}};
    for (i64 i = 0; i < COUNT_OF(stages); i++) {
        if (is_text(&p->now, TOKEN_NAME, stages[i].name)) {
            advance(p);
            return stages[i].stage;
        }
    }
    fail_here(p, "a stage, start or final,");
    return LQ_NOW;
}

/* A name at which something is applied, or a variable. */
static struct lq_expr *parse_named(struct parser *p) {
    struct lq_token name = p->now;
    advance(p);
    if (at(p, "[") || at(p, "@")) {
        struct lq_expr *e = new_expr(p, LQ_APPLY, &name);
        e->stage = parse_stage(p);
        expect(p, "[");
        e->args = parse_exprs(p, "]");
        expect(p, "]");
        return e;
    }
    if (is_text(&name, TOKEN_NAME, "true") || is_text(&name, TOKEN_NAME, "false")) {
        struct lq_expr *e = new_expr(p, LQ_BOOL, &name);
        e->truth = name.text.len == 4;
        return e;
    }
    if (at(p, "(")) {
        fail(p, p->now.position, "Within expressions functions are applied with brackets: f[x].",
             "an atom cannot be part of an expression");
    }
    return new_expr(p, is_text(&name, TOKEN_NAME, "_") ? LQ_ANY : LQ_VARIABLE, &name);
}

static struct lq_expr *parse_operand(struct parser *p) {
    static const u8 kinds[][2] = {{TOKEN_INT, LQ_INT},           {TOKEN_DECIMAL, LQ_DECIMAL},
                                  {TOKEN_FLOAT, LQ_FLOAT},       {TOKEN_STRING, LQ_STRING},
                                  {TOKEN_DATETIME, LQ_DATETIME}, {TOKEN_PREDICATE, LQ_PREDICATE},
                                  {TOKEN_VARIABLE, LQ_VARIABLE}};
    struct lq_token t = p->now;
    struct lq_expr *e = NULL;
    if (!enter(p)) {
        return new_expr(p, LQ_ANY, &t);
    }
    for (i64 i = 0; i < COUNT_OF(kinds); i++) {
        if (t.kind == kinds[i][0]) {
            e = new_expr(p, kinds[i][1], &t);
            advance(p);
        }
    }
    if (e) {
    } else if (t.kind == TOKEN_NAME) {
        e = parse_named(p);
    } else if (take(p, "-")) {
        e = new_expr(p, LQ_NEGATE, &t);
        VEC_PUSH(p->arena, &e->args, parse_operand(p));
    } else if (take(p, "(")) {
        e = parse_expr(p);
        expect(p, ")");
    } else {
        fail_here(p, "an expression");
        e = new_expr(p, LQ_ANY, &t);
    }
    p->depth--;
    return e;
}

/* Chains lean to the left: whoever walks them goes as deep as they are long. */
static struct lq_expr *binary(struct parser *p, const struct lq_token *op, struct lq_expr *left,
                              struct lq_expr *right) {
    struct lq_expr *e = new_expr(p, LQ_BINARY, op);
    if (++p->operators > CHAIN_MOST && !p->failed) {
        lq_mistake(p->arena, p->mistakes, ERR_TOO_COMPLEX, op->position, NULL,
                   "the clause has more than %d operators", CHAIN_MOST);
        p->failed = true;
    }
    e->op = op->text.ptr[0];
    VEC_PUSH(p->arena, &e->args, left);
    VEC_PUSH(p->arena, &e->args, right);
    return e;
}

/* With the first operand read. */
static struct lq_expr *product_from(struct parser *p, struct lq_expr *e) {
    while (!p->failed && (at(p, "*") || at(p, "/"))) {
        struct lq_token op = p->now;
        advance(p);
        e = binary(p, &op, e, parse_operand(p));
    }
    return e;
}

static struct lq_expr *expr_from(struct parser *p, struct lq_expr *operand) {
    struct lq_expr *e = product_from(p, operand);
    while (!p->failed && (at(p, "+") || at(p, "-"))) {
        struct lq_token op = p->now;
        advance(p);
        e = binary(p, &op, e, product_from(p, parse_operand(p)));
    }
    return e;
}

static struct lq_expr *parse_expr(struct parser *p) {
    return expr_from(p, parse_operand(p));
}

/* --- atoms and literals --- */

static struct lq_formula *parse_formula(struct parser *p);

static struct lq_expr *variable_of(struct parser *p, struct sv name, i32 position) {
    struct lq_token t = {TOKEN_NAME, position, position, name};
    return new_expr(p, sv_eq(name, SV("_")) ? LQ_ANY : LQ_VARIABLE, &t);
}

/* `x:n` without blanks is one name to the lexer, where it stands for two variables. */
static bool split_pair(struct parser *p, const struct lq_expr *e, lq_exprs *keys,
                       lq_exprs *values) {
    const char *colon =
        e->kind == LQ_VARIABLE ? memchr(e->text.ptr, ':', (size_t)e->text.len) : NULL;
    if (!colon) {
        return false;
    }
    struct sv left = {e->text.ptr, colon - e->text.ptr};
    struct sv right = {colon + 1, e->text.len - left.len - 1};
    if (lq_is_qualified(right)) {
        fail(p, e->position, NULL, "a name with colons is no variable");
        return false;
    }
    VEC_PUSH(p->arena, keys, variable_of(p, left, e->position));
    VEC_PUSH(p->arena, values, variable_of(p, right, e->position + (i32)left.len + 1));
    return true;
}

/* What stands in the parentheses of an atom. */
static void parse_arguments(struct parser *p, struct lq_atom *atom) {
    lq_exprs first = at(p, ";") ? (lq_exprs){0} : parse_exprs(p, ")");
    if (p->failed) {
        return;
    }
    if (take(p, ";")) {
        atom->form = LQ_SPLIT;
        atom->keys = first;
        atom->values = parse_exprs(p, ")");
    } else if (first.count == 1 && take(p, ":")) {
        atom->form = LQ_REFMODE;
        atom->keys = first;
        VEC_PUSH(p->arena, &atom->values, parse_expr(p));
    } else if (first.count == 1 && split_pair(p, first.items[0], &atom->keys, &atom->values)) {
        atom->form = LQ_REFMODE;
    } else {
        atom->form = LQ_PLAIN;
        atom->keys = first;
    }
    expect(p, ")");
}

static struct lq_atom *new_atom(struct parser *p, const struct lq_token *name, u8 delta) {
    struct lq_atom *atom = NEW(p->arena, struct lq_atom);
    atom->name = keep(p, name->text);
    atom->position = name->position;
    atom->delta = delta;
    return atom;
}

static struct lq_lit *new_lit(struct parser *p, u8 kind, i32 position) {
    struct lq_lit *lit = NEW(p->arena, struct lq_lit);
    lit->kind = kind;
    lit->position = position;
    return lit;
}

/* An atom with parentheses, or one with brackets behind + - ^. The parser stands at its name. */
static struct lq_lit *parse_atom(struct parser *p, u8 delta) {
    struct lq_token name = p->now;
    struct lq_lit *lit = new_lit(p, LQ_ATOM, name.position);
    if (name.kind != TOKEN_NAME) {
        fail_here(p, "the name of a predicate");
        return lit;
    }
    advance(p);
    struct lq_atom *atom = lit->atom = new_atom(p, &name, delta);
    atom->stage = parse_stage(p);
    if (take(p, "(")) {
        parse_arguments(p, atom);
        return lit;
    }
    atom->form = LQ_KEYED;
    expect(p, "[");
    atom->keys = parse_exprs(p, "]");
    expect(p, "]");
    expect(p, "=");
    if (!p->failed) {
        VEC_PUSH(p->arena, &atom->values, parse_expr(p));
    }
    return lit;
}

static bool take_compare(struct parser *p, u8 *out) {
    static const char *const marks[] = {"=", "!=", "<", "<=", ">", ">="};
    for (u8 i = 0; i < COUNT_OF(marks); i++) {
        if (take(p, marks[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* With the first operand read. Without any comparison it is an expression in parentheses, which may
 * be part of a larger one: is_bare. */
static struct lq_lit *comparison_from(struct parser *p, i32 position, struct lq_expr *operand) {
    struct lq_lit *lit = new_lit(p, LQ_COMPARE, position);
    VEC_PUSH(p->arena, &lit->terms, expr_from(p, operand));
    i32 at_mark = p->now.position;
    u8 compare;
    while (!p->failed && take_compare(p, &compare)) {
        VEC_PUSH(p->arena, &lit->compares, compare);
        VEC_PUSH(p->arena, &lit->compare_positions, at_mark);
        VEC_PUSH(p->arena, &lit->terms, parse_expr(p));
        at_mark = p->now.position;
    }
    return lit;
}

static bool is_bare(const struct lq_lit *lit) {
    return lit->kind == LQ_COMPARE && lit->compares.count == 0;
}

static void refuse_bare(struct parser *p, const struct lq_lit *lit) {
    if (is_bare(lit)) {
        fail(p, lit->position, "Write an atom p(x), or compare: x = y.",
             "an expression is neither true nor false");
    }
}

static void refuse_bare_in(struct parser *p, const struct lq_formula *formula) {
    for (i64 i = 0; formula && i < formula->any.count && !p->failed; i++) {
        for (i64 j = 0; j < formula->any.items[i]->count && !p->failed; j++) {
            refuse_bare(p, formula->any.items[i]->items[j]);
        }
    }
}

static bool at_operator(const struct parser *p) {
    static const char *const marks[] = {"=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/"};
    for (i64 i = 0; i < COUNT_OF(marks); i++) {
        if (at(p, marks[i])) {
            return true;
        }
    }
    return false;
}

/* Parentheses hold a formula, or an expression that goes on behind them. */
static struct lq_lit *parse_group(struct parser *p) {
    i32 position = p->now.position;
    struct lq_lit *lit = new_lit(p, LQ_GROUP, position);
    expect(p, "(");
    struct lq_formula *formula = lit->formula = parse_formula(p);
    expect(p, ")");
    if (p->failed) {
        return lit;
    }
    bool single = formula->any.count == 1 && formula->any.items[0]->count == 1;
    struct lq_lit *only = single ? formula->any.items[0]->items[0] : NULL;
    if (only && is_bare(only)) { /* ((x) + 1) < 2, or nothing but ((x)) so far */
        return comparison_from(p, position, only->terms.items[0]);
    }
    refuse_bare_in(p, formula);
    if (at_operator(p)) {
        fail_here(p, "\",\" or \";\"");
    }
    return lit;
}

/* Whether a parenthesis comes after the next token. */
static bool opens_after_next(const struct parser *p) {
    struct lq_lexer ahead = p->lexer;
    lq_mistakes none = {0};
    ahead.mistakes = &none;
    struct lq_token t = lq_next(&ahead);
    if (next_is(p, "@")) { /* and the name of a stage */
        t = lq_next(&ahead);
    }
    return is_text(&t, TOKEN_MARK, "(");
}

/* int[32](x): the type int32. False when the expression before the parenthesis is no such name. */
static bool parse_sized(struct parser *p, const struct lq_expr *e, struct lq_lit *out) {
    static const char *const known[] = {"int8",    "int16",     "int32",     "int64",  "int128",
                                        "uint8",   "uint16",    "uint32",    "uint64", "float32",
                                        "float64", "decimal64", "decimal128"};
    if (p->failed || !at(p, "(") || e->kind != LQ_APPLY || e->args.count != 1 ||
        e->args.items[0]->kind != LQ_INT) {
        return false;
    }
    const struct lq_expr *bits = e->args.items[0];
    const char *name = arena_printf(p->arena, "%.*s%.*s", (int)MIN_OF(e->text.len, 40), e->text.ptr,
                                    (int)MIN_OF(bits->text.len, 40), bits->text.ptr);
    bool found = false;
    for (i64 i = 0; i < COUNT_OF(known); i++) {
        found = found || strcmp(known[i], name) == 0;
    }
    if (!found) {
        fail(p, e->position, "Types with a size are int[32], int[64], uint[32], float[64] and such.",
             arena_printf(p->arena, "there is no type %.*s[%.*s]", (int)MIN_OF(e->text.len, 40),
                          e->text.ptr, (int)MIN_OF(bits->text.len, 40), bits->text.ptr));
        return true;
    }
    struct lq_token token = {TOKEN_NAME, e->position, e->position, sv_from(name)};
    out->kind = LQ_ATOM;
    out->atom = new_atom(p, &token, LQ_STATE);
    advance(p);
    parse_arguments(p, out->atom);
    return true;
}

static struct lq_lit *parse_literal(struct parser *p) {
    i32 position = p->now.position;
    struct lq_lit *lit = new_lit(p, LQ_NOT, position);
    if (!enter(p)) {
        return lit;
    }
    bool named =
        p->now.kind == TOKEN_NAME && (next_is(p, "(") || (next_is(p, "@") && opens_after_next(p)));
    bool removes = at(p, "-") && p->next.kind == TOKEN_NAME && (p->is_head || opens_after_next(p));
    if (take(p, "!")) {
        lit->inner = parse_literal(p);
        refuse_bare(p, lit->inner);
    } else if (at(p, "(")) {
        lit = parse_group(p);
    } else if (take(p, "+")) {
        lit = parse_atom(p, LQ_INSERT);
    } else if (take(p, "^")) {
        lit = parse_atom(p, LQ_UPSERT);
    } else if (removes) {
        advance(p);
        lit = parse_atom(p, LQ_REMOVE);
    } else if (named) {
        lit = parse_atom(p, LQ_STATE);
    } else {
        struct lq_expr *first = parse_operand(p);
        lit = parse_sized(p, first, lit) ? lit : comparison_from(p, position, first);
    }
    p->depth--;
    return lit;
}

static struct lq_formula *parse_formula(struct parser *p) {
    struct lq_formula *formula = NEW(p->arena, struct lq_formula);
    do {
        lq_conj *conj = NEW(p->arena, lq_conj);
        do {
            VEC_PUSH(p->arena, conj, parse_literal(p));
        } while (!p->failed && take(p, ","));
        VEC_PUSH(p->arena, &formula->any, conj);
    } while (!p->failed && take(p, ";"));
    return formula;
}

/* --- what stands in << >> --- */

static struct sv parse_variable(struct parser *p) {
    struct sv name = p->now.text;
    bool plain = p->now.kind == TOKEN_NAME && !lq_is_qualified(name);
    if (!plain && p->now.kind != TOKEN_VARIABLE) {
        fail_here(p, "a variable");
        return SV("");
    }
    advance(p);
    return keep(p, name);
}

/* v = total(x), w = count() */
static void parse_calls(struct parser *p, struct lq_clause *clause) {
    do {
        struct lq_call call = {.position = p->now.position};
        call.variable = parse_variable(p);
        expect(p, "=");
        if (p->now.kind != TOKEN_NAME) {
            fail_here(p, "the name of a function");
        }
        call.name = keep(p, p->now.text);
        advance(p);
        if (take(p, "[")) {
            call.keys = parse_exprs(p, "]");
            expect(p, "]");
        }
        expect(p, "(");
        call.args = p->failed ? call.args : parse_exprs(p, ")");
        expect(p, ")");
        VEC_PUSH(p->arena, &clause->calls, call);
    } while (!p->failed && take(p, ","));
}

/* desc x, y. The manual's `i = (x, y)` says nothing. */
static void parse_orders(struct parser *p, struct lq_clause *clause) {
    if (next_is(p, "=")) {
        while (!p->failed && !at(p, ">>") && p->now.kind != TOKEN_END &&
               p->now.kind != TOKEN_POINT) {
            advance(p);
        }
        return;
    }
    do {
        struct lq_order order = {.position = p->now.position};
        bool word = p->next.kind == TOKEN_NAME || p->next.kind == TOKEN_VARIABLE;
        order.descends = word && is_text(&p->now, TOKEN_NAME, "desc");
        if (order.descends || (word && is_text(&p->now, TOKEN_NAME, "asc"))) {
            advance(p);
        }
        order.variable = parse_variable(p);
        VEC_PUSH(p->arena, &clause->orders, order);
    } while (!p->failed && take(p, ","));
}

/* agg<< … >>, seq<< … >> or series<< … >> in front of a body. */
static void parse_fold(struct parser *p, struct lq_clause *clause) {
    static const struct {
        const char *name;
        u8 fold;
    } folds[] = {{"agg", LQ_AGG}, {"seq", LQ_SEQ}, {"series", LQ_SERIES}};
    if (p->now.kind != TOKEN_NAME || !next_is(p, "<<")) {
        return;
    }
    for (i64 i = 0; i < COUNT_OF(folds); i++) {
        clause->fold = is_text(&p->now, TOKEN_NAME, folds[i].name) ? folds[i].fold : clause->fold;
    }
    if (!clause->fold) {
        fail_here(p, "agg, seq or series");
        return;
    }
    advance(p);
    advance(p);
    if (!at(p, ">>")) {
        clause->fold == LQ_SEQ ? parse_orders(p, clause) : parse_calls(p, clause);
    } else if (clause->fold != LQ_SEQ) {
        fail_here(p, "a function, as in v = total(x),");
    }
    expect(p, ">>");
}

/* --- clauses --- */

/* A literal in the place of a head: an atom, or f[x] = e. */
static struct lq_atom *head_of(struct parser *p, const struct lq_lit *lit) {
    if (lit->kind == LQ_ATOM) {
        return lit->atom;
    }
    const struct lq_expr *left = lit->kind == LQ_COMPARE ? lit->terms.items[0] : NULL;
    if (!left || left->kind != LQ_APPLY || lit->compares.count != 1 ||
        lit->compares.items[0] != LQ_EQ) {
        fail(p, lit->position, "Heads and facts are atoms: p(x) or f[x] = y.",
             lit->kind == LQ_NOT ? "a negation cannot be derived"
                                 : "only atoms can be derived or stated");
        return NULL;
    }
    struct lq_token name = {TOKEN_NAME, left->position, left->position, left->text};
    struct lq_atom *atom = new_atom(p, &name, LQ_STATE);
    atom->form = LQ_KEYED;
    atom->stage = left->stage;
    atom->keys = left->args;
    VEC_PUSH(p->arena, &atom->values, lit->terms.items[1]);
    return atom;
}

static void take_heads(struct parser *p, struct lq_clause *clause,
                       const struct lq_formula *formula) {
    if (formula->any.count != 1) {
        fail(p, clause->position, "Write several heads with commas, several rules as clauses.",
             "alternatives cannot be derived");
        return;
    }
    const lq_conj *conj = formula->any.items[0];
    for (i64 i = 0; i < conj->count && !p->failed; i++) {
        struct lq_atom *head = head_of(p, conj->items[i]);
        if (head) {
            VEC_PUSH(p->arena, &clause->heads, head);
        }
    }
}

/* `!(f).` says what `f -> false` would. */
static bool is_denial(const struct lq_formula *formula) {
    return formula->any.count == 1 && formula->any.items[0]->count == 1 &&
           formula->any.items[0]->items[0]->kind == LQ_NOT;
}

static void deny(struct lq_clause *clause, struct lq_formula *formula) {
    clause->kind = LQ_CONSTRAINT;
    clause->claim = formula;
}

static bool at_end(const struct parser *p) {
    return p->now.kind == TOKEN_POINT || p->now.kind == TOKEN_END;
}

/* Behind the arrow; nothing there is true. */
static struct lq_formula *parse_side(struct parser *p) {
    if (at_end(p)) {
        return NULL;
    }
    struct lq_formula *formula = parse_formula(p);
    refuse_bare_in(p, formula);
    return formula;
}

/* One mistake, whatever stands within the braces. */
static void refuse_block(struct parser *p, i32 position) {
    i64 known = p->mistakes->count;
    for (i32 depth = 0; p->now.kind != TOKEN_END; advance(p)) {
        depth += at(p, "{") ? 1 : at(p, "}") ? -1 : 0;
        if (depth == 0) {
            break;
        }
    }
    p->mistakes->count = known;
    lq_mistake(p->arena, p->mistakes, ERR_NOT_SUPPORTED, position,
               "Write the clauses of a block without it.", "blocks are not supported");
    p->failed = true;
}

static void parse_clause(struct parser *p, struct lq_clause *clause) {
    clause->position = p->now.position;
    p->is_head = true;
    struct lq_formula *first = at(p, "->") ? NULL : parse_formula(p);
    p->is_head = false;
    if (at(p, "<--") || at(p, "{")) {
        refuse_block(p, clause->position);
        return;
    }
    if (!p->failed) {
        refuse_bare_in(p, first);
    }
    if (!p->failed && first && take(p, "<-")) {
        clause->kind = LQ_RULE;
        take_heads(p, clause, first);
        parse_fold(p, clause);
        clause->body = p->failed ? NULL : parse_side(p);
    } else if (!p->failed && take(p, "->")) {
        clause->kind = LQ_CONSTRAINT;
        clause->body = first;
        clause->claim = parse_side(p);
    } else if (!p->failed && is_denial(first)) {
        deny(clause, first);
    } else if (!p->failed) {
        clause->kind = LQ_FACT;
        take_heads(p, clause, first);
    }
    if (!p->failed && p->now.kind != TOKEN_POINT) {
        fail_here(p, "\".\", \"<-\" or \"->\"");
    }
    clause->end = p->now.end;
}

/* To behind the next point, where the next clause begins. */
static void skip_clause(struct parser *p) {
    while (!at_end(p)) {
        advance(p);
    }
    if (p->now.kind == TOKEN_POINT) {
        advance(p);
    }
}

/* Tokens are read ahead: a mistake within one may stand before that of an earlier one. */
void lq_sort_mistakes(lq_mistakes *mistakes) {
    for (i64 i = 1; i < mistakes->count; i++) {
        struct lq_mistake mistake = mistakes->items[i];
        i64 j = i;
        for (; j > 0 && mistakes->items[j - 1].position > mistake.position; j--) {
            mistakes->items[j] = mistakes->items[j - 1];
        }
        mistakes->items[j] = mistake;
    }
}

FALLIBLE lq_parse(struct arena *arena, struct sv text, struct lq_program *out, struct error *err) {
    *out = (struct lq_program){0};
    struct parser p = {.arena = arena, .mistakes = &out->mistakes};
    p.lexer = (struct lq_lexer){arena, text, 0, &out->mistakes};
    i64 bad = 0;
    if (!utf8_valid(text.ptr, text.len, &bad)) {
        lq_mistake(arena, &out->mistakes, ERR_INVALID_ENCODING, (i32)bad, NULL,
                   "invalid byte sequence for UTF-8: 0x%02x", (unsigned)(u8)text.ptr[bad]);
        return arena_check(arena, err);
    }
    advance(&p);
    advance(&p);
    while (p.now.kind != TOKEN_END && out->mistakes.count < MISTAKES_MOST) {
        struct lq_clause *clause = NEW(arena, struct lq_clause);
        p.failed = false;
        p.depth = 0;
        p.operators = 0;
        parse_clause(&p, clause);
        if (!p.failed) {
            VEC_PUSH(arena, &out->clauses, clause);
        }
        skip_clause(&p);
        TRY(stop_check(err));
    }
    lq_sort_mistakes(&out->mistakes);
    return arena_check(arena, err);
}
