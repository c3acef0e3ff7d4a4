/* arrays_cpu.c: primitives on arrays of the host: filter, group and count without SQL.
 *
 * Build: cc -Iinclude examples/arrays_cpu.c -Lbuild -lwarpfox -o arrays_cpu. A million readings of
 * sixteen stations: those above a threshold are kept, split by station, and each station's largest
 * reading is found. Everything lies in plain memory; the library brings threads and workspace.
 * Returns 0 when the figures are those of a plain loop. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warpfox_prim.h"

enum { READINGS = 1000000, STATIONS = 16 };

static wf_prim *prim;

/* Any failure ends the program with its reason. */
static void must(wf_status status, const char *what) {
    if (status) {
        fprintf(stderr, "%s: %s\n", what, wf_prim_error(prim)->message);
        exit(1);
    }
}

static wf_array array(wf_elem type, void *data, int64_t count) {
    return (wf_array){.type = type, .data = data, .count = count};
}

static void *room(int64_t bytes) {
    void *data = NULL;
    must(wf_prim_alloc(prim, WF_ON_CPU, bytes, &data), "memory");
    return data;
}

int main(void) {
    wf_database *db;
    if (wf_open(NULL, NULL, &db, NULL) || wf_prim_open(db, &prim)) {
        fprintf(stderr, "the library cannot be opened\n");
        return 1;
    }
    uint32_t *station = room(READINGS * 4);
    int32_t *value = room(READINGS * 4);
    for (uint32_t i = 0; i < READINGS; i++) {
        station[i] = i * 2654435761u >> 28;
        value[i] = (int32_t)(i * 40503u % 10007u) - 5000;
    }

    /* Keep the readings of at least 4,900, both columns together, in their order. */
    wf_array in[2] = {array(WF_ELEM_U32, station, READINGS), array(WF_ELEM_I32, value, READINGS)};
    wf_array kept[2] = {array(WF_ELEM_U32, room(READINGS * 4), READINGS),
                        array(WF_ELEM_I32, room(READINGS * 4), READINGS)};
    int32_t least = 4900;
    int64_t count = 0;
    must(wf_prim_compact_compare(prim, WF_ON_CPU, 1, kept, in, 2, in[1], WF_COMPARE_GE, &least,
                                 &count, NULL),
         "compaction");
    kept[0].count = kept[1].count = count;
    printf("%" PRId64 " of %d readings are at least %d\n", count, READINGS, least);

    /* Put the readings of a station together; where each one's begin comes with it. */
    wf_split by_station = {.by = WF_SPLIT_RADIX, .shift = 0, .bits = 4};
    uint64_t starts[STATIONS + 1];
    wf_array sorted[2] = {array(WF_ELEM_U32, station, count), array(WF_ELEM_I32, value, count)};
    must(wf_prim_split(prim, WF_ON_CPU, &by_station, sorted[0],
                       array(WF_ELEM_U64, starts, STATIONS + 1), kept[0], &sorted[1], &kept[1], 1,
                       NULL),
         "split");

    /* The largest of each segment. */
    int32_t most[STATIONS];
    must(wf_prim_reduce_segments(prim, WF_ON_CPU, WF_FOLD_MAX, array(WF_ELEM_I32, most, STATIONS),
                                 sorted[1], array(WF_ELEM_U64, starts, STATIONS + 1), NULL),
         "segmented reduction");

    int32_t check[STATIONS];
    for (int s = 0; s < STATIONS; s++) {
        check[s] = INT32_MIN;
    }
    for (int64_t i = 0; i < count; i++) {
        uint32_t s = ((uint32_t *)kept[0].data)[i];
        int32_t x = ((int32_t *)kept[1].data)[i];
        check[s] = x > check[s] ? x : check[s];
    }
    for (int s = 0; s < STATIONS; s++) {
        printf("station %2d: %6" PRIu64 " readings, the largest %d\n", s, starts[s + 1] - starts[s],
               most[s]);
    }
    int wrong = memcmp(check, most, sizeof most) != 0;
    wf_prim_close(prim); /* frees the arrays */
    wf_close(db);
    return wrong;
}
