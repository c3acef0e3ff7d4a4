/* overload.c: functions and operators that are one opcode, chosen by their arguments' types.
 *
 * The rows of WF_SCALARS (func.def) with a given name are the candidates. As in PostgreSQL: those
 * whose arguments come to the parameters by implicit casts; of them those with most exact matches;
 * of them those that take most preferred types; then literals of unknown type count as text if that
 * is possible, else as what the others agree on. Exactly one must be left. */
#include <stdarg.h>

#include "typing/typing_int.h"

#include "codes/op.h"
#include "codes/scalar.h"
#include "host/eval.h"

enum { FIRST_SCALAR = FUNC_SCALARS, ARGS_MAX = 3 };

static struct type letter_type(char letter) {
    static const struct {
        char letter;
        u8 id;
    } letters[] = {{'b', TYPE_BOOLEAN},     {'2', TYPE_SMALLINT}, {'i', TYPE_INTEGER},
                   {'l', TYPE_BIGINT},      {'r', TYPE_REAL},     {'f', TYPE_DOUBLE},
                   {'d', TYPE_DATE},        {'M', TYPE_TIME},     {'T', TYPE_TIMESTAMP},
                   {'Z', TYPE_TIMESTAMPTZ}, {'I', TYPE_INTERVAL}, {'t', TYPE_TEXT},
                   {'x', TYPE_BLOB},        {'u', TYPE_UUID},     {'n', TYPE_DECIMAL}};
    for (i64 i = 0; i < COUNT_OF(letters); i++) {
        if (letters[i].letter == letter) {
            return type_of((enum type_id)letters[i].id);
        }
    }
    return type_decimal(DECIMAL_DIGITS_MAX, 0);
}

/* Preferred in its category: conversions to it are taken before others. */
static bool is_preferred(char letter) {
    return strchr("ftZIb", letter) != NULL;
}

static i32 arg_count(i32 func) {
    return (i32)strcspn(scalar_infos[func].args, "@#");
}

bool scalar_named(const char *name) {
    for (i32 f = FIRST_SCALAR; f < FUNC_COUNT; f++) {
        if (strcmp(func_names[f], name) == 0) {
            return true;
        }
    }
    return false;
}

struct candidates {
    i32 items[FUNC_COUNT - FIRST_SCALAR];
    i32 count;
};

static bool fits_exactly(struct type type, char letter) {
    return letter == 'n' ? type_is_exact(type) : letter_type(letter).id == type.id;
}

static bool takes(const struct call *call, i32 func) {
    if (strcmp(func_names[func], call->name) != 0 || arg_count(func) != call->count) {
        return false;
    }
    for (i32 i = 0; i < call->count; i++) {
        struct type type = call->args[i]->type;
        char letter = scalar_infos[func].args[i];
        if (!fits_exactly(type, letter) &&
            !coerce_allowed(type, letter_type(letter), COERCE_IMPLICIT)) {
            return false;
        }
    }
    return true;
}

/* Keeps the candidates with the highest score. */
static void keep_best(struct candidates *c, const i32 *scores) {
    i32 best = 0;
    i32 kept = 0;
    for (i32 i = 0; i < c->count; i++) {
        best = MAX_OF(best, scores[i]);
    }
    for (i32 i = 0; i < c->count; i++) {
        if (scores[i] == best) {
            c->items[kept++] = c->items[i];
        }
    }
    c->count = kept;
}

static void keep_by(struct candidates *c, const struct call *call, bool preferred) {
    i32 scores[FUNC_COUNT - FIRST_SCALAR] = {0};
    for (i32 k = 0; k < c->count; k++) {
        for (i32 i = 0; i < call->count; i++) {
            char letter = scalar_infos[c->items[k]].args[i];
            struct type type = call->args[i]->type;
            bool same = type.id == letter_type(letter).id; /* an integer as a decimal comes after */
            bool exact = fits_exactly(type, letter);
            bool liked = preferred && !is_unknown(call->args[i]) && is_preferred(letter);
            scores[k] += same ? 2 : exact || liked;
        }
    }
    keep_best(c, scores);
}

/* A literal in place i: text where a candidate takes text, else the one category all agree on; of
 * that category the preferred type. */
static void settle_unknown(struct candidates *c, i32 i) {
    i32 scores[FUNC_COUNT - FIRST_SCALAR] = {0};
    char category = 0;
    bool mixed = false;
    for (i32 k = 0; k < c->count; k++) {
        char of = type_category(letter_type(scalar_infos[c->items[k]].args[i]));
        mixed = mixed || (category && of != category && category != 'S');
        category = of == 'S' || !category ? of : category;
    }
    if (mixed && category != 'S') {
        return;
    }
    for (i32 k = 0; k < c->count; k++) {
        char letter = scalar_infos[c->items[k]].args[i];
        bool same = type_category(letter_type(letter)) == category;
        scores[k] = same ? 1 + is_preferred(letter) : 0;
    }
    keep_best(c, scores);
}

/* The known arguments are all of one type: literals are taken for the same. */
static void assume_same(struct candidates *c, const struct call *call) {
    i32 scores[FUNC_COUNT - FIRST_SCALAR] = {0};
    struct type known = type_of(TYPE_UNKNOWN);
    for (i32 i = 0; i < call->count; i++) {
        struct type type = call->args[i]->type;
        if (type.id != TYPE_UNKNOWN && known.id != TYPE_UNKNOWN && type.id != known.id) {
            return;
        }
        known = type.id == TYPE_UNKNOWN ? known : type;
    }
    for (i32 k = 0; k < c->count && known.id != TYPE_UNKNOWN; k++) {
        scores[k] = 1;
        for (i32 i = 0; i < call->count; i++) {
            scores[k] &= fits_exactly(known, scalar_infos[c->items[k]].args[i]);
        }
    }
    keep_best(c, scores);
}

static void choose(struct candidates *c, const struct call *call) {
    keep_by(c, call, false);
    assume_same(c, call);
    keep_by(c, call, true);
    for (i32 i = 0; i < call->count; i++) {
        if (is_unknown(call->args[i])) {
            settle_unknown(c, i);
        }
    }
}

static struct type result_type(i32 func) {
    return letter_type(scalar_infos[func].result);
}

/* Constants that need no zone are computed at once, unless that faults: what raises must raise only
 * for rows that reach it. */
static bool fold(struct typing *t, i32 func, struct expr **args, i32 count, struct expr **out) {
    const struct scalar_info *info = &scalar_infos[func];
    const struct op_info *op = &op_infos[info->op];
    union lit v[ARGS_MAX];
    memset(v, 0, sizeof v);
    bool fits = op->result == type_kind(result_type(func)) && (i32)op->arity >= count &&
                type_category(result_type(func)) != 'S' && !strpbrk(info->args, "#");
    for (i32 i = 0; i < count; i++) {
        fits = fits && args[i]->kind == EXPR_CONST && !args[i]->is_null &&
               type_kind(args[i]->type) == op->operands[i];
        v[i] = args[i]->value;
    }
    const char *zone = strchr(info->args, '@');
    if (!fits || (zone && zone[1] != '0')) {
        return false;
    }
    struct expr *result = expr_new(t->arena, EXPR_CONST, result_type(func), args[0]->position);
    if (op_eval(info->op, &result->value, v[0], v[1], v[2], t->arena)) {
        return false;
    }
    *out = result;
    return true;
}

static FALLIBLE make_call(struct typing *t, const struct call *call, i32 func, struct expr **out) {
    struct expr *args[ARGS_MAX] = {NULL, NULL, NULL};
    for (i32 i = 0; i < call->count; i++) {
        char letter = scalar_infos[func].args[i];
        struct type type = letter_type(letter);
        if (letter == 'n') {
            TRY(coerce_unknown(t, call->args[i], type_decimal(DECIMAL_DIGITS_MAX, 16), &args[i]));
            type = decimal_of(args[i]->type);
            TRY(coerce_to(t, args[i], type, &args[i]));
        } else {
            TRY(coerce_to(t, call->args[i], type, &args[i]));
        }
    }
    if (scalar_infos[func].op == OP_COUNT) { /* written the other way round */
        struct expr *swap = args[0];
        args[0] = args[1];
        args[1] = swap;
        func--;
    }
    if (fold(t, func, args, call->count, out)) {
        return ERR_OK;
    }
    *out = expr_call(t->arena, (u16)func, result_type(func), call->position, call->count,
                     args[0], args[1], args[2]);
    return ERR_OK;
}

static wf_status not_unique(struct typing *t, const struct call *call) {
    struct text types;
    text_init(&types, t->arena);
    for (i32 i = 0; i < call->count; i++) {
        char type[32];
        text_print(&types, "%s%s", i > 0 ? ", " : "", type_print(call->args[i]->type, type));
    }
    error_set(t->err, ERR_AMBIGUOUS_FUNCTION, call->position, "%s(%s) is not unique", call->name,
              types.ptr);
    error_hint(t->err, "You might need to add explicit type casts.");
    return ERR_AMBIGUOUS_FUNCTION;
}

FALLIBLE call_overload(struct typing *t, const struct call *call, bool *out_found,
                       struct expr **out) {
    struct candidates c = {.count = 0};
    for (i32 f = FIRST_SCALAR; f < FUNC_COUNT; f++) {
        if (takes(call, f)) {
            c.items[c.count++] = f;
        }
    }
    *out_found = c.count > 0;
    if (c.count == 0) {
        return ERR_OK;
    }
    if (c.count > 1) {
        choose(&c, call);
    }
    return c.count == 1 ? make_call(t, call, c.items[0], out) : not_unique(t, call);
}

struct expr *scalar_call(struct typing *t, u16 func, i32 position, i32 count, ...) {
    struct expr *args[ARGS_MAX] = {NULL, NULL, NULL};
    va_list list;
    va_start(list, count);
    for (i32 i = 0; i < count; i++) {
        args[i] = va_arg(list, struct expr *);
    }
    va_end(list);
    return expr_call(t->arena, func, result_type((i32)func), position, count, args[0], args[1],
                     args[2]);
}
