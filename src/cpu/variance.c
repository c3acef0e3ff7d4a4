/* variance.c: the opcode VARIANCE on the CPU (defs/fn_variance.h). */
#include "cpu/cpu_int.h"

#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_int.h"
#include "defs/fn_variance.h"

enum { DIGITS = 640 }; /* two sums over all exponents, and room to scale them */

bool variance_run(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    i64 words[FROUND_WORDS_MAX];
    u32 room[VARIANCE_NUMBERS * DIGITS];
    i64 lit = w->run->x->lits[op->op->imm].i64;
    bool is_float = w->run->pipe.pipe->regs[op->dst].kind == KIND_F64;
    void *dst = frame_dst(w, fr, op->dst);
    u8 any = 0;
    memset(w->fault, 0, (size_t)fr->n);
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        u8 *f = &w->fault[i];
        frame_words(w, fr, op, i, words);
        if (is_float) {
            ((f64 *)dst)[i] = fn_variance_f64(words, op->b, op->c, lit, room, DIGITS, f);
        } else {
            ((i128 *)dst)[i] = fn_variance_i128(words, op->b, op->c, lit, room, DIGITS, f);
        }
        any |= *f;
    }
    return any && ops_fault(w, fr, op);
}
