/* papers.c: `bench papers`: the tables and figures of the papers that the library is after, one
 * after the other, as Markdown for bench/results/.
 *
 * 001 is He et al., "Relational joins on graphics processors"; 000 is Diamos et al., "Efficient
 * relational algebra algorithms and data structures for GPU". Each is an experiment of its own with
 * the options that make it the paper's; `--only` names one of them. */
#include "bench.h"

#include <string.h>

static const struct {
    const char *name, *title;
    int (*run)(const struct bench_options *options);
    const char *only; /* what the experiment calls it */
    int64_t rows;     /* 0: the experiment's own choice */
} parts[] = {
    {"table3", "Table 3 of 001: primitives on 16 M elements", bench_prim, "table3", 16 << 20},
    {"table3", "Table 3 of 001 at 256 M elements", bench_prim, "table3", 256 << 20},
    {"table4", "Table 4 of 001: joins, arrays on the device", bench_join, "table4", 0},
    {"fig11", "Fig. 11 of 001: binary and sequential search", bench_join, "fig11", 0},
    {"fig12", "Fig. 12 of 001: from and to the host", bench_join, "fig12", 0},
    {"fig13", "Fig. 13 of 001: selectivity and duplicates", bench_join, "fig13", 0},
    {"fig14", "Fig. 14 of 001: sizes; sorts", bench_prim, "fig14", 0},
    {"fig14", "Fig. 14 of 001: sizes; hash joins", bench_join, "fig14", 0},
    {"fig15", "Fig. 15 of 001: sorts of texts", bench_strings, NULL, 0},
    {"fig9", "Fig. 9 of 000: operators, share of a copy", bench_ops, "fig9", 0},
    {"stages", "Stages of JOIN, distributions, and Table 3 of 000", bench_ops, "JOIN stages",
     16 << 20},
};

int bench_papers(const struct bench_options *options) {
    int status = 0;
    int ran = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (options->only && strcmp(options->only, parts[i].name) != 0) {
            continue;
        }
        struct bench_options own = *options;
        own.only = parts[i].only;
        own.rows = options->rows ? options->rows : parts[i].rows;
        own.markdown = !options->json;
        if (own.markdown) {
            printf("\n## %s\n", parts[i].title);
            fflush(stdout);
        }
        int one = parts[i].run(&own);
        status = status ? status : one;
        ran++;
    }
    if (!ran) {
        fprintf(stderr, "bench: papers has table3, table4, fig11 to fig15, fig9 and stages\n");
        return 2;
    }
    return status;
}
