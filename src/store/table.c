/* table.c: a table: opening, its current version, appending on its own.
 *
 * A table is a definition, dictionaries and a place to publish versions; the rows are in the
 * versions. table_append and load_commit are for tables that nobody changes through transactions:
 * they take the current version, make the next and publish it, one at a time. */
#include "store/file.h"
#include "store/scan.h"
#include "store/store_int.h"

static void *copy_array(struct arena *arena, const void *from, i64 count, i64 item) {
    void *copy = arena_alloc(arena, MAX_OF(count, 1) * item);
    if (count) {
        memcpy(copy, from, (size_t)(count * item));
    }
    return copy;
}

static const char *copy_text(struct arena *arena, const char *text) {
    return text ? arena_sv(arena, sv_from(text)).ptr : NULL;
}

/* Everything of the definition, strings included, in the table's own arena. */
static void copy_def(struct table *table, const struct table_def *def) {
    struct arena *arena = &table->state->arena;
    table->name = arena_printf(arena, "%s", def->name);
    table->col_count = def->col_count;
    table->cols = copy_array(arena, def->cols, def->col_count, sizeof *def->cols);
    for (u32 i = 0; i < def->col_count; i++) {
        table->cols[i].name = copy_text(arena, def->cols[i].name);
        table->cols[i].default_text = copy_text(arena, def->cols[i].default_text);
    }
    table->key_count = def->key_count;
    table->keys = copy_array(arena, def->keys, def->key_count, sizeof *def->keys);
    for (u32 i = 0; i < def->key_count; i++) {
        struct table_key *key = &table->keys[i];
        key->name = copy_text(arena, key->name);
        key->cols = copy_array(arena, key->cols, key->col_count, sizeof *key->cols);
    }
    table->check_count = def->check_count;
    table->checks = copy_array(arena, def->checks, def->check_count, sizeof *def->checks);
    for (u32 i = 0; i < def->check_count; i++) {
        table->checks[i].name = copy_text(arena, table->checks[i].name);
        table->checks[i].text = copy_text(arena, table->checks[i].text);
    }
    table->foreign_count = def->foreign_count;
    table->foreigns = copy_array(arena, def->foreigns, def->foreign_count, sizeof *def->foreigns);
    for (u32 i = 0; i < def->foreign_count; i++) {
        struct table_foreign *fk = &table->foreigns[i];
        fk->name = copy_text(arena, fk->name);
        fk->cols = copy_array(arena, fk->cols, fk->col_count, sizeof *fk->cols);
        fk->ref_cols = copy_array(arena, fk->ref_cols, fk->col_count, sizeof *fk->ref_cols);
    }
}

struct table_def table_def_view(const struct table *table) {
    return (struct table_def){.name = table->name,
                              .col_count = table->col_count,
                              .cols = table->cols,
                              .key_count = table->key_count,
                              .keys = table->keys,
                              .check_count = table->check_count,
                              .checks = table->checks,
                              .foreign_count = table->foreign_count,
                              .foreigns = table->foreigns};
}

static i64 table_bytes(void) {
    return ALIGN_UP((i64)sizeof(struct table), 64) + (i64)sizeof(struct table_state);
}

static struct table *table_alloc(struct memory *mem, const struct table_def *def) {
    u8 *block = mem_alloc(mem, table_bytes());
    if (!block) {
        return NULL;
    }
    memset(block, 0, (size_t)table_bytes());
    struct table *table = (struct table *)(void *)block;
    table->mem = mem;
    table->state = (struct table_state *)(void *)(block + ALIGN_UP((i64)sizeof(struct table), 64));
    table->state->str_limit = STR_LIMIT;
    atomic_init(&table->refs, 1);
    arena_init(&table->state->arena, mem);
    mutex_init(&table->state->write_lock);
    mutex_init(&table->state->lock);
    copy_def(table, def);
    table->dicts = NEW_ARRAY(&table->state->arena, struct dict *, def->col_count);
    return table;
}

struct table *table_open_def(struct memory *mem, u64 id, const struct table_def *def,
                             struct dict *const *dicts, u32 tablet_shift, bool plain) {
    CHECK(tablet_shift <= 20);
    struct table *table = table_alloc(mem, def);
    if (!table) {
        return NULL;
    }
    table->id = id;
    table->tablet_shift = tablet_shift;
    table->plain = plain;
    bool ok = table->state->arena.refused_bytes == 0;
    for (u32 i = 0; ok && i < def->col_count; i++) {
        if (type_is_text(def->cols[i].type)) {
            table->dicts[i] = dicts && dicts[i] ? dict_retain(dicts[i]) : dict_open(mem);
            ok = table->dicts[i] != NULL;
        }
    }
    table->state->current = ok ? version_empty(table, 1) : NULL;
    if (!table->state->current) {
        table_close(table);
        return NULL;
    }
    return table;
}

struct table *table_open(struct memory *mem, u64 id, const char *name, u32 col_count,
                         const struct column_def *cols, u32 tablet_shift, bool plain) {
    struct column_def *own = mem_alloc(mem, (i64)col_count * (i64)sizeof *own);
    if (!own) {
        return NULL;
    }
    memcpy(own, cols, col_count * sizeof *own);
    struct table_def def = {.name = name, .col_count = col_count, .cols = own};
    struct table *table = table_open_def(mem, id, &def, NULL, tablet_shift, plain);
    mem_free(mem, own, (i64)col_count * (i64)sizeof *own);
    return table;
}

struct table *table_retain(struct table *table) {
    atomic_fetch_add_explicit(&table->refs, 1, memory_order_relaxed);
    return table;
}

void table_close(struct table *table) {
    if (!table || atomic_fetch_sub_explicit(&table->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct table_state *state = table->state;
    if (table->provider) {
        table->provider->release(table->provider);
    }
    version_release(state->current);
    for (u32 i = 0; i < table->col_count; i++) {
        dict_release(table->dicts[i]);
    }
    mutex_fini(&state->lock);
    mutex_fini(&state->write_lock);
    arena_fini(&state->arena);
    mem_free(table->mem, table, table_bytes());
}

struct table_version *table_snapshot(struct table *table) {
    mutex_lock(&table->state->lock);
    struct table_version *version = version_retain(table->state->current);
    mutex_unlock(&table->state->lock);
    return version;
}

void table_publish(struct table *table, struct table_version *version) {
    struct table_state *state = table->state;
    mutex_lock(&state->lock);
    struct table_version *old = state->current;
    state->current = version;
    mutex_unlock(&state->lock);
    if (state->epoch) {
        atomic_fetch_add(state->epoch, 1);
    }
    version_release(old);
}

void table_set_epoch(struct table *table, _Atomic u64 *epoch) {
    table->state->epoch = epoch;
}

void table_set_file(struct table *table, struct db_file *file) {
    table->state->file = file && !db_file_is_read_only(file) ? file : NULL;
}

struct db_file *table_file(const struct table *table) {
    return table->state->file;
}

wf_status table_append(struct table *table, i64 rows, const struct input_col *cols,
                       struct error *err) {
    if (rows == 0) {
        return ERR_OK;
    }
    mutex_lock(&table->state->write_lock);
    struct table_version *base = table_snapshot(table), *next = NULL;
    wf_status status = version_append(table, base, rows, cols, &next, err);
    if (status == ERR_OK) {
        table_publish(table, next);
    }
    version_release(base);
    mutex_unlock(&table->state->write_lock);
    return status;
}

wf_status load_commit(struct load *load, struct error *err) {
    struct table *table = load_table(load);
    mutex_lock(&table->state->write_lock);
    struct table_version *base = table_snapshot(table), *next = NULL;
    wf_status status = load_finish(load, base, &next, err);
    if (status == ERR_OK) {
        status = version_check_keys(table, base, next, NULL, err);
    }
    if (status == ERR_OK) {
        table_publish(table, version_retain(next));
    }
    version_release(next);
    version_release(base);
    mutex_unlock(&table->state->write_lock);
    table_close(table);
    return status;
}
