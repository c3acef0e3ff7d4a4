/* parts.c: rows brought together by key before a table that no cache holds is visited.
 *
 * A lookup in a table that is larger than a device's cache costs a sector of memory at a random
 * place, and a row that goes into one costs that twice. Where that is dearer than writing rows out,
 * splitting them by key and reading them again, the pipeline is cut before the lookup: either side of
 * a join, or the inputs of an aggregation, become variables that STEP_SPLIT brings into the order of
 * the table's places. The lookup itself is the same opcode as ever, so that every kind of join and
 * aggregate has it. What is compared are bytes that memory could have delivered in sequence. See decision 0036.
 *
 * Where a device has no room for the table and the rows it leads to, a lookup costs a place of the host's
 * memory over a bus. Then both sides are split, too, and the device joins them part by part, unless a
 * bitmap of the keys has room and answers nearly all lookups. */
#include "lower/lower_int.h"

/* A place in memory, a place in the cache, and the same for what is read, changed and written. As
 * measured on an H200, where 4 bytes take a picosecond. */
enum { FAR_READ = 110, NEAR_READ = 45, FAR_CHANGE = 240, NEAR_CHANGE = 50 };
enum { FAR_TIMES = 3 };     /* a table is so many times what a cache holds, or most of it is there */
enum { GROUPS_MOST = 10 };  /* and of groups no more times: splitting lost where they were 30 times */
enum { GROUP_ROWS = 8 };    /* rows of a group: splitting lost where there was one */
enum { DIRECT_SPAN = 4 };   /* keys of a range of so many for a row are places in a table */
enum { KEY_BYTES = 8 };
static const f64 STEP_BYTES = 5e8;  /* what else a step costs */
static const f64 GAIN_LEAST = 1.3;  /* what is expected of rows may be wrong */
static const f64 FOUND_LEAST = 0.5; /* fewer: a bitmap before the table answers most lookups */
enum { ROOM_TIMES = 2 };            /* a device has to hold so many times what a join needs at once */
enum { HASH_BYTES = 32 };           /* a row of a hash table that is half full */
enum { BITMAP_PART = 16 };          /* of a device's memory, for a bitmap */
static const f64 ROOM_FOUND_LEAST = 0.05;

static f64 span_of(struct range range) {
    return (f64)range.hi - (f64)range.lo + 1;
}

static bool may_split(const struct lower *l, const struct builder *b) {
    bool in_order = b->source.kind == SOURCE_VAR && l->vars.items[b->source.ref].in_order;
    return !l->status && l->limits->partition != PARTITION_OFF && !l->defer && !l->drawing &&
           !in_order && !fix_is_open(l);
}

static bool pays(f64 rows, f64 far, f64 near) {
    return (rows * near + STEP_BYTES) * GAIN_LEAST < rows * far;
}

/* Whether a join has to be made in parts for want of room. */
static bool lacks_room(const struct lower *l, const struct parts_join *join, f64 payload) {
    f64 room = (f64)l->limits->room_bytes;
    f64 rows = (f64)join->rows;
    f64 span = span_of(join->range);
    f64 index = MIN_OF(rows * HASH_BYTES, join->payload_count ? span * 4 : span / 8);
    bool bitmap = span / 8 <= room / BITMAP_PART && join->found < ROOM_FOUND_LEAST;
    return room > 0 && ROOM_TIMES * (index + rows * payload) > room && !bitmap;
}

/* Only tables by key that lead to columns: hashed ones and sets were slower for it wherever measured. */
struct parts_sides parts_for_join(const struct lower *l, const struct builder *left,
                                  const struct parts_join *join) {
    f64 cache = (f64)l->limits->near_bytes;
    f64 rows = (f64)join->rows;
    f64 payload = KEY_BYTES * (f64)join->payload_count;
    f64 carried = KEY_BYTES * (1.0 + (f64)join->carried_count);
    f64 span = span_of(join->range);
    f64 index = span * 4;
    f64 reads = (index > cache ? 1 : 0) + (f64)join->payload_count * join->found;
    if (!may_split(l, left)) {
        return (struct parts_sides){0, 0};
    }
    if (l->limits->partition == PARTITION_ON || lacks_room(l, join, payload)) {
        return (struct parts_sides){1, 1};
    }
    bool large = cache > 0 && span <= DIRECT_SPAN * rows && join->payload_count > 0 &&
                 index + rows * payload > FAR_TIMES * cache;
    return (struct parts_sides){
        .built = large && index > FAR_TIMES * cache && !join->built_sorted &&
                 pays(rows, FAR_CHANGE, 2 * (KEY_BYTES + payload) + KEY_BYTES + NEAR_CHANGE),
        .probing = large && !join->sorted && join->found >= FOUND_LEAST &&
                   pays((f64)join->probes, reads * FAR_READ,
                        4 * carried + KEY_BYTES + reads * NEAR_READ)};
}

/* Only states by key, somewhat more than a cache holds, that many rows go into. */
bool parts_for_groups(const struct lower *l, const struct builder *b,
                      const struct parts_groups *of) {
    f64 cache = (f64)l->limits->near_bytes;
    f64 rows = (f64)of->rows;
    f64 groups = (f64)MIN_OF(of->groups, of->rows);
    f64 span = span_of(of->range);
    f64 table = span * KEY_BYTES * (f64)of->word_count;
    f64 near = 4 * KEY_BYTES * (1.0 + (f64)of->input_count) + KEY_BYTES + NEAR_CHANGE;
    if (!may_split(l, b) || b->together) {
        return false;
    }
    bool far = cache > 0 && table > FAR_TIMES * cache && table <= GROUPS_MOST * cache;
    return l->limits->partition == PARTITION_ON ||
           (far && span <= DIRECT_SPAN * groups && rows >= GROUP_ROWS * groups &&
            pays(rows, FAR_CHANGE, near));
}

struct step *parts_step(struct lower *l, u32 var, struct range range) {
    struct step *step = lower_step(l, STEP_SPLIT, "Partition");
    step->src = var;
    step->col = 0;
    step->key_range = range;
    return step;
}
