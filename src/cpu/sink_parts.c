/* sink_parts.c: rows set aside by partition, between the pieces of a pipeline that was cut.
 *
 * Every worker fills a block of each partition in memory: columns, then the bytes of their texts. A block
 * that is full goes to temporary space as a whole and is a block of its partition there, its texts being
 * views into it. So whoever reads a partition reads a few long pieces, texts among them, and nothing
 * else of the file. */
#include "cpu/cut.h"

enum {
    FILL_SHARE = 16, /* of the memory that is left: blocks being filled */
    BLOCK_LEAST = 4 << 10, /* a page: temporary space has no smaller ones */
    BLOCKS_LEAST = 8, /* of a partition's list */
    FILL_MOST = 4, /* ... however small they are */
    BLOCK_MOST = 128 << 10,
    COLUMN_ALIGN = 16
};
#define IN_BLOCK (1ULL << 63) /* of a text's address while its block is filled: it is an offset */

struct fill { /* a block in the making */
    u8 *block; /* NULL: none yet */
    i64 rows;
    i64 text_bytes;
};

struct filler { /* of a worker */
    struct row_parts *parts;
    struct error *err;
    i64 rows_cap, text_at;
    i64 *starts; /* of columns in a block */
    struct fill *fills;
};

static i64 part_count(struct exec *x, const struct cut *cut) {
    return cut->by == CUT_KEY ? 1LL << x->vars[cut->var].index->class_bits : CUT_PARTS;
}

bool row_parts_fit(struct exec *x, const struct cut *cut) {
    i64 workers = x->pool ? pool_worker_count(x->pool) : 1;
    return part_count(x, cut) * workers * BLOCK_LEAST <= memory_left(x->mem) / FILL_MOST;
}

struct row_parts *row_parts_new(struct exec *x, const struct cut *cut, i32 level, i32 workers) {
    struct row_parts *parts = NEW(x->arena, struct row_parts);
    *parts = (struct row_parts){.x = x, .cut = cut, .level = level, .count = part_count(x, cut)};
    parts->parts = NEW_ARRAY(x->arena, struct row_part, parts->count + 1);
    for (u32 c = 0; c < cut->col_count; c++) {
        parts->width_bytes += kind_bytes[cut->kinds[c]];
        parts->text_count += cut->kinds[c] == KIND_STR;
    }
    parts->width_bytes = MAX_OF(parts->width_bytes, 1);
    i64 room = memory_left(x->mem) / FILL_SHARE / parts->count / MAX_OF(workers, 1);
    i64 least = MAX_OF(BLOCK_LEAST - BUFFER_PAD, parts->width_bytes * 4);
    parts->block_bytes = MAX_OF(MIN_OF(room, BLOCK_MOST), least);
    return parts;
}

void row_part_release(struct row_parts *parts, i64 part) {
    struct row_part *p = &parts->parts[part];
    struct memory *mem = parts->x->mem;
    for (i64 i = 0; i < p->count; i++) {
        mem_free(mem, p->blocks[i].data, p->blocks[i].bytes);
        buffer_release(p->blocks[i].extra);
    }
    mem_free(mem, p->blocks, p->cap * (i64)sizeof *p->blocks);
    *p = (struct row_part){0};
}

void row_parts_release(struct row_parts *parts) {
    for (i64 p = 0; parts && p < parts->count; p++) {
        row_part_release(parts, p);
    }
}

/* Under the lock; false: memory is refused. */
static bool add_block(struct row_parts *parts, i64 part, const struct row_block *block) {
    struct row_part *p = &parts->parts[part];
    struct memory *mem = parts->x->mem;
    if (p->count == p->cap) {
        i64 cap = MAX_OF(2 * p->cap, (i64)BLOCKS_LEAST);
        struct row_block *grown = mem_alloc(mem, cap * (i64)sizeof *grown);
        if (!grown) {
            return false;
        }
        if (p->count) {
            memcpy(grown, p->blocks, (size_t)p->count * sizeof *grown);
        }
        mem_free(mem, p->blocks, p->cap * (i64)sizeof *grown);
        p->blocks = grown;
        p->cap = cap;
    }
    p->blocks[p->count++] = *block;
    p->rows += block->rows;
    parts->rows += block->rows;
    parts->bytes += block->bytes;
    return true;
}

static struct filler *filler_new(struct row_parts *parts, struct arena *arena, struct error *err) {
    const struct cut *cut = parts->cut;
    struct filler *f = NEW(arena, struct filler);
    f->parts = parts;
    f->err = err;
    f->fills = NEW_ARRAY(arena, struct fill, parts->count + 1);
    f->starts = NEW_ARRAY(arena, i64, cut->col_count + 1);
    i64 row_bytes = parts->block_bytes / (parts->text_count ? 2 : 1);
    f->rows_cap = MAX_OF(row_bytes / parts->width_bytes, 1);
    for (u32 c = 0; c < cut->col_count; c++) {
        f->starts[c] = f->text_at;
        f->text_at += ALIGN_UP(f->rows_cap * kind_bytes[cut->kinds[c]], COLUMN_ALIGN);
    }
    return f;
}

static i64 fill_bytes(const struct filler *f) {
    i64 most = MAX_OF(f->parts->block_bytes, f->text_at);
    return most + COLUMN_ALIGN * (i64)(f->parts->cut->col_count + 1);
}

static void filler_close(struct filler *f) {
    for (i64 p = 0; p < f->parts->count; p++) {
        mem_free(f->parts->x->mem, f->fills[p].block, fill_bytes(f));
        f->fills[p] = (struct fill){0};
    }
}

/* What a column of so many rows takes of a block that is closed. */
static i64 column_bytes(const struct cut *cut, u32 col, i64 rows) {
    return ALIGN_UP(rows * kind_bytes[cut->kinds[col]], COLUMN_ALIGN);
}

/* Columns move together, so that a block that is not full is one piece, too. Gives where texts begin. */
static i64 close_ranks(const struct filler *f, const struct fill *fill) {
    const struct cut *cut = f->parts->cut;
    i64 at = 0;
    for (u32 c = 0; c < cut->col_count; c++) {
        i64 bytes = fill->rows * kind_bytes[cut->kinds[c]];
        memmove(fill->block + at, fill->block + f->starts[c], (size_t)bytes);
        at += column_bytes(cut, c, fill->rows);
    }
    memmove(fill->block + at, fill->block + f->text_at, (size_t)fill->text_bytes);
    return at;
}

static void set_addresses(str *s, i64 rows, const u8 *texts) {
    for (i64 i = 0; i < rows; i++) {
        if (s[i].addr & IN_BLOCK) {
            s[i].addr = (u64)(size_t)texts + (s[i].addr & ~IN_BLOCK);
        }
    }
}

/* A block to temporary space. `extra`: a text that is longer than blocks are, or NULL; it goes along. */
static FALLIBLE flush(struct filler *f, i64 p, struct buffer *extra) {
    struct row_parts *parts = f->parts;
    struct exec *x = parts->x;
    const struct cut *cut = parts->cut;
    struct fill *fill = &f->fills[p];
    i64 text_at = close_ranks(f, fill);
    struct row_block block = {.bytes = text_at + fill->text_bytes, .rows = fill->rows, .extra = extra};
    block.data = mem_alloc_aside(x->mem, block.bytes);
    if (!block.data) {
        buffer_release(extra);
        return memory_refused(x->mem, f->err, block.bytes);
    }
    i64 at = 0;
    for (u32 c = 0; c < cut->col_count; c++) {
        if (cut->kinds[c] == KIND_STR) {
            set_addresses((str *)(void *)(fill->block + at), fill->rows, block.data + text_at);
        }
        at += column_bytes(cut, c, fill->rows);
    }
    mem_copy(x->mem, block.data, fill->block, block.bytes);
    mutex_lock(&x->lock);
    bool fine = add_block(parts, p, &block);
    mutex_unlock(&x->lock);
    if (!fine) {
        mem_free(x->mem, block.data, block.bytes);
        buffer_release(extra);
        return memory_refused(x->mem, f->err, parts->parts[p].cap * 2 * (i64)sizeof block);
    }
    fill->rows = fill->text_bytes = 0;
    return ERR_OK;
}

static FALLIBLE fill_open(struct filler *f, struct fill *fill) {
    if (!fill->block) {
        fill->block = mem_alloc(f->parts->x->mem, fill_bytes(f));
    }
    return fill->block ? ERR_OK : memory_refused(f->parts->x->mem, f->err, fill_bytes(f));
}

/* A text for which blocks have no room gets one of its own, which it shares with a block of one row. */
static FALLIBLE own_text(struct filler *f, str *s, struct buffer **io_extra, i64 *io_used, i64 all) {
    if (!*io_extra) {
        *io_extra = buffer_new_at(f->parts->x->mem, all, BUFFER_ASIDE);
        if (!*io_extra) {
            return memory_refused(f->parts->x->mem, f->err, all);
        }
    }
    u8 *to = (*io_extra)->data + *io_used;
    mem_copy(f->parts->x->mem, to, (const void *)(size_t)s->addr, s->len);
    *io_used += s->len;
    s->addr = (u64)(size_t)to;
    return ERR_OK;
}

static i64 texts_of_row(const struct cut *cut, const void *const *cols, i64 row) {
    i64 bytes = 0;
    for (u32 c = 0; c < cut->col_count; c++) {
        bytes += cut->kinds[c] == KIND_STR ? ((const str *)cols[c])[row].len : 0;
    }
    return bytes;
}

static void put_value(u8 *to, const void *from, i64 at, i64 row, i64 width) {
    switch (width) {
    case 1:
        to[at] = ((const u8 *)from)[row];
        break;
    case 4:
        ((u32 *)(void *)to)[at] = ((const u32 *)from)[row];
        break;
    case 8:
        ((u64 *)(void *)to)[at] = ((const u64 *)from)[row];
        break;
    default:
        memcpy(to + at * width, (const u8 *)from + row * width, (size_t)width);
        break;
    }
}

/* A row to its partition. */
static FALLIBLE put_row(struct filler *f, const void *const *cols, i64 row, i64 p) {
    const struct cut *cut = f->parts->cut;
    struct fill *fill = &f->fills[p];
    i64 texts = f->parts->text_count ? texts_of_row(cut, cols, row) : 0;
    i64 text_cap = MAX_OF(f->parts->block_bytes - f->text_at, 0);
    bool longer = texts > text_cap; /* than a block has room for */
    if (fill->rows == f->rows_cap || (fill->rows > 0 && fill->text_bytes + texts > text_cap)) {
        TRY(flush(f, p, NULL));
    }
    TRY(fill_open(f, fill));
    struct buffer *extra = NULL;
    i64 used = 0;
    for (u32 c = 0; c < cut->col_count; c++) {
        u8 *to = fill->block + f->starts[c];
        put_value(to, cols[c], fill->rows, row, kind_bytes[cut->kinds[c]]);
        if (cut->kinds[c] != KIND_STR) {
            continue;
        }
        str *s = (str *)(void *)to + fill->rows;
        if (longer) {
            TRY(own_text(f, s, &extra, &used, texts));
            continue;
        }
        if (s->len) {
            memcpy(fill->block + f->text_at + fill->text_bytes, (const void *)(size_t)s->addr,
                   s->len);
        }
        s->addr = IN_BLOCK | (u64)fill->text_bytes;
        fill->text_bytes += s->len;
    }
    fill->rows++;
    return extra ? flush(f, p, extra) : ERR_OK;
}

static i64 col_of(const struct cut *cut, u16 reg) {
    i64 c = 0;
    while (cut->regs[c] != reg) {
        c++;
    }
    return c;
}

/* The partition of row `row` of these columns. */
static i64 part_of(const struct row_parts *parts, const void *const *cols, i64 row) {
    const struct cut *cut = parts->cut;
    const void *a = cols[0];
    if (cut->null != NO_REG && ((const b8 *)cols[2])[row]) {
        return 0;
    }
    u64 hash = 0;
    switch (cut->by) {
    case CUT_TEXT:
        hash = dict_hash(sv_of(((const str *)a)[row]));
        break;
    case CUT_PAIR:
        hash = pair_hash(((const i64 *)a)[row], ((const i64 *)cols[1])[row]);
        break;
    default:
        return (i64)index_class_of(parts->x->vars[cut->var].index, ((const i64 *)a)[row]);
    }
    return (i64)(hash >> (64 - CUT_BITS * (parts->level + 1)) & (CUT_PARTS - 1));
}

/* The columns that tell rows apart. */
static void telling(const struct cut *cut, const void *const *cols, const void **out) {
    out[0] = cols[col_of(cut, cut->a)];
    out[1] = cut->b != NO_REG ? cols[col_of(cut, cut->b)] : NULL;
    out[2] = cut->null != NO_REG ? cols[col_of(cut, cut->null)] : NULL;
}

/* the sink */

static FALLIBLE parts_begin(struct pipe_run *run, struct sink_run *sink) {
    sink->state = run->into;
    return ERR_OK;
}

static FALLIBLE parts_consume(struct worker *w, u32 sink_no, struct frame *fr) {
    struct row_parts *parts = w->run->into;
    const struct cut *cut = parts->cut;
    if (!w->sinks[sink_no]) {
        w->sinks[sink_no] = filler_new(parts, &w->arena, &w->err);
        w->part_cols = NEW_ARRAY(&w->arena, const void *, cut->col_count + 1);
    }
    for (u32 c = 0; c < cut->col_count; c++) {
        w->part_cols[c] = frame_read(w, fr, cut->regs[c]);
    }
    const void *by[3];
    telling(cut, w->part_cols, by);
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        TRY(put_row(w->sinks[sink_no], w->part_cols, i, part_of(parts, by, i)));
    }
    w->bytes_written += fr->m * parts->width_bytes;
    return ERR_OK;
}

static FALLIBLE flush_all(struct filler *f) {
    for (i64 p = 0; p < f->parts->count; p++) {
        if (f->fills[p].rows > 0) {
            TRY(flush(f, p, NULL));
        }
    }
    return ERR_OK;
}

static FALLIBLE parts_combine(struct pipe_run *run, u32 sink_no) {
    run->sinks[sink_no].partitions = 0;
    for (i32 i = 0; i < run->worker_count; i++) {
        struct filler *f = run->workers[i] ? run->workers[i]->sinks[sink_no] : NULL;
        if (f) {
            f->err = run->x->err;
            TRY(flush_all(f));
        }
    }
    return ERR_OK;
}

static FALLIBLE parts_finish(struct worker *w, u32 sink_no, i64 partition) {
    UNUSED(w);
    UNUSED(sink_no);
    UNUSED(partition);
    return ERR_OK;
}

static void parts_close(struct pipe_run *run, u32 sink_no) {
    for (i32 i = 0; i < run->worker_count; i++) {
        struct filler *f = run->workers[i] ? run->workers[i]->sinks[sink_no] : NULL;
        if (f) {
            filler_close(f);
        }
    }
}

const struct sink_class sink_parts = {parts_begin, parts_consume, parts_combine, parts_finish,
                                      parts_close};

/* reading */

void row_room_fini(struct row_room *room, struct memory *mem) {
    mem_free(mem, room->data, room->bytes);
    mem_free(mem, room->chunk.cols, room->chunk.col_count * (i64)sizeof(struct column));
    *room = (struct row_room){0};
}

static FALLIBLE room_reserve(struct row_room *room, struct memory *mem, u32 col_count, i64 bytes,
                             struct error *err) {
    if (room->bytes >= bytes && room->chunk.cols) {
        return ERR_OK;
    }
    row_room_fini(room, mem);
    i64 col_bytes = col_count * (i64)sizeof(struct column);
    room->chunk.cols = mem_alloc(mem, col_bytes);
    room->chunk.col_count = room->chunk.cols ? col_count : 0;
    room->data = room->chunk.cols ? mem_alloc(mem, bytes) : NULL;
    room->bytes = room->data ? bytes : 0;
    return room->data ? ERR_OK : memory_refused(mem, err, bytes);
}

/* A block comes to memory as a whole; its texts then lie there, too. */
wf_status row_block_load(const struct row_parts *parts, const struct row_block *from,
                         struct row_room *room, struct error *err) {
    struct memory *mem = parts->x->mem;
    const struct cut *cut = parts->cut;
    TRY(room_reserve(room, mem, cut->col_count, from->bytes + BUFFER_PAD, err));
    mem_copy(mem, room->data, from->data, from->bytes);
    struct chunk *chunk = &room->chunk;
    chunk->rows = from->rows;
    chunk->mem = mem;
    i64 at = 0;
    for (u32 c = 0; c < cut->col_count; c++) {
        u8 *data = room->data + at;
        chunk->cols[c] = (struct column){cut->kinds[c], data, NULL};
        str *s = (str *)(void *)data;
        for (i64 i = 0; cut->kinds[c] == KIND_STR && i < from->rows; i++) {
            u64 text = s[i].addr - (u64)(size_t)from->data;
            s[i].addr = text <= (u64)from->bytes ? (u64)(size_t)room->data + text : s[i].addr;
        }
        at += column_bytes(cut, c, from->rows);
    }
    return ERR_OK;
}

/* splitting again */

static FALLIBLE split_block(struct filler *f, const struct row_parts *from, const struct row_block *block,
                            struct row_room *room) {
    const struct cut *cut = f->parts->cut;
    const void *cols[512], *by[3];
    ASSERT(cut->col_count <= COUNT_OF(cols));
    TRY(row_block_load(from, block, room, f->err));
    for (u32 c = 0; c < cut->col_count; c++) {
        cols[c] = room->chunk.cols[c].data;
    }
    telling(cut, cols, by);
    for (i64 i = 0; i < block->rows; i++) {
        TRY(put_row(f, cols, i, part_of(f->parts, by, i)));
    }
    return exec_check(f->parts->x);
}

wf_status row_part_split(struct row_parts *from, i64 part, struct row_parts **out) {
    struct exec *x = from->x;
    struct row_parts *parts = row_parts_new(x, from->cut, from->level + 1, 1);
    struct filler *f = filler_new(parts, x->arena, x->err);
    struct row_part *rows = &from->parts[part];
    struct row_room room = {0};
    wf_status status = ERR_OK;
    for (i64 b = 0; b < rows->count && !status; b++) {
        status = split_block(f, from, &rows->blocks[b], &room);
    }
    row_room_fini(&room, x->mem);
    row_part_release(from, part);
    status = status ? status : flush_all(f);
    filler_close(f);
    if (status) {
        row_parts_release(parts);
    }
    *out = parts;
    return status;
}
