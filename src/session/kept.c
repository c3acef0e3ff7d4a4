/* kept.c: what is kept of derived predicates: shapes, states, and whose they are.
 *
 * A shape is found by the objects that its names mean, so that changed rules, a table made anew or
 * another search path have another one. Shapes whose objects are gone are dropped when definitions
 * change, and rows when memory is short: all of this can be computed again.
 *
 * Invariant: the rows of a state are versions of its shape's tables, and those of its ancestors came
 * before them in the same line; only between such versions is it known what changed. */
#include "session/kept.h"

#include "logiql/logiql.h"

static _Atomic u64 last_state;

static bool is_listed(const struct wf_database *db, const struct kept_shape *shape) {
    const struct kept_shape *at = db->kept;
    while (at && at != shape) {
        at = at->next;
    }
    return at != NULL;
}

/* --- states --- */

struct kept_state *state_new(struct wf_connection *conn, const struct kept_shape *shape,
                             struct kept_state *from) {
    i64 rows = shape->member_count, inputs = shape->input_count;
    i64 bytes = (i64)sizeof(struct kept_state) +
                (rows + inputs) * (i64)sizeof(struct table_version *) + inputs * (i64)sizeof(u64);
    struct kept_state *state = mem_alloc(&conn->db->mem, bytes);
    if (!state) {
        return NULL;
    }
    memset(state, 0, (size_t)bytes);
    atomic_init(&state->refs, 1);
    state->mem = &conn->db->mem;
    state->bytes = bytes;
    state->id = atomic_fetch_add(&last_state, 1) + 1;
    state->row_count = rows;
    state->input_count = inputs;
    state->rows = (struct table_version **)(void *)(state + 1);
    state->inputs = state->rows + rows;
    state->input_states = (u64 *)(void *)(state->inputs + inputs);
    if (from) {
        i32 kept = MIN_OF(from->ancestor_count, ANCESTORS_MOST - 1);
        memcpy(state->ancestors, from->ancestors + (from->ancestor_count - kept),
               (size_t)kept * sizeof *state->ancestors);
        state->ancestors[kept] = from->id;
        state->ancestor_count = kept + 1;
        struct kept_state *origin = from->is_private ? from->origin : from;
        state->origin = origin ? state_retain(origin) : NULL;
    }
    return state;
}

struct kept_state *state_retain(struct kept_state *state) {
    atomic_fetch_add(&state->refs, 1);
    return state;
}

void state_release(struct kept_state *state) {
    while (state && atomic_fetch_sub(&state->refs, 1) == 1) {
        struct kept_state *origin = state->origin;
        for (i64 i = 0; i < state->row_count + state->input_count; i++) {
            version_release(state->rows[i]); /* inputs follow */
        }
        mem_free(state->mem, state, state->bytes);
        state = origin;
    }
}

struct kept_state *state_find(struct wf_connection *conn, struct kept_shape *shape) {
    for (struct kept_own *own = conn->tx.kept; own; own = own->next) {
        if (own->shape == shape) {
            return state_retain(own->state);
        }
    }
    mutex_lock(&conn->db->lock);
    struct kept_state *state = shape->now ? state_retain(shape->now) : NULL;
    mutex_unlock(&conn->db->lock);
    return state;
}

/* What was everybody's before is the caller's to release, outside of the lock. */
static struct kept_state *replace(struct kept_shape *shape, struct kept_state *state) {
    struct kept_state *old = shape->now;
    if (old != state->origin) {
        return NULL; /* somebody was faster */
    }
    shape->now = state_retain(state);
    return old;
}

/* Older states are of no use any more to one that is everybody's. */
static struct kept_state *take_origin(struct kept_state *state) {
    struct kept_state *origin = state->origin;
    state->origin = NULL;
    return origin;
}

static void publish_own(struct wf_connection *conn, struct kept_shape *shape,
                        struct kept_state *state) {
    for (struct kept_own *own = conn->tx.kept; own; own = own->next) {
        if (own->shape == shape) {
            struct kept_state *old = own->state;
            own->state = state_retain(state);
            state_release(old);
            return;
        }
    }
    struct kept_own *own = mem_alloc(&conn->db->mem, (i64)sizeof *own);
    if (own) { /* else it is computed again next time */
        *own = (struct kept_own){conn->tx.kept, shape_retain(shape), state_retain(state)};
        conn->tx.kept = own;
    }
}

static void publish_all(struct wf_database *db, struct kept_shape *shape,
                        struct kept_state *state) {
    mutex_lock(&db->lock);
    /* Rows of a shape that was dropped would help nobody. */
    struct kept_state *old = is_listed(db, shape) ? replace(shape, state) : NULL;
    struct kept_state *origin = shape->now == state ? take_origin(state) : NULL;
    mutex_unlock(&db->lock);
    state_release(old);
    state_release(origin);
}

void state_publish(struct wf_connection *conn, struct kept_shape *shape,
                   struct kept_state *state) {
    if (state->is_private) {
        publish_own(conn, shape, state);
    } else {
        publish_all(conn->db, shape, state);
    }
}

void keep_forget(struct wf_connection *conn) {
    while (conn->tx.kept) {
        struct kept_own *gone = conn->tx.kept;
        conn->tx.kept = gone->next;
        state_release(gone->state);
        shape_release(gone->shape);
        mem_free(&conn->db->mem, gone, (i64)sizeof *gone);
    }
}

/* Whether the state follows from what is current: nobody else has committed to that. */
static bool is_current(const struct edition *now, const struct kept_shape *shape,
                       const struct kept_state *state) {
    for (i64 i = 0; i < shape->input_count; i++) {
        const struct kept_input *input = &shape->inputs[i];
        const struct edition_entry *entry = edition_find_oid(now, input->object->oid);
        if (!entry || entry->object != input->object ||
            (!input->shape && entry->version != state->inputs[i])) {
            return false;
        }
    }
    return true;
}

void keep_commit(struct wf_connection *conn) {
    struct edition *now = NULL;
    struct error ignored;
    error_reset(&ignored);
    if (conn->tx.kept && !catalog_edition(conn->db->catalog, &now, &ignored)) {
        for (struct kept_own *own = conn->tx.kept; own; own = own->next) {
            if (is_current(now, own->shape, own->state)) {
                own->state->is_private = 0; /* nobody else has it yet */
                publish_all(conn->db, own->shape, own->state);
            }
        }
        edition_release(now);
    }
    keep_forget(conn);
}

/* --- shapes --- */

struct kept_shape *shape_retain(struct kept_shape *shape) {
    atomic_fetch_add(&shape->refs, 1);
    return shape;
}

void shape_release(struct kept_shape *shape) {
    if (!shape || atomic_fetch_sub(&shape->refs, 1) != 1) {
        return;
    }
    struct memory *mem = &shape->db->mem;
    state_release(shape->now);
    for (i64 i = 0; i < shape->member_count; i++) {
        object_release(shape->members[i]);
        if (shape->tables[i]) {
            table_close(shape->tables[i]);
        }
    }
    for (i64 i = 0; i < shape->input_count; i++) {
        object_release(shape->inputs[i].object);
        shape_release(shape->inputs[i].shape);
    }
    arena_fini(&shape->arena);
    mem_free(mem, shape, (i64)sizeof *shape);
}

i64 shape_member(const struct kept_shape *shape, const struct object *view) {
    for (i64 i = 0; i < shape->member_count; i++) {
        if (shape->members[i]->oid == view->oid) {
            return i;
        }
    }
    return -1;
}

static bool is_object(const struct edition *now, const struct object *object) {
    const struct edition_entry *entry = edition_find_oid(now, object->oid);
    return entry && entry->object == object;
}

/* Whether definitions still lead to the shape. */
static bool is_defined(const struct wf_database *db, const struct edition *now,
                       const struct kept_shape *shape) {
    bool defined = true;
    for (i64 i = 0; i < shape->member_count && defined; i++) {
        defined = is_object(now, shape->members[i]);
    }
    for (i64 i = 0; i < shape->input_count && defined; i++) {
        const struct kept_input *input = &shape->inputs[i];
        defined = is_object(now, input->object) && (!input->shape || is_listed(db, input->shape));
    }
    return defined;
}

void keep_sweep(struct wf_database *db, bool all) {
    struct kept_shape *gone = NULL;
    struct edition *now = NULL;
    struct error ignored;
    error_reset(&ignored);
    if (!all && catalog_edition(db->catalog, &now, &ignored)) {
        return;
    }
    mutex_lock(&db->lock);
    for (bool moved = true; moved;) { /* with one go those that read it */
        moved = false;
        for (struct kept_shape **at = &db->kept; *at;) {
            struct kept_shape *shape = *at;
            if (!all && is_defined(db, now, shape)) {
                at = &shape->next;
                continue;
            }
            *at = shape->next;
            shape->next = gone;
            gone = shape;
            moved = true;
        }
    }
    mutex_unlock(&db->lock);
    while (gone) {
        struct kept_shape *next = gone->next;
        gone->next = NULL;
        shape_release(gone);
        gone = next;
    }
    edition_release(now);
}

bool keep_give_back(struct wf_database *db) {
    struct kept_state *gone[64];
    i64 count = 0;
    mutex_lock(&db->lock);
    for (struct kept_shape *at = db->kept; at && count < COUNT_OF(gone); at = at->next) {
        if (at->now) {
            gone[count++] = at->now;
            at->now = NULL;
        }
    }
    mutex_unlock(&db->lock);
    for (i64 i = 0; i < count; i++) {
        state_release(gone[i]);
    }
    return count > 0;
}

/* The schema of a session's temporary objects, where it has some: an empty one hides no name. */
static u32 temp_names(const struct snapshot *snap) {
    if (!snap->temp_schema) {
        return 0;
    }
    struct edition_walk at = edition_walk_schema(snap->edition, snap->temp_schema);
    return edition_step(&at) ? snap->temp_schema : 0;
}

/* Whether names mean to the shape what they mean to the snapshot, as long as nothing is defined. */
static bool path_fits(const struct kept_shape *shape, const struct snapshot *snap, u32 temp) {
    return shape->temp_schema == temp && strcmp(shape->path, snap->path ? snap->path : "") == 0;
}

/* Found without a look at the rules: nothing has been defined since. */
static struct kept_shape *find_known(struct wf_connection *conn, const struct snapshot *snap,
                                     const struct object *view) {
    struct kept_shape *found = NULL;
    u32 temp = temp_names(snap);
    mutex_lock(&conn->db->lock);
    for (struct kept_shape *at = conn->db->kept; at && !found; at = at->next) {
        i64 member = shape_member(at, view);
        if (member >= 0 && at->members[member] == view &&
            at->definitions == snap->edition->definitions && path_fits(at, snap, temp)) {
            found = shape_retain(at);
        }
    }
    mutex_unlock(&conn->db->lock);
    return found;
}

static bool has_input(const struct kept_shape *shape, const struct object *object) {
    bool found = false;
    for (i64 i = 0; i < shape->input_count && !found; i++) {
        found = shape->inputs[i].object == object;
    }
    return found;
}

/* Of the same objects, in whatever order: that depends on which of them was asked for. */
static bool is_like(const struct kept_shape *shape, const struct lq_component *c) {
    bool same = shape->member_count == c->members.count && shape->input_count == c->inputs.count;
    for (i64 i = 0; i < c->members.count && same; i++) {
        i64 member = shape_member(shape, c->members.items[i]);
        same = member >= 0 && shape->members[member] == c->members.items[i];
    }
    for (i64 i = 0; i < c->inputs.count && same; i++) {
        same = has_input(shape, c->inputs.items[i].entry->object);
    }
    return same;
}

static FALLIBLE open_tables(struct wf_connection *conn, struct kept_shape *shape) {
    struct wf_database *db = conn->db;
    u32 shift = 0;
    if (kept_take(conn, shape)) {
        return ERR_OK;
    }
    while (1LL << shift < conn->settings.tablet_rows) {
        shift++;
    }
    for (i64 m = 0; m < shape->member_count; m++) {
        const struct object *view = shape->members[m];
        struct column_def *cols = NEW_ARRAY(&shape->arena, struct column_def, view->col_count);
        for (u32 c = 0; c < view->col_count; c++) {
            cols[c] = (struct column_def){
                .name = view->col_names[c], .type = view->col_types[c], .not_null = 1};
        }
        TRY(arena_check(&shape->arena, &conn->err));
        shape->tables[m] = table_open(&db->mem, catalog_new_id(db->catalog), view->name,
                                      view->col_count, cols, shift, !conn->settings.narrow);
        if (!shape->tables[m]) {
            return memory_refused(&db->mem, &conn->err, (i64)sizeof(struct table));
        }
    }
    return ERR_OK;
}

static const struct sv *copy_kinds(struct arena *arena, const struct sv *kinds, u32 count) {
    struct sv *copy = kinds ? NEW_ARRAY(arena, struct sv, count + 1) : NULL;
    for (u32 i = 0; kinds && i < count; i++) {
        copy[i] = kinds[i].len > 0 ? arena_sv(arena, kinds[i]) : (struct sv){NULL, 0};
    }
    return copy;
}

/* Fills an empty shape; what is not there yet is NULL for whoever releases it. */
static FALLIBLE shape_fill(struct wf_connection *conn, struct snapshot *snap,
                           const struct lq_component *c, struct kept_shape *shape,
                           bool *out_closed) {
    struct arena *arena = &shape->arena;
    shape->members = NEW_ARRAY(arena, struct object *, c->members.count + 1);
    shape->tables = NEW_ARRAY(arena, struct table *, c->members.count + 1);
    shape->kinds = NEW_ARRAY(arena, const struct sv *, c->members.count + 1);
    shape->inputs = NEW_ARRAY(arena, struct kept_input, c->inputs.count + 1);
    shape->path = arena_printf(arena, "%s", snap->path ? snap->path : "");
    shape->temp_schema = temp_names(snap);
    shape->definitions = snap->edition->definitions;
    shape->recursive = c->recursive;
    shape->worth = c->recursive || c->folds;
    TRY(arena_check(arena, &conn->err));
    for (i64 i = 0; i < c->members.count; i++) {
        const struct object *view = c->members.items[i];
        shape->kinds[i] = copy_kinds(arena, c->kinds.items[i], view->col_count);
        shape->members[shape->member_count++] = object_retain((struct object *)(size_t)view);
        shape->worth = shape->worth || strncmp(view->name, "constraint:", 11) == 0;
    }
    for (i64 i = 0; i < c->inputs.count && *out_closed; i++) {
        const struct lq_input *from = &c->inputs.items[i];
        struct kept_input *input = &shape->inputs[shape->input_count++];
        input->object = object_retain(from->entry->object);
        input->negation = from->negation;
        if (input->object->kind == OBJECT_VIEW) {
            TRY(shape_find(conn, snap, input->object, &input->shape));
            *out_closed = input->shape != NULL;
            input->member = input->shape ? shape_member(input->shape, input->object) : 0;
        }
    }
    return *out_closed ? open_tables(conn, shape) : ERR_OK;
}

static FALLIBLE shape_make(struct wf_connection *conn, struct snapshot *snap,
                           const struct lq_component *c, struct kept_shape **out) {
    struct wf_database *db = conn->db;
    struct kept_shape *shape = mem_alloc(&db->mem, (i64)sizeof *shape);
    bool closed = true;
    if (!shape) {
        return memory_refused(&db->mem, &conn->err, (i64)sizeof *shape);
    }
    memset(shape, 0, sizeof *shape);
    atomic_init(&shape->refs, 1);
    shape->db = db;
    arena_init(&shape->arena, &db->mem);
    wf_status status = shape_fill(conn, snap, c, shape, &closed);
    if (status || !closed) {
        shape_release(shape);
        return status;
    }
    *out = shape_retain(shape);
    mutex_lock(&db->lock);
    shape->next = db->kept;
    db->kept = shape;
    mutex_unlock(&db->lock);
    return ERR_OK;
}

/* One of the same objects, made under other definitions: its tables and rows go on. */
static struct kept_shape *find_like(struct wf_connection *conn, const struct snapshot *snap,
                                    const struct lq_component *c) {
    struct kept_shape *found = NULL;
    u32 temp = temp_names(snap);
    mutex_lock(&conn->db->lock);
    for (struct kept_shape *at = conn->db->kept; at && !found; at = at->next) {
        if (is_like(at, c) && path_fits(at, snap, temp)) {
            found = shape_retain(at);
        }
    }
    mutex_unlock(&conn->db->lock);
    return found;
}

/* Inputs of a shape are themselves the ones that names mean now. */
static FALLIBLE inputs_fit(struct wf_connection *conn, struct snapshot *snap,
                           const struct kept_shape *shape, bool *out) {
    *out = true;
    for (i64 i = 0; i < shape->input_count && *out; i++) {
        const struct kept_input *input = &shape->inputs[i];
        struct kept_shape *now = NULL;
        if (input->shape) {
            TRY(shape_find(conn, snap, input->object, &now));
            *out = now == input->shape;
            shape_release(now);
        }
    }
    return ERR_OK;
}

FALLIBLE shape_find(struct wf_connection *conn, struct snapshot *snap, const struct object *view,
                    struct kept_shape **out) {
    *out = find_known(conn, snap, view);
    if (*out) {
        return ERR_OK;
    }
    struct arena arena;
    struct lq_component c;
    arena_init(&arena, &conn->db->mem);
    wf_status status = logiql_component(&arena, snap, view, &c, &conn->err);
    if (!status && c.closed) {
        struct kept_shape *like = find_like(conn, snap, &c);
        bool fits = false;
        if (like) {
            status = inputs_fit(conn, snap, like, &fits);
        }
        if (like && !fits) {
            shape_release(like);
            like = NULL;
        }
        if (like) {
            mutex_lock(&conn->db->lock);
            like->definitions = snap->edition->definitions;
            mutex_unlock(&conn->db->lock);
        }
        *out = like;
        if (!status && !like) {
            status = shape_make(conn, snap, &c, out);
        }
    }
    arena_fini(&arena);
    return status;
}
