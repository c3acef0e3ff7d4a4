/* gpu_str.c: text on the card: which bytes lie where, and the tables that kernels translate
 * addresses by.
 *
 * A view in a register points into memory of the card, a view in a variable into memory of the
 * host: a tablet's bytes, or a heap. Rows can therefore be fetched as they are, and what the card
 * holds may be evicted, streamed or lost between two steps.
 *
 * A variable on the card knows the texts its views point to. A step that reads such views brings
 * those texts to the card (tablets through the cache) and translates on the way in. Whatever it
 * writes is translated on the way out. Both are a binary search over the texts of the step. Text
 * that only passes through needs neither. Strings that are scattered over the host (literals,
 * dictionaries, chunks made by the CPU) are gathered into one buffer first. */
#include "gpu/gpu_job.h"

#include "codes/control.h"
#include "codes/op.h"
#include "host/regex_table.h"
#include "host/to_char.h"
#include "host/zone_table.h"

#include <stdlib.h>

wf_status gpu_str_gather(struct memory *mem, str *views, i64 n, struct buffer **out,
                         struct error *err) {
    i64 bytes = 0;
    for (i64 i = 0; i < n; i++) {
        bytes += views[i].len;
    }
    struct buffer *heap = buffer_new(mem, MAX_OF(bytes, 1));
    if (!heap) {
        return memory_refused(mem, err, bytes);
    }
    u8 *to = heap->data;
    for (i64 i = 0; i < n; i++) {
        if (views[i].len) {
            memcpy(to, (const void *)(size_t)views[i].addr, views[i].len);
        }
        views[i].addr = (u64)(size_t)to;
        to += views[i].len;
    }
    *out = heap;
    return ERR_OK;
}

void gpu_str_add(struct arena *arena, struct gpu_str_list *list, struct gpu_str text) {
    VEC_PUSH(arena, list, text);
}

void gpu_str_share(struct arena *arena, struct gpu_str_list *list, struct gpu_str text) {
    text.block = NULL;
    text.heap = text.heap ? buffer_retain(text.heap) : NULL;
    if (text.far) {
        atomic_fetch_add(&text.far->refs, 1);
    }
    gpu_str_add(arena, list, text);
}

void gpu_str_drop(struct gpu_card *card, struct gpu_str_list *list) {
    for (i64 i = 0; i < list->count; i++) {
        buffer_release(list->items[i].heap);
        gpu_far_release(list->items[i].far);
        gpu_heap_free(card, list->items[i].block);
    }
    list->count = 0;
}

/* A tablet's is the cache's, or a copy of its own where that has no room. */
wf_status gpu_str_addr(struct gpu *g, struct exec *x, struct gpu_str *text, u64 *out, i64 *moved) {
    if (text->far) {
        *out = text->far->block->addr + HEAP_HEAD;
        return ERR_OK;
    }
    if (text->tablet && !text->block) {
        struct cached *cached = NULL;
        wf_status status =
            gpu_cache_load(g, text->tablet, text->col, text->rows, &cached, moved, x->err);
        bool short_of = status == ERR_DEVICE_MEMORY && g->tight >= TIGHT_SPILL;
        if (!short_of) {
            *out = status ? 0 : cached->text;
            return status;
        }
        error_reset(x->err);
    }
    if (!text->block) {
        TRY(gpu_alloc(g, MAX_OF(text->bytes, 1), &text->block, x->err));
        TRY(gpu_upload(g, text->block->addr, text->host, text->bytes, NULL, g->streams[0], x->err));
        *moved += text->bytes;
    }
    *out = text->block->addr;
    return ERR_OK;
}

/* --- the texts of a step --- */

static void add_text(struct job *j, struct gpu_str *text, u64 addr) {
    struct job_text added = {*text, addr};
    added.text.block = NULL;
    VEC_PUSH(j->x->arena, &j->texts, added);
}

/* Those of a variable, on the card where its bytes are read. */
static FALLIBLE var_texts(struct job *j, u32 var, bool resident) {
    struct gpu_var *gv = j->x->vars[var].copy;
    for (i64 i = 0; gv && i < gv->texts.count; i++) {
        u64 addr = 0;
        if (resident) {
            TRY(gpu_str_addr(j->g, j->x, &gv->texts.items[i], &addr, &j->metric->bytes_moved));
        }
        add_text(j, &gv->texts.items[i], addr);
    }
    return ERR_OK;
}

/* Scattered strings as a text that this run owns, or its scan; the views then hold addresses of the
 * card. */
static FALLIBLE own_text(struct job *j, bool of_scan, str *views, i64 n) {
    struct buffer *heap = NULL;
    struct gpu_str_list *list = of_scan ? &j->scan->texts : &j->own_texts;
    struct arena *arena = of_scan ? &j->scan->arena : j->x->arena;
    TRY(gpu_str_gather(of_scan ? arena->mem : j->x->mem, views, n, &heap, j->x->err));
    struct gpu_str text = {.host = heap->data, .bytes = heap->bytes, .heap = heap};
    gpu_str_add(arena, list, text);
    struct gpu_str *own = &list->items[list->count - 1];
    u64 addr = 0;
    TRY(gpu_str_addr(j->g, j->x, own, &addr, &j->metric->bytes_moved));
    add_text(j, own, addr);
    for (i64 i = 0; i < n; i++) {
        views[i].addr = views[i].addr - (u64)(size_t)heap->data + addr;
    }
    return ERR_OK;
}

/* Literals travel with the argument block. */
static FALLIBLE literal_texts(struct job *j) {
    const struct u32_list *lits = &j->plan.lits;
    j->lit_views = NEW_ARRAY(j->x->arena, str, lits->count + 1);
    i64 count = 0;
    for (i64 i = 0; i < lits->count; i++) {
        bool text = j->x->program->lit_kinds[lits->items[i]] == KIND_STR;
        j->lit_views[i] = text ? j->x->lits[lits->items[i]].str : str_from(SV(""));
        count += text;
    }
    if (!count) {
        return ERR_OK;
    }
    struct buffer *heap = NULL;
    TRY(gpu_str_gather(j->x->mem, j->lit_views, lits->count, &heap, j->x->err));
    struct gpu_str text = {.host = heap->data, .bytes = heap->bytes, .heap = heap};
    gpu_str_add(j->x->arena, &j->own_texts, text);
    j->lit_text = (i32)j->texts.count + 1;
    add_text(j, &text, 0);
    return ERR_OK;
}

i64 gpu_job_literal_bytes(const struct job *j) {
    return j->lit_text ? j->texts.items[j->lit_text - 1].text.bytes : 0;
}

void gpu_job_literals(struct job *j, u8 *to, u64 addr) {
    if (!j->lit_text) {
        return;
    }
    struct job_text *text = &j->texts.items[j->lit_text - 1];
    u64 before = text->addr ? text->addr : (u64)(size_t)text->text.host;
    memcpy(to, text->text.host, (size_t)text->text.bytes);
    for (i64 i = 0; i < j->plan.lits.count; i++) {
        j->lit_views[i].addr = j->lit_views[i].addr - before + addr;
    }
    text->addr = addr;
}

struct sv gpu_ahead_table(struct exec *x, const struct gpu_plan_ahead *ahead) {
    const union lit *lit = &x->lits[ahead->lit];
    switch (ahead->code) {
    case OP_REGEX_STR:
        return regex_table_make(x->arena, lit->str, REGEX_ASK_TEST);
    case OP_REGEX_COUNT:
        return regex_table_make(x->arena, lit->str, REGEX_ASK_COUNT);
    case OP_REGEX_SPLIT:
        return regex_table_make(x->arena, lit->str, REGEX_ASK_SPLIT);
    case OP_REGEX_INSTR:
    case OP_REGEX_SUBSTR:
        return regex_table_make(x->arena, lit->str, REGEX_ASK_PART);
    case OP_REGEX_REPLACE:
        return regex_table_make(x->arena, lit->str, REGEX_ASK_ALL);
    case OP_TO_CHAR_TS:
        return to_char_program(x->arena, lit->str);
    default:
        return zone_table_get(x->arena, lit->i32);
    }
}

/* Each is a text of its own, so that it is aligned. */
static FALLIBLE pattern_texts(struct job *j) {
    j->pattern_views = NEW_ARRAY(j->x->arena, str, j->plan.patterns.count + 1);
    for (i64 i = 0; i < j->plan.patterns.count; i++) {
        struct sv table = gpu_ahead_table(j->x, &j->plan.patterns.items[i]);
        ASSERT(table.len > 0); /* it was asked before whether there is one */
        j->pattern_views[i] = str_from(table);
        TRY(own_text(j, false, &j->pattern_views[i], 1));
    }
    return ERR_OK;
}

static bool loads_text(const struct job *j, u32 col) {
    for (u32 i = 0; i < j->pipe->op_count; i++) {
        const struct op *op = &j->pipe->ops[i];
        if (op->code == OP_LOAD && op->imm == col) {
            return j->pipe->regs[op->dst].kind == KIND_STR;
        }
    }
    return false;
}

/* A source column whose codes some tablet holds, loaded as text: its dictionary's views. */
static FALLIBLE dict_texts(struct job *j, u32 col) {
    struct gpu *g = j->g;
    struct exec *x = j->x;
    const struct source *source = &j->pipe->source;
    const struct dict *dict = x->tables[source->ref]->dicts[source->cols[col]];
    bool needed = false;
    for (i64 p = 0; p < j->part_count; p++) {
        needed = needed || j->parts[p].tablet->cols[source->cols[col]].encoding != ENC_STR;
    }
    if (!needed || !dict) {
        return ERR_OK;
    }
    i64 len = x->versions[source->ref]->stats[source->cols[col]].dict_len;
    str *views = NEW_ARRAY(x->arena, str, len + 1);
    for (i64 i = 0; i < len; i++) {
        views[i] = str_from(dict_get(dict, (i32)i));
    }
    TRY(own_text(j, true, views, len));
    struct gpu_block **block = &j->scan->dict_views[col].block;
    TRY(gpu_alloc(g, MAX_OF(len, 1) * (i64)sizeof(str), block, x->err));
    j->scan->dict_views[col].len = len;
    j->metric->bytes_moved += len * (i64)sizeof(str);
    return gpu_upload(g, (*block)->addr, views, len * (i64)sizeof(str), NULL, g->streams[0],
                      x->err);
}

/* Columns of text; of a table the dictionaries, which a scan that was found has. */
static FALLIBLE source_texts(struct job *j) {
    bool is_new = j->scan && !j->found;
    j->text_cols = NEW_ARRAY(j->x->arena, b8, j->col_count + 1);
    if (is_new) {
        j->scan->dict_views = NEW_ARRAY(j->arena, struct dict_views, j->col_count + 1);
    }
    for (u32 c = 0; c < j->col_count; c++) {
        j->text_cols[c] = loads_text(j, c);
        if (is_new && j->text_cols[c]) {
            TRY(dict_texts(j, c));
        }
    }
    for (i64 i = 0; j->found && i < j->scan->texts.count; i++) {
        add_text(j, &j->scan->texts.items[i], j->scan->texts.items[i].block->addr);
    }
    return ERR_OK;
}

/* Whether some opcode looks at the bytes of a variable's text. */
static bool reads_text(const struct job *j, u32 var) {
    const struct source *source = &j->pipe->source;
    for (u32 i = 0; i < j->pipe->op_count; i++) {
        const struct op *op = &j->pipe->ops[i];
        bool of_var = (op->code == OP_LOADV && op->b == var) ||
                      (op->code == OP_LOAD && source->kind == SOURCE_VAR && source->ref == var) ||
                      (op->code == OP_LUT && op->imm == var);
        if (of_var && j->pipe->regs[op->dst].kind == KIND_STR && !j->plan.host_text[op->dst]) {
            return true;
        }
    }
    return false;
}

wf_status gpu_job_texts(struct job *j) {
    struct exec *x = j->x;
    const struct gpu_plan *plan = &j->plan;
    if (!plan->has_text) {
        return ERR_OK;
    }
    TRY(literal_texts(j));
    TRY(pattern_texts(j));
    TRY(source_texts(j));
    b8 *seen = NEW_ARRAY(x->arena, b8, x->program->var_count + 1);
    for (i64 i = 0; i < plan->cols.count; i++) {
        struct kcol col;
        u32 var = plan->cols.items[i].var;
        if (x->program->vars[var].kinds[plan->cols.items[i].col] == KIND_STR) {
            TRY(gpu_var_col(j->g, x, var, plan->cols.items[i].col, &col, &j->metric->bytes_moved));
            seen[var] = 1;
        }
    }
    for (i64 i = 0; i < plan->luts.count; i++) {
        struct kcol lut;
        u32 var = plan->luts.items[i];
        if (x->program->vars[var].lut_kind == KIND_STR) {
            TRY(gpu_var_lut(j->g, x, var, &lut, &j->metric->bytes_moved));
            seen[var] = 1;
        }
    }
    if (j->pipe->source.kind == SOURCE_VAR) {
        seen[j->pipe->source.ref] = 1;
    }
    for (u32 v = 0; v < x->program->var_count; v++) {
        if (seen[v]) {
            TRY(var_texts(j, v, reads_text(j, v)));
        }
    }
    return ERR_OK;
}

void gpu_job_texts_drop(struct job *j) {
    gpu_str_drop(j->g->card, &j->own_texts);
}

/* --- tables for kernels --- */

static int by_from(const void *a, const void *b) {
    u64 x = ((const struct ktext *)a)->from;
    u64 y = ((const struct ktext *)b)->from;
    return x < y ? -1 : x > y;
}

/* Whether rows are written that have text, or only such that has to be translated. */
static bool writes_text(const struct job *j, bool moved) {
    bool writes = false;
    for (u32 k = 0; k < j->plan.rows_count; k++) {
        const struct sink *sink = j->plan.rows[k];
        for (u32 c = 0; c < sink->col_count; c++) {
            u16 reg = sink->cols[c].reg;
            bool text = j->pipe->regs[reg].kind == KIND_STR;
            writes = writes || (text && !(moved && j->plan.host_text[reg]));
        }
    }
    return writes;
}

bool gpu_job_moves_text(const struct job *j) {
    return writes_text(j, true);
}

i64 gpu_job_text_room(const struct job *j, const struct batch *b) {
    i64 count = j->texts.count;
    bool of_parts = b && j->text_cols && gpu_job_moves_text(j);
    for (u32 c = 0; of_parts && c < j->col_count; c++) {
        count += j->text_cols[c] ? b->count : 0;
    }
    return count * (i64)sizeof(struct ktext);
}

u32 gpu_job_texts_in(const struct job *j, struct ktext *out) {
    u32 count = 0;
    for (i64 i = 0; i < j->texts.count; i++) {
        const struct job_text *t = &j->texts.items[i];
        if (t->addr && t->text.bytes > 0) {
            out[count++] = (struct ktext){(u64)(size_t)t->text.host, t->addr, (u64)t->text.bytes};
        }
    }
    qsort(out, count, sizeof *out, by_from);
    return count;
}

void gpu_job_part_texts(struct job *j, struct batch *b, const struct kseg *segs) {
    b->part_texts = NULL;
    b->part_text_count = 0;
    if (!j->text_cols || !j->scan || !gpu_job_moves_text(j)) {
        return;
    }
    i64 most = gpu_job_text_room(j, b) / (i64)sizeof(struct ktext);
    b->part_texts = NEW_ARRAY(j->arena, struct ktext, most + 1);
    for (u32 c = 0; c < j->col_count; c++) {
        for (i64 p = 0; j->text_cols[c] && p < b->count; p++) {
            const struct kseg *seg = &segs[(i64)c * b->count + p];
            const struct part *part = &j->parts[b->first + p];
            if (seg->form == SEG_STR) {
                struct seg_bytes bytes =
                    gpu_segment_bytes(part->tablet, j->pipe->source.cols[c], part->rows);
                b->part_texts[b->part_text_count++] = (struct ktext){
                    (u64)(size_t)seg->bytes, (u64)(size_t)bytes.text, (u64)bytes.text_bytes};
            }
        }
    }
}

u32 gpu_job_texts_out(const struct job *j, const struct batch *b, struct ktext *out) {
    u32 count = 0;
    for (i64 i = 0; i < j->texts.count; i++) {
        const struct job_text *t = &j->texts.items[i];
        if (t->addr && t->text.bytes > 0) {
            out[count++] = (struct ktext){t->addr, (u64)(size_t)t->text.host, (u64)t->text.bytes};
        }
    }
    for (u32 i = 0; i < b->part_text_count; i++) {
        out[count++] = b->part_texts[i];
    }
    qsort(out, count, sizeof *out, by_from);
    return count;
}

/* --- what the output points to --- */

static int by_host(const void *a, const void *b) {
    size_t x = (size_t)((const struct gpu_str *)a)->host;
    size_t y = (size_t)((const struct gpu_str *)b)->host;
    return x < y ? -1 : x > y;
}

wf_status gpu_job_texts_pass_on(struct job *j, u32 var, struct gpu_var *out) {
    struct exec *x = j->x;
    struct gpu_str_list all = {0};
    if (!writes_text(j, false)) {
        return ERR_OK;
    }
    for (i64 i = 0; i < j->texts.count; i++) {
        gpu_str_add(x->arena, &all, j->texts.items[i].text);
    }
    for (i64 i = 0; j->old && i < j->old->texts.count; i++) {
        struct gpu_str text = j->old->texts.items[i];
        text.block = NULL;
        gpu_str_add(x->arena, &all, text);
    }
    for (i64 p = 0; p < j->part_count; p++) {
        const struct part *part = &j->parts[p];
        for (u32 c = 0; part->tablet && j->text_cols && c < j->col_count; c++) {
            struct gpu_str text = {
                .tablet = part->tablet, .col = j->pipe->source.cols[c], .rows = part->rows};
            struct seg_bytes bytes = gpu_segment_bytes(text.tablet, text.col, text.rows);
            text.host = bytes.text;
            text.bytes = bytes.text_bytes;
            if (j->text_cols[c] && text.bytes) {
                TRY(exec_hold(x, text.tablet, text.col, true, x->err));
                gpu_str_add(x->arena, &all, text);
            }
        }
    }
    if (all.count) {
        qsort(all.items, (size_t)all.count, sizeof *all.items, by_host);
    }
    const u8 *last = NULL;
    for (i64 i = 0; i < all.count; i++) {
        struct gpu_str text = all.items[i];
        if (text.host == last) {
            continue;
        }
        last = text.host;
        if (text.heap) {
            variable_keep_heap(x, var, buffer_retain(text.heap));
        }
        if (out) {
            gpu_str_share(x->arena, &out->texts, text);
        }
    }
    return ERR_OK;
}
