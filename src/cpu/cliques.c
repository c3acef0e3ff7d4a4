/* cliques.c: STEP_CLIQUES: how many cliques of a number of nodes a graph has.
 *
 * Edges become lists of neighbours (cliques_build.c), of nodes in the order of their degrees where that
 * does not change the answer; then cliques are counted (cliques_bits.c, cliques_lists.c). */
#include "cpu/cliques.h"

/* In a graph that has every edge in both directions each clique counts in every order of its nodes. */
static FALLIBLE in_any_order(struct exec *x, u32 size, u64 *found) {
    for (u64 i = 2; i <= size; i++) {
        if (__builtin_mul_overflow(*found, i, found)) {
            FAIL(x->err, OUT_OF_RANGE, "bigint out of range");
        }
    }
    return ERR_OK;
}

static FALLIBLE count_all(struct exec *x, const struct step *step, struct clique_graph *g,
                          u64 *out) {
    work_expect(x, (CLIQUE_BUILD_READS + CLIQUE_COUNT_READS) * x->vars[step->src].rows);
    TRY(clique_graph_init(x, step, g));
    if (cliques_fit_bits(x, g, step->col_count)) {
        TRY(cliques_by_bits(x, g, step->col_count, out));
    } else {
        TRY(cliques_by_lists(x, g, step->col_count, out));
    }
    if (g->form == CLIQUE_BOTH) {
        TRY(in_any_order(x, step->col_count, out));
    }
    if (*out > I64_MAX) {
        FAIL(x->err, OUT_OF_RANGE, "bigint out of range");
    }
    return ERR_OK;
}

wf_status cliques_run(struct exec *x, const struct step *step) {
    struct clique_graph g = {.nodes = 0};
    u64 found = 0;
    if (x->vars[step->src].rows > 0) {
        wf_status status = count_all(x, step, &g, &found);
        clique_graph_fini(x, &g);
        TRY(status);
    }
    variable_reset(&x->vars[step->dst]);
    struct chunk *out = chunk_new(x, &x->program->vars[step->dst], 1, false);
    if (!out) {
        return memory_refused(x->mem, x->err, 16);
    }
    ((i64 *)out->cols[0].data)[0] = (i64)found;
    variable_append(x, step->dst, out);
    return ERR_OK;
}
