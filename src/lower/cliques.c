/* cliques.c: cliques of a graph: its edges as rows, then one step that counts (see opt/cliques.c).
 *
 * Nodes are numbered from the least value on, in 32 bits. */
#include "lower/lower_int.h"

#include "codes/control.h"
#include "codes/loop.h"

struct builder *lower_cliques(struct lower *l, const struct rel *rel) {
    b8 before = l->unordered;
    l->unordered = 1;
    struct builder *b = lower_rel(l, rel_input(rel));
    l->unordered = before;
    struct value ends[2];
    for (i32 i = 0; i < 2 && !l->status; i++) {
        ends[i] = lower_expr(b, rel->cliques.ends.items[i]);
        if (!l->status && ends[i].null != NO_REG) {
            build_plain(b, OP_FILTER, build_not(b, ends[i].null), 0);
        }
    }
    if (l->status) {
        return b;
    }
    struct range nodes = range_union(reg_range(b, ends[0].reg), reg_range(b, ends[1].reg));
    struct out_col cols[2];
    for (i32 i = 0; i < 2; i++) {
        struct range from = reg_range(b, ends[i].reg);
        u16 wide = build_kind(b, ends[i].reg, KIND_I64);
        u16 number = build_op(b, OP_SUB_I64, wide, build_int(b, KIND_I64, nodes.lo), NO_REG,
                              range_exact(from.lo - nodes.lo, from.hi - nodes.lo));
        cols[i] = (struct out_col){.value = {build_kind(b, number, KIND_I32), NO_REG},
                                   .type = type_of(TYPE_INTEGER)};
    }
    build_label(b, rel_names[REL_CLIQUES]);
    u32 edges = lower_rows(b, "edges", cols, 2, false, -1);
    u32 count = lower_rows_var(l, "count", 1);
    if (l->status) {
        return b;
    }
    l->vars.items[count].types[0] = type_of(TYPE_BIGINT);
    l->vars.items[count].kinds[0] = KIND_I64;
    l->var_infos.items[count].ranges[0] = range_exact(0, I64_MAX);
    l->var_infos.items[count].max_rows = 1;
    struct step *step = lower_step(l, STEP_CLIQUES, rel_names[REL_CLIQUES]);
    step->src = edges;
    step->dst = count;
    step->col_count = rel->cliques.nodes;
    step->key_range = range_exact(0, nodes.hi - nodes.lo);
    struct builder *f = lower_over(l, count, 1);
    bind_source(f, rel->out.items[0], 0);
    return f;
}
