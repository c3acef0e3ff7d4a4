/* trie_write.c: rows in order become a TrieArray, which is written when all are there.
 *
 * How wide a level's values are, and where it begins, is known only then. Until then its numbers are in blocks of
 * memory, which lie in temporary space where the budget has no room for them. */
#include "io/trie_file.h"

#include "base/file.h"
#include "base/stop.h"

#include <stddef.h>

enum { BLOCK_NUMBERS = 1 << 16, BLOCK_BYTES = 8 * BLOCK_NUMBERS };

struct numbers { /* a list that grows */
    i64 count, block_count, cap;
    i64 **blocks;
};

struct level {
    struct numbers values, starts;
    i64 lo, hi, base;
    struct trie_level disk;
};

struct trie_writer {
    struct memory *mem;
    struct arena arena;
    u32 col_count;
    struct column_def *cols;
    struct level *levels;
    i64 rows;
    i64 *last; /* row */
    u64 up, down;
    /* While it is written: */
    struct file_out *file;
    u8 *slice;
    i64 slice_len, written;
    struct numbers sums;
};

bool trie_takes(struct type type) {
    enum kind kind = type_kind(type);
    return kind == KIND_B8 || kind == KIND_I32 || kind == KIND_I64;
}

u64 trie_sum(const void *data, i64 bytes) {
    u64 lanes[4] = {0x9e3779b97f4a7c15ULL, 0xc2b2ae3d27d4eb4fULL, 0x165667b19e3779f9ULL, (u64)bytes};
    const u8 *at = data;
    for (; bytes > 0; at += 32, bytes -= 32) {
        u64 words[4] = {0};
        memcpy(words, at, (size_t)MIN_OF(bytes, 32));
        for (i32 i = 0; i < 4; i++) {
            u64 x = (lanes[i] ^ words[i]) * 0xd6e8feb86659fd93ULL;
            lanes[i] = x << 29 | x >> 35;
        }
    }
    return hash_u64(lanes[0] ^ hash_u64(lanes[1] ^ hash_u64(lanes[2] ^ hash_u64(lanes[3]))));
}

/* --- numbers --- */

static FALLIBLE numbers_grow(struct trie_writer *w, struct numbers *n, struct error *err) {
    if (n->block_count == n->cap) {
        i64 cap = MAX_OF(2 * n->cap, 16);
        i64 **blocks = mem_alloc(w->mem, cap * (i64)sizeof *blocks);
        if (!blocks) {
            return memory_refused(w->mem, err, cap * (i64)sizeof *blocks);
        }
        if (n->cap) {
            memcpy(blocks, n->blocks, (size_t)n->cap * sizeof *blocks);
        }
        mem_free(w->mem, n->blocks, n->cap * (i64)sizeof *blocks);
        n->blocks = blocks;
        n->cap = cap;
    }
    i64 *block = mem_alloc(w->mem, BLOCK_BYTES);
    if (!block) {
        return memory_refused(w->mem, err, BLOCK_BYTES);
    }
    n->blocks[n->block_count++] = block;
    return ERR_OK;
}

static inline FALLIBLE push(struct trie_writer *w, struct numbers *n, i64 x, struct error *err) {
    if (n->count == n->block_count * BLOCK_NUMBERS) {
        TRY(numbers_grow(w, n, err));
    }
    n->blocks[n->count / BLOCK_NUMBERS][n->count % BLOCK_NUMBERS] = x;
    n->count++;
    return ERR_OK;
}

static inline i64 at(const struct numbers *n, i64 i) {
    return n->blocks[i / BLOCK_NUMBERS][i % BLOCK_NUMBERS];
}

static void numbers_free(struct trie_writer *w, struct numbers *n) {
    for (i64 i = 0; i < n->block_count; i++) {
        mem_free(w->mem, n->blocks[i], BLOCK_BYTES);
    }
    mem_free(w->mem, n->blocks, n->cap * (i64)sizeof *n->blocks);
    *n = (struct numbers){0};
}

/* --- rows --- */

wf_status trie_writer_open(struct memory *mem, u32 col_count, const struct column_def *cols, struct trie_writer **out,
                           struct error *err) {
    struct trie_writer *w = mem_alloc(mem, (i64)sizeof *w);
    if (!w) {
        return memory_refused(mem, err, (i64)sizeof *w);
    }
    memset(w, 0, sizeof *w);
    w->mem = mem;
    arena_init(&w->arena, mem);
    w->col_count = col_count;
    w->cols = NEW_ARRAY(&w->arena, struct column_def, col_count);
    w->levels = NEW_ARRAY(&w->arena, struct level, col_count);
    w->last = NEW_ARRAY(&w->arena, i64, col_count);
    for (u32 c = 0; c < col_count; c++) {
        const char *name = arena_printf(&w->arena, "%s", cols[c].name);
        w->cols[c] = (struct column_def){.name = name, .type = cols[c].type};
        w->levels[c] = (struct level){.lo = I64_MAX, .hi = I64_MIN};
    }
    wf_status status = arena_check(&w->arena, err);
    if (status) {
        trie_writer_close(w);
        return status;
    }
    *out = w;
    return ERR_OK;
}

static i64 value_at(const struct trie_writer *w, const struct input_col *cols, u32 c, i64 row) {
    switch (type_kind(w->cols[c].type)) {
    case KIND_B8:
        return ((const b8 *)cols[c].data)[row];
    case KIND_I32:
        return ((const i32 *)cols[c].data)[row];
    default:
        return ((const i64 *)cols[c].data)[row];
    }
}

static FALLIBLE check_nulls(const struct trie_writer *w, i64 rows, const struct input_col *cols, struct error *err) {
    for (u32 c = 0; c < w->col_count; c++) {
        for (i64 r = 0; cols[c].nulls && r < rows; r++) {
            if (cols[c].nulls[r]) {
                error_set(err, ERR_NOT_NULL, -1, "column \"%.100s\" has a NULL, and a trie file holds none",
                          w->cols[c].name);
                error_hint(err, "Leave such rows out: COPY (SELECT ... WHERE \"%.100s\" IS NOT NULL) TO ...",
                           w->cols[c].name);
                return err->code;
            }
        }
    }
    return ERR_OK;
}

/* From level `from` on the row is another than the last one. */
static FALLIBLE add_row(struct trie_writer *w, const struct input_col *cols, i64 row, u32 from, struct error *err) {
    for (u32 c = from; c < w->col_count; c++) {
        struct level *l = &w->levels[c];
        i64 x = w->last[c] = value_at(w, cols, c, row);
        TRY(push(w, &l->values, x, err));
        if (c + 1 < w->col_count) {
            TRY(push(w, &l->starts, w->levels[c + 1].values.count, err));
        }
        l->lo = MIN_OF(l->lo, x);
        l->hi = MAX_OF(l->hi, x);
    }
    w->rows++;
    if (w->col_count == 2) {
        w->up += w->last[0] < w->last[1];
        w->down += w->last[0] > w->last[1];
    }
    return ERR_OK;
}

wf_status trie_writer_add(struct trie_writer *w, i64 rows, const struct input_col *cols, struct error *err) {
    TRY(check_nulls(w, rows, cols, err));
    for (i64 r = 0; r < rows; r++) {
        u32 from = 0;
        while (w->rows && from < w->col_count && value_at(w, cols, from, r) == w->last[from]) {
            from++;
        }
        ASSERT(!w->rows || from == w->col_count || value_at(w, cols, from, r) > w->last[from]);
        if (!w->rows || from < w->col_count) {
            TRY(add_row(w, cols, r, from, err));
        }
    }
    return ERR_OK;
}

/* --- what is known of them --- */

static i64 find_value(const struct numbers *n, i64 x) {
    i64 lo = 0, hi = n->count;
    while (lo < hi) {
        i64 middle = lo + (hi - lo) / 2;
        bool less = at(n, middle) < x;
        lo = less ? middle + 1 : lo;
        hi = less ? hi : middle;
    }
    return lo < n->count && at(n, lo) == x ? lo : -1;
}

/* Whether every row of two columns has its opposite: those of a node come in the order of their first values, so
 * that each is the next of its list. */
static FALLIBLE find_opposites(struct trie_writer *w, bool *out, struct error *err) {
    const struct level *first = &w->levels[0], *second = &w->levels[1];
    i64 bytes = MAX_OF(first->values.count * 8, 1);
    i64 *next = mem_alloc(w->mem, bytes);
    if (!next) {
        return memory_refused(w->mem, err, bytes);
    }
    bool fine = true;
    for (i64 i = 0; i < first->values.count; i++) {
        next[i] = at(&first->starts, i);
    }
    for (i64 i = 0; fine && i < first->values.count; i++) {
        i64 end = i + 1 < first->values.count ? at(&first->starts, i + 1) : w->rows;
        for (i64 r = at(&first->starts, i); fine && r < end; r++) {
            i64 other = find_value(&first->values, at(&second->values, r));
            i64 other_end = other + 1 < first->values.count ? at(&first->starts, other + 1) : w->rows;
            fine = other >= 0 && next[other] < other_end && at(&second->values, next[other]) == at(&first->values, i);
            if (fine) {
                next[other]++;
            }
        }
    }
    mem_free(w->mem, next, bytes);
    *out = fine;
    return ERR_OK;
}

static FALLIBLE find_facts(struct trie_writer *w, struct trie_head *h, struct error *err) {
    const struct level *l = w->col_count > 1 ? &w->levels[w->col_count - 2] : NULL;
    for (i64 i = 0; l && i < l->starts.count; i++) {
        i64 end = i + 1 < l->starts.count ? at(&l->starts, i + 1) : w->rows;
        u64 own = (u64)(end - at(&l->starts, i));
        h->longest = MAX_OF(h->longest, own);
        h->pairs += w->col_count == 2 ? own * (own - 1) / 2 : 0;
    }
    if (w->col_count != 2 || !type_eq(w->cols[0].type, w->cols[1].type)) {
        return ERR_OK;
    }
    bool both = false;
    u64 rows = (u64)w->rows;
    if (w->up == w->down && w->up + w->down == rows && rows) {
        TRY(find_opposites(w, &both, err));
    }
    h->facts = (w->up == rows ? TRIE_UP : 0) | (w->down == rows ? TRIE_DOWN : 0) | (both ? TRIE_BOTH : 0);
    return ERR_OK;
}

/* Columns of one type count from the same value, if all fit in 32 bits then. */
static void choose_bases(struct trie_writer *w) {
    i64 lo = I64_MAX, hi = I64_MIN;
    bool same = w->rows > 0;
    for (u32 c = 0; c < w->col_count; c++) {
        lo = MIN_OF(lo, w->levels[c].lo);
        hi = MAX_OF(hi, w->levels[c].hi);
        same = same && type_eq(w->cols[c].type, w->cols[0].type);
    }
    same = same && (u64)hi - (u64)lo <= 0xffffffffu;
    for (u32 c = 0; c < w->col_count; c++) {
        struct level *l = &w->levels[c];
        if (!w->rows) {
            l->lo = 0;
            l->hi = -1;
        }
        l->base = same ? lo : l->lo;
        l->disk = (struct trie_level){
            .oid = (u32)type_oid(w->cols[c].type),
            .precision = w->cols[c].type.precision,
            .scale = w->cols[c].type.scale,
            .length = w->cols[c].type.length,
            .name_bytes = (u32)strlen(w->cols[c].name),
            .base = l->base,
            .lo = l->lo,
            .hi = l->hi,
            .count = (u64)l->values.count,
            .value_bytes = !w->rows || (u64)l->hi - (u64)l->base <= 0xffffffffu ? 4 : 8,
        };
    }
}

/* --- bytes --- */

static FALLIBLE end_slice(struct trie_writer *w, struct error *err) {
    if (w->slice_len) {
        TRY(push(w, &w->sums, (i64)trie_sum(w->slice, w->slice_len), err));
        TRY(file_out_write(w->file, w->slice, w->slice_len, err));
        w->written += w->slice_len;
        w->slice_len = 0;
    }
    return ERR_OK;
}

static FALLIBLE put(struct trie_writer *w, u64 number, i64 bytes, struct error *err) {
    memcpy(w->slice + w->slice_len, &number, (size_t)bytes);
    w->slice_len += bytes;
    return w->slice_len == TRIE_SLICE ? end_slice(w, err) : ERR_OK;
}

static FALLIBLE put_numbers(struct trie_writer *w, const struct numbers *n, i64 base, i64 bytes, struct error *err) {
    for (i64 i = 0; i < n->count; i++) {
        TRY(put(w, (u64)at(n, i) - (u64)base, bytes, err));
        if (i % BLOCK_NUMBERS == 0) {
            TRY(stop_check(err));
        }
    }
    return ERR_OK;
}

static FALLIBLE put_gap(struct trie_writer *w, struct error *err) {
    while ((w->written + w->slice_len) % TRIE_ALIGN) {
        TRY(put(w, 0, 4, err));
    }
    return ERR_OK;
}

/* Where everything goes, from the head's end on. */
static void lay_out(struct trie_writer *w, struct trie_head *h) {
    i64 place = (i64)sizeof *h + w->col_count * (i64)sizeof(struct trie_level);
    for (u32 c = 0; c < w->col_count; c++) {
        place += w->levels[c].disk.name_bytes;
    }
    h->head_bytes = (u64)place;
    place = ALIGN_UP(place, TRIE_PAGE);
    h->body_at = (u64)place;
    for (u32 c = 0; c < w->col_count; c++) {
        struct trie_level *d = &w->levels[c].disk;
        bool inner = c + 1 < w->col_count;
        d->start_bytes = !inner ? 0 : w->levels[c + 1].disk.count <= 0xffffffffu ? 4 : 8;
        d->values_at = (u64)place;
        place = ALIGN_UP(place + (i64)d->count * d->value_bytes, TRIE_ALIGN);
        d->starts_at = (u64)place;
        place = ALIGN_UP(place + (inner ? ((i64)d->count + 1) * d->start_bytes : 0), TRIE_ALIGN);
    }
    h->sums_at = (u64)place;
    i64 slices = (place - (i64)h->body_at + TRIE_SLICE - 1) / TRIE_SLICE;
    h->file_bytes = (u64)(place + 8 * (slices + 1));
}

static FALLIBLE write_body(struct trie_writer *w, struct error *err) {
    for (u32 c = 0; c < w->col_count; c++) {
        struct level *l = &w->levels[c];
        TRY(put_numbers(w, &l->values, l->base, l->disk.value_bytes, err));
        TRY(put_gap(w, err));
        if (c + 1 < w->col_count) {
            TRY(put_numbers(w, &l->starts, 0, l->disk.start_bytes, err));
            TRY(put(w, (u64)w->levels[c + 1].values.count, l->disk.start_bytes, err));
            TRY(put_gap(w, err));
        }
    }
    return end_slice(w, err);
}

static FALLIBLE write_head(struct trie_writer *w, const struct trie_head *h, struct error *err) {
    i64 bytes = (i64)h->body_at;
    u8 *head = mem_alloc(w->mem, bytes);
    if (!head) {
        return memory_refused(w->mem, err, bytes);
    }
    memset(head, 0, (size_t)bytes);
    i64 place = (i64)sizeof *h;
    memcpy(head, h, sizeof *h);
    for (u32 c = 0; c < w->col_count; c++) {
        memcpy(head + place, &w->levels[c].disk, sizeof w->levels[c].disk);
        place += (i64)sizeof w->levels[c].disk;
    }
    for (u32 c = 0; c < w->col_count; c++) {
        memcpy(head + place, w->cols[c].name, w->levels[c].disk.name_bytes);
        place += w->levels[c].disk.name_bytes;
    }
    u64 sum = trie_sum(head, bytes);
    memcpy(head + offsetof(struct trie_head, head_sum), &sum, 8);
    wf_status status = file_out_write(w->file, head, bytes, err);
    mem_free(w->mem, head, bytes);
    return status;
}

/* Checksums of all slices, and one of these. */
static FALLIBLE write_sums(struct trie_writer *w, struct error *err) {
    i64 bytes = (w->sums.count + 1) * 8;
    u64 *sums = mem_alloc(w->mem, bytes);
    if (!sums) {
        return memory_refused(w->mem, err, bytes);
    }
    for (i64 i = 0; i < w->sums.count; i++) {
        sums[i] = (u64)at(&w->sums, i);
    }
    sums[w->sums.count] = trie_sum(sums, w->sums.count * 8);
    wf_status status = file_out_write(w->file, sums, bytes, err);
    mem_free(w->mem, sums, bytes);
    return status;
}

wf_status trie_writer_finish(struct trie_writer *w, struct file_out *file, struct error *err) {
    struct trie_head head = {.magic = TRIE_MAGIC,
                             .version = TRIE_VERSION,
                             .order = TRIE_ORDER,
                             .rows = (u64)w->rows,
                             .columns = w->col_count,
                             .slice_bytes = TRIE_SLICE};
    w->file = file;
    w->slice = mem_alloc(w->mem, TRIE_SLICE);
    if (!w->slice) {
        return memory_refused(w->mem, err, TRIE_SLICE);
    }
    TRY(find_facts(w, &head, err));
    choose_bases(w);
    lay_out(w, &head);
    TRY(write_head(w, &head, err));
    TRY(write_body(w, err));
    return write_sums(w, err);
}

void trie_writer_close(struct trie_writer *w) {
    if (w) {
        for (u32 c = 0; w->levels && c < w->col_count; c++) {
            numbers_free(w, &w->levels[c].values);
            numbers_free(w, &w->levels[c].starts);
        }
        numbers_free(w, &w->sums);
        mem_free(w->mem, w->slice, TRIE_SLICE);
        arena_fini(&w->arena);
        mem_free(w->mem, w, (i64)sizeof *w);
    }
}
