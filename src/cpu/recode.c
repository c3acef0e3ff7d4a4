/* recode.c: codes that are texts while their rows are sorted.
 *
 * An interner that memory has no room for lies in temporary space in the order of its codes. Sorted rows would ask
 * for its texts in no order: by their ranks, and again when they are shown. So where the rows that are sorted
 * are the last that know the codes, texts take their place: rows still come in the order of the codes
 * then, and the runs of the sort have their texts beside them. The result's rows get new codes,
 * counted as they come, and the texts are a new dictionary in that order. A text has several codes there unless its
 * rows follow each other; so only the answer may come later, which asks for nothing but the text of a code. */
#include "cpu/sort_int.h"

enum {
    AT_ONCE = 1024,
    FEW_OF = 16 /* a sort of fewer rows than entries over this leaves them where they are */
};

/* Whether all that comes after the step is the answer, made of its rows. */
static bool answers_next(const struct exec *x, u32 step_no, u32 src) {
    const struct program *program = x->program;
    if (program->block_count != 1 || x->whole) {
        return false;
    }
    const struct block *block = &program->blocks[0];
    bool fine = step_no + 1 < block->step_count;
    for (u32 s = step_no + 1; s < block->step_count && fine; s++) {
        const struct step *step = &block->steps[s];
        fine = (step->kind == STEP_RESULT || (step->kind == STEP_LIMIT && !step->shares)) &&
               step->src == src;
        src = step->kind == STEP_LIMIT ? step->dst : src;
    }
    return fine;
}

static u32 interner_of(const struct sort *s, u32 var, u32 col) {
    const u32 *dicts = s->x->program->vars[var].dicts;
    return dicts && dicts[col] ? program_interner(s->x->program, dicts[col] - 1) : NO_VAR;
}

static bool is_wanted(const struct sort *s, u32 interner) {
    const struct variable *v = &s->x->vars[interner];
    return v->dict && !v->copy && dict_is_aside(v->dict) && s->n >= dict_len(v->dict) / FEW_OF;
}

void recode_open(struct sort *s, u32 step_no, const struct step *step) {
    struct exec *x = s->x;
    if (!x->mem->temp || x->vars[step->src].view_of || !answers_next(x, step_no, step->src)) {
        return;
    }
    u32 cols = x->program->vars[step->src].col_count;
    struct dict **decoded = NEW_ARRAY(x->arena, struct dict *, cols + 1);
    bool any = false;
    for (u32 c = 0; c < cols; c++) {
        u32 interner = interner_of(s, step->src, c);
        if (interner != NO_VAR && s->chunks[0]->cols[c].kind == KIND_I32 && is_wanted(s, interner)) {
            decoded[c] = x->vars[interner].dict;
            any = true;
        }
    }
    s->decoded = any ? decoded : NULL;
}

/* Codes that follow each other, as most do, are entries that do. */
void recode_views(const struct sort *s, const struct chunk *chunk, u32 c, i64 from, i64 n, str *out) {
    const struct column *col = &chunk->cols[c];
    if (!s->decoded || !s->decoded[c]) {
        mem_copy(chunk->mem, out, (const str *)col->data + from, n * (i64)sizeof *out);
        return;
    }
    i32 codes[AT_ONCE];
    ASSERT(n <= AT_ONCE);
    mem_copy(chunk->mem, codes, (const i32 *)col->data + from, n * (i64)sizeof *codes);
    for (i64 i = 0; i < n;) {
        i64 count = 1;
        if (col->nulls && col->nulls[from + i]) {
            out[i++] = (str){0, 0, 0};
            continue;
        }
        while (i + count < n && codes[i + count] == codes[i] + count &&
               !(col->nulls && col->nulls[from + i + count])) {
            count++;
        }
        dict_views(s->decoded[c], codes[i], count, out + i);
        i += count;
    }
}

u32 recode_common(const struct sort *s, u32 c, u32 most) {
    struct dict *dict = s->decoded[c];
    struct memory *mem = s->x->mem;
    i32 len = dict_len(dict);
    struct sv with = dict_get(dict, 0);
    most = (u32)MIN_OF(with.len, (i64)most);
    for (i32 at = 0; at < len && most && !exec_check(s->x); at += AT_ONCE) {
        str text[AT_ONCE];
        i64 n = MIN_OF(len - at, AT_ONCE);
        dict_views(dict, at, n, text);
        i64 bytes = texts_bytes(text, NULL, n);
        u8 *some = mem_try(mem, MAX_OF(bytes, 1));
        if (!some) {
            return 0; /* as good, only slower */
        }
        (void)texts_bring(mem, text, NULL, n, some);
        most = texts_common(text, NULL, n, with, most);
        mem_free(mem, some, MAX_OF(bytes, 1));
    }
    return most;
}

/* n texts, the last of which was `before`, to codes: a text that the one before it equals has its code. */
struct recoding {
    struct memory *mem;
    struct dict *dict;
    struct sv before;
    i32 last; /* its code; -1 = none yet */
};

static bool code_texts(struct recoding *r, const str *text, const b8 *nulls, i64 n, i32 *out) {
    str fresh[AT_ONCE];
    i64 count = 0;
    i32 first = dict_len(r->dict);
    for (i64 i = 0; i < n; i++) {
        struct sv s = sv_of(text[i]);
        if (nulls && nulls[i]) {
            out[i] = 0;
            continue;
        }
        if (r->last < 0 || !sv_eq(s, r->before)) {
            fresh[count] = text[i];
            r->last = first + (i32)count++;
            r->before = s;
        }
        out[i] = r->last;
    }
    return count == 0 || dict_put_aside(r->dict, fresh, count, &first);
}

/* A column of one chunk. Texts of its rows come to memory some at a time; the last one, which the next is
 * compared with, is then looked at where it lies. */
static bool recode_column(struct recoding *r, struct chunk *chunk, u32 c) {
    struct column *col = &chunk->cols[c];
    struct buffer *codes = buffer_new(r->mem, MAX_OF(chunk->rows, 1) * (i64)sizeof(i32));
    bool fine = codes != NULL;
    for (i64 at = 0; at < chunk->rows && fine; at += AT_ONCE) {
        i64 n = MIN_OF(chunk->rows - at, (i64)AT_ONCE);
        const b8 *nulls = col->nulls ? col->nulls + at : NULL;
        str text[AT_ONCE];
        i32 out[AT_ONCE];
        mem_copy(r->mem, text, (const str *)col->data + at, n * (i64)sizeof *text);
        struct sv end = sv_of(text[n - 1]);
        i64 bytes = texts_bytes(text, nulls, n);
        u8 *some = mem_alloc(r->mem, MAX_OF(bytes, 1));
        fine = some != NULL;
        if (fine) {
            (void)texts_bring(r->mem, text, nulls, n, some);
            fine = code_texts(r, text, nulls, n, out);
            r->before = nulls && nulls[n - 1] ? r->before : end;
            r->last = nulls && nulls[n - 1] ? -1 : r->last;
            mem_free(r->mem, some, MAX_OF(bytes, 1));
            mem_copy(r->mem, (i32 *)(void *)codes->data + at, out, n * (i64)sizeof *out);
        }
    }
    if (!fine) {
        buffer_release(codes);
        return false;
    }
    buffer_release(chunk->buffers[2 * c]);
    chunk->buffers[2 * c] = codes;
    col->data = codes->data;
    col->kind = KIND_I32;
    return true;
}

static FALLIBLE recode_interner(const struct sort *s, u32 var, u32 interner) {
    struct exec *x = s->x;
    struct variable *v = &x->vars[var];
    struct dict *dict = dict_open(x->mem);
    bool fine = dict != NULL;
    for (u32 c = 0; c < s->col_count && fine; c++) {
        struct recoding r = {.mem = x->mem, .dict = dict, .last = -1};
        for (i64 k = 0; k < v->chunks.count && interner_of(s, var, c) == interner && fine; k++) {
            fine = recode_column(&r, v->chunks.items[k], c);
            if (exec_check(x)) {
                break;
            }
        }
    }
    if (!fine || exec_check(x)) {
        dict_release(dict);
        return fine ? exec_check(x) : memory_refused(x->mem, x->err, 65536);
    }
    dict_outlives(dict, x->vars[interner].dict); /* other texts of the rows may be views of it */
    x->vars[interner].dict = dict;
    x->vars[interner].leaves = NULL;
    for (u32 d = 0; d < x->program->dict_count; d++) {
        if (program_interner(x->program, d) == interner) {
            x->dicts[d] = dict;
            x->dict_lens[d] = dict_len(dict);
        }
    }
    return ERR_OK;
}

wf_status recode_rows(const struct sort *s, u32 var) {
    u32 cols = s->x->program->vars[var].col_count;
    for (u32 c = 0; c < cols; c++) {
        u32 interner = s->decoded[c] ? interner_of(s, var, c) : NO_VAR;
        bool first = interner != NO_VAR && c < s->col_count;
        for (u32 b = 0; b < c && first; b++) {
            first = interner_of(s, var, b) != interner;
        }
        if (first) {
            TRY(recode_interner(s, var, interner));
        }
    }
    return ERR_OK;
}
