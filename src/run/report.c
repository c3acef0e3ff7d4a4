/* report.c: what a run did, for EXPLAIN ANALYZE: a table of steps, and the rows of the plan's
 * operators.
 *
 * Every step is shown beside its floor: the least time its device would need for the bytes it read
 * and wrote, the places it looked up, the opcodes it ran and the bytes it sent over the bus, each
 * over the rate measured on this machine; the largest of them bounds the step. The share is floor
 * over time. It says how far a step is from what the hardware allows, not from what a better plan
 * would. */
#include "run/run_int.h"

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
    at_least(&floor, (f64)m->bytes_moved, rates->bus_bytes_per_ns, "bus");
    return floor;
}

struct report {
    struct device_rates rates[DEVICES_MOST];
    const char *why; /* of all steps; NULL = each has its own */
};

/* "98% of memory": how near the step is to its floor, and what bounds it. */
static void print_floor(struct text *out, const struct report *report,
                        const struct step_metric *m) {
    struct floor floor = floor_of(m, &report->rates[m->device_no]);
    if (floor.ns > 0 && m->ns > 0) {
        f64 share = 100 * floor.ns / (f64)m->ns;
        text_print(out, "  %3.0f%% of %s\n", MIN_OF(share, 100), floor.by);
    } else {
        text_print(out, "     -\n");
    }
}

/* Where it ran, what it did, and why there unless all steps have the same reason. */
static void print_words(struct text *out, const struct report *report, const struct step *step,
                        const struct step_metric *m) {
    text_print(out, "      %s: %s", m->device ? m->device : "not run", step_label(step));
    if (m->device && m->why && !report->why) {
        text_print(out, "; %s", m->why);
    }
    if (m->tablets_pruned_rows > 0) {
        text_print(out, "; %lld rows skipped by zone maps and keys", m->tablets_pruned_rows);
    }
    if (m->bytes_moved > 0) {
        text_print(out, "; %.1f MB moved", (f64)m->bytes_moved / 1e6);
    }
    if (m->launches > 0) {
        text_print(out, "; %lld launches", m->launches);
    }
    text_print(out, "\n");
}

/* A line of numbers, no wider than 80 columns, and below it what is said in words. */
static void print_step(struct text *out, const struct report *report, u32 no,
                       const struct step *step, const struct step_metric *m) {
    i64 ns = m->device_ns > 0 ? m->device_ns : m->ns;
    f64 rate = ns > 0 ? (f64)m->bytes_read / (f64)ns : 0.0;
    text_print(out, "%4u %12s %12lld %12lld %9.1f %7.2f", no, duration_of(m->ns).text, m->rows_in,
               m->rows_out, (f64)m->bytes_read / 1e6, rate);
    print_floor(out, report, m);
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
            text_print(out, ", bus %.1f GB/s", rates->bus_bytes_per_ns);
        }
        text_print(out, "\n");
    }
}

static bool ran_on(const struct exec *x, u32 steps, u32 number) {
    bool ran = false;
    for (u32 i = 0; i < steps; i++) {
        ran = ran || (x->metrics[i].device && x->metrics[i].device_no == number);
    }
    return ran;
}

void exec_print(struct text *out, struct exec *x, const struct run_devices *devices) {
    const struct program *program = x->program;
    struct report report = {0};
    u32 steps = 0;
    for (u32 b = 0; b < program->block_count; b++) {
        steps += program->blocks[b].step_count;
    }
    report.why = common_why(x, steps);
    for (u32 i = 0; i < devices->count; i++) {
        struct device *device = devices->list[i];
        if (device->rates && ran_on(x, steps, i)) {
            device->rates(device, x, &report.rates[i]);
        }
    }
    text_print(out, "%4s %12s %12s %12s %9s %7s  %s\n", "step", "time", "rows in", "rows out",
               "MB read", "GB/s", "of its floor");
    u32 no = 0;
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++, no++) {
            print_step(out, &report, no, &program->blocks[b].steps[s], &x->metrics[no]);
        }
    }
    if (report.why) {
        text_print(out, "why there: %s\n", report.why);
    }
    for (u32 i = 0; i < devices->count; i++) {
        print_rates(out, devices->list[i]->name, &report.rates[i]);
    }
}

/* Whether as many rows came out of the pipeline as reached its end: groups and the first rows of an
 * order are fewer. */
static bool keeps_all(const struct pipeline *pipe) {
    const struct sink *sink = &pipe->sinks[0];
    return pipe->sink_count == 1 && sink->kind == SINK_ROWS && sink->limit < 0 &&
           sink->top_key_count == 0;
}

/* A device that does not count at marks still knows what left the pipeline. */
static i64 rows_at(const struct pipeline *pipe, const struct step_metric *m, u32 mark) {
    if (m->marks[mark] >= 0 || !m->device || !keeps_all(pipe)) {
        return m->marks[mark];
    }
    for (u32 i = pipe->marks[mark].op; i < pipe->op_count; i++) {
        switch (pipe->ops[i].code) {
        case OP_FILTER:
        case OP_PROBE:
        case OP_MATCH:
            return -1;
        case OP_EMIT:
            return m->rows_out;
        default:
            break;
        }
    }
    return -1;
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
                i64 here = rel < program->rel_count ? rows_at(pipe, &x->metrics[no], m) : -1;
                bool adds = pipe->sinks[0].append; /* a branch of a union that is the answer */
                if (here >= 0 && (adds || rows[rel] < 0)) {
                    rows[rel] = MAX_OF(rows[rel], 0) + here;
                }
            }
        }
    }
    return rows;
}
