/* sort.c: sorts a variable, and ranks a dictionary.
 *
 * The sort keys of a row become a list of 64-bit words (sort_key.h), as few as the ranges of the
 * data allow; text takes part with a few bytes and is asked for more only where rows tie. The first
 * word of every row is sorted together with the row's place, both in one 64-bit word when they fit;
 * runs of equal words are then told apart by the next word, run by run. Rows are gathered once, at
 * the end, by all workers, straight from the chunks of the input: nothing is flattened first. Ties
 * keep the order of the input, and rows whose first words ascend as they come are not sorted. Only the
 * first `limit` rows are put in order when a limit is known.
 */
#include "cpu/sort_int.h"

#include "base/temp.h"

#include <stdlib.h>

enum { SORT_READS = 4 }; /* of radix.c: counted, split, and sorted in parts, which is twice that */
enum {
    PARTS_PER_KEY = 3,
    FILL_ROWS = 1024,
    SAMPLE_ROWS = 64,
    FEW_OF = 16, /* a sort of fewer rows than the dictionary's entries over this ranks its own */
    TEXT_BITS_MIN = 8 + TEXT_LEN_BITS,
#ifdef WF_HARD
    RUN_ROWS = 128,
    LARGE_RUN = 100
#else
    RUN_ROWS = 1 << 14, /* rows of one task that looks for ties */
    LARGE_RUN = 1 << 16 /* ties that all workers sort together */
#endif
};

u64 sort_word(const struct sort *s, const struct level *level, u64 row) {
    u64 word = 0;
    for (u32 p = 0; p < level->count; p++) {
        const struct sort_part *part = &s->parts[level->first + p];
        i64 i;
        const struct column *col = sort_column(s, part->col, row, &i);
        u64 before = part->bits == 64 ? 0 : word << part->bits;
        word = before | part_value(part, col->data, col->nulls, i);
    }
    return word;
}

/* measuring the keys */

static void cool(const struct sort *s) {
    if (s->x->mem->temp) {
        temp_cool(s->x->mem->temp);
    }
}

static void bounds_task(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    struct sort *s = arg;
    cool(s);
    const struct column *col = &s->chunks[c]->cols[s->measured];
    i64 rows = s->chunks[c]->rows, width = kind_bytes[col->kind];
    if (!mem_in_temp(s->x->mem, col->data)) {
        order_bounds(col->kind, s->rank, col->data, col->nulls, rows, &s->bounds[2 * c],
                     &s->bounds[2 * c + 1]);
        return;
    }
    for (i64 at = 0; at < rows; at += FILL_ROWS) { /* no page of it is looked at */
        str piece[FILL_ROWS];                      /* or anything smaller */
        i64 n = MIN_OF(rows - at, FILL_ROWS);
        mem_copy(s->x->mem, piece, (const u8 *)col->data + at * width, n * width);
        order_bounds(col->kind, s->rank, piece, col->nulls ? col->nulls + at : NULL, n,
                     &s->bounds[2 * c], &s->bounds[2 * c + 1]);
    }
}

static void find_bounds(struct sort *s, struct sort_part *part) {
    s->measured = part->col;
    s->rank = part->rank;
    for (i64 c = 0; c < s->chunk_count; c++) {
        s->bounds[2 * c] = 1;
        s->bounds[2 * c + 1] = 0;
    }
    tasks_run(s->x, s->chunk_count, bounds_task, s);
    part->lo = 1;
    part->hi = 0;
    for (i64 c = 0; c < s->chunk_count; c++) {
        u128 lo = s->bounds[2 * c];
        u128 hi = s->bounds[2 * c + 1];
        if (lo <= hi) {
            bool any = part->lo <= part->hi;
            part->lo = any ? MIN_OF(part->lo, lo) : lo;
            part->hi = any ? MAX_OF(part->hi, hi) : hi;
        }
    }
    if (part->lo > part->hi) {
        part->lo = part->hi = 0;
    }
}

static u32 common_prefix(struct sv a, struct sv b, u32 most) {
    u32 len = (u32)MIN_OF(MIN_OF(a.len, b.len), (i64)most);
    u32 i = 0;
    while (i < len && a.ptr[i] == b.ptr[i]) {
        i++;
    }
    return i;
}

u32 texts_common(const str *text, const b8 *nulls, i64 n, struct sv with, u32 most) {
    for (i64 i = 0; i < n && most; i++) {
        if (!nulls || !nulls[i]) {
            most = common_prefix(with, sv_of(text[i]), most);
        }
    }
    return most;
}

static u32 common_of(const struct column *col, i64 rows, struct sv with, u32 most) {
    return texts_common(col->data, col->nulls, rows, with, most);
}

static void common_task(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    struct sort *s = arg;
    cool(s);
    if (texts_lie_aside(s->x->mem, s->chunks[c], s->measured)) {
        s->common[c] = texts_common_aside(s, s->chunks[c], s->measured, s->common[c]);
        return;
    }
    s->common[c] =
        common_of(&s->chunks[c]->cols[s->measured], s->chunks[c]->rows, s->sample, s->common[c]);
}

/* Bytes that all strings of the column start with; a sample settles most columns at once. */
static u32 find_common(struct sort *s, u32 col) {
    bool found = false;
    for (i64 c = 0; c < s->chunk_count && !found; c++) {
        const struct column *column = &s->chunks[c]->cols[col];
        for (i64 i = 0; i < s->chunks[c]->rows && !found; i++) {
            if (!column->nulls || !column->nulls[i]) {
                s->sample = sv_of(((const str *)column->data)[i]);
                found = true;
            }
        }
    }
    u32 most = found ? (u32)MIN_OF(s->sample.len, 1 << 16) : 0;
    for (i64 c = 0; c < s->chunk_count; c++) {
        i64 rows = MIN_OF(s->chunks[c]->rows, SAMPLE_ROWS);
        most = common_of(&s->chunks[c]->cols[col], rows, s->sample, most);
    }
    if (most == 0) {
        return 0;
    }
    s->measured = col;
    for (i64 c = 0; c < s->chunk_count; c++) {
        s->common[c] = most;
    }
    tasks_run(s->x, s->chunk_count, common_task, s);
    for (i64 c = 0; c < s->chunk_count; c++) {
        most = MIN_OF(most, s->common[c]);
    }
    return most;
}

static void add_part(struct sort *s, struct sort_part part, u8 form) {
    part.form = form;
    part_measure(&part);
    s->parts[s->part_count++] = part;
}

bool sort_has_nulls(const struct sort *s, u32 col) {
    for (i64 c = 0; c < s->chunk_count; c++) {
        if (s->chunks[c]->cols[col].nulls) {
            return true;
        }
    }
    return false;
}

struct coded {
    struct sv text;
    i32 code;
};

static int coded_order(const void *a, const void *b) {
    return sv_cmp(((const struct coded *)a)->text, ((const struct coded *)b)->text);
}

/* Ranks of the codes that occur, where they are few of many: nobody else asks for those of an
 * interner. Others are not set. */
static FALLIBLE few_ranks(struct sort *s, u32 col, const struct dict *dict, i64 len,
                          const i32 **out) {
    struct coded *list = NEW_ARRAY(s->x->arena, struct coded, s->n + 1);
    i32 *rank = NEW_ARRAY(s->x->arena, i32, len + 1);
    i64 count = 0;
    for (i64 c = 0; c < s->chunk_count; c++) {
        const struct column *column = &s->chunks[c]->cols[col];
        for (i64 i = 0; i < s->chunks[c]->rows; i++) {
            if (!column->nulls || !column->nulls[i]) {
                i32 code = ((const i32 *)column->data)[i];
                list[count++] = (struct coded){dict_get(dict, code), code};
            }
        }
    }
    TRY(arena_check(s->x->arena, s->x->err));
    qsort(list, (size_t)count, sizeof *list, coded_order);
    for (i64 i = 0; i < count; i++) {
        rank[list[i].code] = (i32)i; /* equal ones: the last of them */
    }
    *out = rank;
    return ERR_OK;
}

/* What of a key's column goes into words. */
static void add_parts(struct sort *s, struct sort_part part) {
    if (part.kind != KIND_STR) {
        find_bounds(s, &part);
        part_measure(&part);
        if (part.bits <= 64) {
            add_part(s, part, PART_WHOLE);
            return;
        }
    }
    if (part.nulls) {
        add_part(s, part, PART_NULLS);
        part.nulls = 0;
    }
    if (part.kind == KIND_STR) {
        part.skip = find_common(s, part.col);
        part.text_bytes = TEXT_BYTES;
        add_part(s, part, PART_TEXT);
    } else if (part.kind == KIND_I128) {
        add_part(s, part, PART_HIGH);
        add_part(s, part, PART_LOW);
    } else {
        add_part(s, part, PART_WHOLE);
    }
}

/* Codes that are texts while they are sorted. */
static void add_decoded(struct sort *s, struct sort_part part) {
    if (part.nulls) {
        add_part(s, part, PART_NULLS);
        part.nulls = 0;
    }
    part.kind = KIND_STR;
    part.skip = recode_common(s, part.col, 1 << 16);
    part.text_bytes = TEXT_BYTES;
    add_part(s, part, PART_TEXT);
}

static FALLIBLE add_key(struct sort *s, u32 var, const struct sort_key *key) {
    struct exec *x = s->x;
    const struct var *def = &x->program->vars[var];
    u32 dict = def->dicts ? def->dicts[key->col] : 0;
    struct sort_part part = {.col = key->col,
                             .kind = s->chunks[0]->cols[key->col].kind,
                             .nulls = sort_has_nulls(s, key->col),
                             .nulls_first = key->nulls_first,
                             .descending = key->descending};
    bool coded = dict && part.kind == KIND_I32 && x->dicts[dict - 1];
    if (s->decoded && s->decoded[key->col]) {
        add_decoded(s, part);
        return ERR_OK;
    }
    if (coded && x->program->dicts[dict - 1].table == NO_VAR &&
        s->n < x->dict_lens[dict - 1] / FEW_OF) {
        TRY(few_ranks(s, key->col, x->dicts[dict - 1], x->dict_lens[dict - 1], &part.rank));
    } else if (coded) {
        const i32 *code_at = NULL;
        TRY(ranks_find(x, x->dicts[dict - 1], x->dict_lens[dict - 1], &part.rank, &code_at));
    }
    add_parts(s, part);
    return ERR_OK;
}

/* Parts into words, in order; text takes what is left of a word and ends it. */
static void make_levels(struct sort *s) {
    s->levels = NEW_ARRAY(s->x->arena, struct level, s->part_count + 1);
    struct level *level = NULL;
    for (u32 p = 0; p < s->part_count; p++) {
        struct sort_part *part = &s->parts[p];
        i32 left = level && !level->text ? 64 - level->bits : 0;
        if (part->form == PART_TEXT && left >= TEXT_BITS_MIN) {
            part->text_bytes = (u8)MIN_OF((left - TEXT_LEN_BITS) / 8, TEXT_BYTES);
            part_measure(part);
        }
        if (!level || part->bits > left) {
            level = &s->levels[s->level_count++];
            level->first = p;
        }
        level->count++;
        level->bits += part->bits;
        if (part->form == PART_TEXT) { /* parts of no bits may still follow */
            level->text = part;
        }
    }
}

/* the first word of every row, and whether rows are in order as they come */

static bool is_ascending(const u64 *key, i64 n) {
    u32 less = 0;
    for (i64 i = 1; i < n; i++) {
        less |= key[i] < key[i - 1];
    }
    return !less;
}

/* Of neighbours in a chunk; io_edges: the first word and the last one, as far as it was gone through. */
static void look_at_order(struct sort *s, const u64 *key, i64 n, i64 at, u64 *io_edges) {
    if (atomic_load_explicit(&s->moves, memory_order_relaxed)) {
        return;
    }
    if ((at && key[0] < io_edges[1]) || !is_ascending(key, n)) {
        atomic_store_explicit(&s->moves, 1, memory_order_relaxed);
    }
    io_edges[0] = at ? io_edges[0] : key[0];
    io_edges[1] = key[n - 1];
}

/* Whether the first words of rows, which are all that counts, are in order: then so are the rows. */
static bool are_in_order(const struct sort *s) {
    bool fine = s->level_count == 1 && !s->levels[0].text && !atomic_load(&s->moves);
    for (i64 c = 1; fine && c < s->chunk_count; c++) {
        fine = s->edges[2 * c] >= s->edges[2 * c - 1];
    }
    return fine;
}

static void fill_task(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    struct sort *s = arg;
    const struct chunk *chunk = s->chunks[c];
    const struct level *level = &s->levels[0];
    u64 key[FILL_ROWS];
    for (i64 at = 0; at < chunk->rows; at += FILL_ROWS) {
        i64 n = MIN_OF(chunk->rows - at, FILL_ROWS);
        memset(key, 0, (size_t)n * sizeof *key);
        for (u32 p = 0; p < level->count; p++) {
            const struct sort_part *part = &s->parts[p];
            const struct column *col = &chunk->cols[part->col];
            const u8 *data = (const u8 *)col->data + at * kind_bytes[col->kind];
            part_fill(part, data, col->nulls ? col->nulls + at : NULL, n, key);
        }
        look_at_order(s, key, n, at, &s->edges[2 * c]);
        u64 row = (u64)c << s->idx_bits | (u64)at;
        if (s->words) {
            u64 *out = s->words + s->starts[c] + at;
            for (i64 i = 0; i < n; i++) {
                out[i] = key[i] << s->row_bits | (row + (u64)i);
            }
        } else {
            struct prim_pair *out = s->pairs + s->starts[c] + at;
            for (i64 i = 0; i < n; i++) {
                out[i] = (struct prim_pair){key[i], row + (u64)i};
            }
        }
    }
}

/* ties */

static void refine(struct sort *s, i64 first, i64 n, u32 level, u32 offset);

/* Sorts runs of equal keys in [first, first + n) further. */
static void refine_runs(struct sort *s, i64 first, i64 n, u32 level, u32 offset) {
    const struct prim_pair *pair = s->pairs + first;
    for (i64 i = 0; i < n;) {
        i64 end = i + 1;
        while (end < n && pair[end].key == pair[i].key) {
            end++;
        }
        if (end - i > 1) {
            refine(s, first + i, end - i, level, offset);
        }
        i = end;
    }
}

static str text_at(const struct sort *s, const struct sort_part *part, u64 row) {
    i64 i;
    const struct column *col = sort_column(s, part->col, row, &i);
    return ((const str *)col->data)[i];
}

/* The next piece of the text that a run shares up to `offset`; skips what it shares beyond. */
static i32 fill_text(struct sort *s, i64 first, i64 n, const struct sort_part *part,
                     u32 *io_offset) {
    struct prim_pair *pair = s->pairs + first;
    str head = text_at(s, part, pair[0].row);
    struct sv rest = {(const char *)(size_t)head.addr + *io_offset, (i64)(head.len - *io_offset)};
    u32 common = (u32)rest.len;
    for (i64 i = 1; i < n && common; i++) {
        str t = text_at(s, part, pair[i].row);
        struct sv other = {(const char *)(size_t)t.addr + *io_offset, (i64)(t.len - *io_offset)};
        common = common_prefix(rest, other, common);
    }
    *io_offset += common;
    for (i64 i = 0; i < n; i++) {
        pair[i].key =
            text_piece(text_at(s, part, pair[i].row), *io_offset, TEXT_BYTES, part->descending);
    }
    *io_offset += TEXT_BYTES;
    return 8 * TEXT_BYTES + TEXT_LEN_BITS;
}

/* New keys for rows that tie at `level`, of whose text they share `offset` bytes. Returns their
 * bits, 0 when nothing tells the rows apart. */
static i32 next_keys(struct sort *s, i64 first, i64 n, u32 *io_level, u32 *io_offset) {
    const struct level *level = &s->levels[*io_level];
    struct prim_pair *pair = s->pairs + first;
    if (level->text && piece_goes_on(pair[0].key, level->text->descending)) {
        return fill_text(s, first, n, level->text, io_offset);
    }
    if (++*io_level >= s->level_count) {
        return 0;
    }
    level++;
    for (i64 i = 0; i < n; i++) {
        pair[i].key = sort_word(s, level, pair[i].row);
    }
    *io_offset = level->text ? level->text->skip + level->text->text_bytes : 0;
    return MAX_OF(level->bits, 1);
}

static void refine(struct sort *s, i64 first, i64 n, u32 level, u32 offset) {
    i32 bits = next_keys(s, first, n, &level, &offset);
    if (bits) {
        radix_sort_few(s->pairs + first, (struct prim_pair *)s->temp + first, n, bits);
        refine_runs(s, first, n, level, offset);
    }
}

struct ties {
    struct sort *s;
    i64 first, n;
    u32 level, offset;
    i64 *starts; /* per task: where its first run starts; then tasks + 1 bounds, ascending */
};

/* Settling a run changes its keys: where runs start is found before anybody does. */
static void starts_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct ties *ties = arg;
    const struct prim_pair *pair = ties->s->pairs + ties->first;
    i64 i = t * RUN_ROWS;
    i64 stop = MIN_OF(i + RUN_ROWS, ties->n);
    while (i > 0 && i < stop && pair[i].key == pair[i - 1].key) {
        i++;
    }
    ties->starts[t] = i < stop ? i : -1;
}

/* The runs between the task's bounds; large ones are left for everybody. */
static void ties_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct ties *ties = arg;
    struct sort *s = ties->s;
    const struct prim_pair *pair = s->pairs + ties->first;
    i64 stop = ties->starts[t + 1];
    if (exec_check(s->x)) {
        return;
    }
    for (i64 i = ties->starts[t]; i < stop;) {
        i64 end = i + 1;
        while (end < stop && pair[end].key == pair[i].key) {
            end++;
        }
        if (end - i > LARGE_RUN) {
            mutex_lock(&s->x->lock);
            struct large_run run = {ties->first + i, end - i};
            VEC_PUSH(s->x->arena, &s->large, run);
            mutex_unlock(&s->x->lock);
        } else if (end - i > 1) {
            refine(s, ties->first + i, end - i, ties->level, ties->offset);
        }
        i = end;
    }
}

static FALLIBLE settle_small(struct sort *s, struct ties *ties) {
    i64 wanted = MIN_OF(ties->n, s->want - ties->first); /* later runs are not asked for */
    i64 tasks = (MAX_OF(wanted, 0) + RUN_ROWS - 1) / RUN_ROWS;
    i64 all = (ties->n + RUN_ROWS - 1) / RUN_ROWS;
    i64 bytes = (all + 1) * (i64)sizeof(i64);
    ties->starts = mem_alloc(s->x->mem, bytes);
    if (!ties->starts) {
        return memory_refused(s->x->mem, s->x->err, bytes);
    }
    tasks_run(s->x, all, starts_task, ties);
    ties->starts[all] = ties->n;
    for (i64 t = all; t-- > 0;) { /* a task without a start has nothing to do */
        ties->starts[t] = ties->starts[t] < 0 ? ties->starts[t + 1] : ties->starts[t];
    }
    tasks_run(s->x, tasks, ties_task, ties);
    mem_free(s->x->mem, ties->starts, bytes);
    return exec_check(s->x);
}

/* Rows [first, first + n) are sorted by the word of `level`: settles the ties. */
static FALLIBLE settle(struct sort *s, i64 first, i64 n, u32 level, u32 offset) {
    struct ties ties = {.s = s, .first = first, .n = n, .level = level, .offset = offset};
    i64 before = s->large.count;
    TRY(settle_small(s, &ties));
    while (s->large.count > before) {
        struct large_run run = s->large.items[--s->large.count];
        u32 run_level = level;
        u32 run_offset = offset;
        i64 valid;
        i32 bits = next_keys(s, run.first, run.rows, &run_level, &run_offset);
        TRY(exec_check(s->x));
        if (bits) {
            TRY(radix_sort_pairs(s->x, s->pairs + run.first,
                                 (struct prim_pair *)s->temp + run.first, run.rows, bits, run.rows,
                                 &valid));
            TRY(settle(s, run.first, run.rows, run_level, run_offset));
        }
    }
    return ERR_OK;
}

static FALLIBLE sort_rows(struct sort *s) {
    const struct level *level = &s->levels[0];
    tasks_run(s->x, s->chunk_count, fill_task, s);
    work_rows(s->x, s->n);
    TRY(exec_check(s->x));
    if (are_in_order(s)) {
        return ERR_OK;
    }
    if (s->words) {
        return radix_sort_words(s->x, s->words, s->temp, s->n, s->row_bits,
                                s->row_bits + level->bits, s->want);
    }
    i64 valid;
    TRY(radix_sort_pairs(s->x, s->pairs, s->temp, s->n, level->bits, s->want, &valid));
    u32 offset = level->text ? level->text->skip + level->text->text_bytes : 0;
    return level->text || s->level_count > 1 ? settle(s, 0, valid, 0, offset) : ERR_OK;
}

/* the rows in their order */

#define GATHER(type)                                                              \
    do {                                                                          \
        type *out = (type *)to + first;                                           \
        for (i64 i = 0; i < n; i++) {                                             \
            out[i] = ((const type *)base[row[i] >> idx_bits])[row[i] & idx_mask]; \
        }                                                                         \
    } while (0)

static void gather_col(const struct sort *s, void *to, const void *const *base, const u64 *row,
                       i64 first, i64 n, i64 bytes) {
    i32 idx_bits = s->idx_bits;
    u64 idx_mask = (1ULL << idx_bits) - 1;
    switch (bytes) {
    case 1:
        GATHER(u8);
        break;
    case 4:
        GATHER(u32);
        break;
    case 8:
        GATHER(u64);
        break;
    default:
        GATHER(str);
        break;
    }
}
#undef GATHER

struct gather {
    const struct sort *s;
    const void **base; /* [column][data, nulls][chunk] */
    i64 rows;
};

static void gather_nulls(const struct gather *g, u32 c, const u64 *row, i64 first, i64 n) {
    const struct sort *s = g->s;
    const void *const *base = g->base + (2 * c + 1) * s->chunk_count;
    b8 *out = s->out->cols[c].nulls + first;
    for (i64 i = 0; i < n; i++) {
        const b8 *from = base[row[i] >> s->idx_bits];
        out[i] = from ? from[row[i] & ((1ULL << s->idx_bits) - 1)] : 0;
    }
}

/* What goes to temporary space is put together first. */
static void gather_rows(const struct gather *g, u32 c, const u64 *row, i64 first, i64 n) {
    const struct sort *s = g->s;
    const void *const *base = g->base + 2 * c * s->chunk_count;
    u8 *to = s->out->cols[c].data;
    i64 width = kind_bytes[s->out->cols[c].kind];
    bool beside = s->beside && s->beside[c];
    if (!beside && !mem_in_temp(s->x->mem, to)) {
        gather_col(s, to, base, row, first, n, width);
        return;
    }
    str together[FILL_ROWS]; /* or anything smaller */
    gather_col(s, together, base, row, 0, n, width);
    if (beside) {
        texts_put(s, c, first / GATHER_ROWS, together, n);
    }
    mem_copy(s->x->mem, to + first * width, together, n * width);
}

static void gather_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct gather *g = arg;
    const struct sort *s = g->s;
    u64 row[FILL_ROWS];
    i64 end = MIN_OF((t + 1) * GATHER_ROWS, g->rows);
    if (exec_check(s->x)) {
        return;
    }
    work_rows(s->x, 2 * (end - t * GATHER_ROWS));
    for (i64 at = t * GATHER_ROWS; at < end; at += FILL_ROWS) {
        i64 n = MIN_OF(end - at, FILL_ROWS);
        for (i64 i = 0; i < n; i++) {
            row[i] = sort_place(s, at + i);
        }
        for (u32 c = 0; c < s->col_count; c++) {
            gather_rows(g, c, row, at, n);
            if (s->out->cols[c].nulls) {
                gather_nulls(g, c, row, at, n);
            }
        }
    }
}

static FALLIBLE open_output(struct sort *s, enum buffer_place place) {
    struct exec *x = s->x;
    s->out = chunk_view_new(x, s->chunks[0]->col_count);
    bool fine = s->out != NULL;
    for (u32 c = 0; fine && c < s->out->col_count; c++) {
        struct column *col = &s->out->cols[c];
        i64 rows = c < s->col_count ? MAX_OF(s->want, 1) : 0;
        col->kind = s->chunks[0]->cols[c].kind;
        bool flags = rows && sort_has_nulls(s, c);
        bool beside = rows && s->beside && s->beside[c];
        i64 bytes = beside ? texts_offset(rows) + texts_total(s, c)
                           : MAX_OF(rows, 1) * kind_bytes[col->kind];
        struct buffer *data = buffer_new_at(x->mem, bytes, place);
        struct buffer *nulls = flags ? buffer_new_at(x->mem, rows, place) : NULL;
        s->out->buffers[2 * c] = data;
        s->out->buffers[2 * c + 1] = nulls;
        fine = data && (nulls || !flags);
        col->data = data ? data->data : NULL;
        col->nulls = nulls ? nulls->data : NULL;
    }
    if (!fine) {
        return memory_refused(x->mem, x->err, s->want * 8);
    }
    s->out->rows = s->want;
    return ERR_OK;
}

static FALLIBLE reorder(struct sort *s, enum buffer_place place) {
    struct exec *x = s->x;
    TRY(texts_measure(s));
    TRY(open_output(s, place));
    u32 cols = s->col_count;
    i64 bytes = (2 * cols * s->chunk_count + 1) * (i64)sizeof(void *);
    struct gather g = {s, mem_alloc(x->mem, bytes), s->want};
    if (!g.base) {
        return memory_refused(x->mem, x->err, bytes);
    }
    for (u32 c = 0; c < cols; c++) {
        for (i64 k = 0; k < s->chunk_count; k++) {
            g.base[2 * c * s->chunk_count + k] = s->chunks[k]->cols[c].data;
            g.base[(2 * c + 1) * s->chunk_count + k] = s->chunks[k]->cols[c].nulls;
        }
    }
    tasks_run(x, (s->want + GATHER_ROWS - 1) / GATHER_ROWS, gather_task, &g);
    mem_free(x->mem, (void *)g.base, bytes);
    return exec_check(x);
}

/* life of a sort */

void sort_list(struct sort *s, struct chunk **chunks, i64 count) {
    struct arena *arena = s->x->arena;
    s->chunks = NEW_ARRAY(arena, struct chunk *, count + 1);
    s->starts = NEW_ARRAY(arena, i64, count + 1);
    s->edges = NEW_ARRAY(arena, u64, 2 * count + 1);
    i64 longest = 1;
    for (i64 c = 0; c < count; c++) {
        if (chunks[c]->rows > 0) {
            s->chunks[s->chunk_count] = chunks[c];
            s->starts[s->chunk_count++] = s->n;
            s->n += chunks[c]->rows;
            longest = MAX_OF(longest, chunks[c]->rows);
        }
    }
    while (1LL << s->idx_bits < longest) {
        s->idx_bits++;
    }
    s->row_bits = s->idx_bits;
    while (1LL << (s->row_bits - s->idx_bits) < s->chunk_count) {
        s->row_bits++;
    }
}

wf_status sort_chunks(struct sort *s, enum buffer_place place, bool may_refuse, bool *out_refused) {
    struct memory *mem = s->x->mem;
    bool narrow =
        s->level_count == 1 && !s->levels[0].text && s->levels[0].bits + s->row_bits <= 64;
    s->bytes = s->n * (i64)(narrow ? sizeof(u64) : sizeof(struct prim_pair));
    void *data = may_refuse ? mem_try(mem, s->bytes) : mem_alloc(mem, s->bytes);
    s->temp = !data ? NULL : may_refuse ? mem_try(mem, s->bytes) : mem_alloc(mem, s->bytes);
    s->words = narrow ? data : NULL;
    s->pairs = narrow ? NULL : data;
    *out_refused = may_refuse && !s->temp;
    wf_status status = s->temp         ? sort_rows(s)
                       : *out_refused ? ERR_OK
                                      : memory_refused(mem, s->x->err, s->bytes);
    bool sorted = s->temp && !status;
    mem_free(mem, s->temp, s->bytes);
    status = sorted ? reorder(s, place) : status;
    texts_measured(s);
    if (status) {
        chunk_release(s->out);
        s->out = NULL;
    }
    mem_free(mem, data, s->bytes);
    return status;
}

/* Rows in temporary space are not read in any order but theirs. */
static bool lies_aside(const struct sort *s) {
    for (i64 c = 0; c < s->chunk_count; c++) {
        for (u32 b = 0; b < 2 * s->chunks[c]->col_count; b++) {
            const struct buffer *buf = s->chunks[c]->buffers[b];
            if (buf && mem_in_temp(s->x->mem, buf->data)) {
                return true;
            }
        }
    }
    return false;
}

static FALLIBLE sort_all(struct sort *s, u32 var, i64 *out_runs) {
    struct exec *x = s->x;
    bool spills = x->mem->temp != NULL;
    bool refused = spills && (s->decoded || lies_aside(s) || texts_aside(s));
    *out_runs = 0;
    if (!refused) {
        work_expect(x, (SORT_READS + 1) * s->n + 2 * s->want);
        TRY(sort_chunks(s, BUFFER_REST, spills, &refused));
    }
    if (refused) {
        TRY(sort_in_runs(s, &x->vars[var], out_runs));
        return s->decoded ? recode_rows(s, var) : ERR_OK;
    }
    struct variable *v = &x->vars[var];
    for (i64 c = 0; c < v->chunks.count; c++) {
        chunk_release(v->chunks.items[c]);
    }
    v->chunks.count = 0;
    VEC_PUSH(exec_arena(x), &v->chunks, s->out);
    v->rows = s->want;
    return ERR_OK;
}

static void sort_open(struct sort *s, struct variable *v, u32 key_count) {
    struct arena *arena = s->x->arena;
    sort_list(s, v->chunks.items, v->chunks.count);
    s->bounds = NEW_ARRAY(arena, u128, 2 * s->chunk_count + 1);
    s->common = NEW_ARRAY(arena, u32, s->chunk_count + 1);
    s->parts = NEW_ARRAY(arena, struct sort_part, key_count * PARTS_PER_KEY);
    s->want = s->n;
}

wf_status sort_by_text(struct exec *x, struct variable *v, u32 col_count) {
    struct sort s = {.x = x, .col_count = col_count};
    i64 runs;
    sort_open(&s, v, 1);
    if (s.n <= 1) {
        return ERR_OK;
    }
    add_parts(&s, (struct sort_part){.kind = KIND_STR});
    make_levels(&s);
    TRY(arena_check(x->arena, x->err));
    return sort_in_runs(&s, v, &runs);
}

wf_status sort_run(struct exec *x, u32 step_no, const struct step *step) {
    struct sort s = {.x = x};
    sort_open(&s, &x->vars[step->src], MAX_OF(step->key_count, 1));
    s.want = step->limit >= 0 && step->limit_lit == NO_LIT ? MIN_OF(step->limit, s.n) : s.n;
    if (s.n <= 1 || step->key_count == 0) {
        return ERR_OK;
    }
    s.col_count = step->col_count ? step->col_count : x->program->vars[step->src].col_count;
    recode_open(&s, step_no, step);
    for (u32 k = 0; k < step->key_count; k++) {
        TRY(exec_check(x));
        TRY(add_key(&s, step->src, &step->keys[k]));
    }
    make_levels(&s);
    TRY(arena_check(x->arena, x->err));
    i64 runs;
    TRY(sort_all(&s, step->src, &runs));
    if (runs) {
        x->metrics[step_no].how = arena_printf(exec_arena(x), "%lld sorted runs merged", runs);
    }
    return ERR_OK;
}

/* Either may lie in temporary space: no page of it is looked at. */
static void copy_ranks(const struct exec *x, void *to, const void *from, i64 bytes) {
    u8 piece[1 << 14];
    bool direct = !mem_in_temp(x->mem, to) || !mem_in_temp(x->mem, from);
    for (i64 at = 0; at < bytes;) {
        i64 n = direct ? bytes : MIN_OF(bytes - at, (i64)sizeof piece);
        const u8 *next = (const u8 *)from + at;
        if (!direct) {
            mem_copy(x->mem, piece, next, n);
            next = piece;
        }
        mem_copy(x->mem, (u8 *)to + at, next, n);
        at += n;
    }
}

static FALLIBLE fill_rank(struct exec *x, u32 var, const i32 *from, i64 len) {
    struct variable *v = &x->vars[var];
    variable_reset(v);
    v->lut_bytes = MAX_OF(len, 1) * (i64)sizeof(i32);
    v->lut = mem_alloc(x->mem, v->lut_bytes);
    if (!v->lut) {
        return memory_refused(x->mem, x->err, v->lut_bytes);
    }
    if (len) {
        copy_ranks(x, v->lut, from, (i64)len * (i64)sizeof(i32));
    }
    v->lut_len = len;
    v->rows = len;
    v->on_host = 1;
    return ERR_OK;
}

wf_status rank_run(struct exec *x, const struct step *step) {
    const i32 *rank = NULL;
    const i32 *code_at = NULL;
    struct dict *dict = x->dicts[step->dict];
    i32 len = dict ? x->dict_lens[step->dict] : 0;
    if (len > 0) {
        TRY(ranks_find(x, dict, len, &rank, &code_at));
    }
    TRY(fill_rank(x, step->dst, rank, len));
    return step->dst2 == NO_VAR ? ERR_OK : fill_rank(x, step->dst2, code_at, len);
}
