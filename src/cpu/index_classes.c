/* index_classes.c: an index for which memory has no room: a class of its keys at a time.
 *
 * The rows are put in order of their keys' class, some bits of the hash, in temporary space. A
 * pipeline that looks keys up in such an index runs in passes (pipeline.c): before each one the rows
 * of a class are copied to memory and their index is built; rows of the pipeline whose key is of
 * another class are dropped where they would look it up. So every row is dealt with in one pass,
 * and outer, semi and anti joins need nothing else. What a pipeline does before the look-up is done
 * again in every pass: tables are in memory, and reading them again costs less than writing what was
 * computed from them. Where a row that is dropped would be missed (it was handed on before, or may
 * come by without a look-up), the whole index lies in temporary space instead. Texts that lie there go with
 * their rows (class_texts.c). */
#include "cpu/index_int.h"

#include "codes/control.h"

enum {
    HASHED_BYTES = 64, /* of a row in a hash table, and while it is made */
    LISTED_BYTES = 8,  /* of one in other forms, besides a quarter of a byte for each key of the span */
#ifdef WF_HARD
    CLASS_ROWS = 16
#else
    CLASS_ROWS = 4096
#endif
};

static bool looks_up(const struct op *op, u32 var) {
    return (op->code == OP_PROBE || op->code == OP_MATCH || op->code == OP_EACH) && op->imm == var;
}

/* Row numbers are those of a class: whoever keeps them until later would find other rows there. */
struct kept_rows {
    const b8 *is_row; /* of each register */
    bool any;
};

static void note_row(void *arg, u16 reg) {
    struct kept_rows *k = arg;
    k->any = k->any || k->is_row[reg];
}

static bool loads_rows(const struct op *op, u32 rows_var) {
    return op_infos[op->code].roles[OPERAND_B] == ROLE_rows && op->b == rows_var;
}

/* Marks of the rows lie as all rows do: the sink knows the class. */
static bool marks_rows(const struct pipeline *pipe, const struct op *op, u32 rows_var) {
    const struct sink *sink = op->code == OP_EMIT ? &pipe->sinks[op->imm] : NULL;
    return sink && sink->kind == SINK_MARK && sink->rows_var == rows_var;
}

/* Whether row numbers of the index go anywhere but to where its rows are loaded or marked, or are
 * asked whether there is one; or rows are loaded by numbers from elsewhere. */
static bool keeps_rows(const struct exec *x, const struct pipeline *pipe, u32 var, u32 rows_var) {
    b8 *is_row = NEW_ARRAY(x->arena, b8, pipe->reg_count + 1);
    bool found = false, loads = false;
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        if (looks_up(op, var)) {
            is_row[op->dst] = 1;
            found = true;
        }
        loads = loads || loads_rows(op, rows_var);
        if (op->code == OP_ANY && is_row[op->a]) {
            is_row[op->dst] = 1;
        }
    }
    struct kept_rows kept = {is_row, loads && !found};
    for (u32 i = 0; i < pipe->op_count && !kept.any; i++) {
        const struct op *op = &pipe->ops[i];
        bool asks = op_writes(op) && pipe->regs[op->dst].kind == KIND_B8;
        if (!loads_rows(op, rows_var) && !marks_rows(pipe, op, rows_var) && op->code != OP_ANY && !asks) {
            op_reads(op, pipe->sinks, note_row, &kept);
        }
    }
    return kept.any;
}

/* Whether the pipeline may run in passes over the classes of index `var`, or does not know it. */
static bool may_pass(const struct exec *x, const struct pipeline *pipe, u32 var, u32 rows_var) {
    if (keeps_rows(x, pipe, var, rows_var)) {
        return false;
    }
    u32 depth = 0;
    bool emitted = false;
    bool found = false;
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        depth += op->code == OP_WHEN || op->code == OP_TRY;
        depth -= op->code == OP_END;
        bool asks = op_variable(op) == var; /* RUN, too, which wants rows in the order of keys */
        if (asks && (depth > 0 || emitted || !looks_up(op, var))) {
            return false;
        }
        found = found || looks_up(op, var);
        depth += op->code == OP_EACH;
        depth -= op->code == OP_ANY;
        emitted = emitted || op->code == OP_EMIT;
    }
    bool reads = pipe->source.kind == SOURCE_VAR && pipe->source.ref == rows_var;
    bool ordered = pipe->source.kind == SOURCE_VAR && x->program->vars[pipe->source.ref].in_order;
    bool fills = false;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        fills = fills || pipe->sinks[s].kind == SINK_LUT;
    }
    return !found || (!reads && !ordered && !fills && !exec_provider(x, pipe));
}

static bool all_may_pass(const struct exec *x, const struct step *step) {
    const struct program *program = x->program;
    u32 indexes = 0;
    for (u32 v = 0; v < program->var_count; v++) {
        indexes += program->vars[v].kind == VAR_INDEX && program->vars[v].rows_var == step->src;
    }
    bool fine = indexes == 1 && !step->grow && !step->defer && !program->vars[step->src].in_order &&
                !x->vars[step->src].view_of && !x->whole;
    for (u32 b = 0; b < program->block_count && fine; b++) {
        const struct block *block = &program->blocks[b];
        fine = block->loop_count == 0;
        for (u32 s = 0; s < block->step_count && fine; s++) {
            const struct pipeline *pipe = block->steps[s].pipeline;
            fine = !pipe || may_pass(x, pipe, step->dst, step->src);
        }
    }
    return fine;
}

static bool lies_aside(const struct exec *x, const struct variable *v) {
    bool aside = false;
    for (i64 c = 0; c < v->chunks.count && !aside; c++) {
        const struct chunk *chunk = v->chunks.items[c];
        for (u32 b = 0; b < 2 * chunk->col_count && !aside; b++) {
            aside = chunk->buffers[b] && mem_in_temp(x->mem, chunk->buffers[b]->data);
        }
    }
    return aside;
}

i32 class_bits(const struct build *b, const struct step *step, bool hashed) {
    struct exec *x = b->x;
    const struct var *def = &x->program->vars[step->src];
    if (!x->mem->temp || b->rows < CLASS_ROWS) {
        return 0;
    }
    i64 row_bytes = 0;
    for (u32 c = 0; c < def->col_count; c++) {
        row_bytes += kind_bytes[def->kinds[c]] + 1;
    }
    u64 span = b->lo <= b->hi ? (u64)b->hi - (u64)b->lo : 0;
    i64 index_bytes = hashed ? b->rows * HASHED_BYTES : b->rows * LISTED_BYTES + (i64)(span / 4);
    bool set = x->program->vars[step->dst].set;
    i64 text_bytes = set ? 0 : class_texts_width(x, step->src);
    bool aside = !set && (text_bytes > 0 || lies_aside(x, &x->vars[step->src]));
    row_bytes += text_bytes;
    i64 room = memory_left(x->mem) / 2;
    if (index_bytes + (aside ? b->rows * row_bytes : 0) <= room || !all_may_pass(x, step)) {
        return 0;
    }
    i64 all = b->rows * (HASHED_BYTES + row_bytes);
    i32 bits = 1;
    while (bits < CLASS_BITS_MOST && all >> bits > room) {
        bits++;
    }
    return bits;
}

/* rows by class */

struct classing {
    struct exec *x;
    const struct build *b;
    struct index *index;
    struct chunk *out;
    u32 rows_var;
    const b8 *moves; /* by column: its texts go along */
    u32 col;
    b8 flags_only; /* its values are put already */
    i64 *counts; /* per chunk and class: rows */
    i64 *places; /* ... and where they go */
    _Atomic i32 refused;
    i64 classes;
};

static void count_task(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    const struct classing *k = arg;
    const b8 *nulls;
    const i64 *key = build_keys(k->b, c, &nulls);
    for (i64 i = 0; i < k->b->chunks[c]->rows; i++) {
        k->counts[c * k->classes + (i64)index_class_of(k->index, key[i])]++;
    }
    mem_pass(k->x->mem, key, k->b->chunks[c]->rows * (i64)sizeof *key);
}

#define SORT_ROWS(type)                                                                \
    do {                                                                               \
        for (i64 i = 0; i < rows; i++) {                                               \
            i64 class = (i64)index_class_of(k->index, key[i]);                         \
            ((type *)(void *)to)[place[class]++] = ((const type *)from)[i];            \
        }                                                                              \
    } while (0)

/* Values of a chunk by class. place: where each class begins, then where it ends. */
static void sort_values(const struct classing *k, u8 *to, const void *from, i64 width,
                        const i64 *key, i64 rows, i64 *place) {
    switch (width) {
    case 1:
        SORT_ROWS(u8);
        break;
    case 4:
        SORT_ROWS(u32);
        break;
    case 8:
        SORT_ROWS(u64);
        break;
    default:
        SORT_ROWS(str);
        break;
    }
}
#undef SORT_ROWS

/* Values of a chunk to their places: put in order in memory first, then a piece for each class. */
static bool put_values(const struct classing *k, i64 c, void *to, const void *from, i64 width) {
    struct memory *mem = k->x->mem;
    const b8 *ignored;
    const i64 *key = build_keys(k->b, c, &ignored);
    i64 rows = k->b->chunks[c]->rows;
    const i64 *place = k->places + c * k->classes;
    i64 ends[(1 << CLASS_BITS_MOST) + 1], bytes = MAX_OF(rows * width, 1);
    u8 *sorted = mem_alloc(mem, bytes);
    if (!sorted) {
        return false;
    }
    i64 at = 0;
    for (i64 class = 0; class < k->classes; class++) {
        ends[class] = at;
        at += k->counts[c * k->classes + class];
    }
    sort_values(k, sorted, from, width, key, rows, ends);
    for (i64 class = 0; class < k->classes; class++) {
        i64 n = k->counts[c * k->classes + class];
        if (n > 0) {
            mem_copy(mem, (u8 *)to + place[class] * width, sorted + (ends[class] - n) * width,
                     n * width);
        }
    }
    mem_free(mem, sorted, bytes);
    return true;
}

/* A column of a chunk, and its NULL flags. */
static void put_task(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    struct classing *k = arg;
    const struct column *from = &k->b->chunks[c]->cols[k->col];
    const struct column *to = &k->out->cols[k->col];
    if (exec_check(k->x)) {
        return;
    }
    bool fine = k->flags_only || put_values(k, c, to->data, from->data, kind_bytes[to->kind]);
    if (fine && to->nulls && from->nulls) {
        fine = put_values(k, c, to->nulls, from->nulls, 1);
    } else if (fine && to->nulls) {
        for (i64 class = 0; class < k->classes; class++) {
            i64 at = c * k->classes + class;
            memset(to->nulls + k->places[at], 0, (size_t)k->counts[at]);
        }
    }
    chunk_pass(k->b->chunks[c], 0, k->b->chunks[c]->rows);
    if (!fine) {
        atomic_store(&k->refused, 1);
    }
}

static FALLIBLE put_column(struct classing *k, u32 c) {
    struct chunk *out = k->out;
    struct memory *mem = k->x->mem;
    bool nulls = false;
    for (i64 i = 0; i < k->b->chunk_count; i++) {
        nulls = nulls || k->b->chunks[i]->cols[c].nulls;
    }
    i64 bytes = MAX_OF(out->rows, 1) * kind_bytes[out->cols[c].kind];
    out->buffers[2 * c] = buffer_new_at(mem, bytes, BUFFER_ASIDE);
    out->buffers[2 * c + 1] = nulls ? buffer_new_at(mem, MAX_OF(out->rows, 1), BUFFER_ASIDE) : NULL;
    if (!out->buffers[2 * c] || (nulls && !out->buffers[2 * c + 1])) {
        return memory_refused(mem, k->x->err, bytes);
    }
    out->cols[c].data = out->buffers[2 * c]->data;
    out->cols[c].nulls = nulls ? out->buffers[2 * c + 1]->data : NULL;
    k->col = c;
    k->flags_only = k->moves[c];
    if (k->moves[c]) {
        TRY(class_texts_put(k->b, k->rows_var, c, k->places, out));
    }
    tasks_run(k->x, k->b->chunk_count, put_task, k);
    return atomic_load(&k->refused) ? memory_refused(mem, k->x->err, bytes) : exec_check(k->x);
}

/* Where the rows of each chunk go, and where each class begins. */
static void find_places(struct classing *k) {
    i64 at = 0;
    for (i64 class = 0; class < k->classes; class++) {
        k->index->class_starts[class] = at;
        for (i64 c = 0; c < k->b->chunk_count; c++) {
            k->places[c * k->classes + class] = at;
            at += k->counts[c * k->classes + class];
        }
    }
    k->index->class_starts[k->classes] = at;
}

/* Columns whose texts lie in temporary space. */
static const b8 *moving_texts(const struct exec *x, u32 rows_var) {
    const struct var *def = &x->program->vars[rows_var];
    b8 *moves = NEW_ARRAY(x->arena, b8, def->col_count + 1);
    for (u32 c = 0; c < def->col_count; c++) {
        moves[c] = class_texts_aside(x, rows_var, c);
    }
    return moves;
}

/* The rows by class take the place of those there were; and so do their texts, where all of them moved. */
static void take_place(struct classing *k, i64 heap_count) {
    const struct var *def = &k->x->program->vars[k->rows_var];
    struct variable *v = &k->x->vars[k->rows_var];
    bool all = true;
    variable_drop_copy(v); /* its rows are in another order */
    for (i64 i = 0; i < v->chunks.count; i++) {
        chunk_release(v->chunks.items[i]);
    }
    v->chunks.count = 0;
    VEC_PUSH(exec_arena(k->x), &v->chunks, k->out);
    for (u32 c = 0; c < def->col_count; c++) {
        all = all && (k->moves[c] || def->kinds[c] != KIND_STR);
    }
    for (u32 w = 0; w < k->x->program->var_count; w++) {
        all = all && k->x->vars[w].view_of != k->rows_var + 1;
    }
    i64 kept = all ? v->heaps.count - heap_count : 0;
    for (i64 i = 0; i < heap_count && all; i++) {
        buffer_release(v->heaps.items[i]);
    }
    if (all && kept > 0) {
        memmove(v->heaps.items, v->heaps.items + heap_count, (size_t)kept * sizeof *v->heaps.items);
    }
    v->heaps.count = all ? kept : v->heaps.count;
}

wf_status classes_build(const struct build *b, const struct step *step, i32 bits) {
    struct exec *x = b->x;
    struct variable *from = &x->vars[step->src];
    const struct var *def = &x->program->vars[step->src];
    struct classing k = {.x = x, .b = b, .index = b->index, .classes = 1LL << bits};
    i64 heap_count = from->heaps.count;
    k.rows_var = step->src;
    k.moves = moving_texts(x, step->src);
    i64 bytes = 2 * MAX_OF(b->chunk_count, 1) * k.classes * (i64)sizeof(i64);
    b->index->class_bits = (u8)bits;
    b->index->class_set = x->program->vars[step->dst].set;
    b->index->class_col = step->col;
    b->index->class_starts = NEW_ARRAY(exec_arena(x), i64, k.classes + 1);
    k.out = chunk_view_new(x, def->col_count);
    k.counts = mem_alloc(x->mem, bytes);
    wf_status status = k.out && k.counts ? ERR_OK : memory_refused(x->mem, x->err, bytes);
    if (!status) {
        memset(k.counts, 0, (size_t)bytes);
        k.places = k.counts + b->chunk_count * k.classes;
        tasks_run(x, b->chunk_count, count_task, &k);
        find_places(&k);
        k.out->rows = b->rows;
    }
    for (u32 c = 0; c < def->col_count && !status; c++) {
        k.out->cols[c].kind = def->kinds[c];
        status = put_column(&k, c);
    }
    mem_free(x->mem, k.counts, bytes);
    if (status) {
        chunk_release(k.out);
        return status;
    }
    take_place(&k, heap_count);
    return ERR_OK;
}

/* one class */

static FALLIBLE copy_class(struct exec *x, struct index *index, struct chunk *out) {
    const struct chunk *all = index->class_all;
    i64 first = index->class_starts[index->class_no];
    for (u32 c = 0; c < all->col_count; c++) {
        const struct column *col = &all->cols[c];
        i64 width = kind_bytes[col->kind];
        struct buffer *data = buffer_new_at(x->mem, MAX_OF(out->rows, 1) * width, BUFFER_WORK);
        struct buffer *nulls =
            col->nulls ? buffer_new_at(x->mem, MAX_OF(out->rows, 1), BUFFER_WORK) : NULL;
        out->buffers[2 * c] = data;
        out->buffers[2 * c + 1] = nulls;
        if (!data || (col->nulls && !nulls)) {
            return memory_refused(x->mem, x->err, out->rows * width);
        }
        out->cols[c] = (struct column){col->kind, data->data, nulls ? nulls->data : NULL};
        mem_copy(x->mem, data->data, (const u8 *)col->data + first * width, out->rows * width);
        if (nulls) {
            mem_copy(x->mem, nulls->data, col->nulls + first, out->rows);
        }
        TRY(class_texts_open(x, index, out, c));
    }
    return ERR_OK;
}

static struct variable *rows_of(struct exec *x, u32 var) {
    return &x->vars[x->program->vars[var].rows_var];
}

void class_close(struct exec *x, u32 var) {
    struct index *index = x->vars[var].index;
    if (index->class_all) {
        struct variable *rows = rows_of(x, var);
        chunk_release(rows->chunks.items[0]);
        rows->chunks.items[0] = index->class_all;
    }
    class_texts_close(index, x->program->vars[x->program->vars[var].rows_var].col_count);
    index_release(x->mem, index);
    *index = (struct index){.class_bits = index->class_bits,
                            .class_set = index->class_set,
                            .class_col = index->class_col,
                            .class_starts = index->class_starts,
                            .class_texts = index->class_texts};
}

wf_status class_open(struct exec *x, u32 var, u32 class) {
    class_close(x, var);
    struct index *index = x->vars[var].index;
    struct variable *rows = rows_of(x, var);
    struct chunk *all = rows->chunks.items[0];
    struct chunk *mine = chunk_view_new(x, all->col_count);
    if (!mine) {
        return memory_refused(x->mem, x->err, 256);
    }
    mine->rows = index->class_starts[class + 1] - index->class_starts[class];
    index->class_no = class;
    index->class_all = all;
    rows->chunks.items[0] = mine;
    TRY(copy_class(x, index, mine));
    struct build b;
    TRY(build_scan(&b, x, rows->chunks.items, 1, index->class_col));
    b.index = index;
    return index->class_set ? set_form(&b) : index_form(&b);
}
