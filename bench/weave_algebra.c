/* weave_algebra.c: the patterns of `bench weave` by the library's relational algebra on packed tuples,
 * sorted by their key; every operator writes whole tuples. Tuples have 16 bytes, as in the thesis, but
 * those of r and s, which fit 8. That relations come sorted is given, and costs nothing here.
 *
 * Two ways: `tuples`, where an operator computes and gathers in one pass, and `stages`, the operators
 * of the thesis: blocks compute into pages of their own, and a kernel behind them gathers what the
 * pages hold. PROJECT keeps every tuple and gathers nothing. */
#include "bench_weave.h"

#include <stdlib.h>
#include <string.h>

enum { RELATIONS = 3, TEMPS = 5, FIELD_BITS = 32, PAGE_ROWS = 4096 };

struct weave_algebra {
    wf_prim *prim;
    wf_place place;
    enum weave_pattern pattern;
    wf_relation in[RELATIONS]; /* t, or r, s and u */
    wf_relation temp[TEMPS];
    wf_relation pages; /* what a stage leaves to the next */
    bool staged;
    double page_memory;
    struct weave_cost cost;
};

static void must(wf_prim *prim, wf_status status) {
    if (status != WF_OK) {
        fprintf(stderr, "bench: weave: %s\n", wf_prim_error(prim)->message);
        exit(1);
    }
}

static int64_t word_bytes(const wf_relation *r) {
    return r->word == WF_ELEM_U128 ? 16 : r->word == WF_ELEM_U64 ? 8 : 4;
}

static bool joins(enum weave_pattern pattern) {
    return pattern == WEAVE_JOINS || pattern == WEAVE_SELECTED;
}

bool weave_algebra_has(enum weave_pattern pattern) {
    return pattern == WEAVE_SELECTS || pattern == WEAVE_SHARED || joins(pattern);
}

static wf_relation room(struct weave_algebra *a, wf_elem word, int64_t count) {
    wf_relation out = {.word = word, .form = WF_DENSE, .room = count};
    must(a->prim, wf_prim_alloc(a->prim, a->place, count * word_bytes(&out) + 16, &out.data));
    a->cost.memory += (double)(count * word_bytes(&out));
    return out;
}

/* Pages for as many tuples, of any word. */
static void make_pages(struct weave_algebra *a, int64_t count) {
    wf_relation *p = &a->pages;
    int64_t pages = count / PAGE_ROWS + 1, bytes = pages * PAGE_ROWS * 16;
    void *fills = NULL;
    *p = (wf_relation){.form = WF_PAGED, .page_rows = PAGE_ROWS, .room = pages};
    must(a->prim, wf_prim_alloc(a->prim, a->place, bytes, &p->data));
    must(a->prim, wf_prim_alloc(a->prim, a->place, pages * 4 + 16, &fills));
    p->fills = fills;
    a->page_memory = (double)(bytes + pages * 4);
}

/* A tuple of two or four fields, of which the first lies at the top. */
static void pack(const wf_relation *r, void *words, int64_t at, const uint32_t *fields) {
    uint64_t *to = (uint64_t *)words + at * (word_bytes(r) / 8);
    uint64_t top = (uint64_t)fields[0] << 32 | fields[1];
    uint64_t low = r->field_count == 4 ? (uint64_t)fields[2] << 32 | fields[3] : 0;
    if (r->word == WF_ELEM_U64) {
        to[0] = top;
    } else {
        to[0] = low;
        to[1] = top;
    }
}

/* Columns `first` and on; tables to be joined have the key first, which is also a tuple's place. */
static void fill(struct weave_algebra *a, int which, enum weave_column first, int fields,
                 int64_t rows) {
    int64_t count = weave_rows(first, rows);
    wf_elem word = joins(a->pattern) && first != U_K ? WF_ELEM_U64 : WF_ELEM_U128;
    wf_relation *r = &a->in[which];
    void *host = NULL;
    *r = room(a, word, count);
    r->count = count;
    r->field_count = fields;
    r->key_count = 1;
    memset(r->bits, FIELD_BITS, (size_t)fields);
    must(a->prim, wf_prim_alloc(a->prim, WF_ON_CPU, count * word_bytes(r) + 16, &host));
    for (int64_t i = 0; i < count; i++) {
        uint32_t values[4] = {0};
        for (int f = 0; f < fields; f++) {
            values[f] = weave_value((enum weave_column)((int)first + f), i, rows);
        }
        pack(r, host, joins(a->pattern) ? (int64_t)values[0] : i, values);
    }
    must(a->prim, wf_prim_copy(a->prim, r->data, host, count * word_bytes(r)));
    wf_prim_free(a->prim, host);
}

struct weave_algebra *weave_algebra_open(wf_prim *prim, wf_place place, enum weave_pattern pattern,
                                         int64_t rows) {
    struct weave_algebra *a = calloc(1, sizeof *a);
    if (!a) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
    *a = (struct weave_algebra){.prim = prim, .place = place, .pattern = pattern};
    if (joins(pattern)) {
        static const enum weave_column keys[RELATIONS] = {R_K, S_K, U_K};
        for (int t = 0; t < RELATIONS; t++) {
            fill(a, t, keys[t], 2, rows);
            a->temp[t] = room(a, a->in[t].word, a->in[t].count);
        }
        a->temp[3] = room(a, WF_ELEM_U128, a->in[0].count);
        a->temp[4] = room(a, WF_ELEM_U128, a->in[0].count);
        make_pages(a, a->in[0].count);
    } else {
        fill(a, 0, T_K, 4, rows);
        a->temp[0] = room(a, WF_ELEM_U128, rows);
        a->temp[1] = room(a, WF_ELEM_U128, rows);
        a->temp[2] = room(a, WF_ELEM_U32, rows);
        make_pages(a, rows);
    }
    return a;
}

void weave_algebra_close(struct weave_algebra *a) {
    for (int i = 0; i < RELATIONS; i++) {
        wf_prim_free(a->prim, a->in[i].data);
    }
    for (int i = 0; i < TEMPS; i++) {
        wf_prim_free(a->prim, a->temp[i].data);
    }
    wf_prim_free(a->prim, a->pages.data);
    wf_prim_free(a->prim, a->pages.fills);
    free(a);
}

static void count_cost(struct weave_algebra *a, int64_t bytes) {
    const char *time = a->place == WF_ON_GPU ? "device_ns" : "ns";
    struct weave_cost *cost = &a->cost;
    int registers = (int)wf_prim_metric(a->prim, "registers");
    int shared = (int)wf_prim_metric(a->prim, "shared_bytes");
    int occupancy = (int)wf_prim_metric(a->prim, "occupancy");
    cost->seconds += (double)wf_prim_metric(a->prim, time) * 1e-9;
    cost->bytes += (double)bytes;
    cost->registers = registers > cost->registers ? registers : cost->registers;
    cost->shared_bytes = shared > cost->shared_bytes ? shared : cost->shared_bytes;
    if (occupancy > 0 && (cost->occupancy == 0 || occupancy < cost->occupancy)) {
        cost->occupancy = occupancy;
    }
}

/* Where an operator that makes `out` computes to. */
static wf_relation *computed(struct weave_algebra *a, wf_relation *out) {
    a->pages.word = out->word;
    return a->staged ? &a->pages : out;
}

/* After an operator that read so many bytes. */
static void gather(struct weave_algebra *a, wf_relation *out, int64_t read) {
    wf_relation *from = computed(a, out);
    int64_t bytes = from->count * word_bytes(from);
    count_cost(a, read + bytes);
    if (from != out) {
        must(a->prim, wf_prim_rel_convert(a->prim, a->place, out, from, NULL));
        count_cost(a, 2 * bytes);
    }
}

static void select_below(struct weave_algebra *a, wf_relation *out, const wf_relation *in, int field,
                         int32_t border) {
    wf_term term = {.field = field, .compare = WF_COMPARE_LT, .value = (uint64_t)border};
    must(a->prim,
         wf_prim_rel_select(a->prim, a->place, computed(a, out), in, &term, 1, 0, NULL));
    gather(a, out, in->count * word_bytes(in));
}

static void project(struct weave_algebra *a, wf_relation *out, const wf_relation *in, int field) {
    must(a->prim, wf_prim_rel_project(a->prim, a->place, out, in, &field, 1, NULL));
    count_cost(a, in->count * word_bytes(in) + out->count * word_bytes(out));
}

static void join(struct weave_algebra *a, wf_relation *out, const wf_relation *x,
                 const wf_relation *y) {
    wf_rel_join how = {.kind = WF_REL_INNER, .stage = WF_STAGE_MERGE};
    must(a->prim, wf_prim_rel_join(a->prim, a->place, &how, computed(a, out), x, y, NULL));
    gather(a, out, x->count * word_bytes(x) + y->count * word_bytes(y));
}

/* The fields `from` and on of all tuples. */
static void add_sum(struct weave_algebra *a, const wf_relation *r, int from, int to,
                    struct weave_sum *sum) {
    int64_t fields = word_bytes(r) / 4;
    void *host = NULL;
    must(a->prim, wf_prim_alloc(a->prim, WF_ON_CPU, r->count * word_bytes(r) + 16, &host));
    must(a->prim, wf_prim_copy(a->prim, host, r->data, r->count * word_bytes(r)));
    const uint32_t *words = host; /* the lowest first */
    for (int64_t i = 0; i < r->count; i++) {
        for (int f = from; f <= to; f++) {
            sum->sum += (double)words[i * fields + fields - 1 - f];
        }
    }
    sum->rows += (double)r->count;
    wf_prim_free(a->prim, host);
}

static void run_joins(struct weave_algebra *a, int32_t border, struct weave_sum *check) {
    const wf_relation *side[RELATIONS] = {&a->in[0], &a->in[1], &a->in[2]};
    for (int t = 0; a->pattern == WEAVE_SELECTED && t < RELATIONS; t++) {
        select_below(a, &a->temp[t], &a->in[t], 1, border);
        side[t] = &a->temp[t];
    }
    join(a, &a->temp[3], side[0], side[1]);
    join(a, &a->temp[4], &a->temp[3], side[2]);
    if (check) {
        add_sum(a, &a->temp[4], 1, 3, check);
    }
}

struct weave_cost weave_algebra_run(struct weave_algebra *a, bool staged, int percent,
                                    struct weave_sum *check) {
    int32_t border = weave_border(percent);
    double memory = a->cost.memory;
    a->staged = staged;
    a->cost = (struct weave_cost){.memory = memory};
    if (check) {
        *check = (struct weave_sum){0, 0};
    }
    if (joins(a->pattern)) {
        run_joins(a, border, check);
    } else if (a->pattern == WEAVE_SHARED) { /* tuples as they are: PROJECT would be one more pass */
        for (int s = 0; s < 2; s++) {
            select_below(a, &a->temp[s], &a->in[0], 1 + s, border);
            if (check) {
                add_sum(a, &a->temp[s], s ? 3 : 0, s ? 3 : 0, check);
            }
        }
    } else {
        select_below(a, &a->temp[0], &a->in[0], 1, border);
        select_below(a, &a->temp[1], &a->temp[0], 2, border);
        select_below(a, &a->temp[0], &a->temp[1], 3, border);
        project(a, &a->temp[2], &a->temp[0], 0);
        if (check) {
            add_sum(a, &a->temp[2], 0, 0, check);
        }
    }
    struct weave_cost cost = a->cost;
    cost.memory += staged ? a->page_memory : 0;
    return cost;
}
