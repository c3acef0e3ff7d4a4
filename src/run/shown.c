/* shown.c: the texts of an answer whose interners lie on a device.
 *
 * An answer shows codes of few texts of a long interner where a LIMIT, a HAVING or the least text of
 * every group left few rows. Then only these texts are brought: they become the entries of the
 * host's dictionary, which has none so far, and the answer's codes become their numbers there. This
 * is the last step: nobody else reads either again. */
#include "run/run_int.h"

#include <stdlib.h>

enum { SHOWN_OF = 4 }; /* codes shown are fewer than entries over this, or all entries are brought */

struct shown {
    struct exec *x;
    const struct step *step;
    u32 var; /* the interner */
    i64 first, end; /* rows that are shown */
    i32 *codes;     /* those shown, each once, in order */
    i64 count;
};

static bool has_codes(const struct shown *s, u32 col) {
    const u32 *dicts = s->x->program->vars[s->step->src].dicts;
    return dicts[col] && program_interner(s->x->program, dicts[col] - 1) == s->var;
}

/* Rows [*first, *end) of a chunk that starts at row `at` are shown. */
static void shown_rows(const struct shown *s, const struct chunk *chunk, i64 at, i64 *first,
                       i64 *end) {
    *first = MIN_OF(MAX_OF(s->first - at, 0), chunk->rows);
    *end = MIN_OF(MAX_OF(s->end - at, 0), chunk->rows);
}

static int by_code(const void *a, const void *b) {
    i32 x = *(const i32 *)a;
    i32 y = *(const i32 *)b;
    return x < y ? -1 : x > y;
}

static void add_codes(struct shown *s, const struct column *col, i64 first, i64 end) {
    const i32 *codes = col->data;
    for (i64 r = first; r < end; r++) {
        if (!col->nulls || !col->nulls[r]) {
            s->codes[s->count++] = codes[r];
        }
    }
}

/* Each once; false where one is no entry: what it stands for is not for us to say. */
static bool settle_codes(struct shown *s) {
    i64 kept = 0;
    qsort(s->codes, (size_t)s->count, sizeof *s->codes, by_code);
    for (i64 i = 0; i < s->count; i++) {
        if (i == 0 || s->codes[i] != s->codes[i - 1]) {
            s->codes[kept++] = s->codes[i];
        }
    }
    s->count = kept;
    return kept == 0 || (s->codes[0] >= 0 && s->codes[kept - 1] < s->x->vars[s->var].rows);
}

/* The column's codes as numbers of what is shown, in memory of their own. */
static FALLIBLE renumber(const struct shown *s, struct chunk *chunk, u32 c, i64 first, i64 end) {
    struct column *col = &chunk->cols[c];
    struct buffer *buffer = buffer_new(s->x->mem, MAX_OF(chunk->rows, 1) * (i64)sizeof(i32));
    if (!buffer) {
        return memory_refused(s->x->mem, s->x->err, chunk->rows * (i64)sizeof(i32));
    }
    const i32 *from = col->data;
    i32 *to = (i32 *)(void *)buffer->data;
    memset(to, 0, (size_t)chunk->rows * sizeof(i32));
    for (i64 r = first; r < end; r++) {
        if (!col->nulls || !col->nulls[r]) {
            const i32 *at =
                bsearch(&from[r], s->codes, (size_t)s->count, sizeof *s->codes, by_code);
            to[r] = (i32)(at - s->codes);
        }
    }
    col->data = to;
    buffer_release(chunk->buffers[2 * c]);
    chunk->buffers[2 * c] = buffer;
    return ERR_OK;
}

/* Calls add_codes, or renumber, for all that is shown. */
static FALLIBLE each_column(struct shown *s, bool renumbers) {
    const struct variable *answer = &s->x->vars[s->step->src];
    i64 at = 0;
    for (i64 i = 0; i < answer->chunks.count; i++) {
        struct chunk *chunk = answer->chunks.items[i];
        i64 first;
        i64 end;
        shown_rows(s, chunk, at, &first, &end);
        for (u32 c = 0; c < s->x->program->col_count; c++) {
            if (has_codes(s, c) && renumbers) {
                TRY(renumber(s, chunk, c, first, end));
            } else if (has_codes(s, c)) {
                add_codes(s, &chunk->cols[c], first, end);
            }
        }
        at += chunk->rows;
    }
    return ERR_OK;
}

wf_status shown_texts(struct exec *x, struct device *device, const struct step *step, u32 var,
                      bool *out_done) {
    struct variable *v = &x->vars[var];
    const struct variable *answer = &x->vars[step->src];
    struct shown s = {.x = x, .step = step, .var = var};
    i64 limit = -1;
    i64 columns = 0;
    *out_done = false;
    if (x->stream || !device->fetch_texts || !answer->on_host || !v->dict || dict_len(v->dict)) {
        return ERR_OK;
    }
    TRY(step_bounds(x, step, &s.first, &limit));
    s.first = MIN_OF(s.first, answer->rows);
    s.end = limit < 0 ? answer->rows : MIN_OF(limit, answer->rows - s.first) + s.first;
    for (u32 c = 0; c < x->program->col_count; c++) {
        columns += has_codes(&s, c);
    }
    if ((s.end - s.first) * columns >= v->rows / SHOWN_OF) {
        return ERR_OK;
    }
    s.codes = NEW_ARRAY(x->arena, i32, (s.end - s.first) * columns + 1);
    TRY(arena_check(x->arena, x->err));
    TRY(each_column(&s, false));
    if (!settle_codes(&s)) {
        return ERR_OK;
    }
    TRY(device->fetch_texts(device, x, var, s.codes, s.count, out_done));
    return *out_done ? each_column(&s, true) : ERR_OK;
}
