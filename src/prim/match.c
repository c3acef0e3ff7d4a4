/* match.c: entry points of the joins, the passes a result is written in, and the choice of an
 * algorithm.
 *
 * The choice uses facts of the keys: the span they lie in, and a sample that shows heavy keys. */
#include "prim/match.h"

#include "prim/move.h"
#include "prim/order.h"

#include <stdlib.h>

enum { DIRECT_SPAN = 16 }; /* places a row that a direct table may have */

i64 join_slots(i64 n) {
    i64 slots = 64;
    while (slots < 2 * n) {
        slots *= 2;
    }
    return slots;
}

static FALLIBLE family(struct prim_job *job, const struct prim_match **out) {
    *out = job->dev->prims->match;
    return *out ? ERR_OK : prim_refuse(job, "join");
}

wf_status prim_join_survey(struct prim_job *job, struct prim_join *join) {
    const struct prim_match *match = NULL;
    TRY(family(job, &match));
    TRY(match->survey(job, join));
    join->known = !job->measuring;
    return ERR_OK;
}

/* --- keys that are no integers --- */

static struct prim_array take_words(struct prim_job *job, enum elem type, i64 count) {
    return (struct prim_array){
        .type = (u8)type, .data = prim_take(job, count * elem_bytes[type]), .count = count};
}

wf_status prim_join_words(struct prim_job *job, struct prim_join *join) {
    char kind = elem_kinds[join->keys[SIDE_R].type];
    bool text = kind == 'T';
    if (!text && kind != 'F') {
        return ERR_OK;
    }
    enum elem type = !text && elem_bytes[join->keys[SIDE_R].type] == 8 ? ELEM_U64 : ELEM_U32;
    struct prim_array words[2];
    for (i32 side = 0; side < 2; side++) {
        words[side] = take_words(job, type, join->keys[side].count);
    }
    if (text) {
        TRY(prim_number_texts(job, words[SIDE_R].data, words[SIDE_S].data, join->keys[SIDE_R],
                              join->keys[SIDE_S]));
    } else {
        TRY(prim_words_array(job, WORDS_FLOAT, words[SIDE_R], join->keys[SIDE_R]));
        TRY(prim_words_array(job, WORDS_FLOAT, words[SIDE_S], join->keys[SIDE_S]));
    }
    if (!job->measuring) {
        join->texts = text ? join->keys[SIDE_R] : (struct prim_array){.data = NULL};
        memcpy(join->keys, words, sizeof words);
        join->key_type = (u8)type;
        join->key_bytes = (u8)elem_bytes[type];
    }
    return ERR_OK;
}

/* Where texts are asked for, numbers are written first: `out` with those in place of its keys, and
 * the numbers, NULL where there are none. */
static struct join_out numbered(struct prim_job *job, const struct prim_join *join,
                                const struct join_out *out, i64 rows, u32 **numbers) {
    struct join_out to = *out;
    *numbers = NULL;
    for (i32 i = 0; i < to.count; i++) {
        if (to.want[i].from == FROM_KEY && join->texts.data) {
            *numbers = to.want[i].out = prim_take(job, rows * 4);
            to.want[i].bytes = 4;
        }
    }
    return to;
}

static FALLIBLE give_texts(struct prim_job *job, const struct prim_join *join,
                           const struct join_out *out, const u32 *numbers, i64 rows) {
    for (i32 i = 0; i < out->count; i++) {
        bool wanted = out->want[i].from == FROM_KEY && join->texts.data;
        if (wanted && (numbers || job->measuring)) {
            struct prim_array to = {.type = ELEM_TEXT, .data = out->want[i].out, .count = rows};
            struct prim_array by = {
                .type = ELEM_U32, .data = (void *)(size_t)numbers, .count = rows};
            TRY(prim_gather(job, to, join->texts, by, 0));
        }
    }
    return ERR_OK;
}

/* --- the choice --- */

static int compare_words(const void *a, const void *b) {
    u64 x = *(const u64 *)a;
    u64 y = *(const u64 *)b;
    return x < y ? -1 : x > y;
}

/* The share of a side's most common key, by its sample. */
static f64 heaviest(const struct prim_join *join, i32 side) {
    u64 words[JOIN_SAMPLE];
    i32 n = join->facts.sampled[side];
    memcpy(words, join->facts.sample[side], (size_t)n * sizeof *words);
    qsort(words, (size_t)n, sizeof *words, compare_words);
    i32 most = 0;
    for (i32 i = 0, run = 0; i < n; i++) {
        run = i && words[i] == words[i - 1] ? run + 1 : 1;
        most = MAX_OF(most, run);
    }
    return n > 1 && most > 1 ? (f64)most / n : 0;
}

/* Places of a direct table; I64_MAX where they cannot be counted. */
static i64 span_of(const struct prim_join *join) {
    const struct join_facts *f = &join->facts;
    return f->lo > f->hi                       ? 0
           : f->hi - f->lo > (u64)I64_MAX / 64 ? I64_MAX
                                               : (i64)(f->hi - f->lo) + 1;
}

static i64 direct_span_max(i64 rows) {
    return rows * DIRECT_SPAN + 4096;
}

/* What joining by a direct table costs: the table is filled and visited at random; so are columns
 * of the built side that are not in it, once for a row of the probing side. */
static i64 direct_cost(const struct prim_join *join, const struct match_costs *c, i64 cache) {
    i32 b = JOIN_BUILT(join);
    i64 probe = join->keys[join->probe].count;
    i64 built = join->keys[b].count;
    i64 span = span_of(join);
    bool inlined = join->col_count[b] == 1 && !join->want_rows;
    i64 bytes = inlined ? elem_bytes[join->cols[b][0].type] : 4;
    bool near = span * bytes + span / 8 <= cache;
    i64 cost = near ? built * c->near_build + probe * c->near_probe
                    : built * c->far_build + probe * c->far_probe;
    for (i32 i = 0; i < join->col_count[b] && !inlined; i++) {
        near = built * elem_bytes[join->cols[b][i].type] <= cache;
        cost += probe * (near ? c->near_probe : c->far_probe);
    }
    return cost;
}

static i64 split_cost(const struct prim_join *join, const struct match_costs *c) {
    i64 cost = 0;
    for (i32 side = 0; side < 2; side++) {
        i64 more = MAX_OF(join->col_count[side] + join->want_rows - 1, 0);
        cost += join->keys[side].count * (c->part_row + more * c->part_column);
    }
    return cost;
}

static enum join_algorithm pick(const struct prim_job *job, const struct prim_match *match,
                                const struct prim_join *join, i64 limit) {
    i64 probe = join->keys[join->probe].count;
    i64 built = join->keys[JOIN_BUILT(join)].count;
    i64 span = span_of(join);
    i64 cols = join->col_count[0] + join->col_count[1];
    i64 cache = match->cache_bytes(job);
    if (join->band) { /* sorting the probing side pays unless it is much the smaller one */
        return probe >= built / 8 ? JOIN_SMJ : JOIN_INLJ;
    }
    /* Splitting pays where a table would not stay in the cache, and there are rows enough to share
     * the cost. Built keys that repeat so often that a sample shows it would have the parts sorted,
     * unless their tables take them: then both sides are sorted at once. */
    i64 table = join_slots(built) * 2 * join->key_bytes;
    i64 split_bytes = 2 * (probe + built) * (join->key_bytes + 4 * (cols + 1));
    bool room = !limit || split_bytes < limit;
    bool split = table > cache && room;
    bool repeats = heaviest(join, JOIN_BUILT(join)) > 0;
    if (split && repeats && !match->chains && join->kind < KEEP_SEMI) {
        return JOIN_SMJ;
    }
    bool dense = span <= 4 * built + 4096;
    if (dense &&
        (!split || direct_cost(join, &match->costs, cache) <= split_cost(join, &match->costs))) {
        return JOIN_DIRECT;
    }
    return split ? JOIN_PARTITIONED : JOIN_PLAIN;
}

wf_status prim_join_choose(struct prim_job *job, struct prim_join *join, i64 limit) {
    static const char *const names[JOIN_ALGORITHMS] = {"join",
                                                       "nested-loop join",
                                                       "indexed nested-loop join",
                                                       "sort-merge join",
                                                       "radix join",
                                                       "partitioned hash join",
                                                       "hash join",
                                                       "direct-address join"};
    const struct prim_match *match = NULL;
    TRY(family(job, &match));
    if (join->algorithm == JOIN_AUTO) {
        join->algorithm = (u8)pick(job, match, join, limit);
    }
    bool sorted = join->algorithm == JOIN_NINLJ || join->algorithm == JOIN_INLJ ||
                  join->algorithm == JOIN_SMJ;
    if (join->band && !sorted) {
        FAIL(job->x->err, NOT_SUPPORTED, "join: no band predicate in a %s", names[join->algorithm]);
    }
    i64 built = join->keys[JOIN_BUILT(join)].count;
    if (join->algorithm == JOIN_DIRECT && span_of(join) > direct_span_max(built)) {
        FAIL(job->x->err, PROGRAM_LIMIT, "join: %lld keys are spread too far for direct addressing",
             built);
    }
    return ERR_OK;
}

/* --- the sides in another order --- */

static struct prim_array array_of(u8 type, const void *data, i64 n) {
    return (struct prim_array){.type = type, .data = (void *)(size_t)data, .count = n};
}

static FALLIBLE row_numbers(struct prim_job *job, u32 *out, i64 n) {
    struct prim_series series = {.out = array_of(ELEM_U32, out, n), .step = 1};
    return prim_series(job, &series);
}

/* What moves along with a side's keys, and where it goes. */
struct along {
    struct prim_array in[JOIN_COLS + 1], out[JOIN_COLS + 1];
    i32 count;
};

static void add_along(struct prim_job *job, struct along *a, struct prim_array in) {
    a->in[a->count] = a->out[a->count] = in;
    a->out[a->count++].data = prim_take(job, in.count * elem_bytes[in.type]);
}

/* Row numbers as an array, in memory that stays. */
static FALLIBLE add_rows(struct prim_job *job, struct along *a, i64 n) {
    u32 *rows = prim_take(job, n * 4);
    TRY(row_numbers(job, rows, n));
    add_along(job, a, (struct prim_array){.type = ELEM_U32, .data = rows, .count = n});
    return ERR_OK;
}

/* Splits by hash (bits >= 0) or sorts (bits < 0) a side, columns and row numbers along. A sort
 * moves two arrays at most; beyond, it moves row numbers, and columns are found through them. */
static FALLIBLE arrange(struct prim_job *job, struct prim_join *join, i32 side, i32 bits) {
    struct prim_array keys = join->keys[side];
    struct join_arrays *to = &join->side[side];
    struct along a = {.count = 0};
    bool by_row = bits < 0 && join->col_count[side] + join->want_rows > ORDER_PAYLOADS;
    struct prim_array out_keys = keys;
    out_keys.data = prim_take(job, keys.count * join->key_bytes);
    for (i32 i = 0; !by_row && i < join->col_count[side]; i++) {
        add_along(job, &a, join->cols[side][i]);
        to->cols[i] = a.out[i].data;
    }
    if (by_row || join->want_rows) {
        TRY(add_rows(job, &a, keys.count));
        *(by_row ? &to->list : &to->rows) = a.out[a.count - 1].data;
    }
    struct prim_split split = {.by = SPLIT_HASH, .bits = bits};
    /* The order of a join's result is free; where a side takes several splits they must agree. */
    split.unstable = a.count <= ORDER_PAYLOADS;
    struct prim_sort sort = {.by = SORT_AUTO};
    struct prim_array starts = {.type = ELEM_U64};
    if (bits >= 0) {
        starts.count = (1LL << bits) + 1;
        starts.data = join->parts[side] = prim_take(job, starts.count * 8);
    }
    i64 mark = prim_mark(job);
    struct prim_array again = out_keys; /* keys once more, for what comes after the first two */
    again.data = a.count > ORDER_PAYLOADS ? prim_take(job, keys.count * join->key_bytes) : NULL;
    for (i32 first = 0; first == 0 || first < a.count; first += ORDER_PAYLOADS) {
        struct prim_payload p = {.count = MIN_OF(a.count - first, ORDER_PAYLOADS)};
        for (i32 i = 0; i < p.count; i++) {
            p.in[i] = a.in[first + i];
            p.out[i] = a.out[first + i];
        }
        struct prim_array to_keys = first ? again : out_keys;
        TRY(bits >= 0 ? prim_split_array(job, &split, to_keys, starts, keys, &p)
                      : prim_sort_array(job, &sort, to_keys, keys, &p));
        starts.data = NULL;
    }
    prim_back(job, mark);
    to->keys = out_keys.data;
    return ERR_OK;
}

/* --- opening --- */

static void take_table(struct prim_job *job, struct prim_join *join, bool grouped) {
    struct join_table *t = &join->table;
    i32 built = JOIN_BUILT(join);
    const struct join_facts *f = &join->facts;
    i32 width = join->key_bytes;
    i32 col_width = join->col_count[built] ? elem_bytes[join->cols[built][0].type] : 0;
    bool inlined = !grouped && !join->want_rows && join->col_count[built] == 1;
    memset(t, 0, sizeof *t);
    t->col = -1;
    t->value_bytes = width;
    if (join->algorithm == JOIN_DIRECT) {
        i64 span = span_of(join);
        t->col = inlined ? 0 : -1;
        t->value_bytes = inlined ? col_width : 4;
        t->lo = f->lo;
        t->slot_count = span;
        t->bits = prim_take(job, (span + 31) / 32 * 4);
        t->slots = prim_take(job, span * t->value_bytes);
        return;
    }
    t->col = inlined && col_width <= width ? 0 : -1;
    t->slot_count = join_slots(join->keys[built].count);
    t->slots = prim_take(job, t->slot_count * 2 * width);
    u64 most = width == 8 ? ~0ULL : 0xffffffffULL;
    t->empty = f->hi < most || f->lo > f->hi ? most : 0;
}

/* A key that does not occur marks empty slots; with 0 and the greatest both there, which hardly
 * happens, the table cannot be had. */
static bool table_possible(const struct prim_join *join) {
    u64 most = join->key_bytes == 8 ? ~0ULL : 0xffffffffULL;
    return join->algorithm == JOIN_DIRECT || join->facts.hi < most || join->facts.lo > 0;
}

static FALLIBLE open_table(struct prim_job *job, const struct prim_match *match,
                           struct prim_join *join) {
    bool duplicates = false;
    if (!table_possible(join)) {
        return ERR_OK;
    }
    take_table(job, join, false);
    TRY(match->build(job, join, &duplicates));
    join->can_rush = !duplicates || join->kind >= KEEP_SEMI;
    return ERR_OK;
}

/* The built side's parts, each sorted by itself. */
static FALLIBLE sort_parts(struct prim_job *job, const struct prim_match *match,
                           struct prim_join *join) {
    i32 built = JOIN_BUILT(join);
    join->sorted = prim_take(job, join->keys[built].count * join->key_bytes);
    join->list = prim_take(job, join->keys[built].count * 4);
    i64 mark = prim_mark(job);
    TRY(match->sort_parts(job, join));
    prim_back(job, mark);
    join->side[built].list = join->list;
    return ERR_OK;
}

static FALLIBLE open_parts(struct prim_job *job, const struct prim_match *match,
                           struct prim_join *join) {
    i32 built = JOIN_BUILT(join);
    bool table = join->algorithm == JOIN_PARTITIONED;
    i64 rows = match->part_rows(job, join);
    join->part_bits = table; /* of two parts each has keys that the other cannot have */
    while (join->part_bits < 20 && join->keys[built].count >> join->part_bits > rows) {
        join->part_bits++;
    }
    TRY(arrange(job, join, SIDE_R, join->part_bits));
    TRY(arrange(job, join, SIDE_S, join->part_bits));
    TRY(match->share_out(job, join));
    if (join->algorithm == JOIN_PARTITIONED) {
        join->can_rush = 1;
        return ERR_OK;
    }
    return join->sequential ? ERR_OK : sort_parts(job, match, join);
}

/* A tree over the built side's sorted keys. */
static FALLIBLE grow_tree(struct prim_job *job, const struct prim_match *match,
                          struct prim_join *join, const void *keys) {
    struct join_tree *tree = &join->tree;
    tree->levels = 1;
    tree->keys[0] = keys;
    tree->count[0] = join->keys[JOIN_BUILT(join)].count;
    for (i32 l = 1; l < TREE_LEVELS && tree->count[l - 1] > TREE_NODE; l++) {
        tree->count[l] = (tree->count[l - 1] + TREE_NODE - 1) / TREE_NODE;
        tree->keys[l] = prim_take(job, tree->count[l] * join->key_bytes);
        tree->levels = l + 1;
        TRY(match->tree_level(job, join, l));
    }
    return ERR_OK;
}

static FALLIBLE open_sorted(struct prim_job *job, const struct prim_match *match,
                            struct prim_join *join) {
    i32 built = JOIN_BUILT(join);
    TRY(arrange(job, join, built, -1));
    return join->algorithm == JOIN_SMJ ? arrange(job, join, join->probe, -1)
                                       : grow_tree(job, match, join, join->side[built].keys);
}

wf_status prim_join_open(struct prim_job *job, struct prim_join *join) {
    const struct prim_match *match = NULL;
    TRY(family(job, &match));
    join->total = -1;
    join->done = 0;
    join->counted = join->can_rush = 0;
    memset(join->side, 0, sizeof join->side);
    join->sorted = join->units = NULL;
    join->report = prim_take(job, JOIN_REPORT * 8);
    for (i32 side = 0; side < 2; side++) {
        join->side[side].keys = join->keys[side].data;
        for (i32 i = 0; i < join->col_count[side]; i++) {
            join->side[side].cols[i] = join->cols[side][i].data;
        }
    }
    switch (join->algorithm) {
    case JOIN_PLAIN:
    case JOIN_DIRECT:
        return open_table(job, match, join);
    case JOIN_PARTITIONED:
    case JOIN_RADIX:
        return open_parts(job, match, join);
    case JOIN_SMJ:
    case JOIN_INLJ:
        return open_sorted(job, match, join);
    default:
        return ERR_OK;
    }
}

/* --- counting and writing --- */

/* Keys repeat, or the result is larger than its room: the built side is sorted, and the table says
 * where the run of a key begins. Where no key is left to mark empty slots, a tree does. */
static FALLIBLE regroup(struct prim_job *job, const struct prim_match *match,
                        struct prim_join *join) {
    i32 built = JOIN_BUILT(join);
    i64 n = join->keys[built].count;
    join->sorted = prim_take(job, n * join->key_bytes);
    join->list = prim_take(job, n * 4);
    join->length = prim_take(job, n * 4);
    bool table = table_possible(join);
    if (table) {
        take_table(job, join, true);
    }
    i64 mark = prim_mark(job);
    u32 *rows = prim_take(job, n * 4);
    TRY(row_numbers(job, rows, n));
    struct prim_payload p = {.count = 1};
    p.in[0] = array_of(ELEM_U32, rows, n);
    p.out[0] = array_of(ELEM_U32, join->list, n);
    struct prim_sort sort = {.by = SORT_AUTO};
    TRY(prim_sort_array(job, &sort, array_of(join->key_type, join->sorted, n),
                        array_of(join->key_type, join->side[built].keys, n), &p));
    prim_back(job, mark);
    join->side[built].list = join->list;
    if (!table) {
        TRY(grow_tree(job, match, join, join->sorted));
        return match->runs_tree(job, join);
    }
    TRY(match->group(job, join));
    return match->runs_grouped(job, join);
}

static bool by_loops(const struct prim_join *join) {
    return join->algorithm == JOIN_NINLJ || (join->algorithm == JOIN_RADIX && join->sequential);
}

static FALLIBLE find_runs(struct prim_job *job, const struct prim_match *match,
                          struct prim_join *join) {
    switch (join->algorithm) {
    case JOIN_PLAIN:
    case JOIN_DIRECT:
        return regroup(job, match, join);
    case JOIN_PARTITIONED:
        TRY(sort_parts(job, match, join)); /* keys repeat, or there is too little room */
        return match->runs_parts(job, join);
    case JOIN_RADIX:
        return join->sequential ? match->loop_count(job, join) : match->runs_parts(job, join);
    case JOIN_SMJ:
        return match->runs_merge(job, join);
    case JOIN_INLJ:
        return match->runs_tree(job, join);
    default:
        return match->loop_count(job, join);
    }
}

wf_status prim_join_count(struct prim_job *job, struct prim_join *join) {
    const struct prim_match *match = NULL;
    TRY(family(job, &match));
    i64 n = join->keys[join->probe].count;
    join->offset = prim_take(job, (n + 1) * 8);
    join->start = prim_take(job, n * 4);
    join->can_rush = 0; /* the table is another from here on: of runs */
    TRY(find_runs(job, match, join));
    struct prim_array offset = array_of(ELEM_U64, join->offset, n + 1);
    TRY(prim_scan_array(job, FOLD_ADD, false, offset, offset));
    u64 total = 0;
    TRY(match->fetch(job, &total, join->offset + n, 8));
    if (!job->measuring) {
        join->total = (i64)total;
        join->counted = 1;
    }
    return ERR_OK;
}

wf_status prim_join_rush(struct prim_job *job, struct prim_join *join, const struct join_out *out,
                         bool *out_done) {
    const struct prim_match *match = NULL;
    TRY(family(job, &match));
    *out_done = false;
    if (join->done || !join->can_rush) {
        return ERR_OK;
    }
    u32 *numbers = NULL;
    struct join_out to = numbered(job, join, out, out->room, &numbers);
    if (job->measuring) {
        return give_texts(job, join, out, NULL, out->room);
    }
    TRY(match->rush(job, join, &to, out_done));
    join->can_rush = *out_done;
    if (*out_done) {
        join->done = join->total;
        return give_texts(job, join, out, numbers, join->total);
    }
    return ERR_OK;
}

wf_status prim_join_write(struct prim_job *job, struct prim_join *join, const struct join_out *out,
                          i64 *out_count) {
    const struct prim_match *match = NULL;
    TRY(family(job, &match));
    i64 n = MIN_OF(out->room, join->total - join->done);
    *out_count = 0;
    if (n <= 0) {
        return ERR_OK;
    }
    bool loops = by_loops(join) && join->kind < KEEP_SEMI;
    u32 *numbers = NULL;
    struct join_out to = numbered(job, join, out, n, &numbers);
    TRY(loops ? match->loop_write(job, join, &to, join->done, n)
              : match->expand(job, join, &to, join->done, n));
    TRY(give_texts(job, join, out, numbers, n));
    if (!job->measuring) {
        join->done += n;
        *out_count = n;
    }
    return ERR_OK;
}
