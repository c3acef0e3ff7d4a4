/* rows.c: rows of derived predicates in a database file.
 *
 * Who keeps them (session/kept_file.c) tells, whenever a state is saved, which of them follow from
 * exactly that state; they go to the file as versions of tables that no object names. When it is
 * opened they are versions again, beside the versions of the state that they follow from, from which
 * the log may have led on: so whoever takes them knows what has changed since.
 *
 * They are a cache. Rows that another program made by other rules of its own, and rows that cannot be
 * read, are left out; the file is opened without them. See decisions 0028 and 0058. */
#include "catalog/catalog_int.h"
#include "store/saved.h"

enum { RULES = 1 }; /* what rules mean; rows of another number are not taken */
enum input_kind { INPUT_SAVED, INPUT_DERIVED, INPUT_EARLIER };
#define LOADED_BIT (1ULL << 63)

/* --- lists --- */

struct rows_list *rows_list_new(struct memory *mem) {
    struct rows_list *list = mem_alloc(mem, (i64)sizeof *list);
    if (list) {
        memset(list, 0, sizeof *list);
        arena_init(&list->arena, mem);
    }
    return list;
}

struct rows_item *rows_list_add(struct rows_list *list, i64 members, i64 inputs) {
    struct rows_item item = {
        .list = list,
        .members = NEW_ARRAY(&list->arena, struct object *, members + 1),
        .tables = NEW_ARRAY(&list->arena, struct table *, members + 1),
        .rows = NEW_ARRAY(&list->arena, struct table_version *, members + 1),
        .inputs = NEW_ARRAY(&list->arena, struct rows_input, inputs + 1),
        .member_count = members,
        .input_count = inputs};
    VEC_PUSH(&list->arena, &list->items, item);
    return &list->items.items[list->items.count - 1];
}

void rows_item_drop(struct rows_item *item) {
    for (i64 m = 0; m < item->member_count; m++) {
        object_release(item->members[m]);
        version_release(item->rows[m]);
        table_close(item->tables[m]);
        item->members[m] = NULL;
        item->rows[m] = NULL;
        item->tables[m] = NULL;
    }
    for (i64 i = 0; i < item->input_count; i++) {
        object_release(item->inputs[i].object);
        version_release(item->inputs[i].version);
        item->inputs[i].object = NULL;
        item->inputs[i].version = NULL;
    }
    item->member_count = item->input_count = 0;
}

void rows_list_close(struct rows_list *list) {
    if (!list) {
        return;
    }
    struct memory *mem = list->arena.mem;
    for (i64 i = 0; i < list->items.count; i++) {
        rows_item_drop(&list->items.items[i]);
    }
    arena_fini(&list->arena);
    mem_free(mem, list, (i64)sizeof *list);
}

/* --- to the file --- */

static FALLIBLE item_save(struct state_out *out, const struct rows_item *item, struct error *err) {
    struct blob *to = &out->objects;
    blob_text(to, item->path);
    blob_u32(to, (u32)item->member_count);
    for (i64 m = 0; m < item->member_count; m++) {
        struct extent extent;
        blob_u32(to, item->members[m]->oid);
        table_def_save(to, item->tables[m]);
        TRY(version_save(out->save, &out->dicts, item->tables[m], item->rows[m], &extent, err));
        extent_save(to, &extent);
    }
    blob_u32(to, (u32)item->input_count);
    for (i64 i = 0; i < item->input_count; i++) {
        const struct rows_input *input = &item->inputs[i];
        blob_u32(to, input->object->oid);
        blob_u8(to, input->is_derived ? INPUT_DERIVED : input->is_earlier ? INPUT_EARLIER : INPUT_SAVED);
        blob_u32(to, input->item);
        blob_u32(to, input->member);
        if (input->is_earlier) {
            version_earlier_save(to, input->version);
        }
    }
    return ERR_OK;
}

wf_status rows_save(struct state_out *out, struct catalog *catalog, struct edition *edition,
                    struct error *err) {
    struct rows_list *list = NULL;
    wf_status status = ERR_OK;
    if (catalog->rows_collect && catalog->file) {
        list = catalog->rows_collect(catalog->rows_arg, edition);
    }
    i64 count = list ? list->items.count : 0;
    blob_u32(&out->objects, RULES);
    blob_u32(&out->objects, (u32)count);
    for (i64 i = 0; i < count && !status; i++) {
        status = item_save(out, &list->items.items[i], err);
    }
    rows_list_close(out->rows);
    out->rows = list;
    return status;
}

/* A state with these rows is in the file now. */
void rows_saved(struct catalog *catalog, struct state_out *out) {
    struct memory *mem = catalog->mem;
    i64 count = out->rows ? out->rows->items.count : 0;
    u64 *numbers = count ? mem_alloc(mem, count * (i64)sizeof *numbers) : NULL;
    mem_free(mem, catalog->rows_numbers, catalog->rows_number_count * (i64)sizeof *numbers);
    catalog->rows_numbers = numbers;
    catalog->rows_number_count = numbers ? count : 0;
    for (i64 i = 0; numbers && i < count; i++) {
        numbers[i] = out->rows->items.items[i].number;
    }
}

bool rows_are_new(struct catalog *catalog) {
    struct rows_list *list =
        catalog->rows_collect ? catalog->rows_collect(catalog->rows_arg, catalog->edition) : NULL;
    bool fresh = false;
    for (i64 i = 0; list && i < list->items.count && !fresh; i++) {
        bool there = false;
        for (i64 k = 0; k < catalog->rows_number_count && !there; k++) {
            there = catalog->rows_numbers[k] == list->items.items[i].number;
        }
        fresh = !there;
    }
    rows_list_close(list);
    return fresh;
}

void catalog_set_rows(struct catalog *catalog, rows_collect_fn collect, void *arg) {
    mutex_lock(&catalog->commit_lock);
    catalog->rows_collect = collect;
    catalog->rows_arg = arg;
    mutex_unlock(&catalog->commit_lock);
}

struct rows_list *catalog_rows(struct catalog *catalog) {
    return catalog->rows;
}

/* --- out of the file --- */

static FALLIBLE bad_rows(struct rows_reader *r, struct error *err) {
    return error_set(err, ERR_DAMAGED, -1, "the catalog of \"%.300s\" is damaged", db_file_path(r->file));
}

/* The table begins without rows again: those that are there follow from versions of their own. */
static FALLIBLE member_load(struct rows_reader *r, struct rows_item *item, i64 m, struct error *err) {
    struct catalog *catalog = r->catalog;
    struct blob_reader *from = r->from;
    u32 shift;
    bool plain;
    u32 oid = read_u32(from);
    struct table_def def = table_def_load(from, &item->list->arena, &shift, &plain);
    struct extent extent = extent_load(from, db_file_stamp(r->file));
    struct object *object = from->bad ? NULL : r->find(r->arg, oid, NULL);
    struct dict **dicts = NULL;
    struct table_version *empty = NULL;
    if (from->bad) {
        return bad_rows(r, err);
    }
    if (!object || item->fault) {
        item->fault = item->fault ? item->fault : "its predicate is not there";
        return ERR_OK;
    }
    item->members[m] = object_retain(object);
    TRY(version_load_dicts(r->file, &extent, r->dicts, &item->list->arena, def.col_count, &dicts, err));
    item->tables[m] = table_open_def(catalog->mem, catalog_new_id(catalog), &def, dicts, shift, plain);
    if (!item->tables[m]) {
        return memory_refused(catalog->mem, err, (i64)sizeof(struct table));
    }
    table_set_file(item->tables[m], r->file);
    TRY(version_load(r->file, &extent, item->tables[m], &item->rows[m], err));
    TRY(version_truncate(item->tables[m], item->rows[m], &empty, err));
    table_publish(item->tables[m], empty);
    return ERR_OK;
}

static FALLIBLE input_load(struct rows_reader *r, struct rows_item *item, i64 i, struct error *err) {
    struct rows_input *input = &item->inputs[i];
    u32 oid = read_u32(r->from);
    u8 kind = read_u8(r->from);
    input->is_derived = kind == INPUT_DERIVED;
    input->item = read_u32(r->from);
    input->member = read_u32(r->from);
    struct table_version *version = NULL;
    struct object *object = r->from->bad ? NULL : r->find(r->arg, oid, &version);
    bool fits = object != NULL;
    if (fits && input->is_derived) {
        i64 before = item - item->list->items.items;
        const struct rows_item *other = &item->list->items.items[MIN_OF((i64)input->item, before)];
        fits = (i64)input->item < before && (i64)input->member < other->member_count && !other->fault;
        version = fits ? other->rows[input->member] : NULL;
    }
    if (kind == INPUT_EARLIER) {
        struct table_version *then = NULL;
        if (!version) { /* how long it is only the table's versions tell */
            return bad_rows(r, err);
        }
        TRY(version_earlier_load(r->from, object->table, version, &then, err));
        input->version = then;
        fits = fits && then;
    } else {
        input->version = version ? version_retain(version) : NULL;
    }
    input->object = object ? object_retain(object) : NULL;
    if (!fits || !version) {
        item->fault = item->fault ? item->fault : "what it follows from is not there";
    }
    return ERR_OK;
}

/* What cannot be read is left out: only the list itself must be whole. */
static FALLIBLE item_load(struct rows_reader *r, struct rows_list *list, struct error *err) {
    const char *path = read_text(r->from, &list->arena);
    u32 members = read_count(r->from, 40);
    struct rows_item *item = rows_list_add(list, members, 0);
    item->path = path ? path : "";
    item->number = LOADED_BIT | catalog_new_id(r->catalog);
    for (u32 m = 0; m < members && !r->from->bad; m++) {
        struct error found;
        error_reset(&found);
        if (member_load(r, item, m, &found)) {
            item->fault = arena_printf(&list->arena, "damaged: %s", found.message);
        }
    }
    u32 inputs = read_count(r->from, 13);
    item->inputs = NEW_ARRAY(&list->arena, struct rows_input, inputs + 1);
    item->input_count = r->from->bad ? 0 : inputs;
    TRY(arena_check(&list->arena, err));
    for (i64 i = 0; i < item->input_count; i++) {
        TRY(input_load(r, item, i, err));
    }
    return r->from->bad ? bad_rows(r, err) : ERR_OK;
}

wf_status rows_load(struct rows_reader *r, struct error *err) {
    struct catalog *catalog = r->catalog;
    u32 rules = read_u32(r->from);
    u32 count = read_count(r->from, 12);
    struct rows_list *list = rows_list_new(catalog->mem);
    if (!list) {
        return memory_refused(catalog->mem, err, (i64)sizeof *list);
    }
    catalog->rows = list;
    list->items.items = NEW_ARRAY(&list->arena, struct rows_item, count + 1); /* they stay where they are */
    list->items.cap = count + 1;
    for (u32 i = 0; i < count && !r->from->bad; i++) {
        TRY(item_load(r, list, err));
    }
    u64 *numbers = count ? mem_alloc(catalog->mem, count * (i64)sizeof *numbers) : NULL;
    catalog->rows_numbers = numbers;
    catalog->rows_number_count = numbers ? count : 0;
    for (i64 i = 0; i < list->items.count; i++) {
        struct rows_item *item = &list->items.items[i];
        item->fault = rules != RULES && !item->fault ? "made by other rules" : item->fault;
        if (numbers) {
            numbers[i] = item->number;
        }
        if (item->fault) {
            rows_item_drop(item);
        }
    }
    return r->from->bad ? bad_rows(r, err) : arena_check(&list->arena, err);
}
