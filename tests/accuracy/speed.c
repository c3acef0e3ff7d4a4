/* speed.c: nanoseconds per value of the loops of cpu/vec_real.c, per processor level, one thread,
 * operands in cache.
 *
 *   speed [RUNS]     best of RUNS, as a table */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/base.h"
#include "cpu/vec_loop.h"
#include "defs/real.def"

enum { ROWS = 1024, LEVELS = 3 };

static const char *const names[] = {
#define X(A, name, ...) #name,
    WF_OPS_REAL(X, )
#undef X
};
static const struct vec_loops *const loops[LEVELS] = {vec_reals_baseline, vec_reals_avx2,
                                                      vec_reals_avx512};

static f64 operand[2][ROWS], out[ROWS];
static u8 fault[ROWS];

static f64 now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (f64)t.tv_sec * 1e9 + (f64)t.tv_nsec;
}

static f64 measure(vec_fn *loop, int runs) {
    f64 best = 1e18;
    for (int r = 0; r < runs; r++) {
        f64 from = now_ns();
        for (int i = 0; i < 4; i++) {
            (void)loop(out, operand[0], operand[1], NULL, ROWS, fault);
        }
        f64 ns = (now_ns() - from) / (4 * ROWS);
        best = ns < best ? ns : best;
    }
    return best;
}

static bool has_level(int level) {
#if defined(__x86_64__)
    return level == 0 || (level == 1 && __builtin_cpu_supports("avx2")) ||
           (level == 2 && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"));
#else
    return level == 0;
#endif
}

int main(int argc, char **argv) {
    int runs = argc > 1 ? atoi(argv[1]) : 100;
    printf("| opcode | baseline ns | avx2 ns | avx512 ns |\n|---|---|---|---|\n");
    for (i64 s = 0; s < COUNT_OF(names); s++) {
        bool above = strcmp(names[s], "ACOSH_F64") == 0;
        for (i32 i = 0; i < ROWS; i++) {
            operand[0][i] = (i * 7919 % ROWS + 0.37) / 1024.3 + (above ? 1 : 0);
            operand[1][i] = 3 + (i % 17) * 0.71;
        }
        printf("| %s |", names[s]);
        for (int level = 0; level < LEVELS; level++) {
            if (has_level(level)) {
                printf(" %.2f |", measure(loops[level][s].dense, runs));
            } else {
                printf(" - |");
            }
        }
        printf("\n");
    }
    return 0;
}
