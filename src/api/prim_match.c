/* prim_match.c: the public joins: checks, a survey of the keys where it decides something, then the
 * device. A join keeps its inputs' copies and its workspace from open to close. */
#include "api/prim_int.h"
#include "prim/match.h"

struct wf_join {
    struct call in;         /* keeps copies of the sides, and what open built */
    struct prim_block runs; /* what counting found */
    struct prim_block keys; /* integers in place of keys that are none */
    wf_place place;
    i32 key_type; /* as given: wf_elem */
    i64 limit;
    struct prim_join join;
};

_Static_assert((int)WF_JOIN_DIRECT + 1 == JOIN_ALGORITHMS, "algorithms in step");
_Static_assert((int)WF_JOIN_ANTI + 1 == KEEP_KINDS, "kinds in step");
_Static_assert((int)WF_JOIN_COLUMNS == JOIN_COLS, "columns in step");

static const char *const col_names[2][JOIN_COLS] = {
    {"column 0 of R", "column 1 of R", "column 2 of R", "column 3 of R", "column 4 of R",
     "column 5 of R", "column 6 of R", "column 7 of R"},
    {"column 0 of S", "column 1 of S", "column 2 of S", "column 3 of S", "column 4 of S",
     "column 5 of S", "column 6 of S", "column 7 of S"}};

static void take_side(struct wf_join *j, i32 side, const wf_join_side *from) {
    struct call *c = &j->in;
    struct prim_join *join = &j->join;
    CALL_NEED(c, from->column_count >= 0 && from->column_count <= JOIN_COLS, INVALID_PARAMETER,
              "%d columns of a side", from->column_count);
    CALL_NEED(c, from->columns || from->column_count <= 0, INVALID_PARAMETER,
              "columns of a side are missing");
    CALL_NEED(c, from->keys.count < 0xffffffffLL, PROGRAM_LIMIT,
              "sides have fewer than 4294967295 rows");
    join->keys[side] = call_in(c, side ? "keys of S" : "keys of R", from->keys, "UIFT");
    join->col_count[side] = from->column_count;
    for (i32 i = 0; !c->status && i < from->column_count; i++) {
        join->cols[side][i] = call_in(c, col_names[side][i], from->columns[i], "UIF");
        CALL_NEED(c, from->columns[i].count == from->keys.count, INVALID_PARAMETER,
                  "%s has another length than the keys", col_names[side][i]);
    }
}

static void take_spec(struct wf_join *j, const wf_join_spec *spec) {
    struct call *c = &j->in;
    struct prim_join *join = &j->join;
    CALL_NEED(c, (u32)spec->algorithm < JOIN_ALGORITHMS, INVALID_PARAMETER,
              "there is no algorithm number %d", (int)spec->algorithm);
    CALL_NEED(c, (u32)spec->kind < KEEP_KINDS, INVALID_PARAMETER, "there is no kind number %d",
              (int)spec->kind);
    CALL_NEED(c, spec->memory_limit >= 0, INVALID_PARAMETER, "the memory limit is negative");
    take_side(j, SIDE_R, &spec->r);
    take_side(j, SIDE_S, &spec->s);
    CALL_NEED(c, spec->r.keys.type == spec->s.keys.type, DATATYPE_MISMATCH,
              "keys of R and S are of different types");
    CALL_NEED(c,
              !spec->band || spec->r.keys.type <= WF_ELEM_I32 || spec->r.keys.type == WF_ELEM_U64 ||
                  spec->r.keys.type == WF_ELEM_I64,
              NOT_SUPPORTED, "bands are for keys that are integers");
    if (c->status) {
        return;
    }
    join->algorithm = (u8)spec->algorithm;
    join->kind = (u8)spec->kind;
    join->band = spec->band != 0;
    join->width = spec->width;
    join->sequential = spec->sequential != 0;
    join->want_rows = spec->want_rows != 0;
    j->key_type = (i32)spec->r.keys.type;
    join->key_type = (u8)spec->r.keys.type;
    join->key_bytes = (u8)elem_bytes[spec->r.keys.type];
    join->flip = elem_kinds[spec->r.keys.type] == 'I' ? 1ULL << (8 * join->key_bytes - 1) : 0;
    bool symmetric = join->kind == KEEP_INNER && !join->band;
    join->probe = symmetric && spec->r.keys.count < spec->s.keys.count ? SIDE_S : SIDE_R;
    j->limit = spec->memory_limit;
}

/* One measured body of several in a call; its workspace goes to `keep`, or is freed. */
static void run_step(struct call *c, call_body body, void *arg, struct prim_block *keep) {
    i64 device_ns = c->job.device_ns;
    c->job.work_peak = 0;
    c->job.device_ns = 0;
    call_run(c, body, arg);
    c->job.device_ns += device_ns;
    if (keep && !c->status) {
        *keep = c->work_block;
        c->work_block = (struct prim_block){.addr = NULL};
    } else {
        c->dev->prims->free(c->dev, &c->prim->x, &c->work_block);
    }
}

static FALLIBLE check_limit(const struct prim_job *job, const struct wf_join *j) {
    if (!job->measuring && j->limit && job->work_bytes > j->limit) {
        FAIL(job->x->err, OUT_OF_MEMORY,
             "join: %lld bytes are needed, memory_limit allows %lld; another algorithm may need "
             "less",
             job->work_bytes, j->limit);
    }
    return ERR_OK;
}

static wf_status words_body(struct prim_job *job, void *arg) {
    struct wf_join *j = arg;
    TRY(check_limit(job, j));
    return prim_join_words(job, &j->join);
}

static wf_status survey_body(struct prim_job *job, void *arg) {
    struct wf_join *j = arg;
    return prim_join_survey(job, &j->join);
}

static wf_status open_body(struct prim_job *job, void *arg) {
    struct wf_join *j = arg;
    TRY(check_limit(job, j));
    return prim_join_open(job, &j->join);
}

static wf_status count_body(struct prim_job *job, void *arg) {
    struct wf_join *j = arg;
    TRY(check_limit(job, j));
    return prim_join_count(job, &j->join);
}

static void open_steps(struct wf_join *j) {
    struct call *c = &j->in;
    if (c->status) {
        return;
    }
    struct prim_block built = {.addr = NULL};
    char kind = elem_kinds[j->join.key_type];
    if (kind == 'F' || kind == 'T') {
        run_step(c, words_body, j, &j->keys);
    }
    bool facts = j->join.algorithm == JOIN_AUTO || j->join.algorithm >= JOIN_PLAIN;
    if (facts) {
        run_step(c, survey_body, j, NULL);
    }
    if (!c->status) {
        c->status = prim_join_choose(&c->job, &j->join, j->limit);
    }
    run_step(c, open_body, j, &built);
    c->work_block = built;
}

wf_status wf_prim_join_open(wf_prim *prim, wf_place place, const wf_join_spec *spec,
                            wf_join **out_join) {
    if (!prim || !spec || !out_join) {
        return WF_MISUSE;
    }
    *out_join = NULL;
    struct wf_join *j = mem_alloc(&prim->db->mem, (i64)sizeof *j);
    if (!j) {
        return WF_NO_MEMORY;
    }
    memset(j, 0, sizeof *j);
    j->place = place;
    if (call_open(&j->in, prim, place, "join", NULL)) {
        take_spec(j, spec);
        open_steps(j);
    }
    if (!j->in.entered || j->in.status) {
        if (j->in.entered && j->keys.addr) {
            j->in.dev->prims->free(j->in.dev, &prim->x, &j->keys);
        }
        wf_status status = call_close(&j->in);
        mem_free(&prim->db->mem, j, (i64)sizeof *j);
        return status;
    }
    *out_join = j;
    return call_rest(&j->in);
}

void wf_prim_join_close(wf_join *join) {
    if (join) {
        struct call *c = &join->in;
        c->dev->prims->free(c->dev, &c->prim->x, &join->runs);
        c->dev->prims->free(c->dev, &c->prim->x, &join->keys);
        call_drop(c);
        mem_free(&join->in.prim->db->mem, join, (i64)sizeof *join);
    }
}

wf_join_algorithm wf_prim_join_algorithm(const wf_join *join) {
    return join ? (wf_join_algorithm)join->join.algorithm : WF_JOIN_AUTO;
}

/* --- the result --- */

struct out_args {
    struct wf_join *j;
    struct join_out out;
    i64 count;
};

static void want(struct call *c, struct out_args *a, const char *name, const wf_array *array,
                 struct join_want what) {
    if (c->status || !array->data) {
        return;
    }
    struct prim_array given = call_out(c, name, *array, what.from == FROM_KEY ? "UIFT" : "UIF");
    what.out = given.data;
    what.bytes = (u8)elem_bytes[given.type];
    a->out.want[a->out.count++] = what;
    a->out.room = MIN_OF(a->out.room, given.count);
}

static void want_side(struct call *c, struct out_args *a, i32 side, const wf_array *cols,
                      const wf_array *rows) {
    const struct prim_join *join = &a->j->join;
    CALL_NEED(c, !rows->data || elem_kinds[rows->type] != 'F', DATATYPE_MISMATCH,
              "row numbers are integers");
    CALL_NEED(c, !rows->data || join->want_rows, INVALID_PARAMETER,
              "row numbers were not asked for");
    want(c, a, side ? "rows of S" : "rows of R", rows,
         (struct join_want){.from = FROM_ROW, .side = (u8)side});
    for (i32 i = 0; cols && !c->status && i < join->col_count[side]; i++) {
        CALL_NEED(c, !cols[i].data || cols[i].type == (wf_elem)join->cols[side][i].type,
                  DATATYPE_MISMATCH, "output of %s is of another type", col_names[side][i]);
        want(c, a, col_names[side][i], &cols[i],
             (struct join_want){.from = FROM_COL, .side = (u8)side, .col = (u8)i});
    }
}

/* What is written must not be what the join still reads. */
static void out_apart(struct call *c, const struct call *in) {
    for (i32 i = 0; i < c->array_count * in->array_count; i++) {
        const struct call_array *a = &c->arrays[i / in->array_count];
        const struct call_array *b = &in->arrays[i % in->array_count];
        const u8 *x = a->data.host ? a->data.host : a->data.at;
        const u8 *y = b->data.host ? b->data.host : b->data.at;
        CALL_NEED(c, !x || !y || x >= y + b->bytes || y >= x + a->bytes, INVALID_PARAMETER,
                  "%s and %s overlap", a->name, b->name);
    }
}

static void take_out(struct call *c, struct out_args *a, const wf_join_out *out) {
    const struct prim_join *join = &a->j->join;
    a->out.room = I64_MAX;
    CALL_NEED(c, !out->keys.data || (i32)out->keys.type == a->j->key_type, DATATYPE_MISMATCH,
              "output of the keys is of another type");
    want(c, a, "keys", &out->keys, (struct join_want){.from = FROM_KEY, .side = join->probe});
    want_side(c, a, SIDE_R, out->r_columns, &out->r_rows);
    i32 of_r = a->out.count;
    want_side(c, a, SIDE_S, out->s_columns, &out->s_rows);
    CALL_NEED(c, a->out.count == of_r || join->kind < KEEP_SEMI, INVALID_PARAMETER,
              "semi and anti joins give nothing of S");
    CALL_NEED(c, a->out.count > 0, INVALID_PARAMETER, "no output is wanted");
    call_apart(c, NULL, NULL);
    out_apart(c, &a->j->in);
}

/* What the join holds goes with the GPU's context. */
static void check_there(struct call *c, const struct wf_join *j) {
    const struct prim_class *prims = c->dev->prims;
    CALL_NEED(c, !prims->lost || !prims->lost(c->dev, &j->in.work_block), GPU,
              "what it built was lost when the GPU was reset after an error; open it again");
}

struct rush_args {
    struct out_args *a;
    bool done;
};

static wf_status rush_body(struct prim_job *job, void *arg) {
    struct rush_args *r = arg;
    struct prim_join *join = &r->a->j->join;
    TRY(prim_join_rush(job, join, &r->a->out, &r->done));
    r->a->count = r->done ? join->total : 0;
    return ERR_OK;
}

static wf_status write_body(struct prim_job *job, void *arg) {
    struct out_args *a = arg;
    return prim_join_write(job, &a->j->join, &a->out, &a->count);
}

/* The rows that follow; `all`: there must be room for every one of them. */
static void next_steps(struct call *c, struct out_args *a, bool all) {
    struct prim_join *join = &a->j->join;
    if (c->status || join->done == join->total) {
        return;
    }
    struct rush_args rush = {a, false};
    run_step(c, rush_body, &rush, NULL);
    if (rush.done || c->status) {
        return;
    }
    if (!join->counted) {
        run_step(c, count_body, a->j, &a->j->runs);
    }
    if (!c->status && all && join->total > a->out.room) {
        a->count = join->total;
        call_fail(c, ERR_PROGRAM_LIMIT, "%lld rows, and room for %lld", join->total, a->out.room);
    }
    run_step(c, write_body, a, NULL);
}

static void give_back(struct call *c, const struct out_args *a, i64 count) {
    for (i32 i = 0; i < c->array_count; i++) {
        struct call_array *out = &c->arrays[i];
        out->filled = MIN_OF(out->bytes, count * a->out.want[i].bytes);
    }
}

wf_status wf_prim_join_next(wf_join *join, const wf_join_out *out, int64_t *out_count) {
    if (!join || !out || !out_count) {
        return WF_MISUSE;
    }
    struct call c;
    struct out_args a = {.j = join};
    *out_count = 0;
    if (call_open(&c, join->in.prim, join->place, "join", NULL)) {
        check_there(&c, join);
        take_out(&c, &a, out);
        CALL_NEED(&c, a.out.room > 0 || join->join.total == join->join.done, INVALID_PARAMETER,
                  "there is no room for a row");
        next_steps(&c, &a, false);
        *out_count = c.status ? 0 : a.count;
        give_back(&c, &a, *out_count);
    }
    return call_close(&c);
}

wf_status wf_prim_join_count(wf_join *join, int64_t *out_count) {
    if (!join || !out_count) {
        return WF_MISUSE;
    }
    struct call c;
    *out_count = 0;
    if (call_open(&c, join->in.prim, join->place, "join", NULL)) {
        check_there(&c, join);
        if (!c.status && join->join.total < 0) {
            run_step(&c, count_body, join, &join->runs);
        }
        *out_count = c.status ? 0 : join->join.total;
    }
    return call_close(&c);
}

wf_status wf_prim_join(wf_prim *prim, wf_place place, const wf_join_spec *spec,
                       const wf_join_out *out, int64_t *out_count) {
    if (!out || !out_count) {
        return WF_MISUSE;
    }
    *out_count = 0;
    wf_join *join = NULL;
    wf_status status = wf_prim_join_open(prim, place, spec, &join);
    if (status) {
        return status;
    }
    i64 ns = prim->ns;
    i64 device_ns = prim->device_ns;
    i64 launches = prim->launches;
    i64 moved = prim->bytes_moved;
    struct call c;
    struct out_args a = {.j = join};
    if (call_open(&c, prim, place, "join", NULL)) {
        check_there(&c, join);
        take_out(&c, &a, out);
        next_steps(&c, &a, true);
        *out_count = a.count;
        give_back(&c, &a, a.count);
    }
    status = call_close(&c);
    wf_prim_join_close(join);
    prim->ns += ns;
    prim->device_ns += device_ns;
    prim->launches += launches;
    prim->bytes_moved += moved;
    return status;
}
