/* vec.c: which loops run an opcode on this processor. */
#include "cpu/vec.h"

#include "base/level.h"
#include "codes/op.h"
#include "defs/op_loop.def"
#include "defs/real.def"

#define X(A, name, ...) OP_##name,
static const u16 reals[] = {WF_OPS_REAL(X, )};
#undef X
static const struct {
    u8 part;
    u16 at;
} places[] = {
#include "codes/places.h"
};
#define X(A, name, ...) +1
_Static_assert(OP_OTHERS - OP_LOOPS == 0 WF_OPS_LOOP(X, X, X, , ), "numbers follow the order of op_loop.def");
#undef X

struct vec_loops vec_loops_of(const struct vec_table *table, u16 code) {
    const i32 real = code - reals[0];
    ASSERT(reals[COUNT_OF(reals) - 1] == reals[0] + COUNT_OF(reals) - 1);
    if (code >= OP_LOOPS && code < OP_OTHERS) {
        return table->ops[places[code - OP_LOOPS].part][places[code - OP_LOOPS].at];
    }
    return real >= 0 && real < COUNT_OF(reals) ? table->reals[real] : (struct vec_loops){0};
}

const struct vec_table *vec_table_best(void) {
    return LEVEL_BEST(vec_table);
}
