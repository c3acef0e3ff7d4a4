/* trie_read.c: a trie file as a provider of rows: mapped when it is bound, read part by part when it is scanned.
 *
 * A part is a run of rows. The nodes that they stand under are found by search, level by level from the last one
 * up, and then every level's values are written as often as rows stand under them. Bytes are compared with the
 * checksum of their slice before they are looked at for the first time, and what they say is not believed further
 * than the arrays reach: a file may be right by its checksums and still hold what no writer wrote. Pages that a
 * part has read leave memory. */
#include "io/trie_file.h"

#include "base/file.h"
#include "base/stop.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stddef.h>

enum { PART_ROWS = 1 << 15, PART_LEAST = 64, BUDGET_SHARE = 16 };

struct trie_file {
    struct scan_provider provider; /* first: it is all that others know */
    struct memory *mem;
    struct arena arena;
    struct file_view view;
    struct trie_head head;
    const char *path;
    struct trie_level *levels;
    struct column_def *cols;
    struct column_stats *stats;
    struct scan_levels shown;
    const u64 *sums;
    i64 slices;
    _Atomic u8 *seen; /* by slice: compared with its checksum, and the same */
};

struct reader { /* a worker's */
    u8 *block;
    struct input_col *cols;
    i64 *first, *end; /* by level: nodes of the part */
};

struct scan {
    struct trie_file *file;
    struct memory *mem;
    b8 *wanted;
    i64 part_rows, row_bytes;
    _Atomic i64 next;
    i32 worker_count;
    struct reader *readers;
};

/* --- bytes --- */

static FALLIBLE damaged(const struct trie_file *f, struct error *err, const char *what, i64 where) {
    if (file_view_torn(&f->view)) {
        FAIL(err, IO, "cannot read \"%s\": it was cut short", f->path);
    }
    FAIL(err, DAMAGED, "the trie file \"%s\" is damaged: %s at byte %lld", f->path, what, where);
}

/* Bytes of the body may be looked at. */
static FALLIBLE look(struct trie_file *f, u64 at, i64 bytes, struct error *err) {
    i64 body = (i64)f->head.body_at, end = (i64)f->head.sums_at;
    i64 last = bytes > 0 ? ((i64)at + bytes - 1 - body) / TRIE_SLICE : -1;
    for (i64 i = ((i64)at - body) / TRIE_SLICE; i <= last; i++) {
        if (atomic_load_explicit(&f->seen[i], memory_order_relaxed)) {
            continue;
        }
        i64 from = body + i * TRIE_SLICE;
        if (trie_sum(f->view.data + from, MIN_OF(TRIE_SLICE, end - from)) != f->sums[i]) {
            return damaged(f, err, "a checksum is wrong", from);
        }
        atomic_store_explicit(&f->seen[i], 1, memory_order_relaxed);
    }
    return ERR_OK;
}

static inline u64 number(const struct trie_file *f, u64 at, i64 i, u8 bytes) {
    const char *from = f->view.data + at;
    return bytes == 4 ? ((const u32 *)(const void *)from)[i] : ((const u64 *)(const void *)from)[i];
}

static inline u64 start_of(const struct trie_file *f, u32 level, i64 node) {
    return number(f, f->levels[level].starts_at, node, f->levels[level].start_bytes);
}

/* --- parts --- */

/* The node of `level` that a node of the next one stands under, by search. */
static FALLIBLE find_node(struct trie_file *f, u32 level, i64 child, i64 *out, struct error *err) {
    const struct trie_level *l = &f->levels[level];
    i64 lo = 0, hi = (i64)l->count - 1;
    while (lo < hi) {
        i64 middle = lo + (hi - lo + 1) / 2;
        TRY(look(f, l->starts_at + (u64)(middle * l->start_bytes), l->start_bytes, err));
        bool before = start_of(f, level, middle) <= (u64)child;
        lo = before ? middle : lo;
        hi = before ? hi : middle - 1;
    }
    *out = lo;
    return ERR_OK;
}

/* Which nodes of every level the rows stand under, all of whose bytes have been looked at. */
static FALLIBLE find_nodes(struct trie_file *f, struct reader *r, i64 first, i64 end, struct error *err) {
    for (u32 n = f->head.columns; n-- > 0;) {
        const struct trie_level *l = &f->levels[n];
        if (n + 1 < f->head.columns) {
            i64 last = 0;
            TRY(find_node(f, n, r->first[n + 1], &first, err));
            TRY(find_node(f, n, r->end[n + 1] - 1, &last, err));
            end = last + 1;
            TRY(look(f, l->starts_at + (u64)(first * l->start_bytes), (end - first + 1) * l->start_bytes, err));
        }
        TRY(look(f, l->values_at + (u64)(first * l->value_bytes), (end - first) * l->value_bytes, err));
        r->first[n] = first;
        r->end[n] = end;
    }
    for (u32 n = 0; n + 1 < f->head.columns; n++) { /* starts ascend over all of them */
        u64 before = start_of(f, n, r->first[n]);
        bool fine = before <= (u64)r->first[n + 1] && start_of(f, n, r->end[n]) >= (u64)r->end[n + 1];
        for (i64 i = r->first[n]; i < r->end[n]; i++) {
            u64 next = start_of(f, n, i + 1);
            fine = fine && next > before;
            before = next;
        }
        if (!fine) {
            return damaged(f, err, "an index is wrong", (i64)f->levels[n].starts_at);
        }
    }
    return ERR_OK;
}

static void put_value(u8 *out, enum kind kind, i64 i, i64 x) {
    switch (kind) {
    case KIND_B8:
        ((b8 *)out)[i] = (b8)x;
        break;
    case KIND_I32:
        ((i32 *)(void *)out)[i] = (i32)x;
        break;
    default:
        ((i64 *)(void *)out)[i] = x;
        break;
    }
}

/* A node's index may lie beyond what was looked at: it is the end of the part then. */
static i64 row_end(const struct trie_file *f, const struct reader *r, u32 level, i64 node, i64 end) {
    for (; level + 1 < f->head.columns; level++) {
        node = (i64)start_of(f, level, node);
        if (node >= r->end[level + 1]) {
            return end;
        }
    }
    return MIN_OF(node, end);
}

static FALLIBLE fill_column(struct trie_file *f, const struct reader *r, u32 c, u8 *out, struct error *err) {
    const struct trie_level *l = &f->levels[c];
    enum kind kind = type_kind(f->cols[c].type);
    i64 first = r->first[f->head.columns - 1], end = r->end[f->head.columns - 1];
    u64 most = (u64)l->hi - (u64)l->base, least = (u64)l->lo - (u64)l->base;
    bool last = c + 1 == f->head.columns, fine = true;
    i64 row = first;
    for (i64 i = r->first[c]; i < r->end[c]; i++) {
        u64 x = number(f, l->values_at, i, l->value_bytes);
        fine = fine && x >= least && x <= most;
        i64 until = last ? row + 1 : row_end(f, r, c, i + 1, end);
        for (; row < until; row++) {
            put_value(out, kind, row - first, (i64)((u64)l->base + x));
        }
    }
    return fine && row == end ? ERR_OK : damaged(f, err, "a value is wrong", (i64)l->values_at);
}

static void pass_pages(const struct trie_file *f, const struct reader *r) {
    for (u32 n = 0; n < f->head.columns; n++) {
        const struct trie_level *l = &f->levels[n];
        file_view_pass(&f->view, (i64)l->values_at + r->first[n] * l->value_bytes,
                       (r->end[n] - r->first[n]) * l->value_bytes);
        file_view_pass(&f->view, (i64)l->starts_at + r->first[n] * l->start_bytes,
                       (r->end[n] - r->first[n]) * l->start_bytes);
    }
}

static FALLIBLE fill_part(struct scan *s, struct reader *r, i64 first, i64 end, struct error *err) {
    struct trie_file *f = s->file;
    TRY(find_nodes(f, r, first, end, err));
    u8 *at = r->block;
    for (u32 c = 0; c < f->head.columns; c++) {
        if (s->wanted[c]) {
            TRY(fill_column(f, r, c, at, err));
            r->cols[c] = (struct input_col){.data = at};
            at += ALIGN_UP(s->part_rows * kind_bytes[type_kind(f->cols[c].type)], 16);
        }
    }
    pass_pages(f, r);
    return file_view_torn(&f->view) ? damaged(f, err, "", 0) : ERR_OK;
}

static wf_status trie_next(struct scan *s, i32 worker, struct scan_part *out, struct error *err) {
    struct reader *r = &s->readers[worker];
    i64 rows = (i64)s->file->head.rows;
    i64 number = atomic_fetch_add(&s->next, 1);
    i64 first = number * s->part_rows, end = MIN_OF(first + s->part_rows, rows);
    *out = (struct scan_part){.number = number, .row_start = first, .end = first >= rows};
    if (out->end) {
        return ERR_OK;
    }
    TRY(stop_check(err));
    out->bad = fill_part(s, r, first, end, &out->err) != ERR_OK;
    out->rows = out->bad ? 0 : end - first;
    out->bytes = (end - first) * s->row_bytes;
    out->cols = r->cols;
    return ERR_OK;
}

/* --- a scan --- */

static void trie_scan_close(struct scan *s) {
    u32 cols = s->file->head.columns;
    for (i32 i = 0; s->readers && i < s->worker_count; i++) {
        struct reader *r = &s->readers[i];
        mem_free(s->mem, r->block, s->part_rows * s->row_bytes + 16 * (i64)cols);
        mem_free(s->mem, r->cols, (i64)cols * (i64)sizeof *r->cols);
        mem_free(s->mem, r->first, 2 * (i64)cols * 8);
    }
    mem_free(s->mem, s->readers, s->worker_count * (i64)sizeof *s->readers);
    mem_free(s->mem, s->wanted, cols);
    mem_free(s->mem, s, (i64)sizeof *s);
}

static FALLIBLE open_readers(struct scan *s, struct error *err) {
    u32 cols = s->file->head.columns;
    i64 bytes = s->part_rows * s->row_bytes + 16 * (i64)cols;
    s->readers = mem_alloc(s->mem, s->worker_count * (i64)sizeof *s->readers);
    if (!s->readers) {
        return memory_refused(s->mem, err, s->worker_count * (i64)sizeof *s->readers);
    }
    memset(s->readers, 0, (size_t)s->worker_count * sizeof *s->readers);
    for (i32 i = 0; i < s->worker_count; i++) {
        struct reader *r = &s->readers[i];
        r->block = mem_alloc(s->mem, bytes);
        r->cols = mem_alloc(s->mem, (i64)cols * (i64)sizeof *r->cols);
        r->first = mem_alloc(s->mem, 2 * (i64)cols * 8);
        if (!r->block || !r->cols || !r->first) {
            return memory_refused(s->mem, err, bytes);
        }
        memset(r->cols, 0, (size_t)cols * sizeof *r->cols);
        r->end = r->first + cols;
    }
    return ERR_OK;
}

/* As many rows as are asked for, and as the budget leaves room for. */
static void choose_part(struct scan *s, const struct scan_request *request) {
    i64 bytes = PART_ROWS * s->row_bytes;
    for (const struct memory *mem = request->mem; mem; mem = mem->parent) {
        if (mem->limit_bytes > 0) {
            bytes = MIN_OF(bytes, mem->limit_bytes / (BUDGET_SHARE * request->worker_count));
        }
    }
    bytes = request->part_bytes ? MIN_OF(bytes, request->part_bytes) : bytes;
    s->part_rows = MAX_OF(bytes / s->row_bytes, PART_LEAST);
}

static wf_status trie_scan_open(struct scan_provider *provider, const struct scan_request *request, struct scan **out,
                                struct error *err) {
    struct trie_file *f = (struct trie_file *)provider;
    struct scan *s = mem_alloc(request->mem, (i64)sizeof *s);
    u32 cols = f->head.columns;
    if (!s) {
        return memory_refused(request->mem, err, (i64)sizeof *s);
    }
    memset(s, 0, sizeof *s);
    s->file = f;
    s->mem = request->mem;
    s->worker_count = request->worker_count;
    s->wanted = mem_alloc(s->mem, cols);
    if (s->wanted) {
        memcpy(s->wanted, request->cols, cols);
    }
    for (u32 c = 0; c < cols; c++) {
        s->row_bytes += request->cols[c] ? kind_bytes[type_kind(f->cols[c].type)] : 0;
    }
    s->row_bytes = MAX_OF(s->row_bytes, 1);
    choose_part(s, request);
    wf_status status = s->wanted ? open_readers(s, err) : memory_refused(s->mem, err, cols);
    if (status) {
        trie_scan_close(s);
        return status;
    }
    *out = s;
    return ERR_OK;
}

/* --- the file --- */

static FALLIBLE no_trie(const struct trie_file *f, struct error *err, const char *why) {
    FAIL(err, DAMAGED, "\"%s\" is no trie file that can be read: %s", f->path, why);
}

static bool type_of_level(const struct trie_level *l, struct type *out) {
    for (i32 id = 0; id < TYPE_COUNT; id++) {
        *out = (struct type){.id = (u8)id, .precision = l->precision, .scale = l->scale, .length = l->length};
        bool decimal = id == TYPE_DECIMAL;
        if (type_oid(*out) == (i32)l->oid) {
            bool digits = l->precision >= 1 && l->precision <= 18 && l->scale <= l->precision;
            return (!decimal || digits) && trie_takes(*out);
        }
    }
    return false;
}

/* An array lies in the body. */
static bool lies(const struct trie_head *h, u64 at, u64 count, u64 bytes) {
    return at >= h->body_at && at <= h->sums_at && at % 8 == 0 && count <= (h->sums_at - at) / bytes;
}

static bool level_fits(const struct trie_head *h, const struct trie_level *l, u32 c, struct type type) {
    bool last = c + 1 == h->columns;
    enum kind kind = type_kind(type);
    i64 least = kind == KIND_I32 ? I32_MIN : kind == KIND_B8 ? 0 : I64_MIN;
    i64 most = kind == KIND_I32 ? I32_MAX : kind == KIND_B8 ? 1 : I64_MAX;
    bool value = (l->value_bytes == 4 || l->value_bytes == 8) && lies(h, l->values_at, l->count, l->value_bytes);
    bool start = last || ((l->start_bytes == 4 || l->start_bytes == 8) &&
                          lies(h, l->starts_at, l->count + 1, l->start_bytes));
    bool range = l->lo >= least && l->lo <= l->hi && l->hi <= most && l->base <= l->lo && l->base >= least &&
                 (l->value_bytes == 8 || (u64)l->hi - (u64)l->base <= 0xffffffffu);
    bool count = last ? l->count == h->rows : l->count <= h->rows && (l->count > 0 || !h->rows);
    return value && start && count && (range || !h->rows);
}

static FALLIBLE read_levels(struct trie_file *f, struct error *err) {
    const struct trie_head *h = &f->head;
    u32 n = h->columns;
    u64 place = sizeof *h + n * sizeof(struct trie_level);
    f->levels = NEW_ARRAY(&f->arena, struct trie_level, n);
    f->cols = NEW_ARRAY(&f->arena, struct column_def, n);
    f->stats = NEW_ARRAY(&f->arena, struct column_stats, n);
    TRY(arena_check(&f->arena, err));
    memcpy(f->levels, f->view.data + sizeof *h, n * sizeof(struct trie_level));
    for (u32 c = 0; c < n; c++) {
        struct trie_level *l = &f->levels[c];
        struct type type;
        if (l->name_bytes > TRIE_NAME || place + l->name_bytes > h->head_bytes || !type_of_level(l, &type) ||
            !level_fits(h, l, c, type)) {
            return no_trie(f, err, "its head contradicts itself");
        }
        const char *name = arena_sv(&f->arena, (struct sv){f->view.data + place, l->name_bytes}).ptr;
        place += l->name_bytes;
        f->cols[c] = (struct column_def){.name = name, .type = type, .not_null = 1};
        f->stats[c] = (struct column_stats){.range = {.lo = l->lo, .hi = l->hi},
                                            .distinct = MAX_OF((i64)l->count, 1),
                                            .unique = n == 1,
                                            .sorted = c == 0};
        if (c > 0 && (u64)l->hi - (u64)l->lo < (u64)f->stats[c].distinct) {
            f->stats[c].distinct = l->hi - l->lo + 1;
        }
    }
    return arena_check(&f->arena, err);
}

static FALLIBLE read_sums(struct trie_file *f, struct error *err) {
    const struct trie_head *h = &f->head;
    f->slices = ((i64)(h->sums_at - h->body_at) + TRIE_SLICE - 1) / TRIE_SLICE;
    f->sums = (const u64 *)(const void *)(f->view.data + h->sums_at);
    f->seen = mem_alloc(f->mem, MAX_OF(f->slices, 1));
    if (!f->seen) {
        return memory_refused(f->mem, err, f->slices);
    }
    memset((void *)f->seen, 0, (size_t)f->slices);
    if (trie_sum(f->sums, f->slices * 8) != f->sums[f->slices]) {
        return damaged(f, err, "the checksum of the checksums is wrong", (i64)h->sums_at);
    }
    return ERR_OK;
}

static FALLIBLE read_head(struct trie_file *f, struct error *err) {
    struct trie_head *h = &f->head;
    u64 bytes = (u64)f->view.bytes;
    if (bytes < sizeof h->magic || memcmp(f->view.data, TRIE_MAGIC, sizeof h->magic) != 0) {
        return no_trie(f, err, "it does not begin like one");
    }
    if (bytes < sizeof *h) {
        return no_trie(f, err, "it is cut off");
    }
    memcpy(h, f->view.data, sizeof *h);
    if (h->order != TRIE_ORDER) {
        return no_trie(f, err, "its numbers are in another order of bytes");
    }
    if (h->version > TRIE_VERSION) {
        return no_trie(f, err, "a later version wrote it");
    }
    u64 least = sizeof *h + h->columns * (u64)sizeof(struct trie_level);
    bool fits = h->version == TRIE_VERSION && h->slice_bytes == TRIE_SLICE && h->columns >= 1 &&
                h->columns <= TRIE_COLUMNS && h->head_bytes >= least &&
                h->head_bytes <= least + h->columns * (u64)TRIE_NAME &&
                h->body_at == (u64)ALIGN_UP((i64)h->head_bytes, TRIE_PAGE) &&
                h->body_at <= h->sums_at && h->sums_at % 8 == 0 &&
                h->sums_at < h->file_bytes && h->rows <= (u64)1 << 47;
    if (fits && h->file_bytes != bytes) {
        return no_trie(f, err, h->file_bytes > bytes ? "it is cut off" : "something stands behind its end");
    }
    fits = fits && h->file_bytes - h->sums_at == 8 * ((h->sums_at - h->body_at + TRIE_SLICE - 1) / TRIE_SLICE + 1);
    if (!fits) {
        return no_trie(f, err, "its head contradicts itself");
    }
    i64 own = (i64)h->body_at;
    char *copy = mem_alloc(f->mem, own);
    if (!copy) {
        return memory_refused(f->mem, err, own);
    }
    memcpy(copy, f->view.data, (size_t)own);
    memset(copy + offsetof(struct trie_head, head_sum), 0, 8);
    u64 sum = trie_sum(copy, own);
    mem_free(f->mem, copy, own);
    return sum == h->head_sum ? ERR_OK : damaged(f, err, "the head's checksum is wrong", 0);
}

static wf_status trie_check(struct scan_provider *provider, struct error *err) {
    struct trie_file *f = (struct trie_file *)provider;
    for (i64 at = (i64)f->head.body_at; at < (i64)f->head.sums_at; at += TRIE_SLICE) {
        TRY(look(f, (u64)at, 1, err));
        file_view_pass(&f->view, at, TRIE_SLICE);
        TRY(stop_check(err));
    }
    return file_view_torn(&f->view) ? damaged(f, err, "", 0) : ERR_OK;
}

static FALLIBLE show_levels(struct trie_file *f, struct error *err) {
    struct scan_level *levels = NEW_ARRAY(&f->arena, struct scan_level, f->head.columns);
    TRY(arena_check(&f->arena, err));
    for (u32 c = 0; c < f->head.columns; c++) {
        const struct trie_level *l = &f->levels[c];
        levels[c] = (struct scan_level){.base = l->base,
                                        .count = (i64)l->count,
                                        .values = f->view.data + l->values_at,
                                        .starts = c + 1 < f->head.columns ? f->view.data + l->starts_at : NULL,
                                        .value_bytes = l->value_bytes,
                                        .start_bytes = l->start_bytes};
    }
    f->shown = (struct scan_levels){.rows = (i64)f->head.rows,
                                    .count = f->head.columns,
                                    .levels = levels,
                                    .up = (f->head.facts & TRIE_UP) != 0,
                                    .pairs = f->head.pairs,
                                    .check = trie_check};
    return ERR_OK;
}

void trie_file_close(struct trie_file *f) {
    if (f) {
        struct memory *mem = f->mem;
        mem_free(mem, (void *)f->seen, MAX_OF(f->slices, 1));
        file_view_close(&f->view);
        arena_fini(&f->arena);
        mem_free(mem, f, (i64)sizeof *f);
    }
}

static void trie_release(struct scan_provider *provider) {
    trie_file_close((struct trie_file *)provider);
}

wf_status trie_file_open(struct memory *mem, const char *path, struct trie_file **out, struct error *err) {
    struct trie_file *f = mem_alloc(mem, (i64)sizeof *f);
    if (!f) {
        return memory_refused(mem, err, (i64)sizeof *f);
    }
    memset(f, 0, sizeof *f);
    f->mem = mem;
    arena_init(&f->arena, mem);
    f->path = arena_printf(&f->arena, "%s", path);
    wf_status status = file_view_open(&f->view, path, err);
    status = status ? status : read_head(f, err);
    status = status ? status : read_levels(f, err);
    status = status ? status : read_sums(f, err);
    status = status ? status : show_levels(f, err);
    if (status) {
        trie_file_close(f);
        return status;
    }
    f->provider = (struct scan_provider){.rows = (i64)f->head.rows,
                                         .rows_most = (i64)f->head.rows,
                                         .stats = f->stats,
                                         .levels = &f->shown,
                                         .open = trie_scan_open,
                                         .next = trie_next,
                                         .close = trie_scan_close,
                                         .release = trie_release};
    *out = f;
    return ERR_OK;
}

u32 trie_file_columns(const struct trie_file *f, const struct column_def **out) {
    *out = f->cols;
    return f->head.columns;
}

void trie_file_attach(struct trie_file *f, struct table *table) {
    table->provider = &f->provider;
}
