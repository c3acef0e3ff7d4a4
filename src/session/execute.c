/* execute.c: runs one statement: snapshot, compile or reuse, execute, collect the rows.
 *
 * A rowset is one execution with everything its rows point into: the snapshot (tablets and
 * dictionaries), the compiled statement, the variables of the execution. It is made for every
 * statement, also for those that return no rows, and dropped as a whole when the statement fails.
 *
 * When a guard of a reused program fails, the statement is compiled again against the snapshot at
 * hand, whose facts then hold by construction. */
#include "session/session_int.h"
#include "session/read_file.h"

#include <stdio.h>

#include "base/moment.h"
#include "run/early.h"

FALLIBLE rowset_new(struct wf_connection *conn, struct rowset **out) {
    struct wf_database *db = conn->db;
    struct rowset *rows = mem_alloc(&db->mem, (i64)sizeof *rows);
    if (!rows) {
        return memory_refused(&db->mem, &conn->err, (i64)sizeof *rows);
    }
    memset(rows, 0, sizeof *rows);
    rows->result = mem_alloc(&db->mem, (i64)sizeof *rows->result);
    if (!rows->result) {
        mem_free(&db->mem, rows, (i64)sizeof *rows);
        return memory_refused(&db->mem, &conn->err, (i64)sizeof *rows->result);
    }
    atomic_init(&rows->refs, 1);
    rows->db = database_retain(db);
    i64 own = conn->settings.statement_memory;
    i64 least = own ? MIN_OF(own, db->mem.limit_bytes) : db->mem.limit_bytes;
    memory_init(&rows->mem, &db->mem, own, own ? "statement_memory" : "memory");
    temp_init(&rows->temp, setting_folder(&conn->settings), conn->settings.temp_size,
              least / WARM_SHARE);
    rows->mem.temp = &rows->temp;
    arena_init(&rows->arena, &rows->mem);
    snapshot_init(&rows->snap, db->catalog, &rows->arena);
    rows->settings = conn->settings;
    rows->tag = "";
    rows->devices = "";
    error_reset(&rows->err);
    public_error(&rows->failure, &rows->err, (struct sv){NULL, 0});
    *out = rows;
    return ERR_OK;
}

struct rowset *rowset_retain(struct rowset *rows) {
    atomic_fetch_add(&rows->refs, 1);
    return rows;
}

static void rowset_close_exec(struct rowset *rows) {
    if (rows->exec_is_open) {
        exec_close(&rows->exec);
        rows->exec_is_open = 0;
    }
}

/* All rows are computed, or no more will be. */
static void rowset_end(struct rowset *rows) {
    rows->more = 0;
    if (rows->conn) {
        connection_release(rows->conn);
        rows->conn = NULL;
    }
}

void rowset_release(struct rowset *rows) {
    if (!rows || atomic_fetch_sub(&rows->refs, 1) != 1) {
        return;
    }
    struct wf_database *db = rows->db;
    rowset_close_exec(rows);
    rowset_end(rows);
    snapshot_fini(&rows->snap);
    compiled_release(rows->compiled);
    rowset_release(rows->instead);
    arena_fini(&rows->arena);
    temp_fini(&rows->temp, &db->temp_exit);
    mem_free(&db->mem, rows->result, (i64)sizeof *rows->result);
    mem_free(&db->mem, rows, (i64)sizeof *rows);
    database_release(db);
}

void rowset_set_texts(struct rowset *rows, i32 col_count, const char *const *names, i64 count,
                      const struct sv *values) {
    struct arena *arena = &rows->arena;
    struct chunk *chunk = NEW(arena, struct chunk);
    chunk->rows = count;
    chunk->cols = NEW_ARRAY(arena, struct column, col_count);
    rows->col_count = (u32)col_count;
    rows->cols = NEW_ARRAY(arena, struct rowset_col, col_count);
    for (i32 c = 0; c < col_count; c++) {
        str *views = NEW_ARRAY(arena, str, count + 1);
        b8 *nulls = NEW_ARRAY(arena, b8, count + 1);
        for (i64 i = 0; i < count; i++) {
            struct sv value = values[i * col_count + c];
            nulls[i] = value.ptr == NULL;
            views[i] = str_from(nulls[i] ? SV("") : value);
        }
        rows->cols[c] = (struct rowset_col){.name = names[c], .type = type_of(TYPE_TEXT)};
        chunk->cols[c] = (struct column){.kind = KIND_STR, .data = views, .nulls = nulls};
    }
    rows->answer.rows = count;
    rows->answer.slice_count = 1;
    rows->answer.slices = NEW(arena, struct slice);
    *rows->answer.slices = (struct slice){chunk, 0, count};
}

static void tell_session(void *arg, const char *text) {
    notice(arg, "NOTICE", "%s", text);
}

/* The facts an execution starts from. A table that is gone means the catalog has changed since
 * compiling. */
static FALLIBLE exec_fill(struct wf_connection *conn, struct rowset *rows, bool *out_gone) {
    const struct program *program = rows->compiled->program;
    struct exec *x = &rows->exec;
    memset(x, 0, sizeof *x);
    x->program = program;
    x->past = rows->compiled->past;
    x->tries = rows->settings.tries == TRIES_KEPT ? conn->db->tries : NULL;
    x->arena = &rows->arena;
    x->mem = &rows->mem;
    x->err = &conn->err;
    x->pool = conn->one_thread ? NULL : conn->db->pool;
    x->settings = &rows->settings;
    x->cancel = &conn->cancel;
    x->times_us[TIME_TRANSACTION] = conn->tx.start_us;
    x->times_us[TIME_STATEMENT] = conn->statement_us;
    x->serial = session_serial;
    x->serial_arg = conn;
    x->tell = tell_session;
    x->tell_arg = conn;
    x->tables = NEW_ARRAY(x->arena, struct table *, program->table_count + 1);
    x->versions = NEW_ARRAY(x->arena, struct table_version *, program->table_count + 1);
    x->providers = NEW_ARRAY(x->arena, struct scan_provider *, program->table_count + 1);
    TRY(keep_fill(conn, rows, out_gone));
    if (*out_gone) {
        return ERR_OK;
    }
    for (u32 i = 0; i < program->table_count; i++) {
        struct snapshot_table found;
        if (!snapshot_find_id(&rows->snap, program->tables[i], &found)) {
            *out_gone = true;
            return ERR_OK;
        }
        x->tables[i] = found.table;
        x->versions[i] = found.version;
        x->providers[i] = found.table->provider;
    }
    return arena_check(x->arena, x->err);
}

static FALLIBLE exec_fill_params(struct wf_connection *conn, const struct run_request *request,
                                 struct rowset *rows) {
    struct exec *x = &rows->exec;
    const struct program *program = x->program;
    struct when when = {(i32)rows->settings.timezone, conn->tx.start_us};
    for (u32 i = 0; i < program->param_count; i++) {
        u32 lit = program->param_lits[i];
        struct param late, *param = &late;
        if (i >= (u32)request->param_count) {
            TRY(late_value(conn, rows, &rows->compiled->stmt.lates[i - (u32)request->param_count],
                           &late));
        } else {
            param = (struct param *)(size_t)&request->params[i];
        }
        if (lit != NO_LIT && param->form != PARAM_NULL) {
            struct param_target target = {(i32)i + 1, program->param_types[i],
                                          (enum kind)program->lit_kinds[lit], when};
            TRY(param_convert(x->arena, param, &target, &x->lits[lit], x->err));
        }
    }
    return arena_check(x->arena, x->err);
}

static FALLIBLE compile_for(struct wf_connection *conn, const struct run_request *request,
                            struct rowset *rows) {
    b8 *nulls = NEW_ARRAY(&rows->arena, b8, request->param_count + 1);
    for (i32 i = 0; i < request->param_count; i++) {
        nulls[i] = request->params[i].form == PARAM_NULL;
    }
    struct compiled **cache = request->cache;
    TRY(snapshot_open(&rows->snap, &conn->err));
    if (cache && *cache && rows->compiled != *cache && !rows->computes &&
        compiled_fits(*cache, conn, &rows->snap, nulls)) {
        rows->compiled = compiled_retain(*cache);
        return ERR_OK;
    }
    struct compiled *fresh;
    struct param_facts params = {request->param_count, request->types, nulls};
    TRY(compile(conn, request->script, request->parsed, &rows->snap, &params, rows->computes,
                &fresh));
    compiled_release(rows->compiled);
    rows->compiled = fresh;
    rows->compile_count++;
    if (cache && !rows->computes) {
        compiled_release(*cache);
        *cache = compiled_retain(fresh);
        ++*request->compile_count;
    }
    return ERR_OK;
}

FALLIBLE rowset_open_exec(struct wf_connection *conn, const struct run_request *request,
                          struct rowset *rows) {
    for (int attempt = 0; attempt < 3; attempt++) { /* kept rows may be too much for the second */
        bool stale;
        TRY(exec_fill(conn, rows, &stale));
        if (!stale) {
            rows->exec.deadline_ns = conn->deadline_ns;
            wf_status status = exec_open(&rows->exec, &stale);
            rows->exec_is_open = 1;
            TRY(status);
        }
        if (!stale) {
            return exec_fill_params(conn, request, rows);
        }
        rowset_close_exec(rows);
        TRY(compile_for(conn, request, rows));
    }
    FAIL(&conn->err, INTERNAL, "the statement's program does not hold for its own snapshot");
}

static i64 exec_source_rows(const struct exec *x) {
    i64 rows = 0;
    for (u32 i = 0; i < x->program->table_count; i++) {
        rows += x->versions[i]->rows;
    }
    return rows;
}

static const struct step *find_result_step(const struct program *program) {
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++) {
            if (program->blocks[b].steps[s].kind == STEP_RESULT) {
                return &program->blocks[b].steps[s];
            }
        }
    }
    return NULL;
}

static u32 step_total(const struct program *program) {
    u32 steps = 0;
    for (u32 b = 0; b < program->block_count; b++) {
        steps += program->blocks[b].step_count;
    }
    return steps;
}

/* "cpu", "cpu, gpu woven": every device that ran a step, in order of first use. */
static const char *device_summary(const struct exec *x) {
    struct text out;
    text_init(&out, x->arena);
    u32 steps = step_total(x->program);
    for (u32 i = 0; i < steps; i++) {
        const char *device = x->metrics[i].device;
        bool seen = device == NULL;
        for (u32 k = 0; k < i && !seen; k++) {
            seen = x->metrics[k].device && strcmp(x->metrics[k].device, device) == 0;
        }
        if (!seen) {
            text_print(&out, "%s%s", out.len ? ", " : "", device);
        }
    }
    return out.len ? out.ptr : "cpu";
}

static void sum_metrics(struct rowset *rows) {
    u32 steps = step_total(rows->exec.program);
    i64 *sums = rows->metrics;
    memset(sums, 0, sizeof rows->metrics);
    sums[METRIC_rounds] = rows->exec.rounds;
    sums[METRIC_compilations] = rows->compile_count;
    sums[METRIC_peak_bytes] = atomic_load(&rows->mem.peak_bytes);
    sums[METRIC_waits] = rows->exec.fetch_waits;
    for (u32 i = 0; i < steps; i++) {
        const struct step_metric *m = &rows->exec.metrics[i];
        sums[METRIC_ns] += m->ns;
        sums[METRIC_device_ns] += m->device_ns;
        sums[METRIC_bytes_read] += m->bytes_read;
        sums[METRIC_bytes_moved] += m->bytes_moved;
        sums[METRIC_bytes_packed] += m->bytes_packed;
        sums[METRIC_launches] += m->launches;
        sums[METRIC_waits] += m->waits;
        sums[METRIC_device_peak] = MAX_OF(sums[METRIC_device_peak], m->device_peak);
        sums[METRIC_rows_in] += m->rows_in;
        sums[METRIC_pruned_rows] += m->tablets_pruned_rows;
    }
}
_Static_assert(METRIC_COUNT == 13, "sum_metrics adds every metric");

static FALLIBLE collect_columns(struct rowset *rows) {
    struct exec *x = &rows->exec;
    const struct program *program = x->program;
    const struct step *step = find_result_step(program);
    ASSERT(step != NULL);
    const struct var *var = &program->vars[step->src];
    rows->col_count = program->col_count;
    rows->cols = NEW_ARRAY(&rows->arena, struct rowset_col, program->col_count + 1);
    for (u32 c = 0; c < program->col_count; c++) {
        u32 dict = var->dicts ? var->dicts[c] : 0;
        rows->cols[c] = (struct rowset_col){
            .name = program->cols[c].name,
            .type = program->cols[c].type,
            .dict = dict ? x->dicts[dict - 1] : NULL,
        };
    }
    return ERR_OK;
}

/* What the program reads comes from the disk while a card is started. */
static void find_devices(struct wf_database *db, struct rowset *rows, struct run_devices *out) {
    struct exec *x = &rows->exec;
    i64 source_rows = exec_source_rows(x);
    bool starts = database_starts_gpu(db, &rows->settings, source_rows);
    struct early early;
    if (starts) {
        early_begin(&early, x);
    }
    database_devices(db, &rows->settings, source_rows, rows->explains, out);
    if (starts) {
        early_end(&early);
        moment("%lld columns were read meanwhile", (long long)early.count);
    }
}

/* `all`: runs to the end; else until the first rows are there. */
static FALLIBLE run_exec(struct wf_connection *conn, struct rowset *rows, bool all) {
    struct exec *x = &rows->exec;
    struct run_devices devices;
    bool end = true;
    TRY(checks_hold(conn, rows->compiled));
    find_devices(conn->db, rows, &devices);
    watch_exec(&conn->watch, x);
    i64 start_ns = clock_ns();
    wf_status status = all ? exec_run(x, &devices) : exec_start(x, &devices, &rows->answer, &end);
    watch_exec(&conn->watch, NULL);
    TRY(status);
    if (devices.count == 1) {
        database_spent(conn->db, &rows->settings, exec_source_rows(x), clock_ns() - start_ns);
    }
    if (all) {
        TRY(exec_answer(x, &rows->answer));
    }
    TRY(collect_columns(rows));
    rows->devices = device_summary(x);
    rows->more = !end;
    if (end) {
        notice_files(conn, &rows->snap);
    }
    sum_metrics(rows);
    return arena_check(&rows->arena, &conn->err);
}

FALLIBLE rowset_run_exec(struct wf_connection *conn, struct rowset *rows) {
    return run_exec(conn, rows, true);
}

FALLIBLE rowset_start_exec(struct wf_connection *conn, struct rowset *rows) {
    return run_exec(conn, rows, false);
}

static void set_tag(struct rowset *rows) {
    snprintf(rows->tag_text, sizeof rows->tag_text, "SELECT %lld",
             rows->answer_first + rows->answer.rows);
    rows->tag = rows->tag_text;
}

/* Time the statement has left: what it spent waiting for its reader does not count. */
static void set_deadline(struct rowset *rows) {
    i64 timeout_ns = rows->settings.statement_timeout * 1000000;
    rows->exec.deadline_ns = timeout_ns ? clock_ns() + MAX_OF(timeout_ns - rows->ns, 1) : 0;
}

wf_status rowset_more(struct rowset *rows) {
    if (rows->failure.status || !rows->more) {
        return rows->failure.status;
    }
    struct exec *x = &rows->exec;
    i64 start_ns = clock_ns();
    bool end = true;
    rows->answer_first += rows->answer.rows;
    rows->slice = 0;
    rows->slice_start = 0;
    set_deadline(rows);
    watch_read_begin(&rows->conn->watch, x, start_ns - rows->ns);
    struct stop stop = exec_stop(x);
    const struct stop *outer = stop_enter(&stop);
    wf_status status = exec_next(x, &rows->answer, &end);
    stop_enter(outer);
    watch_read_end(&rows->conn->watch, x);
    rows->ns += clock_ns() - start_ns;
    sum_metrics(rows);
    if (status) {
        rows->answer = (struct answer){0, 0, NULL};
        script_place(rows->compiled->script, &rows->err);
        public_error(&rows->failure, &rows->err, rows->compiled->script->text);
        rowset_end(rows);
        return rows->failure.status;
    }
    if (end) {
        set_tag(rows);
        notice_files(rows->conn, &rows->snap);
        rowset_end(rows);
    }
    return WF_OK;
}

FALLIBLE rowset_step(struct wf_connection *conn, struct rowset *rows) {
    struct exec *x = &rows->exec;
    bool end = true;
    x->err = &conn->err;
    x->cancel = &conn->cancel;
    x->cancel_seen = 0;
    watch_exec(&conn->watch, x);
    rows->answer_first += rows->answer.rows;
    wf_status status = exec_next(x, &rows->answer, &end);
    rows->more = !end;
    watch_exec(&conn->watch, NULL);
    if (!status && end) {
        notice_files(conn, &rows->snap);
        sum_metrics(rows);
    }
    return status;
}

FALLIBLE rowset_finish(struct wf_connection *conn, struct rowset *rows) {
    while (rows->more) {
        TRY(rowset_step(conn, rows));
    }
    return ERR_OK;
}

static FALLIBLE run_select(struct wf_connection *conn, const struct run_request *request,
                           struct rowset *rows) {
    TRY(rowset_open_exec(conn, request, rows));
    TRY(rowset_start_exec(conn, rows));
    rows->tag = "SELECT";
    if (!rows->more) {
        set_tag(rows);
    }
    return ERR_OK;
}

static FALLIBLE run_kind(struct wf_connection *conn, const struct run_request *request,
                         struct rowset *rows) {
    if (request->explain) {
        return run_explain(conn, request, rows);
    }
    switch ((enum statement_kind)rows->compiled->stmt.kind) {
    case STATEMENT_SELECT:
        return run_select(conn, request, rows);
    case STATEMENT_INSERT:
        return run_insert(conn, request, rows);
    case STATEMENT_CREATE_TABLE:
        return run_create_table(conn, rows);
    case STATEMENT_DROP:
        return run_drop(conn, rows);
    case STATEMENT_COPY_FROM:
        return run_copy(conn, rows);
    case STATEMENT_COPY_TO:
        return run_copy_to(conn, request, rows);
    case STATEMENT_SET:
        return run_set(conn, rows);
    case STATEMENT_SHOW:
        return run_show(conn, rows);
    case STATEMENT_VACUUM:
        return run_vacuum(conn, rows);
    case STATEMENT_EXPLAIN:
        return run_explain(conn, request, rows);
    case STATEMENT_CALL:
        return run_call(conn, rows);
    case STATEMENT_UPDATE:
        return run_update(conn, request, rows);
    case STATEMENT_DELETE:
        return run_delete(conn, request, rows);
    case STATEMENT_TRUNCATE:
        return run_truncate(conn, rows);
    case STATEMENT_TRANSACTION:
        return run_transaction(conn, rows);
    case STATEMENT_CREATE_SCHEMA:
        return run_create_schema(conn, rows);
    case STATEMENT_CREATE_VIEW:
        return run_create_view(conn, rows);
    case STATEMENT_CREATE_SEQUENCE:
        return run_create_sequence(conn, rows);
    case STATEMENT_ALTER_SEQUENCE:
        return run_alter_sequence(conn, rows);
    case STATEMENT_CREATE_TABLE_AS:
        return run_create_as(conn, request, rows);
    case STATEMENT_CREATE_INDEX:
        return run_create_index(conn, rows);
    case STATEMENT_COMMENT:
        return run_comment(conn, rows);
    case STATEMENT_ALTER_TABLE:
        return run_alter(conn, request, rows);
    case STATEMENT_RENAME:
        return run_rename(conn, rows);
    case STATEMENT_SET_CONSTRAINTS:
        return run_set_constraints(conn, rows);
    case STATEMENT_PREPARE:
        return run_prepare(conn, request, rows);
    case STATEMENT_EXECUTE:
        return run_execute(conn, request, rows);
    case STATEMENT_DEALLOCATE:
        return run_deallocate(conn, rows);
    }
    FAIL(&conn->err, INTERNAL, "unknown kind of statement");
}

/* Compiles and runs inside the transaction. */
static FALLIBLE run_inside(struct wf_connection *conn, const struct run_request *request,
                           struct rowset *rows) {
    connection_snapshot(conn, &rows->snap);
    TRY(connection_check(conn));
    if (parsed_is_select(request->parsed)) {
        database_begin_gpu(conn->db, &rows->settings);
    }
    TRY(compile_for(conn, request, rows));
    if (!tx_allows(conn, &rows->compiled->stmt)) {
        return tx_refuse(conn);
    }
    tx_note(conn, &rows->compiled->stmt);
    TRY(run_kind(conn, request, rows));
    return rows->took_effect ? ERR_OK : arena_check(&rows->arena, &conn->err);
}

static FALLIBLE run_once(struct wf_connection *conn, const struct run_request *request,
                         struct rowset *rows) {
    if (parsed_is_transaction(request->parsed)) {
        wf_status ended = run_inside(conn, request, rows);
        conn->tx.failed = ended && conn->tx.open ? 1 : conn->tx.failed;
        return ended;
    }
    if (conn->tx.failed) {
        return tx_refuse(conn);
    }
    struct tx_mark mark;
    TRY(tx_enter(conn, &mark));
    wf_status status = run_inside(conn, request, rows);
    if (!status && rows->instead) {
        status = arena_check(&rows->instead->arena, &conn->err);
    }
    return tx_leave(conn, &mark, status);
}

/* What the client gets: the statement's own rows, or those of its RETURNING. */
static struct rowset *take_rows(struct rowset *rows) {
    struct rowset *instead = rows->instead;
    if (!instead) {
        return rows;
    }
    rows->instead = NULL;
    instead->tag = arena_printf(&instead->arena, "%s", rows->tag);
    instead->rows_affected = rows->rows_affected;
    rowset_release(rows);
    return instead;
}

/* Whether it may have been the number of threads: every one holds columns and buffers of its own.
 * Not where the statement itself had hardly begun to take memory. */
static bool may_need_less(const struct wf_connection *conn, const struct rowset *rows) {
    enum { SHARE = 4 };
    i64 limit = conn->db->mem.limit_bytes;
    i64 took = atomic_load(&rows->mem.peak_bytes) + rows->temp.peak_bytes;
    return !conn->one_thread && limit > 0 && took > limit / SHARE &&
           pool_worker_count(conn->db->pool) > 1;
}

/* A statement of its own that loses against another transaction is simply run again; inside BEGIN
 * that is for the client to decide. One that finds no memory gives kept rows back, then tries it
 * with one thread; one that meets damage does without those that the file has. */
enum { MOST_ATTEMPTS = 20 };

FALLIBLE statement_run(struct wf_connection *conn, const struct run_request *request,
                       struct rowset **out) {
    static _Atomic i32 never_cancel;
    i64 start_ns = clock_ns();
    i32 cancels = atomic_load_explicit(&conn->cancel_count, memory_order_relaxed);
    struct rowset *rows = NULL;
    bool computes = false, once = false;
    wf_status status = ERR_SERIALIZATION;
    for (int attempt = 0; status == ERR_SERIALIZATION && attempt < MOST_ATTEMPTS; attempt++) {
        if (attempt > 0) {
            error_reset(&conn->err);
        }
        TRY(rowset_new(conn, &rows));
        rows->computes = computes;
        bool alone = !conn->tx.open && conn->tx.depth == 0;
        status = run_once(conn, request, rows);
        bool fewer = status == ERR_OUT_OF_MEMORY && may_need_less(conn, rows);
        if (status) {
            rowset_release(rows);
        }
        if (!alone) {
            break;
        }
        conn->one_thread = 0;
        if (status == ERR_OUT_OF_MEMORY && !computes && keep_give_back(conn->db)) {
            computes = true; /* kept rows took what is needed now */
            status = ERR_SERIALIZATION;
        } else if (status == ERR_DAMAGED && !computes && keep_give_back(conn->db)) {
            kept_forget_file(conn->db); /* rows that the file keeps may be what cannot be read */
            computes = true;
            status = ERR_SERIALIZATION;
        } else if (fewer && !once) {
            conn->one_thread = once = true;
            status = ERR_SERIALIZATION;
        }
    }
    TRY(status);
    rows = take_rows(rows);
    rows->exec.err = &rows->err; /* the connection may go away before the rows do */
    rows->exec.cancel = &never_cancel;
    if (rows->more && !rows->conn) {
        atomic_fetch_add(&conn->refs, 1);
        rows->conn = conn;
        rows->exec.cancel = &conn->cancel_count;
        rows->exec.cancel_seen = cancels;
    }
    rows->ns = clock_ns() - start_ns;
    *out = rows;
    return ERR_OK;
}

FALLIBLE inner_run(struct wf_connection *conn, const struct inner_select *select,
                   struct rowset **out) {
    const struct run_request none = {.script = select->binding.script};
    const struct run_request *request = select->request ? select->request : &none;
    struct rowset *rows;
    TRY(rowset_new(conn, &rows));
    connection_snapshot(conn, &rows->snap);
    rows->settings.device = select->in_order ? DEVICE_CPU : rows->settings.device;
    const struct inner_scene *scene = select->scene;
    if (scene) {
        edition_release(rows->snap.edition);
        rows->snap.edition = edition_retain(scene->edition);
        rows->snap.path = scene->path[0] ? scene->path : NULL;
        rows->snap.temp_schema = scene->temp_schema;
    }
    for (i64 i = 0; scene && i < scene->count; i++) {
        snapshot_put(&rows->snap, scene->tables[i].table, scene->tables[i].version);
    }
    if (select->table) {
        snapshot_put(&rows->snap, select->table, select->version);
    }
    if (select->old) {
        snapshot_put(&rows->snap, select->old, select->old_version);
    }
    b8 *nulls = NEW_ARRAY(&rows->arena, b8, request->param_count + 1);
    for (i32 i = 0; i < request->param_count; i++) {
        nulls[i] = request->params[i].form == PARAM_NULL;
    }
    struct param_facts params = {request->param_count, request->types, nulls};
    struct binding binding = select->binding;
    binding.keeps = KEEP_NOT;
    wf_status status = compile_with(conn, &binding, &rows->snap, &params, &rows->compiled);
    if (!status) {
        status = rowset_open_exec(conn, request, rows);
    }
    if (!status) {
        status = select->starts ? rowset_start_exec(conn, rows) : rowset_run_exec(conn, rows);
    }
    if (status) {
        rowset_release(rows);
        return status;
    }
    *out = rows;
    return ERR_OK;
}
