/* ops_run.c: the operators of `bench ops` and what plain loops make of the same relations.
 *
 * Tuples of 32 bits have a key of 28 bits (30 for the largest sizes) and a value; what a join gives
 * still fits 32 bits. Tuples of 64 bits have a key of 40. Keys are made in order, by the inverse of
 * their distribution, so nothing is sorted. */
#include "bench_ops.h"

#include <math.h>
#include <string.h>

const char *const ops_key_names[KEYS_KINDS] = {"uniform", "normal", "Pareto"};

/* --- relations --- */

static uint64_t mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

static uint64_t get(const wf_relation *r, int64_t i) {
    return r->word == WF_ELEM_U32 ? ((const uint32_t *)r->data)[i] : ((const uint64_t *)r->data)[i];
}
static void put(const wf_relation *r, int64_t i, uint64_t key, uint64_t value) {
    uint64_t word = key << r->bits[1] | (value & ((1ULL << r->bits[1]) - 1));
    word <<= (r->word == WF_ELEM_U32 ? 32 : 64) - r->bits[0] - r->bits[1];
    if (r->word == WF_ELEM_U32) {
        ((uint32_t *)r->data)[i] = (uint32_t)word;
    } else {
        ((uint64_t *)r->data)[i] = word;
    }
}
static int key_shift(const wf_relation *r) {
    return (r->word == WF_ELEM_U32 ? 32 : 64) - r->bits[0];
}
static uint64_t key_of(const wf_relation *r, int64_t i) {
    return get(r, i) >> key_shift(r);
}
static uint64_t value_of(const wf_relation *r, int64_t i) {
    return get(r, i) >> (key_shift(r) - r->bits[1]) & ((1ULL << r->bits[1]) - 1);
}

static wf_relation relation(const struct ops_data *d, void *data) {
    int key = d->bytes == 8 ? 40 : d->rows > 64 << 20 ? 30 : 28;
    int value = (d->bytes * 8 - key) / 2;
    return (wf_relation){.word = d->bytes == 8 ? WF_ELEM_U64 : WF_ELEM_U32,
                         .field_count = 2,
                         .key_count = 1,
                         .bits = {(unsigned char)key, (unsigned char)value},
                         .data = data,
                         .count = d->rows};
}

/* The u-quantile of a normal distribution around 1/2, within 0 .. 1. */
static double normal_quantile(double u) {
    double z = 2 * u - 1;
    double ln = log(1 - z * z + 1e-300);
    double a = 2 / (3.14159265358979 * 0.147) + ln / 2;
    double erf_inverse = copysign(sqrt(sqrt(a * a - ln / 0.147) - a), z);
    return fmin(fmax(0.5 + erf_inverse / 8, 0), 1);
}

static uint64_t key_at(enum ops_keys keys, int64_t i, int64_t n) {
    double range = 4 * (double)n;
    double u = ((double)i + 0.5) / (double)n;
    switch (keys) {
    case KEYS_NORMAL:
        return (uint64_t)fmin(normal_quantile(u) * range, range - 1);
    case KEYS_PARETO: /* alpha = 1.16, smallest first */
        return (uint64_t)fmin(4096 * (pow(1 - u, -1 / 1.16) - 1), range - 1);
    default:
        return (uint64_t)i * 4 + (mix((uint64_t)i) & 3);
    }
}

static bool take(wf_prim *prim, wf_place place, int64_t bytes, void **out) {
    return wf_prim_alloc(prim, place, bytes, out) == WF_OK;
}

static bool room(wf_prim *prim, wf_place place, struct ops_data *d) {
    int64_t bytes = d->rows * d->bytes;
    int64_t fills = (d->rows / OPS_PAGE_ROWS + 2) * 4;
    int64_t out_bytes = 2 * bytes + OPS_PAGE_ROWS * d->bytes;
    int64_t padded = bytes + OPS_PAGE_ROWS * d->bytes; /* whole pages */
    void *p[4] = {NULL, NULL, NULL, NULL};
    void *f[2] = {NULL, NULL};
    bool ok = take(prim, place, padded, &p[0]) && take(prim, place, padded, &p[1]) &&
              take(prim, place, padded, &p[2]) && take(prim, place, padded, &p[3]) &&
              take(prim, place, out_bytes, &d->out) &&
              take(prim, place, d->rows * 4 + 16, &d->out2) && take(prim, place, fills, &f[0]) &&
              take(prim, place, fills, &f[1]);
    d->x = relation(d, p[0]);
    d->y = relation(d, p[1]);
    d->same = relation(d, p[2]);
    d->groups = relation(d, p[3]);
    d->fills = f[0];
    d->out_fills = f[1];
    return ok;
}

bool ops_make(wf_prim *prim, struct ops_data *out, int64_t rows, int bytes, enum ops_keys keys) {
    *out = (struct ops_data){.rows = rows, .bytes = bytes};
    if (!room(prim, WF_ON_CPU, out)) {
        return false;
    }
    for (int64_t i = 0; i < rows; i++) {
        uint64_t key = key_at(keys, i, rows);
        put(&out->x, i, key, mix((uint64_t)i + 1));
        put(&out->y, i, (uint64_t)i * 4 + (mix((uint64_t)i + 7) & 3), mix((uint64_t)i + 2));
        put(&out->same, i, key, mix((uint64_t)i + 3));
        put(&out->groups, i, (uint64_t)i / OPS_GROUP_ROWS, mix((uint64_t)i + 4));
    }
    for (int64_t p = 0; p * OPS_PAGE_ROWS < rows; p++) {
        int64_t left = rows - p * OPS_PAGE_ROWS;
        out->fills[p] = (uint32_t)(left < OPS_PAGE_ROWS ? left : OPS_PAGE_ROWS);
    }
    return true;
}

bool ops_copy(wf_prim *prim, struct ops_data *out, const struct ops_data *host) {
    *out = (struct ops_data){.rows = host->rows, .bytes = host->bytes};
    int64_t bytes = host->rows * host->bytes;
    int64_t fills = (host->rows + OPS_PAGE_ROWS - 1) / OPS_PAGE_ROWS * 4;
    return room(prim, WF_ON_GPU, out) &&
           wf_prim_copy(prim, out->x.data, host->x.data, bytes) == WF_OK &&
           wf_prim_copy(prim, out->y.data, host->y.data, bytes) == WF_OK &&
           wf_prim_copy(prim, out->same.data, host->same.data, bytes) == WF_OK &&
           wf_prim_copy(prim, out->groups.data, host->groups.data, bytes) == WF_OK &&
           wf_prim_copy(prim, out->fills, host->fills, fills) == WF_OK;
}

void ops_free(wf_prim *prim, struct ops_data *d) {
    void *all[] = {d->x.data, d->y.data, d->same.data, d->groups.data,
                   d->out,    d->out2,   d->fills,     d->out_fills};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        wf_prim_free(prim, all[i]);
    }
    memset(d, 0, sizeof *d);
}

static wf_relation output(const struct ops_data *d) {
    return (wf_relation){.word = d->x.word, .data = d->out, .room = 2 * d->rows};
}
static wf_relation paged_output(const struct ops_data *d) {
    wf_relation r = output(d);
    r.form = WF_PAGED;
    r.page_rows = OPS_PAGE_ROWS;
    r.room = (d->rows + OPS_PAGE_ROWS - 1) / OPS_PAGE_ROWS;
    r.fills = d->out_fills;
    return r;
}
static wf_status done(struct ops_case *c, wf_status status, int64_t in_rows, int64_t out_rows) {
    c->out_rows = out_rows;
    c->bytes = (in_rows + out_rows) * c->d->bytes;
    return status;
}

/* --- the operators --- */

static wf_status run_project(struct ops_case *c, int arg) {
    static const int fields[] = {1, 0};
    (void)arg;
    wf_relation out = output(c->d);
    wf_status status = wf_prim_rel_project(c->prim, c->place, &out, &c->d->x, fields, 2, NULL);
    return done(c, status, c->d->rows, out.count);
}
static int64_t answer_project(const struct ops_data *d, int arg, uint64_t *out) {
    (void)arg;
    int unused = d->bytes * 8 - d->x.bits[0] - d->x.bits[1];
    for (int64_t i = 0; i < d->rows; i++) {
        out[i] = (value_of(&d->x, i) << d->x.bits[0] | key_of(&d->x, i)) << unused;
    }
    return d->rows;
}

/* Of x: a field of the key's lowest four bits and the value, all of whose values are as likely, and
 * what percentage of them is kept. */
static wf_relation select_input(const struct ops_data *d) {
    wf_relation r = d->x;
    r.bits[0] = (unsigned char)(r.bits[0] - 4);
    r.bits[1] = (unsigned char)(r.bits[1] + 4);
    return r;
}
static wf_term percent_term(const wf_relation *in, int percent) {
    uint64_t border = ((uint64_t)percent << in->bits[1]) / 100;
    return (wf_term){.field = 1, .compare = WF_COMPARE_LT, .value = border};
}
enum { ARG_UNORDERED = 1000, ARG_PAGED = 2000 };
static wf_status run_select(struct ops_case *c, int arg) {
    bool paged = arg >= ARG_PAGED;
    wf_relation out = paged ? paged_output(c->d) : output(c->d);
    wf_relation in = select_input(c->d);
    wf_term term = percent_term(&in, arg % 1000);
    if (paged) {
        in.form = WF_PAGED;
        in.page_rows = OPS_PAGE_ROWS;
        in.page_count = (in.count + OPS_PAGE_ROWS - 1) / OPS_PAGE_ROWS;
        in.fills = c->d->fills;
    }
    wf_status status = wf_prim_rel_select(c->prim, c->place, &out, &in, &term, 1,
                                          arg / 1000 == ARG_UNORDERED / 1000, NULL);
    return done(c, status, c->d->rows, out.count);
}
static int64_t answer_select(const struct ops_data *d, int arg, uint64_t *out) {
    wf_relation in = select_input(d);
    int64_t count = 0;
    for (int64_t i = 0; i < d->rows; i++) {
        if (value_of(&in, i) < percent_term(&in, arg % 1000).value) {
            out[count++] = get(&in, i);
        }
    }
    return count;
}

/* Page by page: as many as are kept of it, in order. */
static bool check_pages(const struct ops_case *c, int arg) {
    const struct ops_data *d = c->d;
    wf_relation in = select_input(d);
    wf_relation out = in;
    out.data = d->out;
    uint64_t border = percent_term(&in, arg % 1000).value;
    int64_t total = 0;
    for (int64_t first = 0; first < d->rows; first += OPS_PAGE_ROWS) {
        uint32_t kept = 0;
        for (int64_t i = first; i < first + OPS_PAGE_ROWS && i < d->rows; i++) {
            if (value_of(&in, i) < border && get(&out, first + kept++) != get(&in, i)) {
                return false;
            }
        }
        if (d->out_fills[first / OPS_PAGE_ROWS] != kept) {
            return false;
        }
        total += kept;
    }
    return total == c->out_rows;
}

/* So many of x that the product has about as many rows as the relations. */
static wf_status run_product(struct ops_case *c, int arg) {
    (void)arg;
    wf_relation out = output(c->d);
    wf_relation x = c->d->x;
    wf_relation y = c->d->y;
    y.count = OPS_PRODUCT_ROWS < c->d->rows ? OPS_PRODUCT_ROWS : c->d->rows;
    x.count = c->d->rows / y.count;
    x.field_count = y.field_count = 1; /* so that both fit */
    x.bits[0] = y.bits[0] = (unsigned char)(c->d->bytes * 4);
    wf_status status = wf_prim_rel_product(c->prim, c->place, &out, &x, &y, NULL);
    return done(c, status, x.count + y.count, out.count);
}
static int64_t answer_product(const struct ops_data *d, int arg, uint64_t *out) {
    (void)arg;
    int64_t m = OPS_PRODUCT_ROWS < d->rows ? OPS_PRODUCT_ROWS : d->rows;
    int half = d->bytes * 4;
    for (int64_t i = 0; i < d->rows / m * m; i++) {
        out[i] = get(&d->x, i / m) >> half << half | get(&d->y, i % m) >> half;
    }
    return d->rows / m * m;
}

static wf_status run_set(struct ops_case *c, int arg) {
    wf_relation out = output(c->d);
    wf_status status =
        wf_prim_rel_set(c->prim, c->place, (wf_rel_set)arg, &out, &c->d->x, &c->d->y, NULL);
    return done(c, status, 2 * c->d->rows, out.count);
}
static int64_t answer_set(const struct ops_data *d, int arg, uint64_t *out) {
    int64_t j = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < d->rows; i++) {
        uint64_t key = key_of(&d->x, i);
        for (; j < d->rows && key_of(&d->y, j) < key; j++) {
            if (arg == WF_UNION) {
                out[count++] = get(&d->y, j);
            }
        }
        bool both = j < d->rows && key_of(&d->y, j) == key;
        j += both;
        if (arg == WF_UNION || both == (arg == WF_INTERSECTION)) {
            out[count++] = get(&d->x, i);
        }
    }
    for (; j < d->rows && arg == WF_UNION; j++) {
        out[count++] = get(&d->y, j);
    }
    return count;
}

wf_status ops_run_join(struct ops_case *c, int same) {
    wf_relation out = output(c->d);
    const wf_relation *x = same ? &c->d->same : &c->d->x;
    const wf_relation *y = same ? &c->d->x : &c->d->y;
    wf_status status = wf_prim_rel_join(c->prim, c->place, &c->join, &out, x, y, NULL);
    return done(c, status, 2 * c->d->rows, out.count);
}
int64_t ops_answer_join(const struct ops_data *d, int same, uint64_t *out) {
    const wf_relation *x = same ? &d->same : &d->x;
    const wf_relation *y = same ? &d->x : &d->y;
    int unused = d->bytes * 8 - x->bits[0] - 2 * x->bits[1];
    int64_t j = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < d->rows; i++) { /* keys of y are distinct where those of x are not */
        while (j < d->rows && key_of(y, j) < key_of(x, i)) {
            j++;
        }
        if (j < d->rows && key_of(y, j) == key_of(x, i)) {
            uint64_t head = key_of(x, i) << x->bits[1] | value_of(x, i);
            out[count++] = (head << x->bits[1] | value_of(y, j)) << unused;
        }
    }
    return count;
}

/* Positions rather than tuples; whole words are the keys. */
static wf_status run_positions(struct ops_case *c, int arg) {
    (void)arg;
    int64_t count = 0;
    wf_elem word = c->d->x.word;
    wf_array out_x = {.type = WF_ELEM_U32, .data = c->d->out, .count = c->d->rows};
    wf_array out_y = {.type = WF_ELEM_U32, .data = c->d->out2, .count = c->d->rows};
    wf_array x = {.type = word, .data = c->d->x.data, .count = c->d->rows};
    wf_status status =
        wf_prim_join_sorted(c->prim, c->place, &c->join, out_x, out_y, x, x, &count, NULL);
    c->out_rows = count;
    c->bytes = 2 * c->d->rows * c->d->bytes + count * 8;
    return status;
}

static bool check_positions(const struct ops_case *c, int arg) {
    const uint32_t *x = c->d->out;
    const uint32_t *y = c->d->out2;
    (void)arg;
    int64_t i = 0; /* words of x are distinct */
    while (i < c->out_rows && x[i] == (uint32_t)i && y[i] == (uint32_t)i) {
        i++;
    }
    return i == c->out_rows && i == c->d->rows;
}

static wf_status run_reduce(struct ops_case *c, int arg) {
    wf_relation out = output(c->d);
    wf_array values = {.type = WF_ELEM_U64, .data = c->d->out2, .count = c->d->rows / 4 + 1};
    wf_status status =
        wf_prim_rel_reduce(c->prim, c->place, (wf_reduce)arg, 1, &out, values, &c->d->groups, NULL);
    done(c, status, c->d->rows, out.count);
    c->bytes += out.count * 8;
    return status;
}
static int64_t answer_reduce(const struct ops_data *d, int arg, uint64_t *out) {
    (void)arg;
    int64_t count = 0;
    for (int64_t i = 0; i < d->rows; i += OPS_GROUP_ROWS) {
        out[count++] = key_of(&d->groups, i) << key_shift(&d->groups);
    }
    return count;
}

static bool check_reduce(const struct ops_case *c, int arg) {
    const uint64_t *values = c->d->out2;
    (void)arg;
    int64_t groups = 0;
    for (int64_t i = 0; i < c->d->rows; groups++) {
        uint64_t sum = 0;
        int64_t end = i + OPS_GROUP_ROWS < c->d->rows ? i + OPS_GROUP_ROWS : c->d->rows;
        for (; i < end; i++) {
            sum += value_of(&c->d->groups, i);
        }
        if (groups >= c->out_rows || values[groups] != sum) {
            return false;
        }
    }
    return groups == c->out_rows;
}

const struct ops_experiment ops_experiments[] = {
    {"PROJECT", 0, run_project, answer_project, true, false, NULL},
    {"PRODUCT", 0, run_product, answer_product, true, false, NULL},
    {"SELECT 10 %", 10, run_select, answer_select, false, false, NULL},
    {"SELECT 50 %", 50, run_select, answer_select, true, false, NULL},
    {"SELECT 90 %", 90, run_select, answer_select, false, false, NULL},
    {"SELECT 10 %, unordered", ARG_UNORDERED + 10, run_select, answer_select, false, true, NULL},
    {"SELECT 50 %, unordered", ARG_UNORDERED + 50, run_select, answer_select, false, true, NULL},
    {"SELECT 90 %, unordered", ARG_UNORDERED + 90, run_select, answer_select, false, true, NULL},
    {"SELECT 50 %, pages", ARG_PAGED + 50, run_select, NULL, false, false, check_pages},
    {"UNION", WF_UNION, run_set, answer_set, true, false, NULL},
    {"INTERSECTION", WF_INTERSECTION, run_set, answer_set, true, false, NULL},
    {"DIFFERENCE", WF_DIFFERENCE, run_set, answer_set, true, false, NULL},
    {"JOIN, sparse", 0, ops_run_join, ops_answer_join, true, false, NULL},
    {"JOIN, dense", 1, ops_run_join, ops_answer_join, true, false, NULL},
    {"JOIN, dense, positions", 0, run_positions, NULL, false, false, check_positions},
    {"REDUCE sum by key", WF_REDUCE_SUM, run_reduce, answer_reduce, false, false, check_reduce},
};
const int ops_experiment_count = sizeof ops_experiments / sizeof *ops_experiments;
