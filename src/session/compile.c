/* compile.c: one statement from syntax tree to program: bind, optimise, lower.
 *
 * The outcome is immutable and counted, so that a prepared statement, its executions and their
 * results share it. It holds for one catalog version, one state of the settings and one choice of
 * NULL parameters; facts of the data it relies on are guards, checked by exec_open at every
 * execution.
 *
 * Parameters that are NULL are compiled in as NULL constants: a program's literals have no NULL,
 * and a plan that knows folds most of the expression away. */
#include "session/session_int.h"
#include "session/read_file.h"

#include "gpu/gpu.h"
#include "logiql/logiql.h"
#include "lower/lower.h"
#include "opt/opt.h"

static struct expr *null_param(struct expr *expr, void *arg) {
    const struct compiled *c = arg;
    if (expr->kind != EXPR_PARAM || !c->param_nulls[expr->param]) {
        return NULL;
    }
    struct expr *null = expr_new(c->plan->arena, EXPR_CONST, expr->type, expr->position);
    null->is_null = 1;
    return null;
}

static void set_nulls_slot(struct expr **slot, void *arg) {
    struct compiled *c = arg;
    *slot = expr_rebuild(c->plan->arena, *slot, null_param, c);
}

static void set_nulls(struct rel *rel, void *arg) {
    rel_each_expr(rel, set_nulls_slot, arg);
}

#ifdef WF_HARD
enum { TEXT_ON_CALLER = 200, STACK_PER_LEVEL = 8192 };
#else
enum { TEXT_ON_CALLER = 1000, STACK_PER_LEVEL = 2048 };
#endif
enum { LEVELS_MAX = 50000 }; /* the binder stops at 10,000 for expressions, and for tables */

struct deep_job {
    wf_status (*run)(void *arg);
    void *arg;
    wf_status status;
};

static void run_on_stack(void *arg) {
    struct deep_job *job = arg;
    job->status = job->run(job->arg);
}

FALLIBLE run_deep(struct wf_connection *conn, struct sv text, wf_status (*run)(void *arg),
                  void *arg) {
    if (text.len <= TEXT_ON_CALLER) {
        return run(arg);
    }
    struct deep_job job = {run, arg, ERR_OK};
    i64 stack_bytes = (1 << 20) + MIN_OF(text.len, LEVELS_MAX) * STACK_PER_LEVEL;
    if (!thread_run_deep(stack_bytes, run_on_stack, &job)) {
        FAIL(&conn->err, OUT_OF_MEMORY, "out of memory: no thread with %lld bytes of stack",
             stack_bytes);
    }
    return job.status;
}

struct plan_job {
    struct wf_connection *conn;
    struct compiled *c;
};

/* Of two limits; 0 = none. */
static i64 least_limit(i64 a, i64 b) {
    return a && b ? MIN_OF(a, b) : a + b;
}

static wf_status plan_to_program(void *arg) {
    struct wf_connection *conn = ((struct plan_job *)arg)->conn;
    struct compiled *c = ((struct plan_job *)arg)->c;
    struct error *err = &conn->err;
    for (i32 i = 0; i < c->param_count; i++) {
        if (c->param_nulls[i]) {
            rel_each(c->plan->arena, c->plan->root, set_nulls, c);
            break;
        }
    }
    c->plan->for_gpu = c->settings.device != DEVICE_CPU &&
                       (c->settings.device == DEVICE_GPU || database_has_gpu(conn->db));
    TRY(opt_run(c->plan, &c->settings, err));
    TRY(arena_check(&c->arena, err));
    TRY(connection_check(conn));
#ifdef WF_HARD
    TRY(plan_verify(c->plan, err));
#endif
    u32 rel_count = plan_number(c->plan);
    struct lower_limits limits = {
        .fusion = c->settings.fusion != 0,
        .fast_floats = c->settings.float_sum == FLOAT_SUM_FAST,
        .sets_grow = true,
        .bests_grow = c->settings.device != DEVICE_GPU || database_without_gpu(conn->db),
        .sets_small = true,
        .partition = (i32)c->settings.partition,
        .near_bytes = c->plan->for_gpu ? database_near_bytes(conn->db) : 0,
        .room_bytes = c->settings.device == DEVICE_GPU ? database_room_bytes(conn->db) : 0,
        .memory_bytes = least_limit(conn->db->mem.limit_bytes, c->settings.statement_memory),
        .max_live = GPU_LIVE_MOST,
        .max_matches = c->plan->for_gpu ? GPU_MATCHES_MOST : 0,
        .max_carried = c->plan->for_gpu ? GPU_CARRIED_MOST : 0,
        .zone = (i32)c->settings.timezone,
    };
    TRY(lower_plan(c->plan, &limits, &c->arena, &c->program, err));
    c->program->rel_count = rel_count;
    bool learns = c->settings.device != DEVICE_CPU && !database_without_gpu(conn->db);
    c->past = learns ? past_new(&c->arena, c->program) : NULL;
    TRY(arena_check(&c->arena, err));
    return connection_check(conn);
}

/* SQL asks for relations that rules define: neither language knows the other. */
static wf_status bind_rules_of(struct rule_binder *binder, struct plan *plan,
                               struct snapshot *snap, const struct rule_request *request,
                               struct bound_relation *out, struct error *err) {
    UNUSED(binder);
    return logiql_bind(plan, snap, request, out, err);
}

static FALLIBLE compile_stages(struct wf_connection *conn, struct compiled *c,
                               const struct binding *binding, struct snapshot *snap) {
    struct error *err = &conn->err;
    TRY(snapshot_open(snap, err));
    c->catalog_version = snap->edition->definitions;
    c->path = arena_printf(&c->arena, "%s", snap->path ? snap->path : "");
    struct file_reading files = {{file_read}, conn};
    snap->files = &files.reader;
    struct rule_binder rules = {bind_rules_of};
    struct keeping keeping;
    keeping_init(&keeping, conn, c);
    bool keeps = binding->keeps == KEEP_READ && c->settings.derived != DERIVED_COMPUTED;
    snap->rules = &rules;
    snap->keeper = keeps ? &keeping.keeper : NULL;
    snap->evaluator = evaluator_new(&c->arena, (i32)c->settings.timezone);
    wf_status status = binding->bind(binding->arg, &c->arena, snap, c->param_types, &c->stmt, err);
    snap->files = NULL;
    snap->rules = NULL;
    snap->keeper = NULL;
    snap->evaluator = NULL;
    TRY(status);
    TRY(arena_check(&c->arena, err));
    TRY(arena_check(snap->arena, err));
    TRY(connection_check(conn));
    c->plan = c->stmt.kind == STATEMENT_EXPLAIN ? c->stmt.explain.inner->plan : c->stmt.plan;
    struct plan_job plan = {conn, c};
    return c->plan ? run_deep(conn, binding->text, plan_to_program, &plan) : ERR_OK;
}

FALLIBLE compile_with(struct wf_connection *conn, const struct binding *binding,
                      struct snapshot *snap, const struct param_facts *params,
                      struct compiled **out) {
    struct wf_database *db = conn->db;
    struct compiled *c = mem_alloc(&db->mem, (i64)sizeof *c);
    if (!c) {
        return memory_refused(&db->mem, &conn->err, (i64)sizeof *c);
    }
    memset(c, 0, sizeof *c);
    atomic_init(&c->refs, 1);
    c->db = database_retain(db);
    c->script = binding->script ? script_retain(binding->script) : NULL;
    arena_init(&c->arena, &db->mem);
    c->settings = conn->settings;
    c->param_count = params->count;
    c->param_types = NEW_ARRAY(&c->arena, struct type, params->count + 1);
    c->param_nulls = NEW_ARRAY(&c->arena, b8, params->count + 1);
    for (i32 i = 0; i < params->count; i++) {
        c->param_types[i] = params->types ? params->types[i] : type_of(TYPE_UNKNOWN);
        c->param_nulls[i] = params->nulls ? params->nulls[i] : 0;
    }
    wf_status status = compile_stages(conn, c, binding, snap);
    if (status) {
        compiled_release(c);
        return status;
    }
    *out = c;
    return ERR_OK;
}

static wf_status bind_parsed(void *arg, struct arena *arena, struct snapshot *snap,
                             struct type *param_types, struct statement *out, struct error *err) {
    return sql_bind(arena, arg, snap, param_types, out, err);
}

FALLIBLE compile(struct wf_connection *conn, struct script *script, const struct parsed *parsed,
                 struct snapshot *snap, const struct param_facts *params, bool computes,
                 struct compiled **out) {
    struct binding binding = {script, parsed_text(parsed), bind_parsed,
                              (struct parsed *)(size_t)parsed, computes ? KEEP_NOT : KEEP_READ};
    return compile_with(conn, &binding, snap, params, out);
}

bool compiled_fits(const struct compiled *c, const struct wf_connection *conn,
                   const struct snapshot *snap, const b8 *nulls) {
    return c->catalog_version == snap->edition->definitions &&
           strcmp(c->path, snap->path ? snap->path : "") == 0 &&
           memcmp(&c->settings, &conn->settings, sizeof c->settings) == 0 &&
           (c->param_count == 0 || memcmp(c->param_nulls, nulls, (size_t)c->param_count) == 0);
}

struct compiled *compiled_retain(struct compiled *c) {
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void compiled_release(struct compiled *c) {
    if (c && atomic_fetch_sub(&c->refs, 1) == 1) {
        struct wf_database *db = c->db;
        kept_release(c);
        checks_release(c);
        arena_fini(&c->arena);
        script_release(c->script);
        mem_free(&db->mem, c, (i64)sizeof *c);
        database_release(db);
    }
}
