/* suite_profile.c: what a query did on its device: kernels, bytes, floors, transfers, memory, and how
 * often each operator occurs and what it takes, after Fig. 10 of Wu's thesis.
 *
 * All of it comes from EXPLAIN (STEPS), which runs the code of the hot runs. A step is a pipeline of
 * several operators, and its time cannot be told apart: it counts in equal shares for the joins,
 * builds, aggregations, sorts and other heavy operators in it, and for scans, filters and
 * projections only where there is nothing else. */
#include "bench_suite.h"

#include <stdlib.h>
#include <string.h>

static double cell(const wf_batch *batch, int column, int64_t row) {
    char text[64];
    wf_value_text(batch, column, row, text, sizeof text);
    return strtod(text, NULL);
}

static bool is_light(const char *name) {
    static const char *const light[] = {"Scan", "Filter", "Project", "Result", "Shared"};
    for (size_t i = 0; i < sizeof light / sizeof *light; i++) {
        if (strcmp(name, light[i]) == 0) {
            return true;
        }
    }
    return false;
}

static struct operator_share *share_of(struct suite_operators *all, const char *name) {
    int i = 0;
    while (i < all->count && strcmp(all->list[i].name, name) != 0) {
        i++;
    }
    if (i == SUITE_OPERATORS - 1) {
        name = "others";
    }
    if (i == all->count) {
        snprintf(all->list[all->count++].name, sizeof all->list[0].name, "%s", name);
    }
    return &all->list[i];
}

/* "Scan, Filter, Join, Build": counts each, and deals out the step's time. */
static void note_operators(struct suite_operators *all, const char *label, double seconds) {
    int heavy = 0, light = 0;
    for (int round = 0; round < 2; round++) {
        for (const char *at = label; *at;) {
            char name[32];
            size_t len = strcspn(at, ",");
            snprintf(name, sizeof name, "%.*s", (int)len, at);
            bool is = is_light(name);
            if (round == 0) {
                heavy += !is;
                light += is;
                share_of(all, name)->count++;
            } else if (!is || heavy == 0) {
                share_of(all, name)->seconds += seconds / (heavy ? heavy : light);
            }
            at += len;
            at += strspn(at, ", ");
        }
    }
    all->seconds += seconds;
}

enum {
    COL_OPERATORS = 2,
    COL_NS,
    COL_KERNEL_NS,
    COL_FLOOR_NS,
    COL_READ = 9,
    COL_WRITTEN,
    COL_SENT,
    COL_FETCHED,
    COL_LAUNCHES,
    COL_WAITS,
    COL_PEAK,
};

static void note_step(const wf_batch *batch, int64_t row, struct query_profile *out,
                      struct suite_operators *operators) {
    char label[400];
    double seconds = cell(batch, COL_NS, row) * 1e-9, peak = cell(batch, COL_PEAK, row);
    double floor_seconds = cell(batch, COL_FLOOR_NS, row) * 1e-9;
    wf_value_text(batch, COL_OPERATORS, row, label, sizeof label);
    note_operators(operators, label, seconds);
    out->seconds += seconds;
    out->kernel_seconds += cell(batch, COL_KERNEL_NS, row) * 1e-9;
    /* Rates are those of memory: what lies in caches is faster than its floor. */
    out->floor_seconds += floor_seconds < seconds ? floor_seconds : seconds;
    out->bytes_read += cell(batch, COL_READ, row);
    out->bytes_written += cell(batch, COL_WRITTEN, row);
    out->bytes_sent += cell(batch, COL_SENT, row);
    out->bytes_fetched += cell(batch, COL_FETCHED, row);
    out->launches += cell(batch, COL_LAUNCHES, row);
    out->peak = peak > out->peak ? peak : out->peak;
    out->steps++;
}

bool suite_profile(struct bench_db *db, const char *sql, struct query_profile *out,
                   struct suite_operators *operators) {
    char text[4200];
    wf_result *result = NULL;
    const wf_batch *batch;
    memset(out, 0, sizeof *out);
    snprintf(text, sizeof text, "explain (steps) %s", sql);
    if (wf_query(db->conn, text, &result) != WF_OK) {
        return false;
    }
    wf_status status;
    while ((status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
        for (int64_t row = 0; row < wf_batch_rows(batch); row++) {
            note_step(batch, row, out, operators);
        }
    }
    wf_result_close(result);
    return status == WF_OK;
}

static int compare_shares(const void *a, const void *b) {
    const struct operator_share *x = a, *y = b;
    return x->seconds < y->seconds ? 1 : -(x->seconds > y->seconds);
}

void suite_operators_sort(struct suite_operators *operators) {
    qsort(operators->list, (size_t)operators->count, sizeof *operators->list, compare_shares);
}
