/* kept_file.c: kept rows to the database file and out of it.
 *
 * Whenever a state of the database is saved, those kept rows go with it that follow from the
 * versions that are saved, or from earlier ones that can be said beside these (store/earlier.c): of
 * each component the rows, and what they follow from by OID. After the file
 * was opened, a component that is the same by its objects begins with the rows that the file has, and
 * with the versions that they follow from; what the log had besides is a change like any other. See decision 0058.
 *
 * Rows of the file that nobody has asked for are saved again with the next state, as long as they follow from it. */
#include "session/kept.h"

#include "store/saved.h"

/* --- to the file --- */

struct candidate {
    struct kept_shape *shape; /* NULL: an item of the file */
    struct kept_state *state;
    const struct rows_item *from;
    i64 at; /* in the list, + 1 */
};

struct collecting {
    struct wf_database *db;
    struct edition *edition;
    struct rows_list *list;
    struct candidate *all;
    i64 count;
};

static u64 number_of(const struct candidate *c) {
    return c->state ? c->state->id : c->from->number;
}

/* Where among the list the rows of that number are; -1 = nowhere. */
static i64 find_listed(const struct collecting *c, u64 number) {
    for (i64 i = 0; i < c->count; i++) {
        if (c->all[i].at && number_of(&c->all[i]) == number) {
            return c->all[i].at - 1;
        }
    }
    return -1;
}

static bool is_there(const struct collecting *c, const struct object *object) {
    const struct edition_entry *entry = object ? edition_find_oid(c->edition, object->oid) : NULL;
    return entry && entry->object == object;
}

/* Whether the version that rows follow from can be said beside the one that is saved: the same, or earlier. */
static bool is_saved_version(const struct collecting *c, const struct object *object,
                             const struct table_version *version) {
    const struct edition_entry *entry = edition_find_oid(c->edition, object->oid);
    return entry && entry->object == object && !object->temp && entry->version &&
           (entry->version->content_no == version->content_no ||
            version_is_earlier(entry->version, version));
}

static bool is_earlier(const struct collecting *c, const struct object *object,
                       const struct table_version *version) {
    return edition_find_oid(c->edition, object->oid)->version->content_no != version->content_no;
}

static bool shape_fits(const struct collecting *c, const struct candidate *one) {
    const struct kept_shape *shape = one->shape;
    bool fits = true;
    for (i64 m = 0; m < shape->member_count && fits; m++) {
        fits = is_there(c, shape->members[m]) && !shape->members[m]->temp;
    }
    for (i64 i = 0; i < shape->input_count && fits; i++) {
        const struct kept_input *input = &shape->inputs[i];
        fits = input->shape ? is_there(c, input->object) && find_listed(c, one->state->input_states[i]) >= 0
                            : is_saved_version(c, input->object, one->state->inputs[i]);
    }
    return fits;
}

static void list_shape(struct collecting *c, struct candidate *one) {
    const struct kept_shape *shape = one->shape;
    struct rows_item *item = rows_list_add(c->list, shape->member_count, shape->input_count);
    item->path = arena_printf(&c->list->arena, "%s", shape->path);
    item->number = one->state->id;
    for (i64 m = 0; m < shape->member_count; m++) {
        item->members[m] = object_retain(shape->members[m]);
        item->tables[m] = table_retain(shape->tables[m]);
        item->rows[m] = version_retain(one->state->rows[m]);
    }
    for (i64 i = 0; i < shape->input_count; i++) {
        const struct kept_input *input = &shape->inputs[i];
        item->inputs[i].object = object_retain(input->object);
        item->inputs[i].version = version_retain(one->state->inputs[i]);
        item->inputs[i].is_derived = input->shape != NULL;
        if (input->shape) {
            item->inputs[i].item = (u32)find_listed(c, one->state->input_states[i]);
            item->inputs[i].member = (u32)input->member;
        } else {
            item->inputs[i].is_earlier = is_earlier(c, input->object, one->state->inputs[i]);
        }
    }
    one->at = c->list->items.count;
}

static const struct rows_item *input_item(const struct rows_item *item, i64 i) {
    return &item->list->items.items[item->inputs[i].item];
}

static bool item_fits(const struct collecting *c, const struct candidate *one) {
    const struct rows_item *item = one->from;
    bool fits = true;
    for (i64 m = 0; m < item->member_count && fits; m++) {
        fits = is_there(c, item->members[m]);
    }
    for (i64 i = 0; i < item->input_count && fits; i++) {
        const struct rows_input *input = &item->inputs[i];
        fits = input->is_derived
                   ? is_there(c, input->object) && find_listed(c, input_item(item, i)->number) >= 0
                   : is_saved_version(c, input->object, input->version);
    }
    return fits;
}

static void list_item(struct collecting *c, struct candidate *one) {
    const struct rows_item *from = one->from;
    struct rows_item *item = rows_list_add(c->list, from->member_count, from->input_count);
    item->path = arena_printf(&c->list->arena, "%s", from->path);
    item->number = from->number;
    for (i64 m = 0; m < from->member_count; m++) {
        item->members[m] = object_retain(from->members[m]);
        item->tables[m] = table_retain(from->tables[m]);
        item->rows[m] = version_retain(from->rows[m]);
    }
    for (i64 i = 0; i < from->input_count; i++) {
        item->inputs[i] = from->inputs[i];
        item->inputs[i].object = object_retain(from->inputs[i].object);
        item->inputs[i].version = version_retain(from->inputs[i].version);
        if (item->inputs[i].is_derived) {
            item->inputs[i].item = (u32)find_listed(c, input_item(from, i)->number);
        } else {
            item->inputs[i].is_earlier = is_earlier(c, from->inputs[i].object, from->inputs[i].version);
        }
    }
    one->at = c->list->items.count;
}

/* Under the lock: all there are. */
static void find_candidates(struct collecting *c) {
    struct arena *arena = &c->list->arena;
    struct rows_list *saved = catalog_rows(c->db->catalog);
    i64 most = saved ? saved->items.count : 0;
    for (struct kept_shape *at = c->db->kept; at; at = at->next) {
        most++;
    }
    c->all = NEW_ARRAY(arena, struct candidate, most + 1);
    struct error ignored;
    error_reset(&ignored);
    if (arena_check(arena, &ignored)) {
        return;
    }
    for (struct kept_shape *at = c->db->kept; at; at = at->next) {
        if (at->now && !at->temp_schema && !atomic_load(&at->large)) {
            c->all[c->count++] = (struct candidate){shape_retain(at), state_retain(at->now), NULL, 0};
        }
    }
}

/* Under the lock, which whoever takes an item has, too. */
static void list_fitting(struct collecting *c) {
    struct rows_list *saved = catalog_rows(c->db->catalog);
    for (i64 i = 0; saved && i < saved->items.count; i++) {
        const struct rows_item *item = &saved->items.items[i];
        if (item->member_count > 0) {
            c->all[c->count++] = (struct candidate){.from = item};
        }
    }
    for (bool moved = true; moved;) { /* those first that others follow from */
        moved = false;
        for (i64 i = 0; i < c->count; i++) {
            struct candidate *one = &c->all[i];
            if (one->at || !(one->shape ? shape_fits(c, one) : item_fits(c, one))) {
                continue;
            }
            if (one->shape) {
                list_shape(c, one);
            } else {
                list_item(c, one);
            }
            moved = true;
        }
    }
}

struct rows_list *kept_collect(void *arg, struct edition *edition) {
    struct collecting c = {.db = arg, .edition = edition};
    c.list = rows_list_new(&c.db->mem);
    if (!c.list) {
        return NULL;
    }
    mutex_lock(&c.db->lock);
    find_candidates(&c);
    list_fitting(&c);
    mutex_unlock(&c.db->lock);
    for (i64 i = 0; i < c.count; i++) {
        state_release(c.all[i].state);
        shape_release(c.all[i].shape);
    }
    struct error ignored;
    error_reset(&ignored);
    if (arena_check(&c.list->arena, &ignored)) { /* no memory: nothing is kept */
        rows_list_close(c.list);
        return NULL;
    }
    return c.list;
}

/* --- out of the file --- */

static bool item_is(const struct kept_shape *shape, const struct rows_item *item) {
    bool same = item->member_count == shape->member_count && item->input_count == shape->input_count &&
                !shape->temp_schema && strcmp(item->path, shape->path) == 0;
    for (i64 m = 0; m < shape->member_count && same; m++) {
        same = item->members[m] == shape->members[m];
    }
    for (i64 i = 0; i < shape->input_count && same; i++) {
        const struct kept_input *input = &shape->inputs[i];
        const struct rows_input *from = &item->inputs[i];
        same = from->object == input->object && from->is_derived == (input->shape != NULL) &&
               (!input->shape || (i64)from->member == input->member);
    }
    return same;
}

static void take_item(struct wf_connection *conn, struct kept_shape *shape, struct rows_item *item) {
    struct kept_state *state = state_new(conn, shape, NULL);
    if (!state) {
        return;
    }
    state->id = item->number;
    for (i64 m = 0; m < shape->member_count; m++) {
        shape->tables[m] = table_retain(item->tables[m]);
        state->rows[m] = version_retain(item->rows[m]);
    }
    for (i64 i = 0; i < shape->input_count; i++) {
        state->inputs[i] = version_retain(item->inputs[i].version);
        state->input_states[i] = item->inputs[i].is_derived ? input_item(item, i)->number : 0;
    }
    shape->now = state;
    rows_item_drop(item);
}

bool kept_take(struct wf_connection *conn, struct kept_shape *shape) {
    struct rows_list *saved = catalog_rows(conn->db->catalog);
    mutex_lock(&conn->db->lock);
    for (i64 i = 0; saved && i < saved->items.count && !shape->now; i++) {
        struct rows_item *item = &saved->items.items[i];
        if (item->member_count > 0 && item_is(shape, item)) {
            take_item(conn, shape, item);
        }
    }
    mutex_unlock(&conn->db->lock);
    return shape->now != NULL;
}

void kept_forget_file(struct wf_database *db) {
    struct rows_list *saved = catalog_rows(db->catalog);
    mutex_lock(&db->lock);
    for (i64 i = 0; saved && i < saved->items.count; i++) {
        rows_item_drop(&saved->items.items[i]);
    }
    mutex_unlock(&db->lock);
}
