/* weave_library.c: the patterns of `bench weave` without fusion: every operator is one call of the
 * library (partition, compute, gather), reads whole columns and writes whole columns. A SELECT keeps
 * all columns of its table; PROJECT is leaving columns out, which costs nothing here. */
#include "bench_weave.h"

#include <stdlib.h>
#include <string.h>

enum { TEMPS = 10, SIDE_COLUMNS = 4 };

struct weave_library {
    wf_prim *prim;
    wf_place place;
    enum weave_pattern pattern;
    int64_t rows;
    wf_array in[WEAVE_COLUMNS]; /* data NULL: not of this pattern */
    wf_array temp[TEMPS];       /* of as many rows as the largest table */
    struct weave_cost cost;
};

static void must(wf_prim *prim, wf_status status) {
    if (status != WF_OK) {
        fprintf(stderr, "bench: weave: %s\n", wf_prim_error(prim)->message);
        exit(1);
    }
}

static bool uses(enum weave_pattern pattern, enum weave_column column) {
    switch (pattern) {
    case WEAVE_JOINS:
    case WEAVE_SELECTED:
        return column >= R_K;
    case WEAVE_MATH:
        return column >= F_PRICE && column <= F_TAX;
    default:
        return column <= T_C;
    }
}

static wf_array room(struct weave_library *lib, wf_elem type, int64_t count) {
    wf_array out = {.type = type, .count = count};
    must(lib->prim, wf_prim_alloc(lib->prim, lib->place, count * 4 + 16, &out.data));
    lib->cost.memory += (double)count * 4;
    return out;
}

static void fill(struct weave_library *lib, enum weave_column column, uint32_t *host) {
    wf_elem type = column >= F_PRICE && column <= F_TAX ? WF_ELEM_F32 : WF_ELEM_I32;
    int64_t count = weave_rows(column, lib->rows);
    for (int64_t i = 0; i < count; i++) {
        host[i] = weave_value(column, i, lib->rows);
    }
    lib->in[column] = room(lib, type, count);
    must(lib->prim, wf_prim_copy(lib->prim, lib->in[column].data, host, count * 4));
}

struct weave_library *weave_library_open(wf_prim *prim, wf_place place, enum weave_pattern pattern,
                                         int64_t rows) {
    struct weave_library *lib = calloc(1, sizeof *lib);
    void *host = NULL;
    if (!lib) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
    *lib = (struct weave_library){.prim = prim, .place = place, .pattern = pattern, .rows = rows};
    must(prim, wf_prim_alloc(prim, WF_ON_CPU, rows * 4 + 64, &host));
    int64_t most = 0;
    for (int c = 0; c < WEAVE_COLUMNS; c++) {
        if (uses(pattern, (enum weave_column)c)) {
            fill(lib, (enum weave_column)c, host);
            most = lib->in[c].count > most ? lib->in[c].count : most;
        }
    }
    wf_prim_free(prim, host);
    bool joins = pattern == WEAVE_JOINS || pattern == WEAVE_SELECTED;
    int temps = pattern == WEAVE_MATH ? 3 : joins ? TEMPS : 2 * SIDE_COLUMNS;
    for (int i = 0; i < temps; i++) {
        lib->temp[i] = room(lib, pattern == WEAVE_MATH ? WF_ELEM_F32 : WF_ELEM_I32, most);
    }
    return lib;
}

void weave_library_close(struct weave_library *lib) {
    for (int c = 0; c < WEAVE_COLUMNS; c++) {
        wf_prim_free(lib->prim, lib->in[c].data);
    }
    for (int i = 0; i < TEMPS; i++) {
        wf_prim_free(lib->prim, lib->temp[i].data);
    }
    free(lib);
}

/* After an operator that read and wrote so many elements. */
static void count_cost(struct weave_library *lib, int64_t elements) {
    wf_prim *prim = lib->prim;
    struct weave_cost *cost = &lib->cost;
    int registers = (int)wf_prim_metric(prim, "registers");
    int shared = (int)wf_prim_metric(prim, "shared_bytes");
    int occupancy = (int)wf_prim_metric(prim, "occupancy");
    const char *time = lib->place == WF_ON_GPU ? "device_ns" : "ns";
    cost->seconds += (double)wf_prim_metric(prim, time) * 1e-9;
    cost->bytes += (double)elements * 4;
    cost->registers = registers > cost->registers ? registers : cost->registers;
    cost->shared_bytes = shared > cost->shared_bytes ? shared : cost->shared_bytes;
    if (occupancy > 0 && (cost->occupancy == 0 || occupancy < cost->occupancy)) {
        cost->occupancy = occupancy;
    }
}

/* The rows of `in` whose column `by` is below the border go to `out`; their number is its count. */
static int64_t select_below(struct weave_library *lib, wf_array *out, const wf_array *in,
                            int columns, int by, int32_t border) {
    int64_t count = 0, rows = in[0].count;
    must(lib->prim, wf_prim_compact_compare(lib->prim, lib->place, 1, out, in, columns, in[by],
                                            WF_COMPARE_LT, &border, &count, NULL));
    count_cost(lib, columns * (rows + count));
    for (int c = 0; c < columns; c++) {
        out[c].count = count;
    }
    return count;
}

static int64_t run_selects(struct weave_library *lib, int32_t border, int selects) {
    wf_array a[SIDE_COLUMNS], b[SIDE_COLUMNS], *from = &lib->in[T_K], *to = a;
    int64_t count = 0;
    memcpy(a, &lib->temp[0], sizeof a);
    memcpy(b, &lib->temp[SIDE_COLUMNS], sizeof b);
    for (int s = 0; s < selects; s++) {
        count = select_below(lib, to, from, SIDE_COLUMNS, 1 + s, border);
        from = to;
        to = to == a ? b : a;
        for (int c = 0; c < SIDE_COLUMNS; c++) { /* what was read is room again */
            to[c].count = lib->rows;
        }
    }
    return count;
}

static struct weave_sum sum_of(struct weave_library *lib, wf_array values, int64_t count) {
    struct weave_sum out = {(double)count, 0};
    void *host = NULL;
    must(lib->prim, wf_prim_alloc(lib->prim, WF_ON_CPU, count * 4 + 16, &host));
    must(lib->prim, wf_prim_copy(lib->prim, host, values.data, count * 4));
    for (int64_t i = 0; i < count; i++) {
        out.sum +=
            values.type == WF_ELEM_F32 ? (double)((float *)host)[i] : (double)((int32_t *)host)[i];
    }
    wf_prim_free(lib->prim, host);
    return out;
}

static void add_sum(struct weave_sum *to, struct weave_sum more, bool new_rows) {
    to->rows += new_rows ? more.rows : 0;
    to->sum += more.sum;
}

/* Both SELECTs read all of t. */
static void run_shared(struct weave_library *lib, int32_t border, struct weave_sum *check) {
    wf_array *out[2] = {&lib->temp[0], &lib->temp[SIDE_COLUMNS]};
    for (int s = 0; s < 2; s++) {
        int64_t count = select_below(lib, out[s], &lib->in[T_K], SIDE_COLUMNS, 1 + s, border);
        if (check) {
            add_sum(check, sum_of(lib, out[s][s ? 3 : 0], count), true);
        }
        for (int c = 0; c < SIDE_COLUMNS; c++) {
            out[s][c].count = lib->rows;
        }
    }
}

/* The key, r's columns, s's column; the number of rows. */
static int64_t join(struct weave_library *lib, const wf_join_out *out, wf_join_side r,
                    wf_join_side s) {
    int64_t count = 0;
    wf_join_spec spec = {.r = r, .s = s};
    must(lib->prim, wf_prim_join(lib->prim, lib->place, &spec, out, &count));
    int columns = r.column_count;
    count_cost(lib, (1 + columns) * r.keys.count + 2 * s.keys.count + (2 + columns) * count);
    return count;
}

/* Temps: 0 to 5 the three tables as selected, 6 to 8 the first join; the second writes over 0 to
 * 3 and 9, whose tables it does not read. */
static void run_joins(struct weave_library *lib, int32_t border, bool selected,
                      struct weave_sum *check) {
    wf_array side[6];
    memcpy(side, &lib->in[R_K], sizeof side);
    for (int t = 0; selected && t < 3; t++) {
        wf_array to[2] = {lib->temp[2 * t], lib->temp[2 * t + 1]};
        select_below(lib, to, &lib->in[R_K + 2 * t], 2, 1, border);
        memcpy(&side[2 * t], to, sizeof to);
    }
    wf_array *temp = lib->temp;
    wf_array first[3] = {temp[6], temp[7], temp[8]};
    wf_join_out out = {.keys = first[0], .r_columns = &first[1], .s_columns = &first[2]};
    int64_t count =
        join(lib, &out, (wf_join_side){side[0], &side[1], 1}, (wf_join_side){side[2], &side[3], 1});
    for (int c = 0; c < 3; c++) {
        first[c].count = count;
    }
    wf_array out_r[2] = {temp[0], temp[1]};
    out = (wf_join_out){.keys = temp[2], .r_columns = out_r, .s_columns = &temp[3]};
    count = join(lib, &out, (wf_join_side){first[0], &first[1], 2},
                 (wf_join_side){side[4], &side[5], 1});
    for (int c = 0; check && c < 3; c++) {
        add_sum(check, sum_of(lib, c < 2 ? out_r[c] : temp[3], count), c == 0);
    }
}

static void map(struct weave_library *lib, const char *opcode, wf_array out, wf_array x,
                wf_array y) {
    const wf_array in[2] = {x, y};
    must(lib->prim, wf_prim_map(lib->prim, lib->place, opcode, out, in, 2, NULL));
    count_cost(lib, out.count + (x.count > 1 ? x.count : 0) + (y.count > 1 ? y.count : 0));
}

static void run_math(struct weave_library *lib, struct weave_sum *check) {
    wf_array one = {.type = WF_ELEM_F32, .count = 1};
    float value = 1;
    must(lib->prim, wf_prim_alloc(lib->prim, lib->place, 16, &one.data));
    must(lib->prim, wf_prim_copy(lib->prim, one.data, &value, sizeof value));
    map(lib, "SUB_F32", lib->temp[0], one, lib->in[F_DISCOUNT]);
    map(lib, "MUL_F32", lib->temp[1], lib->in[F_PRICE], lib->temp[0]);
    map(lib, "ADD_F32", lib->temp[0], one, lib->in[F_TAX]);
    map(lib, "MUL_F32", lib->temp[2], lib->temp[1], lib->temp[0]);
    wf_prim_free(lib->prim, one.data);
    if (check) {
        *check = sum_of(lib, lib->temp[2], lib->rows);
    }
}

struct weave_cost weave_library_run(struct weave_library *lib, int percent,
                                    struct weave_sum *check) {
    int32_t border = weave_border(percent);
    lib->cost = (struct weave_cost){.memory = lib->cost.memory};
    if (check) {
        *check = (struct weave_sum){0, 0};
    }
    switch (lib->pattern) {
    case WEAVE_SELECTS:
    case WEAVE_PAIR: {
        int selects = lib->pattern == WEAVE_PAIR ? 2 : 3;
        int64_t count = run_selects(lib, border, selects);
        if (check) {
            *check = sum_of(lib, lib->temp[selects % 2 ? 0 : SIDE_COLUMNS], count);
        }
        break;
    }
    case WEAVE_SHARED:
        run_shared(lib, border, check);
        break;
    case WEAVE_MATH:
        run_math(lib, check);
        break;
    default:
        run_joins(lib, border, lib->pattern == WEAVE_SELECTED, check);
    }
    return lib->cost;
}
