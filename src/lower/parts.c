/* parts.c: rows brought together by key before a table that no cache holds is visited.
 *
 * A lookup in a table that is larger than a device's cache costs a sector of memory at a random
 * place, and a row that goes into one costs that twice. Where that is dearer than writing rows out,
 * splitting them by key and reading them again, the pipeline is cut before the lookup: both sides of
 * a join, or the inputs of an aggregation, become variables that STEP_SPLIT brings into the order of
 * the table's places. The lookup itself is the same opcode as ever, so that every kind of join and
 * aggregate has it. What is compared are bytes that memory could have delivered in sequence. */
#include "lower/lower_int.h"

/* A place in memory, a place in the cache, and the same for what is read, changed and written. */
enum { FAR_READ = 120, NEAR_READ = 40, FAR_CHANGE = 250, NEAR_CHANGE = 50 };
enum { FAR_TIMES = 10 }; /* a table is so many times what a cache holds, or most of it is there */
enum { SECTOR = 32, KEY_BYTES = 8 };
static const f64 GAIN_LEAST = 1.3;  /* what is expected of rows may be wrong */
static const f64 FOUND_LEAST = 0.5; /* fewer: a bitmap before the table answers most lookups */

/* Bytes of an index over `rows` keys of a range, about as devices make it. */
static f64 index_bytes(struct range range, f64 rows) {
    f64 span = (f64)range.hi - (f64)range.lo + 1;
    return span <= 4 * rows     ? span * 4
           : span <= 256 * rows ? span / 4 + rows * 4
           : span <= 4294967296.0 ? 3 * rows * 8
                                  : 3 * rows * 16;
}

static bool may_split(const struct lower *l, const struct builder *b) {
    bool in_order = b->source.kind == SOURCE_VAR && l->vars.items[b->source.ref].in_order;
    return !l->status && l->limits->partition != PARTITION_OFF && !l->defer && !l->drawing &&
           !in_order && !fix_is_open(l);
}

bool parts_for_join(const struct lower *l, const struct builder *left,
                    const struct parts_join *join) {
    if (!may_split(l, left)) {
        return false;
    }
    f64 near = (f64)l->limits->near_bytes;
    f64 rows = (f64)join->rows;
    f64 probes = (f64)join->probes;
    f64 payload = KEY_BYTES * (f64)join->payload_count;
    f64 carried = KEY_BYTES * (1.0 + (f64)join->carried_count);
    f64 index = index_bytes(join->range, rows);
    f64 loads = (f64)join->payload_count * join->found;
    f64 asks = index > near ? 1 : 0;
    f64 change = join->built_sorted ? NEAR_CHANGE : FAR_CHANGE;
    f64 far = rows * asks * change + probes * (asks + loads) * FAR_READ;
    f64 split = rows * (2 * (KEY_BYTES + payload) + KEY_BYTES + asks * NEAR_CHANGE) +
                probes * (4 * carried + KEY_BYTES + (asks + loads) * NEAR_READ);
    return l->limits->partition == PARTITION_ON ||
           (near > 0 && index + rows * payload > FAR_TIMES * near && !join->sorted &&
            join->found >= FOUND_LEAST && split * GAIN_LEAST < far);
}

bool parts_for_groups(const struct lower *l, const struct builder *b,
                      const struct parts_groups *of) {
    if (!may_split(l, b) || b->together) {
        return false;
    }
    f64 near = (f64)l->limits->near_bytes;
    f64 groups = (f64)MIN_OF(of->groups, of->rows);
    f64 span = (f64)of->range.hi - (f64)of->range.lo + 1;
    f64 state = KEY_BYTES * (1.0 + (f64)of->word_count);
    f64 table = span <= 4 * groups ? span * (state - KEY_BYTES) : 3 * groups * state;
    f64 sectors = state > SECTOR ? 2 : 1;
    f64 split = 4 * KEY_BYTES * (1.0 + (f64)of->input_count) + KEY_BYTES + sectors * NEAR_CHANGE;
    return l->limits->partition == PARTITION_ON ||
           (near > 0 && table > FAR_TIMES * near && split * GAIN_LEAST < sectors * FAR_CHANGE);
}

struct step *parts_step(struct lower *l, u32 var, struct range range) {
    struct step *step = lower_step(l, STEP_SPLIT, "Partition");
    step->src = var;
    step->col = 0;
    step->key_range = range;
    return step;
}
