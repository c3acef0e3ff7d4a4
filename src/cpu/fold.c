/* fold.c: STEP_FOLD: aggregates that need the rows of their group in order.
 *
 * The source is sorted by the group's key and, within a group, as the aggregate asks; NULL
 * arguments are gone already. Groups are runs of equal keys; each gives one row of the result. */
#include "cpu/cpu_int.h"
#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_date.h"
#include "defs/fn_time.h"

#include <math.h>

enum {
    ROWS_PER_CHECK = STOP_EVERY(1 << 16),
#ifdef WF_HARD
    HEAP_LEAST = 1 << 10,
    HEAP_MOST = 8 << 10
#else
    HEAP_LEAST = 4 << 10, /* bytes of texts that are made together */
    HEAP_MOST = 256 << 10
#endif
};

/* Texts of many groups lie one behind the other. They are written in memory and copied to where they stay, which may
 * be temporary space. */
struct texts_made {
    struct buffer *heap; /* where they stay; NULL = none yet */
    u8 *bytes;
    i64 cap, used;
};

struct folding {
    struct exec *x;
    const struct step *step;
    const struct chunk *chunk;
    const struct column *args[2];
    struct chunk *out;
    struct texts_made made;
    i64 passed, given; /* rows of the source and groups that nobody looks at again */
};

static bool arg_null(const struct column *col, i64 row) {
    return col->nulls && col->nulls[row];
}

static void put(struct folding *f, i64 to, i64 row) {
    struct column *out = &f->out->cols[1];
    i64 bytes = kind_bytes[out->kind];
    memcpy((u8 *)out->data + to * bytes, (const u8 *)f->args[0]->data + row * bytes, (size_t)bytes);
}

/* Whether the row counts; of equal neighbours only the first does when distinct. */
static bool counts(const struct folding *f, i64 first, i64 row) {
    return !f->step->distinct || row == first || !column_same(f->args[0], row - 1, row);
}

static void made_keep(struct folding *f) {
    struct texts_made *made = &f->made;
    if (made->heap && made->used > 0) {
        mem_copy(f->x->mem, made->heap->data, made->bytes, made->used);
    }
    made->heap = NULL; /* the variable has it */
    made->used = 0;
}

static void made_fini(struct folding *f) {
    mem_free(f->x->mem, f->made.bytes, f->made.cap);
    f->made.bytes = NULL;
}

/* Another heap, twice as large as the last one. */
static FALLIBLE made_next(struct folding *f, i64 bytes) {
    struct texts_made *made = &f->made;
    made_keep(f);
    made_fini(f);
    made->cap = MAX_OF(MIN_OF(MAX_OF(2 * made->cap, HEAP_LEAST), HEAP_MOST), bytes);
    made->bytes = mem_alloc(f->x->mem, made->cap);
    made->heap = made->bytes ? buffer_new(f->x->mem, made->cap) : NULL;
    if (!made->heap) {
        return memory_refused(f->x->mem, f->x->err, made->cap);
    }
    variable_keep_heap(f->x, f->step->dst, made->heap);
    return ERR_OK;
}

/* Where the bytes of a group's text are written, *out, and where they stay. One that is long has a heap of its own. */
static FALLIBLE made_room(struct folding *f, i64 bytes, u8 **out, const u8 **out_stays) {
    struct texts_made *made = &f->made;
    if (bytes > HEAP_MOST / 4) {
        struct buffer *heap = buffer_new(f->x->mem, bytes);
        if (!heap) {
            return memory_refused(f->x->mem, f->x->err, bytes);
        }
        variable_keep_heap(f->x, f->step->dst, heap);
        *out = heap->data;
        *out_stays = heap->data;
        return ERR_OK;
    }
    if (!made->heap || made->cap - made->used < bytes) {
        TRY(made_next(f, bytes));
    }
    *out = made->bytes + made->used;
    *out_stays = made->heap->data + made->used;
    made->used += bytes;
    return ERR_OK;
}

static FALLIBLE fold_text(struct folding *f, i64 to, i64 first, i64 end) {
    const str *texts = f->args[0]->data;
    const str *commas = f->args[1] ? f->args[1]->data : NULL;
    i64 bytes = 0;
    for (i64 r = first; r < end; r++) {
        bool comma = commas && r > first && !arg_null(f->args[1], r);
        bytes += counts(f, first, r) ? (i64)texts[r].len + (comma ? (i64)commas[r].len : 0) : 0;
    }
    u8 *at = NULL;
    const u8 *stays = NULL;
    TRY(made_room(f, bytes, &at, &stays));
    const u8 *start = at;
    for (i64 r = first; r < end; r++) {
        if (!counts(f, first, r)) {
            continue;
        }
        if (commas && r > first && !arg_null(f->args[1], r) && commas[r].len) {
            memcpy(at, (const void *)(size_t)commas[r].addr, commas[r].len);
            at += commas[r].len;
        }
        if (texts[r].len) {
            memcpy(at, (const void *)(size_t)texts[r].addr, texts[r].len);
            at += texts[r].len;
        }
    }
    str text = str_from((struct sv){(const char *)start, bytes});
    text.addr = (u64)(size_t)stays;
    ((str *)f->out->cols[1].data)[to] = text;
    return ERR_OK;
}

/* The fraction of the group, from its first row; NULL gives NULL. */
static FALLIBLE fraction(struct folding *f, i64 to, i64 first, f64 *out, bool *out_null) {
    *out_null = arg_null(f->args[1], first);
    f->out->cols[1].nulls[to] = *out_null;
    *out = *out_null ? 0 : ((const f64 *)f->args[1]->data)[first];
    return *out >= 0 && *out <= 1 ? ERR_OK : exec_fold_fault(f->x, f->step, 0, *out);
}

/* The interval `share` of the way from one to the other. */
static FALLIBLE between(struct folding *f, i64 to, const i128 *low, const i128 *high, f64 share) {
    u8 fault = 0;
    i128 way = fn_iv_mul(fn_iv_sum(*high, *low, -1, &fault), share, &fault);
    ((i128 *)f->out->cols[1].data)[to] = fn_iv_sum(*low, way, 1, &fault);
    return fault ? exec_fold_fault(f->x, f->step, fault, 0) : ERR_OK;
}

static FALLIBLE fold_percentile(struct folding *f, i64 to, i64 first, i64 end) {
    f64 share;
    bool none;
    TRY(fraction(f, to, first, &share, &none));
    i64 n = end - first;
    if (f->step->fold == AGG_PERCENTILE_DISC) {
        i64 at = (i64)ceil(share * (f64)n);
        put(f, to, first + MAX_OF(at, 1) - 1);
        return ERR_OK;
    }
    f64 at = share * (f64)(n - 1);
    i64 lo = (i64)floor(at);
    i64 hi = (i64)ceil(at);
    if (lo == hi) {
        put(f, to, first + lo);
        return ERR_OK;
    }
    if (f->args[0]->kind == KIND_I128) { /* intervals; all else are doubles */
        const i128 *spans = (const i128 *)f->args[0]->data + first;
        return between(f, to, spans + lo, spans + hi, at - (f64)lo);
    }
    const f64 *x = f->args[0]->data;
    f64 low = x[first + lo];
    f64 high = x[first + hi];
    ((f64 *)f->out->cols[1].data)[to] = low + (at - (f64)lo) * (high - low);
    return ERR_OK;
}

static void fold_mode(struct folding *f, i64 to, i64 first, i64 end) {
    i64 best = first;
    i64 most = 0;
    i64 start = first;
    for (i64 r = first; r < end; r++) {
        start = r > first && column_same(f->args[0], r - 1, r) ? start : r;
        if (r - start + 1 > most) {
            most = r - start + 1;
            best = start;
        }
    }
    put(f, to, best);
}

static FALLIBLE fold_group(struct folding *f, i64 to, i64 first, i64 end) {
    f->out->cols[1].nulls[to] = 0;
    switch (f->step->fold) {
    case AGG_STRING_AGG:
        return fold_text(f, to, first, end);
    case AGG_PERCENTILE_CONT:
    case AGG_PERCENTILE_DISC:
        return fold_percentile(f, to, first, end);
    case AGG_MODE:
        fold_mode(f, to, first, end);
        return ERR_OK;
    default: /* the least or greatest is the first */
        put(f, to, first);
        return ERR_OK;
    }
}

/* Texts that lie in the order of the rows. */
static void pass_texts(const struct folding *f, i64 first, i64 end) {
    const str *text = f->args[0]->data;
    bool rise = f->args[0]->kind == KIND_STR && text[first].addr < text[end - 1].addr;
    if (rise) {
        mem_pass(f->x->mem, (const void *)(size_t)text[first].addr,
                 (i64)(text[end - 1].addr - text[first].addr));
    }
}

/* What was read, and the groups made of it, go back to temporary space where they came from. */
static void let_go(struct folding *f, i64 rows, i64 groups) {
    if (rows - f->passed >= ROWS_PER_CHECK && f->x->mem->temp) {
        pass_texts(f, f->passed, rows);
        chunk_pass(f->chunk, f->passed, rows - f->passed);
        chunk_pass(f->out, f->given, groups - f->given);
        f->passed = rows;
        f->given = groups;
    }
}

static FALLIBLE fold_groups(struct folding *f) {
    const i64 *key = f->chunk->cols[f->step->col].data;
    i64 to = 0;
    for (i64 first = 0; first < f->chunk->rows; to++) {
        i64 end = first + 1;
        while (end < f->chunk->rows && key[end] == key[first]) {
            if (++end % ROWS_PER_CHECK == 0) {
                TRY(exec_check(f->x));
            }
        }
        ((i64 *)f->out->cols[0].data)[to] = key[first];
        TRY(fold_group(f, to, first, end));
        TRY(exec_check(f->x));
        let_go(f, end, to + 1);
        first = end;
    }
    made_keep(f);
    return ERR_OK;
}

wf_status fold_run(struct exec *x, const struct step *step) {
    TRY(variable_flatten(x, step->src));
    struct folding f = {.x = x, .step = step, .chunk = x->vars[step->src].chunks.items[0]};
    const i64 *key = f.chunk->cols[step->col].data;
    i64 groups = 0;
    for (i64 r = 0; r < f.chunk->rows; r++) {
        groups += r == 0 || key[r] != key[r - 1];
        if (r % ROWS_PER_CHECK == 0) {
            TRY(exec_check(x));
            mem_pass(x->mem, key + MAX_OF(r - ROWS_PER_CHECK, 0), (r ? ROWS_PER_CHECK : 0) * (i64)sizeof *key);
        }
    }
    for (i32 a = 0; a < 2; a++) {
        f.args[a] = step->args[a] == NO_VAR ? NULL : &f.chunk->cols[step->args[a]];
    }
    variable_reset(&x->vars[step->dst]);
    f.out = chunk_new(x, &x->program->vars[step->dst], groups, true);
    if (!f.out) {
        return memory_refused(x->mem, x->err, groups * 16);
    }
    memset(f.out->cols[0].nulls, 0, (size_t)groups);
    variable_append(x, step->dst, f.out);
    wf_status status = fold_groups(&f);
    made_fini(&f);
    if (step->fold != AGG_STRING_AGG) { /* which makes its texts */
        variable_keep_heaps(x, step->dst, step->src);
    }
    return status;
}
