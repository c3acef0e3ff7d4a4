/* fold.c: the operators of fold.def as loops for the CPU and as lines of kernel text.
 *
 * Signed integers fold as their unsigned words except for their order. Floats are ordered by the
 * integer that their bits make once negative ones are turned over. */
#include "prim/fold.h"

#include <stdio.h>

static inline i32 order_f32(f32 x) {
    i32 bits;
    memcpy(&bits, &x, sizeof bits);
    bits = x != x ? 0x7fffffff : bits;
    return bits ^ (bits >> 31 & 0x7fffffff);
}
static inline i64 order_f64(f64 x) {
    i64 bits;
    memcpy(&bits, &x, sizeof bits);
    bits = x != x ? I64_MAX : bits;
    return bits ^ (bits >> 63 & I64_MAX);
}

#define LOOPS(A, name, identity_of, expr)                                                          \
    static void A##_##name##_identity(void *out) {                                                 \
        typedef A T;                                                                               \
        *(T *)out = identity_of;                                                                   \
    }                                                                                              \
    static inline A A##_##name(A a, A b) {                                                         \
        typedef A T;                                                                               \
        return (T)(expr);                                                                          \
    }                                                                                              \
    static void A##_##name##_join(void *left, const void *right) {                                 \
        *(A *)left = A##_##name(*(A *)left, *(const A *)right);                                    \
    }                                                                                              \
    static void A##_##name##_reduce(void *out, const void *in, i64 n) {                            \
        A all;                                                                                     \
        A##_##name##_identity(&all);                                                               \
        for (i64 i = 0; i < n; i++) {                                                              \
            all = A##_##name(all, ((const A *)in)[i]);                                             \
        }                                                                                          \
        *(A *)out = all;                                                                           \
    }                                                                                              \
    static void A##_##name##_scan(void *out, const void *in, i64 n, const void *before,            \
                                  bool inclusive) {                                                \
        A all = *(const A *)before;                                                                \
        for (i64 i = 0; i < n; i++) {                                                              \
            A next = A##_##name(all, ((const A *)in)[i]);                                          \
            ((A *)out)[i] = inclusive ? next : all;                                                \
            all = next;                                                                            \
        }                                                                                          \
    }                                                                                              \
    static const struct fold_loops A##_##name##_loops = {A##_##name##_identity, A##_##name##_join, \
                                                         A##_##name##_reduce, A##_##name##_scan};

WF_FOLDS_WORD(LOOPS, u32)
WF_FOLDS_WORD(LOOPS, u64)

#define T_LESS(x, y) ((x) < (y))
#define T_LEAST 0
#define T_GREATEST ((T) ~(T)0)
WF_FOLDS_ORDER(LOOPS, u32)
WF_FOLDS_ORDER(LOOPS, u64)
#undef T_LEAST
#undef T_GREATEST
#define T_LEAST I32_MIN
#define T_GREATEST I32_MAX
WF_FOLDS_ORDER(LOOPS, i32)
#undef T_LEAST
#undef T_GREATEST
#define T_LEAST I64_MIN
#define T_GREATEST I64_MAX
WF_FOLDS_ORDER(LOOPS, i64)
#undef T_LEAST
#undef T_GREATEST
#undef T_LESS
#define T_LEAST (-__builtin_inff())
#define T_GREATEST __builtin_nanf("")
#define T_LESS(x, y) (order_f32(x) < order_f32(y))
WF_FOLDS_ORDER(LOOPS, f32)
#undef T_LEAST
#undef T_GREATEST
#undef T_LESS
#define T_LEAST (-__builtin_inf())
#define T_GREATEST __builtin_nan("")
#define T_LESS(x, y) (order_f64(x) < order_f64(y))
WF_FOLDS_ORDER(LOOPS, f64)
#undef T_LEAST
#undef T_GREATEST
#undef T_LESS
#undef LOOPS

const struct fold_loops *fold_loops(enum fold fold, enum elem type) {
    static const struct fold_loops *const word[2][FOLD_COUNT] = {
#define X(A, name, identity, expr) [FOLD_##name] = &A##_##name##_loops,
        {WF_FOLDS_WORD(X, u32)},
        {WF_FOLDS_WORD(X, u64)},
    };
    static const struct fold_loops *const order[ELEM_COUNT][FOLD_COUNT] = {
        [ELEM_U32] = {WF_FOLDS_ORDER(X, u32)}, [ELEM_I32] = {WF_FOLDS_ORDER(X, i32)},
        [ELEM_F32] = {WF_FOLDS_ORDER(X, f32)}, [ELEM_U64] = {WF_FOLDS_ORDER(X, u64)},
        [ELEM_I64] = {WF_FOLDS_ORDER(X, i64)}, [ELEM_F64] = {WF_FOLDS_ORDER(X, f64)},
#undef X
    };
    if (!fold_has(fold, type)) {
        return NULL;
    }
    return order[type][fold] ? order[type][fold] : word[elem_bytes[type] == 8][fold];
}

void fold_text(enum fold fold, enum elem type, char *out, i64 cap) {
    static const char *const identities[FOLD_COUNT] = {
#define X(A, name, identity, expr) #identity,
        WF_FOLDS(X, )
#undef X
    };
    static const char *const exprs[FOLD_COUNT] = {
#define X(A, name, identity, expr) #expr,
        WF_FOLDS(X, )
#undef X
    };
    static const struct {
        const char *type, *order;
    } types[ELEM_COUNT] = {
        [ELEM_U32] = {"u32", "T_WORDS"}, [ELEM_I32] = {"i32", "T_INTS"},
        [ELEM_F32] = {"f32", "T_F32"},   [ELEM_U64] = {"u64", "T_WORDS"},
        [ELEM_I64] = {"i64", "T_INTS"},  [ELEM_F64] = {"f64", "T_F64"},
    };
    bool by_order = fold == FOLD_MIN || fold == FOLD_MAX;
    const char *word = elem_bytes[type] == 8 ? "u64" : "u32";
    snprintf(out, (size_t)cap,
             "#define T %s\n#define T_BYTES %d\n#define %s 1\n#define FOLD(a, b) (%s)\n#define "
             "FOLD_IDENTITY (%s)\n",
             by_order ? types[type].type : word, elem_bytes[type],
             by_order ? types[type].order : "T_WORDS", exprs[fold], identities[fold]);
}
