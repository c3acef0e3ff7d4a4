/* load.c: columns into registers: from tablets, chunks, dictionaries, variables and lookup tables.
 *
 * A dense vector whose column already lies in the register's form is not copied: the register
 * points into the tablet or chunk. Otherwise rows are decoded in a run (positions first .. first +
 * n) or, once a filter has compacted the vector, gathered at their positions. */
#include "cpu/cpu_int.h"

/* Column data become the register unless other opcodes write it as well. */
static bool may_alias(const struct worker *w, const struct frame *fr, const struct cpu_op *op) {
    return !fr->pos && !w->run->pipe.multi[op->dst];
}

/* Where to decode to, and how to finish when inactive rows must keep their values. */
static void *load_begin(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    void *dst = frame_dst(w, fr, op->dst);
    return op->blend ? fr->spare[op->width] : dst;
}

static void load_end(struct worker *w, struct frame *fr, const struct cpu_op *op, void *loaded) {
    void *dst = fr->data[op->dst];
    if (op->blend && fr->sel) {
        w->run->pipe.vec->blend[op->width](dst, loaded, fr->sel, fr->m);
    } else if (op->blend) {
        memcpy(dst, loaded, (size_t)(fr->n << op->width));
    }
}

static void fill(void *dst, u8 width, const void *value, i64 n) {
    u8 *out = dst;
    i64 bytes = 1LL << width;
    for (i64 i = 0; i < n; i++) {
        memcpy(out + i * bytes, value, (size_t)bytes);
    }
}

static void fill_const(void *dst, u8 kind, const struct segment *seg, i64 n) {
    union lit value = segment_const(seg, kind);
    fill(dst, width_of_kind(kind), &value, n);
}

static void load_codes_as_text(struct worker *w, struct frame *fr, const struct segment *seg,
                               const struct dict *dict, str *dst) {
    UNUSED(w);
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        i64 row = ROW_AT(fr, i);
        bool is_null = segment_is_null(seg, row);
        dst[i] = str_from(is_null ? SV("") : dict_get(dict, segment_code(seg, row)));
    }
}

static void load_floats(struct worker *w, struct frame *fr, const struct segment *seg, u8 kind,
                        void *dst) {
    const struct vec_table *vec = w->run->pipe.vec;
    u8 width = seg->width == 4 ? 2 : 3;
    const u8 *data = (const u8 *)seg->data + fr->first * seg->width;
    ASSERT(kind_bytes[kind] == seg->width);
    if (fr->pos) {
        vec->gather[width](dst, data, fr->pos, fr->n);
    } else {
        memcpy(dst, data, (size_t)(fr->n * seg->width));
    }
}

static void load_integers(struct worker *w, struct frame *fr, const struct segment *seg, u8 kind,
                          void *dst) {
    const struct vec_table *vec = w->run->pipe.vec;
    static const u8 widths[17] = {[1] = 0, [2] = 1, [4] = 2, [8] = 3, [16] = 4};
    u8 width = widths[seg->width];
    i128 base = segment_base(seg);
    b8 is_signed = segment_is_signed(seg);
    const u8 *data = (const u8 *)seg->data + fr->first * seg->width;
    if (fr->pos) {
        vec->decode_at[is_signed][width][kind](dst, data, base, fr->pos, fr->n);
    } else {
        vec->decode[is_signed][width][kind](dst, data, base, fr->n);
    }
}

static bool same_form(const struct segment *seg, u8 kind) {
    if (kind_bytes[kind] != seg->width) {
        return false;
    }
    return seg->encoding != ENC_CONST && segment_base(seg) == 0;
}

static void from_tablet(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 col) {
    const struct segment *seg = &w->tablet->cols[col];
    const struct vec_table *vec = w->run->pipe.vec;
    u8 kind = w->run->pipe.pipe->regs[op->dst].kind;
    w->bytes_read += fr->n * (seg->encoding == ENC_STR ? 4 : seg->width);
    if (may_alias(w, fr, op) && kind != KIND_STR && same_form(seg, kind)) {
        fr->data[op->dst] = (u8 *)(size_t)seg->data + fr->first * seg->width;
        return;
    }
    void *dst = load_begin(w, fr, op);
    if (kind == KIND_STR && seg->encoding == ENC_STR) {
        if (fr->pos) {
            vec->strings_at(dst, seg->data, seg->bytes, fr->first, fr->pos, fr->n);
        } else {
            vec->strings(dst, seg->data, seg->bytes, fr->first, fr->n);
        }
    } else if (kind == KIND_STR) {
        const struct table *table = w->run->x->tables[w->run->pipe.pipe->source.ref];
        load_codes_as_text(w, fr, seg, table->dicts[col], dst);
    } else if (seg->encoding == ENC_CONST) {
        fill_const(dst, kind, seg, fr->n);
    } else if (seg->encoding == ENC_FLOAT) {
        load_floats(w, fr, seg, kind, dst);
    } else {
        load_integers(w, fr, seg, kind, dst);
    }
    load_end(w, fr, op, dst);
}

static void from_chunk(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 col) {
    const struct column *column = &w->chunk->cols[col];
    const struct vec_table *vec = w->run->pipe.vec;
    u8 kind = w->run->pipe.pipe->regs[op->dst].kind;
    u8 width = width_of_kind(column->kind);
    u8 *data = (u8 *)column->data + ((w->chunk_first + fr->first) << width);
    w->bytes_read += fr->n << width;
    if (may_alias(w, fr, op) && column->kind == kind) {
        fr->data[op->dst] = data;
        return;
    }
    void *dst = load_begin(w, fr, op);
    if (column->kind == kind) {
        if (fr->pos) {
            vec->gather[width](dst, data, fr->pos, fr->n);
        } else {
            memcpy(dst, data, (size_t)(fr->n << width));
        }
    } else if (fr->pos) {
        vec->decode_at[column->kind != KIND_B8][width][kind](dst, data, 0, fr->pos, fr->n);
    } else {
        vec->decode[column->kind != KIND_B8][width][kind](dst, data, 0, fr->n);
    }
    load_end(w, fr, op, dst);
}

static void from_dict(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct pipe_run *run = w->run;
    const struct dict *dict = run->x->dicts[run->pipe.pipe->source.ref];
    u8 kind = run->pipe.pipe->regs[op->dst].kind;
    void *dst = load_begin(w, fr, op);
    for (i64 i = 0; i < fr->n; i++) {
        i64 code = ROW_AT(fr, i);
        if (kind == KIND_STR) {
            struct sv s = dict_get(dict, (i32)code);
            ((str *)dst)[i] = str_from(s);
            w->bytes_read += s.len;
        } else {
            ((i32 *)dst)[i] = (i32)code;
        }
    }
    load_end(w, fr, op, dst);
}

static void from_series(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    i64 *dst = load_begin(w, fr, op);
    for (i64 i = 0; i < fr->n; i++) {
        dst[i] = (i64)((u64)w->run->series_start + (u64)ROW_AT(fr, i) * (u64)w->run->series_step);
    }
    load_end(w, fr, op, dst);
}

void load_column(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct source *source = &w->run->pipe.pipe->source;
    if (source->kind == SOURCE_DICT) {
        from_dict(w, fr, op);
    } else if (source->kind == SOURCE_SERIES) {
        from_series(w, fr, op);
    } else if (source->kind == SOURCE_TABLE && w->tablet) {
        from_tablet(w, fr, op, source->cols[op->op->imm]);
    } else {
        from_chunk(w, fr, op, source->cols[op->op->imm]);
    }
}

void load_nulls(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct source *source = &w->run->pipe.pipe->source;
    const struct vec_table *vec = w->run->pipe.vec;
    u32 col = source->kind == SOURCE_DICT || source->kind == SOURCE_SERIES
                  ? 0
                  : source->cols[op->op->imm];
    b8 *dst = load_begin(w, fr, op);
    if (source->kind == SOURCE_TABLE && w->tablet && w->tablet->cols[col].valid) {
        const u64 *valid = w->tablet->cols[col].valid;
        w->bytes_read += fr->n / 8;
        if (fr->pos) {
            vec->nulls_at(dst, valid, fr->first, fr->pos, fr->n);
        } else {
            vec->nulls(dst, valid, fr->first, fr->n);
        }
    } else if (w->chunk && w->chunk->cols[col].nulls) {
        const b8 *from = w->chunk->cols[col].nulls + w->chunk_first + fr->first;
        if (fr->pos) {
            vec->gather[0](dst, from, fr->pos, fr->n);
        } else {
            memcpy(dst, from, (size_t)fr->n);
        }
    } else {
        memset(dst, 0, (size_t)fr->n);
    }
    load_end(w, fr, op, dst);
}

static void gather_rows(struct worker *w, struct frame *fr, void *dst, const void *from, u8 width,
                        const i64 *row) {
    if (!fr->sel) {
        w->run->pipe.vec->gather64[width](dst, from, row, fr->n);
        return;
    }
    const u8 *src = from;
    u8 *out = dst;
    i64 bytes = 1LL << width;
    for (i64 j = 0; j < fr->m; j++) {
        i64 i = fr->sel[j];
        memcpy(out + i * bytes, src + row[i] * bytes, (size_t)bytes);
    }
}

/* Row -1, of an outer probe, reads as zero. */
#define OUTER_ROWS(type)                              \
    do {                                              \
        type *out = dst;                              \
        const type *src = from;                       \
        static const type zero;                       \
        for (i64 j = 0; j < fr->m; j++) {             \
            u32 i = ACTIVE(fr, j);                    \
            out[i] = row[i] < 0 ? zero : src[row[i]]; \
        }                                             \
    } while (0)

static void gather_outer(struct frame *fr, void *dst, const void *from, u8 width, const i64 *row) {
    switch (width) {
    case 0:
        OUTER_ROWS(u8);
        break;
    case 2:
        OUTER_ROWS(u32);
        break;
    case 3:
        OUTER_ROWS(u64);
        break;
    default:
        OUTER_ROWS(str);
        break;
    }
}
#undef OUTER_ROWS

void load_variable(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct variable *var = &w->run->x->vars[op->b];
    const struct column *column = &var->chunks.items[0]->cols[op->op->imm];
    const i64 *row = frame_read(w, fr, op->a);
    void *dst = frame_dst(w, fr, op->dst);
    if (op->c == 1) {
        gather_outer(fr, dst, column->data, op->width, row);
        w->bytes_read += fr->m << op->width;
        return;
    }
    gather_rows(w, fr, dst, column->data, op->width, row);
    w->bytes_read += fr->m << op->width;
}

void load_variable_nulls(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct variable *var = &w->run->x->vars[op->b];
    const struct column *column = &var->chunks.items[0]->cols[op->op->imm];
    const i64 *row = frame_read(w, fr, op->a);
    b8 *dst = frame_dst(w, fr, op->dst);
    if (op->c == 1) {
        for (i64 j = 0; j < fr->m; j++) {
            u32 i = ACTIVE(fr, j);
            dst[i] = (b8)(row[i] < 0 || (column->nulls && column->nulls[row[i]]));
        }
    } else if (column->nulls) {
        gather_rows(w, fr, dst, column->nulls, 0, row);
    } else if (op->blend) {
        for (i64 j = 0; j < fr->m; j++) {
            dst[ACTIVE(fr, j)] = 0;
        }
    } else {
        memset(dst, 0, (size_t)fr->n);
    }
}

/* Codes under a NULL may lie outside the table: those read as zero. */
#define LUT_ROWS(type)                              \
    do {                                            \
        type *out = dst;                            \
        const type *table = var->lut;               \
        for (i64 j = 0; j < fr->m; j++) {           \
            u32 i = ACTIVE(fr, j);                  \
            i64 at = code[i] < 0 ? other : code[i]; \
            if (at < var->lut_len) {                \
                out[i] = table[at];                 \
            } else {                                \
                memset(&out[i], 0, sizeof out[i]);  \
            }                                       \
        }                                           \
    } while (0)

void load_lut(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct variable *var = &w->run->x->vars[op->op->imm];
    const i32 *code = frame_read(w, fr, op->a);
    i64 other = op->b == NO_REG ? var->lut_len : op->b;
    void *dst = frame_dst(w, fr, op->dst);
    switch (op->width) {
    case 0:
        LUT_ROWS(u8);
        break;
    case 2:
        LUT_ROWS(u32);
        break;
    case 3:
        LUT_ROWS(u64);
        break;
    default:
        LUT_ROWS(str);
        break;
    }
}
#undef LUT_ROWS
