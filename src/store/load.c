/* load.c: bulk load: many threads seal tablets, one commit publishes them in order.
 *
 * Tablets are sealed against the table's dictionaries, which take entries from anyone at any time;
 * everything else a load changes is its own until load_finish, which puts the open tail (sealed
 * short) before the new tablets and makes one version. Whether text still goes to the
 * dictionary is shared by all threads of a load: the first that finds it too varied stops it. Of a
 * table that is saved, the columns go to the file as soon as they are sealed (tablet_write_early). */
#include "store/saved_int.h"

struct part {
    i64 sequence;
    i64 split; /* a part whose text is too long for one tablet becomes several */
    struct tablet *tablet;
};

struct load {
    struct table *table;
    _Atomic i64 rows; /* of the table, with what is being loaded */
    _Atomic i32 *dict_on;
    struct mutex lock; /* below */
    struct cond sealed;
    i32 sealing; /* threads that seal a tablet */
    b8 alone;    /* one of them is to be the only one */
    struct part *parts;
    i64 part_count, part_cap;
    struct sketch *sketches;
    _Atomic u8 *orders; /* by the table's keys: what every tablet's rows keep */
    i32 writes; /* columns on their way to the file, which hold on to their tablets: see behind.h */
};

/* Columns of tablets with fewer than FEW rows are mostly small ones, which stay in memory (frames.c). */
bool load_plan(const struct table *table, const struct memory *mem, i64 workers, i64 row_bytes,
               i64 *out_rows) {
    enum { LEAST = 1 << 12, FEW = 1 << 16 };
    i64 rows = 1LL << table->tablet_shift, left = memory_left(mem);
    i64 few = MIN_OF(rows, FEW), each = left / 4 / workers; /* they are sealed and packed besides */
    bool all = few * row_bytes <= each;
    i64 most = all ? each : left / 2;
    while (rows > LEAST && rows * row_bytes > most) {
        rows /= 2;
    }
    *out_rows = rows;
    return all;
}

static i64 load_bytes(const struct table *table) {
    return (i64)sizeof(struct load) +
           (i64)table->col_count * (i64)(sizeof(struct sketch) + sizeof(_Atomic i32)) +
           (i64)table->key_count * (i64)sizeof(_Atomic u8);
}

wf_status load_open(struct load **out, struct table *table, struct error *err) {
    struct load *load = mem_alloc(table->mem, load_bytes(table));
    if (!load) {
        return memory_refused(table->mem, err, load_bytes(table));
    }
    memset(load, 0, (size_t)load_bytes(table));
    load->table = table_retain(table);
    table_writer_begin(table);
    load->dict_on = (_Atomic i32 *)(load + 1);
    load->sketches = (struct sketch *)(void *)(load->dict_on + table->col_count);
    load->orders = (_Atomic u8 *)(load->sketches + table->col_count);
    for (u32 k = 0; k < table->key_count; k++) {
        atomic_init(&load->orders[k], KEY_STRICT | KEY_RUNS);
    }
    mutex_init(&load->lock);
    cond_init(&load->sealed);
    struct table_version *now = table_snapshot(table);
    atomic_init(&load->rows, now->rows);
    for (u32 i = 0; i < table->col_count; i++) {
        atomic_init(&load->dict_on[i], now->draft->cols[i].dict_on);
    }
    version_release(now);
    *out = load;
    return ERR_OK;
}

void load_abort(struct load *load) {
    struct table *table = load->table;
    tablet_write_wait(table, &load->writes);
    for (i64 i = 0; i < load->part_count; i++) {
        tablet_release(load->parts[i].tablet);
    }
    mem_free(table->mem, load->parts, load->part_cap * (i64)sizeof *load->parts);
    cond_fini(&load->sealed);
    mutex_fini(&load->lock);
    mem_free(table->mem, load, load_bytes(table));
    table_writer_end(table);
    table_close(table);
}

/* Under the lock. */
static bool part_push(struct load *load, struct part part) {
    if (load->part_count == load->part_cap) {
        i64 cap = MAX_OF(load->part_cap * 2, 16), item = (i64)sizeof *load->parts;
        struct part *grown = mem_alloc(load->table->mem, cap * item);
        if (!grown) {
            return false;
        }
        if (load->part_count) {
            memcpy(grown, load->parts, (size_t)(load->part_count * item));
        }
        mem_free(load->table->mem, load->parts, load->part_cap * item);
        load->parts = grown;
        load->part_cap = cap;
    }
    load->parts[load->part_count++] = part;
    return true;
}

/* Seals the first of `rows` rows that fit one tablet and files it. */
static FALLIBLE seal_part(struct load *load, struct part part, struct column_source *sources,
                          struct sketch *sketches, i64 *rows, struct error *err) {
    struct table *table = load->table;
    *rows = seal_rows(table, sources, *rows);
    /* Rows count before their strings do, so that no thread sees strings without rows. */
    i64 column_rows = atomic_fetch_add(&load->rows, *rows) + *rows;
    struct seal seal = {.table = table,
                        .rows = *rows,
                        .column_rows = column_rows,
                        .dict_on = load->dict_on,
                        .sketches = sketches};
    wf_status status = tablet_seal_some(&seal, sources, &part.tablet, err);
    atomic_fetch_sub(&load->rows, status ? *rows : *rows - seal.rows);
    TRY(status);
    *rows = seal.rows;
    for (u32 k = 0; k < table->key_count; k++) {
        if (atomic_load(&load->orders[k])) {
            atomic_fetch_and(&load->orders[k], tablet_key_order(table, k, part.tablet));
        }
    }
    tablet_write_early(table, part.tablet, &load->writes);
    mutex_lock(&load->lock);
    bool filed = part_push(load, part);
    i64 part_bytes = load->part_cap * (i64)sizeof part;
    mutex_unlock(&load->lock);
    if (!filed) {
        tablet_write_wait(table, &load->writes);
        tablet_release(part.tablet);
        return memory_refused(table->mem, err, part_bytes);
    }
    return ERR_OK;
}

/* Several seal at once; what memory refuses then is tried once more when nobody else does. */
static FALLIBLE load_split(struct load *load, struct part part, struct column_source *sources,
                           struct sketch *sketches, i64 *rows, struct error *err) {
    i64 all = *rows;
    mutex_lock(&load->lock);
    while (load->alone) {
        cond_wait(&load->sealed, &load->lock);
    }
    load->sealing++;
    mutex_unlock(&load->lock);
    wf_status status = seal_part(load, part, sources, sketches, rows, err);
    mutex_lock(&load->lock);
    bool others = load->sealing-- > 1;
    cond_broadcast(&load->sealed);
    if (status != ERR_OUT_OF_MEMORY || (!others && !load->alone)) {
        mutex_unlock(&load->lock);
        return status;
    }
    while (load->alone || load->sealing > 0) {
        cond_wait(&load->sealed, &load->lock);
    }
    load->alone = 1;
    mutex_unlock(&load->lock);
    error_reset(err);
    *rows = all;
    status = seal_part(load, part, sources, sketches, rows, err);
    mutex_lock(&load->lock);
    load->alone = 0;
    cond_broadcast(&load->sealed);
    mutex_unlock(&load->lock);
    return status;
}

static struct column_source source_of_codes(struct type type, const struct input_col *col,
                                            i64 first, i64 rows) {
    struct column_source src = source_of_input(type, col, 0, rows);
    src.form = FORM_CODES;
    src.data = (const u32 *)col->data + first;
    src.nulls = col->nulls ? col->nulls + first : NULL;
    return src;
}

wf_status load_tablet(struct load *load, i64 sequence, i64 rows, const struct input_col *cols,
                      struct error *err) {
    return load_coded_tablet(load, sequence, rows, cols, NULL, err);
}

wf_status load_coded_tablet(struct load *load, i64 sequence, i64 rows, const struct input_col *cols,
                            const b8 *coded, struct error *err) {
    struct table *table = load->table;
    CHECK(rows <= 1LL << table->tablet_shift);
    TRY(check_not_null(table, rows, cols, err));
    i64 sketch_bytes = (i64)table->col_count * (i64)sizeof(struct sketch);
    i64 bytes = sketch_bytes + (i64)table->col_count * (i64)sizeof(struct column_source);
    struct column_source *sources = mem_alloc(table->mem, bytes);
    if (!sources) {
        return memory_refused(table->mem, err, bytes);
    }
    struct sketch *sketches = (struct sketch *)(void *)(sources + table->col_count);
    memset(sketches, 0, (size_t)sketch_bytes);
    wf_status status = ERR_OK;
    struct part part = {.sequence = sequence};
    for (i64 first = 0, n = 0; status == ERR_OK && first < rows; first += n, part.split++) {
        n = rows - first;
        for (u32 i = 0; i < table->col_count; i++) {
            struct type type = table->cols[i].type;
            sources[i] = coded && coded[i] ? source_of_codes(type, &cols[i], first, n)
                                           : source_of_input(type, &cols[i], first, n);
        }
        status = load_split(load, part, sources, sketches, &n, err);
    }
    if (status == ERR_OK) {
        mutex_lock(&load->lock);
        for (u32 i = 0; i < table->col_count; i++) {
            sketch_merge(&load->sketches[i], &sketches[i]);
        }
        mutex_unlock(&load->lock);
    }
    mem_free(table->mem, sources, bytes);
    return status;
}

static bool part_before(const struct part *a, const struct part *b) {
    return a->sequence != b->sequence ? a->sequence < b->sequence : a->split < b->split;
}

/* Heap sort: parts come in nearly any order, and their number follows the data. */
static void sort_parts(struct part *parts, i64 count) {
    for (i64 start = count / 2 - 1, end = count; end > 1;) {
        i64 root;
        if (start >= 0) {
            root = start--;
        } else {
            struct part top = parts[0];
            parts[0] = parts[--end];
            parts[end] = top;
            root = 0;
        }
        for (i64 child; (child = 2 * root + 1) < end; root = child) {
            child += child + 1 < end && part_before(&parts[child], &parts[child + 1]);
            if (!part_before(&parts[root], &parts[child])) {
                break;
            }
            struct part swap = parts[root];
            parts[root] = parts[child];
            parts[child] = swap;
        }
    }
}

static FALLIBLE commit_parts(struct load *load, struct writer *writer, struct error *err) {
    struct table *table = load->table;
    TRY(tail_seal(writer, err));
    sort_parts(load->parts, load->part_count);
    for (i64 p = 0; p < load->part_count; p++) {
        struct tablet *tablet = load->parts[p].tablet;
        writer_count(writer, tablet);
        TRY(writer_add(writer, tablet_retain(tablet), writer->next_slot++, NULL, err));
    }
    for (u32 i = 0; i < table->col_count; i++) {
        struct col_draft *col = &writer->draft->cols[i];
        sketch_merge(&col->sketch, &load->sketches[i]);
        col->sketch_changed = 1;
        if (!atomic_load(&load->dict_on[i])) {
            writer_stop_dict(writer, i);
        }
    }
    return ERR_OK;
}

struct table *load_table(struct load *load) {
    return table_retain(load->table);
}

/* Of very many rows an index would take much of memory: they are found tablet by tablet, as those that were read
 * from a file are. Where there are few of them beside what the table has, an index is quicker made. */
static void file_many(const struct load *load, const struct table_version *base) {
    enum {
        ROW_BYTES = 18, /* of an index */
        MEMORY_SHARE = 4,
        BASE_SHARE = 4,
#ifdef WF_HARD
        MANY = 64
#else
        MANY = 1 << 14
#endif
    };
    i64 rows = 0;
    for (i64 i = 0; i < load->part_count; i++) {
        rows += load->parts[i].tablet->rows;
    }
    bool many = rows >= MANY && rows >= base->rows / BASE_SHARE &&
                rows * ROW_BYTES > memory_left(load->table->mem) / MEMORY_SHARE;
    for (i64 i = 0; i < load->part_count && load->table->state->file; i++) {
        struct tablet *tablet = load->parts[i].tablet;
        tablet->filed = (b8)(tablet->filed || (many && tablet->framed));
    }
}

wf_status load_finish(struct load *load, struct table_version *base, struct table_version **out,
                      struct error *err) {
    struct writer writer;
    tablet_write_wait(load->table, &load->writes); /* the commit finds them in the file */
    wf_status status = writer_begin(&writer, load->table, base, err);
    if (status == ERR_OK && load->part_count) { /* keys may come later */
        file_many(load, base);
    }
    if (status == ERR_OK && load->part_count) {
        status = commit_parts(load, &writer, err);
    }
    if (status == ERR_OK) {
        status = writer_finish(&writer, out, err);
    }
    if (status == ERR_OK) {
        (*out)->loaded_count = load->part_count;
        for (u32 k = 0; k < load->table->key_count; k++) {
            (*out)->keys[k].loaded = atomic_load(&load->orders[k]);
        }
    }
    writer_end(&writer);
    load_abort(load);
    return status;
}
