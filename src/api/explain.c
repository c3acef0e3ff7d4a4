/* explain.c: EXPLAIN at every level: plan, program, opcodes, CUDA text, and what a run did.
 *
 * The text is made by the modules that own the levels; here it becomes rows of one column "plan", a
 * row a line. With several levels each has a heading. ANALYZE runs the statement first, inserts
 * included. */
#include "api/api_int.h"

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

static FALLIBLE explain_analyze(struct wf_connection *conn, const struct run_request *request,
                                struct rowset *rows, i64 start_ns, struct text *out) {
    TRY(rowset_run_exec(conn, rows));
    i64 row_count = rows->answer.rows;
    if (rows->compiled->stmt.inner->kind == STATEMENT_INSERT) {
        TRY(insert_answer(conn, request, rows));
    }
    exec_print(out, &rows->exec);
    text_print(out, "%lld rows in %.3f ms on %s, peak memory %.1f MiB\n", row_count,
               (double)(clock_ns() - start_ns) / 1e6, rows->devices,
               (double)atomic_load(&rows->mem.peak_bytes) / (1 << 20));
    return ERR_OK;
}

struct print_job {
    struct text *out;
    const struct plan *plan;
};

static wf_status print_plan(void *arg) {
    struct print_job *job = arg;
    plan_print(job->out, job->plan);
    return ERR_OK;
}

FALLIBLE run_explain(struct wf_connection *conn, const struct run_request *request,
                     struct rowset *rows) {
    i64 start_ns = clock_ns();
    if (!rows->compiled->plan) {
        FAIL(&conn->err, NOT_SUPPORTED, "EXPLAIN shows statements that have a plan");
    }
    u32 levels = rows->compiled->stmt.explain;
    if (!(levels & (EXPLAIN_PLAN | EXPLAIN_PROGRAM | EXPLAIN_OPCODES | EXPLAIN_CUDA))) {
        levels |= EXPLAIN_PLAN;
    }
    bool several = (levels & (levels - 1)) != 0;
    if (levels & (EXPLAIN_CUDA | EXPLAIN_ANALYZE)) {
        TRY(rowset_open_exec(conn, request, rows));
    }
    const struct compiled *c = rows->compiled;
    struct text out;
    text_init(&out, &rows->arena);
    if (levels & EXPLAIN_PLAN) {
        heading(&out, several, "plan");
        struct print_job job = {&out, c->plan};
        TRY(run_deep(conn, parsed_text(request->parsed), print_plan, &job));
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
        TRY(explain_analyze(conn, request, rows, start_ns, &out));
    }
    set_lines(rows, (struct sv){out.ptr, out.len});
    rows->rows_affected = 0;
    rows->tag = "EXPLAIN";
    return ERR_OK;
}
