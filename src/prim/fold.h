/* fold.h: loops of the associative operators of fold.def, for every type they exist for. */
#ifndef WF_PRIM_FOLD_H
#define WF_PRIM_FOLD_H

#include "prim/prim.h"

/* Values are of the loops' type, at any address aligned for it. */
struct fold_loops {
    void (*identity)(void *out);
    void (*join)(void *left, const void *right);      /* left = left op right */
    void (*reduce)(void *out, const void *in, i64 n); /* identity for n = 0 */
    void (*scan)(void *out, const void *in, i64 n, const void *before, bool inclusive);
};
const struct fold_loops *fold_loops(enum fold fold, enum elem type); /* NULL: it has no such fold */

/* The lines that define T, T_LESS, T_LEAST, T_GREATEST, FOLD(a, b) and FOLD_IDENTITY in kernel text
 * for this pair, into out[0..cap). */
void fold_text(enum fold fold, enum elem type, char *out, i64 cap);

#endif
