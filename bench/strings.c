/* strings.c: `bench strings`: sorts of texts by their average length, after Fig. 15 of "Relational
 * joins on graphics processors": four million tuples of a text and a record number.
 *
 * Lengths lie evenly between half and one and a half of the average; bytes are letters. Texts and
 * numbers lie on the device; the bytes counted are those of spans, numbers and letters, once in,
 * spans and numbers once out. Every answer is looked at whole. */
#include "bench_sides.h"
#include "warpfox_prim.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTHS = 5, WAYS = 4 };
static const int lengths[LENGTHS] = {4, 8, 16, 32, 64};
static const struct {
    const char *name;
    wf_sort_by by;
} ways[WAYS] = {{"as the library chooses", WF_SORT_AUTO},
                {"merge", WF_SORT_MERGE},
                {"bitonic", WF_SORT_BITONIC},
                {"quick", WF_SORT_QUICK}};

struct texts { /* in memory of a device */
    int64_t rows, byte_count;
    char *bytes;
    wf_span *spans, *out;
    uint32_t *numbers, *out_numbers;
};

static void must(wf_prim *prim, wf_status status, const char *what) {
    if (status != WF_OK) {
        fprintf(stderr, "bench: %s: %s\n", what, wf_prim_error(prim)->message);
        exit(1);
    }
}

static void *room(wf_prim *prim, wf_place place, int64_t bytes) {
    void *data = NULL;
    must(prim, wf_prim_alloc(prim, place, bytes + 16, &data), "memory");
    return data;
}

static struct texts texts_room(wf_prim *prim, wf_place place, int64_t rows, int64_t bytes) {
    return (struct texts){.rows = rows,
                          .byte_count = bytes,
                          .bytes = room(prim, place, bytes),
                          .spans = room(prim, place, rows * 16),
                          .out = room(prim, place, rows * 16),
                          .numbers = room(prim, place, rows * 4),
                          .out_numbers = room(prim, place, rows * 4)};
}

static void texts_free(wf_prim *prim, struct texts *t) {
    void *all[] = {t->bytes, t->spans, t->out, t->numbers, t->out_numbers};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        wf_prim_free(prim, all[i]);
    }
}

static uint64_t mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

static struct texts texts_make(wf_prim *prim, int64_t rows, int length) {
    struct texts t = texts_room(prim, WF_ON_CPU, rows, rows * (length + length / 2));
    uint64_t at = 0;
    for (int64_t i = 0; i < rows; i++) {
        uint64_t draw = mix((uint64_t)i);
        uint64_t n = (uint64_t)(length / 2) + draw % (uint64_t)(length + 1);
        t.spans[i] = (wf_span){at, n};
        t.numbers[i] = (uint32_t)i;
        for (uint64_t k = 0; k < n; k++) {
            draw = k % 8 == 0 ? mix(draw + k) : draw >> 8;
            t.bytes[at++] = (char)('a' + draw % 26);
        }
    }
    t.byte_count = (int64_t)at;
    return t;
}

static wf_status run(wf_prim *prim, wf_place place, const struct texts *t, wf_sort_by by) {
    wf_sort how = {.by = by};
    wf_array keys = {WF_ELEM_TEXT, t->spans, t->rows, t->bytes, t->byte_count};
    wf_array out = {WF_ELEM_TEXT, t->out, t->rows, t->bytes, t->byte_count};
    wf_array in = {.type = WF_ELEM_U32, .data = t->numbers, .count = t->rows};
    wf_array to = {.type = WF_ELEM_U32, .data = t->out_numbers, .count = t->rows};
    return wf_prim_sort(prim, place, &how, out, keys, &to, &in, 1, NULL);
}

static int compare(const char *bytes, wf_span a, wf_span b) {
    uint64_t n = a.length < b.length ? a.length : b.length;
    int order = memcmp(bytes + a.offset, bytes + b.offset, n);
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

/* `host` has the texts, and what a device left. */
static bool right(const struct texts *host) {
    unsigned char *seen = calloc((size_t)host->rows, 1);
    bool good = seen != NULL;
    for (int64_t i = 0; good && i < host->rows; i++) {
        uint32_t row = host->out_numbers[i];
        good = row < host->rows && !seen[row] && host->out[i].offset == host->spans[row].offset &&
               host->out[i].length == host->spans[row].length &&
               (i == 0 || compare(host->bytes, host->out[i - 1], host->out[i]) <= 0);
        seen[good ? row : 0] = 1;
    }
    free(seen);
    return good;
}

/* Seconds of the fastest run after one to warm up; *wrong: what it left is. */
static double measure(wf_prim *prim, const struct bench_side *side, const struct texts *on,
                      struct texts *host, wf_sort_by by, int runs, bool *wrong) {
    double best = 1e30;
    for (int i = 0; i <= runs; i++) {
        must(prim, run(prim, side->place, on, by), "sort");
        double seconds =
            1e-9 * (double)wf_prim_metric(prim, side->place == WF_ON_GPU ? "device_ns" : "ns");
        best = i > 0 && seconds < best ? seconds : best;
    }
    if (on != host) {
        must(prim, wf_prim_copy(prim, host->out, on->out, on->rows * 16), "copy");
        must(prim, wf_prim_copy(prim, host->out_numbers, on->out_numbers, on->rows * 4), "copy");
    }
    if (!right(host)) {
        fprintf(stderr, "bench: strings on %s: wrong answer\n", side->name);
        *wrong = true;
    }
    return best;
}

static void print_line(const struct bench_options *options, const char *way, int length,
                       const struct bench_side *side, double seconds, double bytes, double ratio) {
    double gbs = 1e-9 * bytes / seconds;
    double share = side->copy_gbs > 0 ? gbs / side->copy_gbs * 100 : 0;
    char text[16] = "";
    if (ratio > 0) {
        snprintf(text, sizeof text, "%.1f", ratio);
    }
    if (options->json) {
        printf("{\"bench\":\"strings\",\"way\":\"%s\",\"length\":%d,\"device\":\"%s\",\"ms\":%.4f,"
               "\"gb_per_s\":%.2f,\"share\":%.4f,\"cpu_gpu\":%.2f}\n",
               way, length, side->name, seconds * 1e3, gbs, share / 100, ratio);
        return;
    }
    printf(options->markdown ? "| %d | %s | %s | %.2f | %.1f | %.1f %% | %s |\n"
                             : "%6d  %-24s %-4s %10.2f %9.1f %8.1f%% %9s\n",
           length, way, side->name, seconds * 1e3, gbs, share, text);
    fflush(stdout);
}

static bool run_length(wf_prim *prim, const struct bench_options *options,
                       struct bench_side sides[2], int64_t rows, int length) {
    bool wrong = false;
    struct texts host = texts_make(prim, rows, length);
    struct texts card = host;
    double bytes = (double)host.byte_count + 40.0 * (double)rows;
    if (sides[1].used) {
        card = texts_room(prim, WF_ON_GPU, rows, host.byte_count);
        card.byte_count = host.byte_count;
        must(prim, wf_prim_copy(prim, card.bytes, host.bytes, host.byte_count), "copy");
        must(prim, wf_prim_copy(prim, card.spans, host.spans, rows * 16), "copy");
        must(prim, wf_prim_copy(prim, card.numbers, host.numbers, rows * 4), "copy");
    }
    for (int w = 0; w < WAYS; w++) {
        double seconds[2] = {0, 0};
        for (int s = 0; s < 2; s++) {
            if (sides[s].used) {
                seconds[s] = measure(prim, &sides[s], s ? &card : &host, &host, ways[w].by,
                                     options->runs, &wrong);
            }
        }
        for (int s = 0; s < 2; s++) {
            if (seconds[s] > 0) {
                print_line(options, ways[w].name, length, &sides[s], seconds[s], bytes,
                           s && seconds[0] > 0 ? seconds[0] / seconds[1] : 0);
            }
        }
    }
    if (sides[1].used) {
        texts_free(prim, &card);
    }
    texts_free(prim, &host);
    return !wrong;
}

int bench_strings(const struct bench_options *options) {
    struct bench_db db;
    struct bench_side sides[2];
    wf_prim *prim = NULL;
    int64_t rows = options->rows ? options->rows : 4 << 20;
    bench_open(&db, options);
    if (wf_prim_open(db.db, &prim) != WF_OK || !bench_sides_open(prim, options, sides)) {
        fprintf(stderr, "bench: no device\n");
        return 1;
    }
    if (options->markdown) {
        printf("\n%lld texts with a record number\n\n| average bytes | sort | device | ms | GB/s | "
               "of copy | CPU : GPU |\n|---|---|---|---|---|---|---|\n",
               (long long)rows);
    } else if (!options->json) {
        printf("%lld texts with a record number\n%6s  %-24s %-4s %10s %9s %9s %9s\n",
               (long long)rows, "bytes", "sort", "", "ms", "GB/s", "of copy", "cpu:gpu");
    }
    bool good = true;
    for (int i = 0; i < LENGTHS && good; i++) {
        good = run_length(prim, options, sides, rows, lengths[i]);
    }
    wf_prim_close(prim);
    bench_close(&db);
    return !good;
}
