/* explain.c: EXPLAIN at every level: plan, program, opcodes, CUDA text, and what a run did.
 *
 * The text is made by the modules that own the levels; here it becomes rows of one column "plan", a
 * row a line. With several levels each has a heading. ANALYZE runs the statement first, inserts
 * included, and drops its rows; the plan then shows actual rows beside the estimates. STEPS runs it
 * too, by the code it has without EXPLAIN, which counts no rows of operators, and its answer is a
 * table. */
#include "session/session_int.h"

#include "gpu/gpu.h"

static void heading(struct text *out, bool wanted, const char *title) {
    if (wanted) {
        text_print(out, "%s-- %s\n", out->len ? "\n" : "", title);
    }
}

static void set_lines(struct rowset *rows, struct sv text) {
    static const char *const names[] = {"plan"};
    i64 count = 0;
    for (i64 i = 0; i < text.len; i++) {
        count += text.ptr[i] == '\n' || i == text.len - 1;
    }
    struct sv *lines = NEW_ARRAY(&rows->arena, struct sv, count + 1);
    i64 start = 0;
    for (i64 i = 0; i < count; i++) {
        i64 end = start;
        while (end < text.len && text.ptr[end] != '\n') {
            end++;
        }
        lines[i] = (struct sv){text.ptr + start, end - start};
        start = end + 1;
    }
    rowset_set_texts(rows, 1, names, count, lines);
}

/* The text is made without a card too; then it says what keeps it from being compiled. */
static FALLIBLE explain_cuda(struct wf_connection *conn, struct rowset *rows, struct text *out) {
    struct device *gpu = database_gpu(conn->db);
    if (!gpu) {
        text_print(out, "// not compiled here: %s\n", conn->db->no_gpu);
    }
    return gpu_explain_cuda(gpu, &rows->exec, out, &conn->err);
}

/* What ANALYZE learnt by running the statement. */
struct analysis {
    i64 row_count;
    i64 ns;
    i64 peak_bytes;
    const i64 *actual; /* rows of each operator */
    b8 plain;          /* the operators' rows are not asked for */
};

/* What the statement does with the rows of its plan. */
static FALLIBLE change(struct wf_connection *conn, const struct run_request *request,
                       struct rowset *rows, u8 kind) {
    return kind == STATEMENT_INSERT            ? insert_answer(conn, request, rows)
           : kind == STATEMENT_UPDATE          ? update_answer(conn, rows)
           : kind == STATEMENT_DELETE          ? delete_answer(conn, rows)
           : kind == STATEMENT_CREATE_TABLE_AS ? create_answer(conn, rows)
                                               : ERR_OK;
}

static FALLIBLE analyze(struct wf_connection *conn, const struct run_request *request,
                        struct rowset *rows, i64 start_ns, struct analysis *out) {
    const struct compiled *c = rows->compiled;
    u8 kind = rowset_statement(rows)->kind;
    rows->exec.counts_rows = !out->plain;
    rows->exec.profiles = 1;
    if (kind != STATEMENT_SELECT) {
        TRY(rowset_run_exec(conn, rows));
    } else {
        TRY(rowset_start_exec(conn, rows));
        TRY(rowset_finish(conn, rows));
    }
    out->row_count = rows->answer_first + rows->answer.rows;
    TRY(change(conn, request, rows, kind));
    out->ns = clock_ns() - start_ns;
    out->peak_bytes = atomic_load(&rows->mem.peak_bytes);
    rows->answer_first = 0;
    if (out->plain) {
        return ERR_OK;
    }
    i64 *actual = exec_rel_rows(&rows->exec);
    if (c->program->rel_count > 0 && actual[c->plan->root->number] < 0) {
        actual[c->plan->root->number] = out->row_count;
    }
    out->actual = actual;
    return ERR_OK;
}

static void print_analysis(struct wf_connection *conn, struct rowset *rows,
                           const struct analysis *a, struct text *out) {
    struct run_devices devices;
    database_open_devices(conn->db, &devices);
    exec_print(out, &rows->exec, &devices);
    text_print(out, "%lld row%s in %s on %s, peak memory %.1f MiB", a->row_count,
               a->row_count == 1 ? "" : "s", duration_of(a->ns).text, rows->devices,
               (double)a->peak_bytes / (1 << 20));
    if (rows->temp.peak_bytes) {
        text_print(out, ", temporary space %.1f MiB", (double)rows->temp.peak_bytes / (1 << 20));
    }
    text_print(out, "\n");
    exec_print_rounds(out, &rows->exec);
}

static FALLIBLE explain_steps(struct wf_connection *conn, const struct run_request *request,
                              struct rowset *rows) {
    struct analysis analysis = {.plain = 1};
    struct run_devices devices;
    struct sv *cells;
    TRY(rowset_open_exec(conn, request, rows));
    TRY(analyze(conn, request, rows, clock_ns(), &analysis));
    database_open_devices(conn->db, &devices);
    i64 count = exec_step_table(&rows->exec, &devices, &cells);
    rowset_set_texts(rows, EXEC_STEP_COLS, exec_step_cols, count, cells);
    rows->rows_affected = 0;
    rows->tag = "EXPLAIN";
    return ERR_OK;
}

/* The statement runs as by ANALYZE: rows are counted. */
static FALLIBLE explain_rounds(struct wf_connection *conn, const struct run_request *request,
                               struct rowset *rows) {
    struct analysis analysis = {0};
    struct sv *cells;
    TRY(rowset_open_exec(conn, request, rows));
    TRY(analyze(conn, request, rows, clock_ns(), &analysis));
    i64 count = exec_round_table(&rows->exec, &cells);
    rowset_set_texts(rows, EXEC_ROUND_COLS, exec_round_cols, count, cells);
    rows->rows_affected = 0;
    rows->tag = "EXPLAIN";
    return ERR_OK;
}

enum { SAMPLE_ROWS = 4096 }; /* of every table: two tiles of most kernels */

/* Runs the statement on the first rows of its tables, on the GPU by woven kernels that read columns
 * copied for them, since the card's cache knows columns by their tablets. */
static FALLIBLE explain_standalone(struct wf_connection *conn, const struct run_request *request,
                                   struct rowset *rows) {
    if (rowset_statement(rows)->kind != STATEMENT_SELECT) {
        FAIL(&conn->err, NOT_SUPPORTED, "EXPLAIN (CUDA, STANDALONE) of anything but SELECT");
    }
    if (!database_gpu(conn->db)) {
        FAIL(&conn->err, NO_DEVICE,
             "EXPLAIN (CUDA, STANDALONE) runs the statement on samples, which needs a GPU: %s",
             conn->db->no_gpu);
    }
    rows->settings.device = DEVICE_GPU;
    rows->settings.gpu_code = CODE_WOVEN;
    rows->settings.gpu_placement = PLACE_SERIAL;
    TRY(rowset_open_exec(conn, request, rows));
    struct exec *x = &rows->exec;
    for (u32 i = 0; i < x->program->table_count; i++) {
        if (!x->providers[i]) {
            x->versions[i] = version_sample(&rows->arena, x->versions[i], SAMPLE_ROWS);
        }
    }
    x->capture = gpu_capture_new(&rows->arena);
    TRY(rowset_start_exec(conn, rows));
    TRY(rowset_finish(conn, rows));
    struct text out;
    text_init(&out, &rows->arena);
    TRY(gpu_capture_print(x->capture, &out, &conn->err));
    rows->answer_first = 0;
    set_lines(rows, (struct sv){out.ptr, out.len});
    rows->tag = "EXPLAIN";
    return ERR_OK;
}

struct print_job {
    struct text *out;
    const struct plan *plan;
    const i64 *actual; /* NULL: it did not run */
    b8 estimates;
};

static wf_status print_plan(void *arg) {
    struct print_job *job = arg;
    plan_print_actual(job->out, job->plan, job->actual, job->estimates);
    return ERR_OK;
}

FALLIBLE run_explain(struct wf_connection *conn, const struct run_request *request,
                     struct rowset *rows) {
    i64 start_ns = clock_ns();
    if (!rows->compiled->plan) {
        FAIL(&conn->err, NOT_SUPPORTED, "EXPLAIN shows statements that have a plan");
    }
    bool skip = false;
    if (rowset_statement(rows)->kind == STATEMENT_CREATE_TABLE_AS) {
        TRY(create_check(conn, rows, &skip));
    }
    if (skip) {
        set_lines(rows, (struct sv){"", 0});
        rows->tag = "EXPLAIN";
        return ERR_OK;
    }
    u32 levels = request->explain ? request->explain : rows->compiled->stmt.explain.levels;
    rows->explains = 1;
    if (levels & EXPLAIN_STEPS) {
        return explain_steps(conn, request, rows);
    }
    if (levels & EXPLAIN_ROUNDS) {
        return explain_rounds(conn, request, rows);
    }
    if (levels & EXPLAIN_STANDALONE) {
        return explain_standalone(conn, request, rows);
    }
    if (!(levels & (EXPLAIN_PLAN | EXPLAIN_PROGRAM | EXPLAIN_OPCODES | EXPLAIN_CUDA))) {
        levels |= EXPLAIN_PLAN;
    }
    bool bare = (levels & EXPLAIN_BARE) != 0;
    levels &= ~(u32)EXPLAIN_BARE;
    bool several = (levels & (levels - 1)) != 0;
    if (levels & (EXPLAIN_CUDA | EXPLAIN_ANALYZE)) {
        TRY(rowset_open_exec(conn, request, rows));
    }
    const struct compiled *c = rows->compiled;
    struct analysis analysis = {0};
    if (levels & EXPLAIN_ANALYZE) {
        TRY(analyze(conn, request, rows, start_ns, &analysis));
    }
    struct text out;
    text_init(&out, &rows->arena);
    if (levels & EXPLAIN_PLAN) {
        heading(&out, several, "plan");
        struct print_job job = {&out, c->plan, analysis.actual, !bare};
        TRY(run_deep(conn, parsed_text(request->parsed), print_plan, &job));
        TRY(keep_explain(conn, rows, (levels & EXPLAIN_ANALYZE) != 0, &out));
        checks_explain(c, &out);
    }
    if (levels & EXPLAIN_PROGRAM) {
        heading(&out, several, "program");
        program_print(&out, c->program, false);
    }
    if (levels & EXPLAIN_OPCODES) {
        heading(&out, several, "opcodes");
        program_print(&out, c->program, true);
    }
    if (levels & EXPLAIN_CUDA) {
        heading(&out, several, "cuda");
        TRY(explain_cuda(conn, rows, &out));
    }
    if (levels & EXPLAIN_ANALYZE) {
        heading(&out, several, "run");
        print_analysis(conn, rows, &analysis, &out);
    }
    set_lines(rows, (struct sv){out.ptr, out.len});
    rows->rows_affected = 0;
    rows->tag = "EXPLAIN";
    return ERR_OK;
}
