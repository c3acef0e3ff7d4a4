/* real_angle.c: sine and its relatives of one number, however large: vec_real.c's loops come here
 * with the rows they cannot do. */
#include "cpu/vec_real.h"

#include "defs/host_words.h"

#include "defs/fn_float.h"
#include "defs/real_table.h"
#include "defs/fn_real.h"

#define X(A, name, fails, r, ka, kb, kc, part, expr, text) \
    f64 real_##name(f64 a, u8 *f) {                        \
        return expr;                                       \
    }
WF_OPS_ANGLE(X, )
#undef X
