/* report.c: what a run did, for EXPLAIN ANALYZE: a table of steps, and the rows of the plan's
 * operators.
 *
 * Every step is shown beside its floor: the least time its device would need for the bytes it read
 * and wrote, the places it looked up, the opcodes it ran, the bytes it sent over the bus in either
 * direction and one launch, each over the rate measured on this machine; the largest of them bounds
 * the step. The share is floor
 * over time. It says how far a step is from what the hardware allows, not from what a better plan
 * would. */
#include "run/run_int.h"

#include <stdio.h>

struct floor {
    f64 ns;
    const char *by;
};

static void at_least(struct floor *floor, f64 amount, f64 per_ns, const char *by) {
    if (amount > 0 && per_ns > 0 && amount / per_ns > floor->ns) {
        *floor = (struct floor){amount / per_ns, by};
    }
}

static struct floor floor_of(const struct step_metric *m, const struct device_rates *rates) {
    struct floor floor = {0, "-"};
    at_least(&floor, (f64)(m->bytes_read + m->bytes_written), rates->bytes_per_ns, "memory");
    at_least(&floor, (f64)m->probes, rates->probes_per_ns, "probes");
    at_least(&floor, (f64)m->op_cost, rates->cost_per_ns, "opcodes");
    at_least(&floor, (f64)(m->bytes_moved - m->bytes_fetched), rates->bus_bytes_per_ns, "bus");
    at_least(&floor, (f64)m->bytes_fetched, rates->bus_down_bytes_per_ns, "bus");
    at_least(&floor, m->launches > 0 ? rates->launch_ns : 0, 1, "a launch");
    return floor;
}

struct report {
    struct device_rates rates[DEVICES_MOST];
    const char *why; /* of all steps; NULL = each has its own */
};

/* Columns of the table end here; what is wider pushes the next ones as far as it must. */
enum { END_STEP = 4, END_TIME = 15, END_FLOOR = 26, END_IN = 37, END_OUT = 48, END_MB = 57 };
enum { END_RATE = 64, CELL_BYTES = 40 };

struct line {
    struct text *out;
    i64 width;
};

static void put_cell(struct line *line, i64 end, const char *text) {
    i64 len = (i64)strlen(text);
    i64 blanks = MAX_OF(end - line->width - len, line->width > 0);
    text_print(line->out, "%*s%s", (int)blanks, "", text);
    line->width += blanks + len;
}

static void put_count(struct line *line, i64 end, i64 count) {
    char text[CELL_BYTES];
    snprintf(text, sizeof text, "%lld", count);
    put_cell(line, end, text);
}

static void put_real(struct line *line, i64 end, f64 x, int digits) {
    char text[CELL_BYTES];
    snprintf(text, sizeof text, "%.*f", digits, x);
    put_cell(line, end, text);
}

/* Of shares the one that needs longest. */
static struct floor step_floor(const struct report *report, const struct step_metric *m) {
    struct floor floor = {0, "-"};
    if (!m->shares) {
        return floor_of(m, &report->rates[m->device_no]);
    }
    for (u32 i = 0; i < m->share_count; i++) {
        struct floor own = floor_of(&m->shares[i], &report->rates[m->shares[i].device_no]);
        floor = own.ns > floor.ns ? own : floor;
    }
    return floor;
}

/* Where it ran, what it did, and why there unless all steps have the same reason. */
static void print_words(struct text *out, const struct report *report, const struct step *step,
                        const struct step_metric *m) {
    text_print(out, "      %s: %s", m->device ? m->device : "not run", step_label(step));
    if (m->device && m->why && !report->why) {
        text_print(out, "; %s", m->why);
    }
    if (m->device && m->how) {
        text_print(out, "; %s", m->how);
    }
    if (m->tablets_pruned_rows > 0) {
        text_print(out, "; %lld rows skipped by zone maps and keys", m->tablets_pruned_rows);
    }
    if (m->bytes_moved > 0) {
        text_print(out, "; %.1f MB moved", (f64)m->bytes_moved / 1e6);
        if (m->bytes_packed > 0) {
            text_print(out, ", %.1f of them packed", (f64)m->bytes_packed / 1e6);
        }
    }
    if (m->bytes_spilled > 0) {
        text_print(out, "; %.1f MB in host memory: the device has no room",
                   (f64)m->bytes_spilled / 1e6);
    }
    if (m->temp_bytes > 0) {
        text_print(out, "; %.1f MB to temporary space", (f64)m->temp_bytes / 1e6);
    }
    if (m->launches > 0) {
        text_print(out, "; %lld launches, %lld waits", m->launches, m->waits);
    }
    text_print(out, "\n");
}

/* A line of numbers, no wider than 80 columns, and below it what is said in words. */
static void print_step(struct text *out, const struct report *report, u32 no,
                       const struct step *step, const struct step_metric *m) {
    i64 ns = m->device_ns > 0 ? m->device_ns : m->ns;
    f64 rate = ns > 0 ? (f64)m->bytes_read / (f64)ns : 0.0;
    struct floor floor = step_floor(report, m);
    bool known = floor.ns > 0 && m->ns > 0;
    struct line line = {out, 0};
    put_count(&line, END_STEP, no);
    put_cell(&line, END_TIME, duration_of(m->ns).text);
    put_cell(&line, END_FLOOR, known ? duration_of((i64)floor.ns).text : "-");
    put_count(&line, END_IN, m->rows_in);
    put_count(&line, END_OUT, m->rows_out);
    put_real(&line, END_MB, (f64)m->bytes_read / 1e6, 1);
    put_real(&line, END_RATE, rate, 2);
    if (known) { /* "98% of memory": how near the step is to its floor, and what bounds it */
        f64 share = 100 * floor.ns / (f64)m->ns;
        text_print(out, "  %3.0f%% of %s\n", MIN_OF(share, 100), floor.by);
    } else {
        text_print(out, "     -\n");
    }
    print_words(out, report, step, m);
}

/* The reason that all steps have for running where they ran; NULL when they differ. */
static const char *common_why(const struct exec *x, u32 steps) {
    const char *why = NULL;
    for (u32 i = 0; i < steps; i++) {
        const struct step_metric *m = &x->metrics[i];
        if (m->device && m->why) {
            if (why && strcmp(why, m->why) != 0) {
                return NULL;
            }
            why = m->why;
        }
    }
    return why;
}

static void print_head(struct text *out) {
    struct line line = {out, 0};
    put_cell(&line, END_STEP, "step");
    put_cell(&line, END_TIME, "time");
    put_cell(&line, END_FLOOR, "floor");
    put_cell(&line, END_IN, "rows in");
    put_cell(&line, END_OUT, "rows out");
    put_cell(&line, END_MB, "MB read");
    put_cell(&line, END_RATE, "GB/s");
    text_print(out, "  of its floor\n");
}

static void print_rates(struct text *out, const char *name, const struct device_rates *rates) {
    if (rates->bytes_per_ns > 0) {
        text_print(out, "floors: %s %.1f GB/s", name, rates->bytes_per_ns);
        if (rates->probes_per_ns > 0) {
            text_print(out, ", %.3g probes/ns", rates->probes_per_ns);
        }
        if (rates->cost_per_ns > 0) {
            text_print(out, ", %.3g opcodes/ns", rates->cost_per_ns);
        }
        if (rates->bus_bytes_per_ns > 0) {
            text_print(out, ", bus %.1f GB/s up, %.1f down", rates->bus_bytes_per_ns,
                       rates->bus_down_bytes_per_ns);
        }
        if (rates->launch_ns > 0) {
            text_print(out, ", a launch %.1f us", rates->launch_ns / 1e3);
        }
        text_print(out, "\n");
    }
}

static bool ran_on(const struct exec *x, u32 steps, u32 number) {
    bool ran = false;
    for (u32 i = 0; i < steps; i++) {
        const struct step_metric *m = &x->metrics[i];
        ran = ran || (m->device && m->device_no == number);
        for (u32 s = 0; s < m->share_count; s++) {
            ran = ran || m->shares[s].device_no == number;
        }
    }
    return ran;
}

static void report_init(struct report *report, struct exec *x, const struct run_devices *devices) {
    u32 steps = step_total(x->program);
    *report = (struct report){.why = common_why(x, steps)};
    for (u32 i = 0; i < devices->count; i++) {
        struct device *device = devices->list[i];
        if (device->rates && ran_on(x, steps, i)) {
            device->rates(device, x, &report->rates[i]);
        }
    }
}

const char *const exec_step_cols[EXEC_STEP_COLS] = {
    "step",          "device",     "operators",     "ns",       "kernel_ns",
    "floor_ns",      "bound_by",   "rows_in",       "rows_out", "bytes_read",
    "bytes_written", "bytes_sent", "bytes_fetched", "launches", "waits",
    "device_peak",   "rows_skipped",  "registers",  "shared_bytes",  "occupancy"};

i64 exec_step_table(struct exec *x, const struct run_devices *devices, struct sv **out_cells) {
    const struct program *program = x->program;
    i64 steps = step_total(program), no = 0;
    struct report report;
    report_init(&report, x, devices);
    struct sv *cells = NEW_ARRAY(x->arena, struct sv, steps * EXEC_STEP_COLS + 1);
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++, no++) {
            const struct step_metric *m = &x->metrics[no];
            struct floor floor = step_floor(&report, m);
            i64 sent = m->bytes_moved - m->bytes_fetched;
            struct sv *row = &cells[no * EXEC_STEP_COLS];
            row[1] = sv_from(m->device ? m->device : "not run");
            row[2] = sv_from(step_label(&program->blocks[b].steps[s]));
            row[6] = sv_from(floor.by);
            const i64 numbers[EXEC_STEP_COLS] = {no,
                                                 0,
                                                 0,
                                                 m->ns,
                                                 m->device_ns,
                                                 (i64)floor.ns,
                                                 0,
                                                 m->rows_in,
                                                 m->rows_out,
                                                 m->bytes_read,
                                                 m->bytes_written,
                                                 sent,
                                                 m->bytes_fetched,
                                                 m->launches,
                                                 m->waits,
                                                 m->device_peak,
                                                 m->tablets_pruned_rows,
                                                 m->kernel.registers,
                                                 m->kernel.shared_bytes,
                                                 m->kernel.occupancy};
            for (i64 c = 0; c < EXEC_STEP_COLS; c++) {
                if (!row[c].ptr) {
                    row[c] = sv_from(arena_printf(x->arena, "%lld", numbers[c]));
                }
            }
        }
    }
    *out_cells = cells;
    return steps;
}

void exec_print(struct text *out, struct exec *x, const struct run_devices *devices) {
    const struct program *program = x->program;
    struct report report;
    report_init(&report, x, devices);
    print_head(out);
    u32 no = 0;
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++, no++) {
            print_step(out, &report, no, &program->blocks[b].steps[s], &x->metrics[no]);
        }
    }
    if (report.why) {
        text_print(out, "why there: %s\n", report.why);
    }
    const char *note = auto_note(x);
    if (note) {
        text_print(out, "%s\n", note);
    }
    for (u32 i = 0; i < devices->count; i++) { /* workers of one card have the same */
        bool again = i > 0 && devices->list[i]->space == devices->list[i - 1]->space &&
                     report.rates[i - 1].bytes_per_ns > 0;
        if (!again) {
            print_rates(out, devices->list[i]->name, &report.rates[i]);
        }
    }
}

i64 *exec_rel_rows(struct exec *x) {
    const struct program *program = x->program;
    i64 *rows = NEW_ARRAY(x->arena, i64, program->rel_count + 1);
    for (u32 i = 0; i < program->rel_count; i++) {
        rows[i] = -1;
    }
    u32 no = 0;
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++, no++) {
            const struct pipeline *pipe = program->blocks[b].steps[s].pipeline;
            for (u32 m = 0; pipe && m < pipe->mark_count; m++) {
                u32 rel = pipe->marks[m].rel;
                i64 here = rel < program->rel_count ? x->metrics[no].marks[m] : -1;
                bool adds = pipe->sinks[0].append; /* a branch of a union that is the answer */
                if (here >= 0 && (adds || rows[rel] < 0)) {
                    rows[rel] = MAX_OF(rows[rel], 0) + here;
                }
            }
        }
    }
    return rows;
}
