/* parts.c: rows brought together by key before a table that no cache holds is visited.
 *
 * A lookup in a table that is larger than a device's cache costs a sector of memory at a random
 * place, and a row that goes into one costs that twice. Where that is dearer than writing rows out,
 * splitting them by key and reading them again, the pipeline is cut before the lookup: either side of
 * a join, or the inputs of an aggregation, become variables that STEP_SPLIT brings into the order of
 * the table's places. The lookup itself is the same opcode as ever, so that every kind of join and
 * aggregate has it. What is compared are bytes that memory could have delivered in sequence. See decision 0034. */
#include "lower/lower_int.h"

/* A place in memory, a place in the cache, and the same for what is read, changed and written; of a hash
 * table, which is searched meanwhile, more. As measured on an H200, where 4 bytes take a picosecond. */
enum { FAR_READ = 110, NEAR_READ = 45, FAR_CHANGE = 240, FAR_HASH = 560, NEAR_CHANGE = 50 };
enum { FAR_TIMES = 3 }; /* a table is so many times what a cache holds, or most of it is there */
enum { KEY_BYTES = 8 };
static const f64 STEP_BYTES = 5e8;  /* what else a step costs */
static const f64 GAIN_LEAST = 1.3;  /* what is expected of rows may be wrong */
static const f64 FOUND_LEAST = 0.5; /* fewer: a bitmap before the table answers most lookups */

/* An index over `rows` keys of a range, about as devices make it. */
static bool is_hashed(struct range range, f64 rows) {
    return (f64)range.hi - (f64)range.lo + 1 > 256 * rows;
}
static f64 index_bytes(struct range range, f64 rows) {
    f64 span = (f64)range.hi - (f64)range.lo + 1;
    return span <= 4 * rows         ? span * 4
           : !is_hashed(range, rows) ? span / 4 + rows * 4
           : span <= 4294967296.0   ? 3 * rows * 8
                                    : 3 * rows * 16;
}

static bool may_split(const struct lower *l, const struct builder *b) {
    bool in_order = b->source.kind == SOURCE_VAR && l->vars.items[b->source.ref].in_order;
    return !l->status && l->limits->partition != PARTITION_OFF && !l->defer && !l->drawing &&
           !in_order && !fix_is_open(l);
}

static bool pays(f64 rows, f64 far, f64 near) {
    return (rows * near + STEP_BYTES) * GAIN_LEAST < rows * far;
}

struct parts_sides parts_for_join(const struct lower *l, const struct builder *left,
                                  const struct parts_join *join) {
    f64 cache = (f64)l->limits->near_bytes;
    f64 rows = (f64)join->rows;
    f64 payload = KEY_BYTES * (f64)join->payload_count;
    f64 carried = KEY_BYTES * (1.0 + (f64)join->carried_count);
    f64 index = index_bytes(join->range, rows);
    f64 reads = (index > cache ? 1 : 0) + (f64)join->payload_count * join->found;
    f64 change = is_hashed(join->range, rows) ? FAR_HASH : FAR_CHANGE;
    if (!may_split(l, left)) {
        return (struct parts_sides){0, 0};
    }
    if (l->limits->partition == PARTITION_ON) {
        return (struct parts_sides){1, 1};
    }
    bool large = cache > 0 && index + rows * payload > FAR_TIMES * cache;
    return (struct parts_sides){
        .built = large && index > FAR_TIMES * cache && !join->built_sorted &&
                 pays(rows, change, 2 * (KEY_BYTES + payload) + KEY_BYTES + NEAR_CHANGE),
        .probing = large && !join->sorted && join->found >= FOUND_LEAST &&
                   pays((f64)join->probes, reads * FAR_READ,
                        4 * carried + KEY_BYTES + reads * NEAR_READ)};
}

bool parts_for_groups(const struct lower *l, const struct builder *b,
                      const struct parts_groups *of) {
    f64 cache = (f64)l->limits->near_bytes;
    f64 rows = (f64)of->rows;
    f64 groups = (f64)MIN_OF(of->groups, of->rows);
    f64 span = (f64)of->range.hi - (f64)of->range.lo + 1;
    f64 state = KEY_BYTES * (1.0 + (f64)of->word_count);
    f64 table = span <= 4 * groups ? span * (state - KEY_BYTES) : 3 * groups * state;
    f64 near = 4 * KEY_BYTES * (1.0 + (f64)of->input_count) + KEY_BYTES + NEAR_CHANGE;
    if (!may_split(l, b) || b->together) {
        return false;
    }
    return l->limits->partition == PARTITION_ON ||
           (cache > 0 && table > FAR_TIMES * cache && pays(rows, FAR_CHANGE, near));
}

struct step *parts_step(struct lower *l, u32 var, struct range range) {
    struct step *step = lower_step(l, STEP_SPLIT, "Partition");
    step->src = var;
    step->col = 0;
    step->key_range = range;
    return step;
}
