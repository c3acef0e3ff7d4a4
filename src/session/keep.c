/* keep.c: kept rows of derived predicates, brought up to date when somebody reads them.
 *
 * Before a statement runs, what it reads of kept rows is compared with the versions its snapshot has:
 * inputs first, since kept rows may follow from others. What follows from other versions is updated
 * by plans of the rules (logiql/upkeep.c): rows that inputs lost take with them what may have come of
 * them, unless that is more than a tenth; then what is new is added. Where it is not known what
 * changed, or too much has, or something is negated or numbered, all is computed anew; of
 * aggregations groups are. The outcome
 * is published like a compaction: it takes the place of the rows it came from unless somebody was
 * faster. Nothing here may fail a statement that could do without: whoever cannot have kept rows
 * computes for himself. See decision 0028. */
#include "session/kept.h"

#include "logiql/logiql.h"

enum { LOST_SHARE = 10, SPREAD_PAUSE = 8, FEW_GROUPS = 16 };

struct refresh {
    struct wf_connection *conn;
    struct snapshot *snap;
    struct kept_shape *shape;
    struct text *log;
    struct arena arena;
    struct kept_state *old; /* NULL = none */
    struct kept_state *made;
    struct table_version **now; /* by input; borrowed */
    struct kept_state **subs;   /* by input that is derived; retained */
    struct table_version **lost, **added; /* by input: what it has no more, what is new; or NULL */
    VEC(struct snapshot_table) scene; /* what a plan reads; alias tables are the scene's */
    VEC(struct lq_changed) changes;
    VEC(struct table *) aliases;
    i64 lost_rows, gained_rows;
    bool follows; /* however much has changed */
    bool loses_all; /* something negated has more rows: any of ours may have gone */
};

/* --- how things stand --- */

enum standing { FRESH, UPDATE, COMPUTE, ELSEWHERE };

static bool same_rows(const struct table_version *a, const struct table_version *b) {
    return a == b || a->content_no == b->content_no;
}

/* Whether the old state's version of input i comes before the one at hand in one line of versions. */
static enum standing input_standing(const struct refresh *r, i64 i) {
    const struct kept_input *input = &r->shape->inputs[i];
    const struct table_version *then = r->old->inputs[i];
    if (same_rows(then, r->now[i])) {
        return FRESH;
    }
    if (input->shape) {
        const struct kept_state *sub = r->subs[i];
        for (i32 k = 0; k < sub->ancestor_count; k++) {
            if (sub->ancestors[k] == r->old->input_states[i]) {
                return UPDATE;
            }
        }
        return COMPUTE;
    }
    const struct edition_entry *base = edition_find_oid(r->conn->tx.base, input->object->oid);
    if (!r->old->is_private && base && base->version->commit_no < then->commit_no) {
        return ELSEWHERE; /* others are further: their rows are not to be replaced by older ones */
    }
    return r->old->is_private || base ? UPDATE : COMPUTE;
}

/* Much of what is kept is rows that are gone. */
static bool is_worn(const struct kept_state *state) {
    enum { LEAST = 1024 };
    for (i64 m = 0; m < state->row_count; m++) {
        const struct table_version *rows = state->rows[m];
        if (rows->rows > 2 * rows->live_rows + LEAST) {
            return true;
        }
    }
    return false;
}

static i64 count_rows(const struct kept_state *state) {
    i64 rows = 0;
    for (i64 m = 0; m < state->row_count; m++) {
        rows += state->rows[m]->live_rows;
    }
    return rows;
}

/* So little that all of it may be derived again: what constraints find, most of all. */
static bool is_small(const struct kept_state *state) {
    enum { MOST = 1000 };
    return count_rows(state) <= MOST;
}

static enum standing how_it_stands(const struct refresh *r, const char **out_why) {
    enum standing all = r->old ? FRESH : COMPUTE;
    *out_why = "not computed yet";
    for (i64 i = 0; r->old && i < r->shape->input_count; i++) {
        enum standing one = input_standing(r, i);
        if (one == ELSEWHERE) {
            *out_why = "the snapshot is older";
            return ELSEWHERE;
        }
        u8 negation = r->shape->inputs[i].negation;
        bool unknown = negation == LQ_ABOUT_ALL || (negation == LQ_NEGATED && !is_small(r->old));
        if (one != FRESH && unknown) {
            *out_why = "what changed is negated or numbered";
            one = COMPUTE;
        } else if (one == COMPUTE && all != COMPUTE) {
            *out_why = "what it reads was computed anew";
        }
        all = MAX_OF(all, one);
    }
    if (all == UPDATE && !r->follows && is_worn(r->old)) {
        *out_why = "much of it has gone";
        return COMPUTE;
    }
    return all;
}

/* The versions that the snapshot has of all inputs. *out_fits: they can be had. */
static FALLIBLE take_inputs(struct refresh *r, bool updates, bool *out_fits) {
    struct kept_shape *shape = r->shape;
    *out_fits = true;
    r->now = NEW_ARRAY(&r->arena, struct table_version *, shape->input_count + 1);
    r->subs = NEW_ARRAY(&r->arena, struct kept_state *, shape->input_count + 1);
    r->lost = NEW_ARRAY(&r->arena, struct table_version *, shape->input_count + 1);
    r->added = NEW_ARRAY(&r->arena, struct table_version *, shape->input_count + 1);
    TRY(arena_check(&r->arena, &r->conn->err));
    for (i64 i = 0; i < shape->input_count && *out_fits; i++) {
        const struct kept_input *input = &shape->inputs[i];
        const struct edition_entry *entry =
            edition_find_oid(r->snap->edition, input->object->oid);
        *out_fits = entry && entry->object == input->object;
        if (*out_fits && input->shape) {
            if (updates) {
                TRY(keep_refresh(r->conn, r->snap, input->shape, r->log, &r->subs[i]));
            } else {
                r->subs[i] = state_find(r->conn, input->shape);
            }
            *out_fits = r->subs[i] != NULL;
            r->now[i] = r->subs[i] ? r->subs[i]->rows[input->member] : NULL;
        } else if (*out_fits) {
            r->now[i] = entry->version;
            *out_fits = snapshot_of(r->snap, entry).version == entry->version;
        }
    }
    return ERR_OK;
}

static void refresh_fini(struct refresh *r) {
    for (i64 i = 0; r->subs && i < r->shape->input_count; i++) {
        state_release(r->subs[i]);
    }
    for (i64 i = 0; r->added && i < r->shape->input_count; i++) {
        version_release(r->lost[i]);
        version_release(r->added[i]);
    }
    for (i64 i = 0; i < r->aliases.count; i++) {
        table_close(r->aliases.items[i]);
    }
    state_release(r->old);
    state_release(r->made);
    arena_fini(&r->arena);
}

/* --- plans --- */

struct upkeep_arg {
    struct rule_keeper keeper;
    const struct lq_upkeep *request;
    const struct kept_shape *shape;
};

/* The rows of an input as the scene has them: those of the shape's own input, whatever shapes there are
 * by now. */
static wf_status scene_find(struct rule_keeper *keeper, struct snapshot *snap,
                            const struct object *view, struct kept_rows *out, struct error *err) {
    const struct kept_shape *shape = ((struct upkeep_arg *)(void *)keeper)->shape;
    UNUSED(err);
    *out = (struct kept_rows){0};
    for (i64 i = 0; i < shape->input_count && !out->are_kept; i++) {
        const struct kept_input *input = &shape->inputs[i];
        if (!input->shape || input->object != view) {
            continue;
        }
        const struct table *table = input->shape->tables[input->member];
        out->kinds = input->shape->kinds[input->member];
        for (i64 k = 0; k < snap->tables.count && !out->are_kept; k++) {
            if (snap->tables.items[k].table == table) {
                out->table = snap->tables.items[k];
                out->are_kept = 1;
            }
        }
        ASSERT(out->are_kept);
    }
    return ERR_OK;
}

static wf_status bind_upkeep(void *arg, struct arena *arena, struct snapshot *snap,
                             struct type *param_types, struct statement *out, struct error *err) {
    struct plan *plan = NEW(arena, struct plan);
    struct upkeep_arg *upkeep = arg;
    UNUSED(param_types);
    *plan = (struct plan){.arena = arena, .evaluator = snap->evaluator};
    memset(out, 0, sizeof *out);
    out->kind = STATEMENT_SELECT;
    out->position = -1;
    out->plan = plan;
    snap->keeper = &upkeep->keeper;
    TRY(logiql_upkeep(plan, snap, upkeep->request, err));
    rel_place(arena, plan->root, -1);
    return ERR_OK;
}

static FALLIBLE run_upkeep(struct refresh *r, const struct lq_upkeep *request, bool starts,
                           struct rowset **out) {
    struct upkeep_arg arg = {{scene_find}, request, r->shape};
    struct inner_scene scene = {r->snap->edition, r->shape->path, r->shape->temp_schema,
                                r->scene.count, r->scene.items};
    struct inner_select select = {.binding.text = SV(""),
                                  .binding.bind = bind_upkeep,
                                  .binding.arg = &arg,
                                  .scene = &scene,
                                  .starts = starts};
    return inner_run(r->conn, &select, out);
}

static void scene_add(struct refresh *r, struct table *table, struct table_version *version) {
    struct snapshot_table entry = {table, version};
    VEC_PUSH(&r->arena, &r->scene, entry);
}

/* Rows of a table as a table of their own. */
static FALLIBLE scene_alias(struct refresh *r, struct table *table, struct table_version *rows,
                            struct snapshot_table *out) {
    struct wf_database *db = r->conn->db;
    struct table_def def = table_def_view(table);
    struct table *alias = table_open_def(&db->mem, catalog_new_id(db->catalog), &def, table->dicts,
                                         table->tablet_shift, table->plain);
    if (!alias) {
        return memory_refused(&db->mem, &r->conn->err, (i64)sizeof *alias);
    }
    VEC_PUSH(&r->arena, &r->aliases, alias);
    scene_add(r, alias, rows);
    *out = (struct snapshot_table){alias, rows};
    return ERR_OK;
}

static struct table *input_table(const struct refresh *r, i64 i) {
    const struct kept_input *input = &r->shape->inputs[i];
    return input->shape ? input->shape->tables[input->member] : input->object->table;
}

/* Inputs as they were, or as they are; what `changed` has of them besides. */
static FALLIBLE scene_open(struct refresh *r, struct table_version *const *inputs,
                           struct table_version *const *changed) {
    r->scene.count = 0;
    r->changes.count = 0;
    for (i64 i = 0; i < r->shape->input_count; i++) {
        struct table *table = input_table(r, i);
        scene_add(r, table, inputs[i]);
        if (changed && changed[i] && changed[i]->live_rows > 0) {
            struct lq_changed change = {.table_id = table->id};
            TRY(scene_alias(r, table, changed[i], &change.rows));
            VEC_PUSH(&r->arena, &r->changes, change);
        }
    }
    return arena_check(&r->arena, &r->conn->err);
}

/* --- computing --- */

/* Marks the answer's rows whose first column, the number of a member, is this; how many. */
static i64 mark_member(const struct rowset *rows, i64 member, b8 *out) {
    i64 at = 0, count = 0;
    for (i64 s = 0; s < rows->answer.slice_count; s++) {
        const struct slice *slice = &rows->answer.slices[s];
        const i64 *numbers = (const i64 *)slice->chunk->cols[0].data + slice->first;
        for (i64 i = 0; i < slice->rows; i++) {
            out[at] = numbers[i] == member;
            count += out[at++];
        }
    }
    return count;
}

/* The rows of an answer behind those of `base`, member by member. */
static FALLIBLE append_members(struct refresh *r, struct rowset *rows,
                               struct table_version *const *base) {
    struct wf_connection *conn = r->conn;
    u32 first = 1;
    b8 *mine = NEW_ARRAY(&rows->arena, b8, rows->answer.rows + 1);
    TRY(arena_check(&rows->arena, &conn->err));
    for (i64 m = 0; m < r->shape->member_count; m++) {
        struct table *table = r->shape->tables[m];
        struct chosen chosen = {first, mine, mark_member(rows, m, mine)};
        r->gained_rows += chosen.count;
        if (chosen.count > 0) {
            TRY(append_chosen(conn, rows, table, base[m], &chosen, &r->made->rows[m]));
        } else {
            r->made->rows[m] = version_retain(base[m]);
        }
        first += table->col_count;
    }
    return ERR_OK;
}

static FALLIBLE append_found(struct refresh *r, struct rowset *rows,
                             struct table_version *const *base) {
    if (r->shape->member_count > 1) {
        return append_members(r, rows, base);
    }
    struct table_version *made = NULL;
    TRY(append_answer(r->conn, rows, r->shape->tables[0], base[0], &r->gained_rows, &made));
    r->made->rows[0] = made ? made : version_retain(base[0]);
    return ERR_OK;
}

static FALLIBLE run_and_append(struct refresh *r, const struct lq_upkeep *request,
                               struct table_version *const *base) {
    struct rowset *rows = NULL;
    TRY(run_upkeep(r, request, r->shape->member_count == 1, &rows));
    wf_status status = append_found(r, rows, base);
    rowset_release(rows);
    return status;
}

/* Versions without rows, in line with those there are. */
static FALLIBLE empty_rows(struct refresh *r, struct table_version **out) {
    for (i64 m = 0; m < r->shape->member_count; m++) {
        struct table *table = r->shape->tables[m];
        if (r->old) {
            TRY(version_truncate(table, r->old->rows[m], &out[m], &r->conn->err));
        } else {
            out[m] = table_snapshot(table);
        }
    }
    return ERR_OK;
}

static void release_all(struct table_version **versions, i64 count) {
    for (i64 i = 0; i < count; i++) {
        version_release(versions[i]);
    }
}

/* More rows than these are quicker computed than put away, or take too much of the memory. */
static i64 rows_most(const struct refresh *r) {
    enum { MOST = 1 << 26, SHARE = 4 };
    i64 row_bytes = 0;
    for (i64 m = 0; m < r->shape->member_count; m++) {
        const struct table *table = r->shape->tables[m];
        for (u32 c = 0; c < table->col_count; c++) {
            row_bytes += kind_bytes[type_kind(table->cols[c].type)];
        }
    }
    i64 limit = r->conn->db->mem.limit_bytes;
    i64 most = limit ? limit / SHARE / MAX_OF(row_bytes, 1) : MOST;
    return MAX_OF(MIN_OF(most, MOST), 1);
}

static FALLIBLE compute(struct refresh *r) {
    struct kept_shape *shape = r->shape;
    struct table_version **empty = NEW_ARRAY(&r->arena, struct table_version *, shape->member_count);
    struct lq_upkeep request = {.kind = LQ_ALL,
                                .members = (const struct object *const *)shape->members,
                                .kinds = shape->kinds,
                                .member_count = shape->member_count,
                                .enough = rows_most(r)};
    TRY(arena_check(&r->arena, &r->conn->err));
    wf_status status = empty_rows(r, empty);
    status = status ? status : scene_open(r, r->now, NULL);
    status = status ? status : run_and_append(r, &request, empty);
    release_all(empty, shape->member_count);
    atomic_store(&shape->large, !status && r->gained_rows >= request.enough);
    return status;
}

/* --- updating --- */

/* What inputs have no more and what they have gained. *out_many: too much to follow. */
static FALLIBLE find_changes(struct refresh *r, bool *out_lost, bool *out_many) {
    *out_lost = *out_many = false;
    for (i64 i = 0; i < r->shape->input_count && !*out_many; i++) {
        bool negated = r->shape->inputs[i].negation == LQ_NEGATED;
        struct table *table = input_table(r, i);
        struct table_version *then = r->old->inputs[i];
        if (same_rows(then, r->now[i])) {
            continue;
        }
        TRY(version_removed(table, then, r->now[i], &r->lost[i], &r->conn->err));
        TRY(version_delta(table, then, r->now[i], &r->added[i], &r->conn->err));
        i64 lost = r->lost[i]->live_rows;
        *out_lost = *out_lost || lost > 0;
        *out_many = !r->follows && (lost * LOST_SHARE > then->live_rows ||
                                    r->added[i]->live_rows > then->live_rows);
        *out_many = negated ? lost > 0 : *out_many; /* who knows what was kept from being derived */
        r->loses_all = r->loses_all || (negated && r->added[i]->live_rows > 0);
    }
    return ERR_OK;
}

/* The numbers of the member's rows in an answer; all of it where there is one member. */
static FALLIBLE take_numbers(struct refresh *r, const struct rowset *rows, i64 member,
                             struct deletion *out) {
    bool several = r->shape->member_count > 1;
    i64 *numbers = NEW_ARRAY(&r->arena, i64, rows->answer.rows + 1);
    TRY(arena_check(&r->arena, &r->conn->err));
    *out = (struct deletion){.rows = numbers};
    for (i64 s = 0; s < rows->answer.slice_count; s++) {
        const struct slice *slice = &rows->answer.slices[s];
        const i64 *first = (const i64 *)slice->chunk->cols[0].data + slice->first;
        const i64 *last =
            several ? (const i64 *)slice->chunk->cols[1].data + slice->first : first;
        for (i64 i = 0; i < slice->rows; i++) {
            if (last[i] >= 0 && (!several || first[i] == member)) {
                numbers[out->count++] = last[i];
            }
        }
    }
    return ERR_OK;
}

/* Versions without what may have gone; retained. */
static FALLIBLE lose_rows(struct refresh *r, const struct rowset *rows,
                          struct table_version *const *from, struct table_version **out) {
    for (i64 m = 0; m < r->shape->member_count; m++) {
        struct deletion gone;
        TRY(take_numbers(r, rows, m, &gone));
        if (gone.count == 0) {
            out[m] = version_retain(from[m]);
            continue;
        }
        TRY(version_delete(r->shape->tables[m], from[m], &gone, &out[m], &r->conn->err));
        r->lost_rows += gone.deleted;
    }
    return ERR_OK;
}

static struct snapshot_table *member_rows(struct refresh *r, struct table_version *const *rows) {
    struct snapshot_table *out =
        NEW_ARRAY(&r->arena, struct snapshot_table, r->shape->member_count);
    for (i64 m = 0; m < r->shape->member_count; m++) {
        out[m] = (struct snapshot_table){r->shape->tables[m], rows[m]};
        scene_add(r, r->shape->tables[m], rows[m]);
    }
    return out;
}

static FALLIBLE find_lost(struct refresh *r, struct table_version **out, bool *out_many) {
    struct kept_shape *shape = r->shape;
    struct rowset *rows = NULL;
    i64 total = 0;
    for (i64 m = 0; m < shape->member_count; m++) {
        total += r->old->rows[m]->live_rows;
    }
    TRY(scene_open(r, r->old->inputs, r->lost));
    struct lq_upkeep request = {.kind = LQ_LOST,
                                .members = (const struct object *const *)shape->members,
                                .kinds = shape->kinds,
                                .member_count = shape->member_count,
                                .rows = member_rows(r, r->old->rows),
                                .changes = r->changes.items,
                                .change_count = r->changes.count,
                                .enough = r->follows ? 0 : total / LOST_SHARE + 1};
    TRY(arena_check(&r->arena, &r->conn->err));
    TRY(run_upkeep(r, &request, false, &rows));
    *out_many = !r->follows && rows->answer.rows * LOST_SHARE > total;
    wf_status status = *out_many ? ERR_OK : lose_rows(r, rows, r->old->rows, out);
    rowset_release(rows);
    return status;
}

/* One of the answer's numbers says how many groups have no row. */
static i64 take_missing(const struct rowset *rows) {
    i64 missing = 0;
    for (i64 s = 0; s < rows->answer.slice_count; s++) {
        const struct slice *slice = &rows->answer.slices[s];
        const i64 *numbers = (const i64 *)slice->chunk->cols[0].data + slice->first;
        for (i64 i = 0; i < slice->rows; i++) {
            missing = numbers[i] < 0 ? -1 - numbers[i] : missing;
        }
    }
    return missing;
}

static bool any_rows(const struct refresh *r, struct table_version *const *versions) {
    bool any = false;
    for (i64 i = 0; i < r->shape->input_count; i++) {
        any = any || (versions[i] && versions[i]->live_rows > 0);
    }
    return any;
}

/* Groups of changed rows go, to be computed again. `whole`: each of them had a row; one that had none, since its value
 * was undefined, may have one now, and nobody knows which it is. */
static FALLIBLE lose_groups(struct refresh *r, struct table_version *const *inputs,
                            struct table_version *const *changed, bool whole,
                            struct table_version **io, bool *out_many) {
    struct kept_shape *shape = r->shape;
    struct rowset *rows = NULL;
    i64 total = r->old->rows[0]->live_rows;
    if (*out_many || !any_rows(r, changed)) {
        return ERR_OK;
    }
    TRY(scene_open(r, inputs, changed));
    struct lq_upkeep request = {.kind = LQ_LOST,
                                .members = (const struct object *const *)shape->members,
                                .kinds = shape->kinds,
                                .member_count = 1,
                                .rows = member_rows(r, io),
                                .changes = r->changes.items,
                                .change_count = r->changes.count};
    TRY(arena_check(&r->arena, &r->conn->err));
    TRY(run_upkeep(r, &request, false, &rows));
    i64 missing = take_missing(rows);
    i64 groups = rows->answer.rows - 1 + missing; /* or their rows, where they have several */
    bool undefined = whole && missing > 0;
    *out_many = undefined || (!r->follows && groups * LOST_SHARE > total && groups > FEW_GROUPS);
    struct table_version *left = NULL;
    wf_status status = *out_many ? ERR_OK : lose_rows(r, rows, io, &left);
    rowset_release(rows);
    if (left) {
        version_release(io[0]);
        io[0] = left;
    }
    return status;
}

/* Of rows that are gone the inputs as they were tell the groups, of new ones the inputs as they are. */
static FALLIBLE find_lost_groups(struct refresh *r, struct table_version **out, bool *out_many) {
    out[0] = version_retain(r->old->rows[0]);
    TRY(lose_groups(r, r->old->inputs, r->lost, true, out, out_many));
    return lose_groups(r, r->now, r->added, false, out, out_many);
}

static bool is_grouped(const struct kept_shape *shape) {
    bool grouped = false;
    for (i64 i = 0; i < shape->input_count; i++) {
        grouped = grouped || shape->inputs[i].negation == LQ_GROUPED;
    }
    return grouped && shape->member_count == 1;
}

static FALLIBLE find_gained(struct refresh *r, struct table_version *const *left) {
    struct kept_shape *shape = r->shape;
    i64 count = shape->member_count;
    struct snapshot_table *lost = NEW_ARRAY(&r->arena, struct snapshot_table, count);
    struct table_version **gone = NEW_ARRAY(&r->arena, struct table_version *, count);
    TRY(scene_open(r, r->now, r->added));
    struct lq_upkeep request = {.kind = LQ_GAINED,
                                .members = (const struct object *const *)shape->members,
                                .kinds = shape->kinds,
                                .member_count = count,
                                .rows = member_rows(r, left),
                                .lost = lost,
                                .changes = r->changes.items,
                                .change_count = r->changes.count};
    wf_status status = arena_check(&r->arena, &r->conn->err);
    for (i64 m = 0; m < count && !status; m++) {
        if (left[m] == r->old->rows[m]) {
            continue;
        }
        status = version_removed(shape->tables[m], r->old->rows[m], left[m], &gone[m],
                                 &r->conn->err);
        status = status ? status : scene_alias(r, shape->tables[m], gone[m], &lost[m]);
    }
    status = status ? status : run_and_append(r, &request, left);
    release_all(gone, count);
    return status;
}

/* *out_done: it was possible. */
static FALLIBLE update(struct refresh *r, const char **out_why, bool *out_done) {
    struct kept_shape *shape = r->shape;
    bool lost = false, many = false;
    *out_done = false;
    TRY(find_changes(r, &lost, &many));
    if (many) {
        *out_why = "much of what it reads has changed";
        return ERR_OK;
    }
    bool grouped = is_grouped(shape);
    if (lost && !grouped && !r->loses_all && !r->follows && atomic_load(&shape->spread) > 0) {
        atomic_fetch_sub(&shape->spread, 1);
        *out_why = "what was deleted before spread";
        return ERR_OK;
    }
    struct table_version **left = NEW_ARRAY(&r->arena, struct table_version *, shape->member_count);
    TRY(arena_check(&r->arena, &r->conn->err));
    wf_status status = ERR_OK;
    if (r->loses_all) {
        status = empty_rows(r, left);
        r->lost_rows = count_rows(r->old);
    } else if (grouped) {
        status = find_lost_groups(r, left, &many);
    } else if (lost) {
        status = find_lost(r, left, &many);
    } else {
        for (i64 m = 0; m < shape->member_count; m++) {
            left[m] = version_retain(r->old->rows[m]);
        }
    }
    if (!status && many) {
        atomic_store(&shape->spread, grouped ? 0 : SPREAD_PAUSE);
        *out_why = grouped ? "many groups changed" : "what was deleted spreads";
    } else if (!status) {
        status = find_gained(r, left);
        *out_done = !status;
    }
    release_all(left, shape->member_count);
    return status;
}

/* --- for readers --- */

static FALLIBLE state_open(struct refresh *r) {
    r->made = state_new(r->conn, r->shape, r->old);
    if (!r->made) {
        return memory_refused(&r->conn->db->mem, &r->conn->err, (i64)sizeof *r->made);
    }
    for (i64 i = 0; i < r->shape->input_count; i++) {
        const struct kept_input *input = &r->shape->inputs[i];
        const struct edition_entry *base = edition_find_oid(r->conn->tx.base, input->object->oid);
        r->made->inputs[i] = version_retain(r->now[i]);
        r->made->input_states[i] = input->shape ? r->subs[i]->id : 0;
        r->made->is_private |= input->shape ? r->subs[i]->is_private
                                            : !base || base->version != r->now[i];
    }
    return ERR_OK;
}

static void print_names(struct text *out, const struct kept_shape *shape) {
    for (i64 m = 0; m < shape->member_count; m++) {
        text_print(out, "%s%s", m ? ", " : "", shape->members[m]->name);
    }
}

static void log_made(const struct refresh *r, enum standing standing, const char *why, i64 ns) {
    struct text *out = r->log;
    if (!out) {
        return;
    }
    print_names(out, r->shape);
    if (standing == FRESH) {
        text_print(out, ": kept, %lld rows\n", count_rows(r->old));
    } else if (standing == UPDATE) {
        text_print(out, ": updated, %lld rows lost, %lld gained, %lld rows, in %s\n", r->lost_rows,
                   r->gained_rows, count_rows(r->made), duration_of(ns).text);
    } else if (standing == COMPUTE) {
        text_print(out, ": computed (%s), %lld rows, in %s\n", why, count_rows(r->made),
                   duration_of(ns).text);
    } else {
        text_print(out, ": not kept (%s)\n", why);
    }
}

/* Makes r->made, or leaves it NULL where the old state is the right one. */
static FALLIBLE bring_up(struct refresh *r, struct kept_state **out) {
    const char *why = "";
    i64 start_ns = clock_ns();
    r->old = state_find(r->conn, r->shape);
    enum standing standing = how_it_stands(r, &why);
    if (standing == FRESH) {
        *out = state_retain(r->old);
    }
    if (standing == UPDATE || standing == COMPUTE) {
        TRY(state_open(r));
    }
    if (standing == UPDATE) {
        bool done = false;
        TRY(update(r, &why, &done));
        standing = done ? UPDATE : COMPUTE;
    }
    if (standing == COMPUTE) {
        TRY(compute(r));
    }
    if (atomic_load(&r->shape->large)) { /* not all of its rows are there */
        standing = ELSEWHERE;
        why = "too many rows";
    } else if (r->made) {
        state_publish(r->conn, r->shape, r->made);
        *out = state_retain(r->made);
    }
    log_made(r, standing, why, clock_ns() - start_ns);
    return ERR_OK;
}

static bool is_final(wf_status status) {
    return status == ERR_CANCELLED;
}

FALLIBLE keep_refresh(struct wf_connection *conn, struct snapshot *snap, struct kept_shape *shape,
                      struct text *log, struct kept_state **out) {
    struct refresh r = {.conn = conn,
                        .snap = snap,
                        .shape = shape,
                        .log = log,
                        .follows = conn->settings.derived == DERIVED_FOLLOWED};
    bool fits = false;
    *out = NULL;
    arena_init(&r.arena, &conn->db->mem);
    wf_status status = atomic_load(&shape->large) ? ERR_OK : take_inputs(&r, true, &fits);
    if (!status && fits) {
        status = bring_up(&r, out);
    }
    if (status && !is_final(status)) { /* computing it may still be possible, or tell why not */
        error_reset(&conn->err);
        status = ERR_OK;
    }
    refresh_fini(&r);
    return status;
}

/* What there is of kept rows, without doing anything. */
static FALLIBLE look(struct refresh *r, enum standing *out, const char **out_why) {
    bool fits = false;
    TRY(take_inputs(r, false, &fits));
    r->old = fits ? state_find(r->conn, r->shape) : NULL;
    *out = how_it_stands(r, out_why);
    for (i64 i = 0; i < r->shape->input_count && fits && *out == FRESH; i++) {
        struct refresh below = {
            .conn = r->conn, .snap = r->snap, .shape = r->shape->inputs[i].shape};
        const char *why = "";
        if (below.shape) { /* kept rows that are themselves stale */
            arena_init(&below.arena, &r->conn->db->mem);
            wf_status status = look(&below, out, &why);
            refresh_fini(&below);
            TRY(status);
            *out = *out == FRESH ? FRESH : UPDATE;
        }
    }
    return ERR_OK;
}

FALLIBLE keep_word(struct wf_connection *conn, struct snapshot *snap, const char *predicate,
                   const char **out) {
    struct refresh r = {.conn = conn, .snap = snap};
    const char *why = "";
    enum standing standing = ELSEWHERE;
    const struct edition_entry *entry =
        snapshot_lookup(snap, (struct sv){NULL, 0}, sv_from(predicate));
    *out = "no";
    if (!entry || conn->settings.derived == DERIVED_COMPUTED) {
        return ERR_OK;
    }
    TRY(shape_find(conn, snap, entry->object, &r.shape));
    if (r.shape && r.shape->worth && !atomic_load(&r.shape->large)) {
        arena_init(&r.arena, &conn->db->mem);
        wf_status status = look(&r, &standing, &why);
        *out = !r.old ? "later" : standing == FRESH ? "fresh" : "stale";
        refresh_fini(&r);
        shape_release(r.shape);
        return status;
    }
    shape_release(r.shape);
    return ERR_OK;
}

FALLIBLE keep_describe(struct wf_connection *conn, struct snapshot *snap, struct kept_shape *shape,
                       struct text *out) {
    static const char *const words[] = {"kept", "kept, to be updated", "to be computed",
                                        "not kept"};
    struct refresh r = {.conn = conn, .snap = snap, .shape = shape};
    const char *why = "";
    enum standing standing = COMPUTE;
    arena_init(&r.arena, &conn->db->mem);
    wf_status status = look(&r, &standing, &why);
    if (!status) {
        print_names(out, shape);
        text_print(out, ": %s", words[standing]);
        if (standing == COMPUTE || standing == ELSEWHERE) {
            text_print(out, " (%s)", why);
        } else {
            text_print(out, ", %lld rows", count_rows(r.old));
        }
        text_print(out, "\n");
    }
    refresh_fini(&r);
    return status;
}

/* --- for statements --- */

static wf_status keeper_find(struct rule_keeper *keeper, struct snapshot *snap,
                             const struct object *view, struct kept_rows *out,
                             struct error *err) {
    struct keeping *k = (struct keeping *)keeper;
    struct kept_shape *shape = NULL;
    UNUSED(err); /* the connection's */
    *out = (struct kept_rows){0};
    TRY(shape_find(k->conn, snap, view, &shape));
    i64 member = shape ? shape_member(shape, view) : -1;
    if (member < 0 || !shape->worth || atomic_load(&shape->large)) {
        shape_release(shape);
        return ERR_OK;
    }
    struct table *table = shape->tables[member];
    out->kinds = shape->kinds[member];
    for (i64 i = 0; i < snap->tables.count && !out->are_kept; i++) {
        if (snap->tables.items[i].table == table) {
            out->table = snap->tables.items[i];
            out->are_kept = 1;
        }
    }
    bool noted = false;
    for (i64 i = 0; i < k->c->kept.count; i++) {
        noted = noted || k->c->kept.items[i] == shape;
    }
    if (!noted) {
        VEC_PUSH(&k->c->arena, &k->c->kept, shape_retain(shape));
    }
    if (!out->are_kept) { /* as it was, or empty: what it is shows before the execution */
        struct kept_state *state = state_find(k->conn, shape);
        struct table_version *rows =
            state ? version_retain(state->rows[member]) : table_snapshot(table);
        snapshot_put(snap, table, rows);
        out->table = (struct snapshot_table){table, rows};
        out->are_kept = 1;
        version_release(rows);
        state_release(state);
    }
    shape_release(shape);
    return ERR_OK;
}

void keeping_init(struct keeping *keeping, struct wf_connection *conn, struct compiled *c) {
    *keeping = (struct keeping){{keeper_find}, conn, c};
}

void kept_release(struct compiled *c) {
    for (i64 i = 0; i < c->kept.count; i++) {
        shape_release(c->kept.items[i]);
    }
    c->kept.count = 0;
}

FALLIBLE keep_fill(struct wf_connection *conn, struct rowset *rows, bool *out_gone) {
    const struct compiled *c = rows->compiled;
    struct text *log = NULL;
    *out_gone = false;
    if (c->kept.count > 0 && !rows->kept_log.arena) { /* what is done first is what there is to tell */
        log = &rows->kept_log;
        text_init(log, &rows->arena);
    }
    for (i64 i = 0; i < c->kept.count; i++) {
        struct kept_shape *shape = c->kept.items[i];
        struct kept_state *state = NULL;
        TRY(keep_refresh(conn, &rows->snap, shape, log, &state));
        if (!state) {
            rows->computes = 1;
            *out_gone = true;
            return ERR_OK;
        }
        for (i64 m = 0; m < shape->member_count; m++) {
            snapshot_set(&rows->snap, shape->tables[m], state->rows[m]);
        }
        state_release(state);
    }
    return ERR_OK;
}

FALLIBLE keep_explain(struct wf_connection *conn, struct rowset *rows, bool ran, struct text *out) {
    const struct compiled *c = rows->compiled;
    if (ran && rows->kept_log.len > 0) {
        text_append(out, (struct sv){rows->kept_log.ptr, rows->kept_log.len});
    }
    for (i64 i = 0; !ran && i < c->kept.count; i++) {
        TRY(keep_describe(conn, &rows->snap, c->kept.items[i], out));
    }
    return ERR_OK;
}
