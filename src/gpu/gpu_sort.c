/* gpu_sort.c: STEP_SORT and STEP_RANK on the card.
 *
 * The keys of a row become 64-bit words, as few as the ranges of the data allow (ksort.h), which the
 * library's radix sort orders with the rows' numbers, the last word first; then all columns are
 * gathered once. Where only the first rows are wanted, those that may be among them are selected by
 * digits of their first word, and only they are sorted; few rows are sorted by one block. Ties keep
 * the order of the input, as on the CPU.
 *
 * Text takes part with a few pieces; where neighbours agree in all of those, but not in all of
 * their text, the sort is done again with more. Codes of an interner on the card are texts, too;
 * others are ordered by the ranks of their texts, which the host knows. Ranks of an interner's texts
 * are where its numbers come to be when sorted like such codes.
 *
 * Where the card has no room for all rows (TIGHT_SPILL), columns lie in memory of the host, and rows are
 * sorted in parts: by counts of digits of their first word those are found that the card can sort at
 * once, and each is selected, sorted and gathered behind the one before. Every part reads the first
 * words of all rows, in order.
 *
 * The variable's columns are replaced when everything has worked: a sort that fails leaves them.
 *
 * A sort that is queued (docs/decisions/0052) takes bounds of keys, pieces of texts and the words up to which the first
 * rows are to be found from the time before. Kernels say when they do not hold. How many rows there are the card
 * knows; words behind them are the greatest, so that they stay behind. The columns as they were are kept until all is
 * settled. */
#include "gpu/gpu_order.h"

#include "prim/order.h"

#include <stdlib.h>

enum {
    PIECES_FIRST = 4, /* of a text */
    PIECES_GROWTH = 4,
    PARTS_PER_KEY = 3,
    BOUND_BLOCKS = 264, /* per key; the host reads what each found */
    FEW_OF = 16,        /* a sort of fewer rows than an interner's entries over this ranks its own */
    PART_ROW_BYTES = 40,   /* words and numbers of a row, twice, and what the library needs */
    PARTS_MOST = 64,       /* of a sort; the host is quicker than more */
    WIDENED_MOST = 62,     /* bits of a key's range that is noted wider than it was */
    NOTE_HEAD = 2 + SORT_CUTS,
    NOTE_KEY = 5,
#ifdef WF_HARD
    PART_LEAST = 4 << 10, /* bytes */
    SELECT_LEAST = 40,
    FEW_ROWS = 32
#else
    PART_LEAST = 1 << 20,
    SELECT_LEAST = 1 << 14, /* rows from which a selection pays */
    FEW_ROWS = SORT_FEW
#endif
};

struct sorter {
    struct order_step o;
    struct exec *x;
    const struct step *step;
    struct gpu_var *gv;
    i64 n, want;
    u32 col_count; /* columns that are wanted */
    u32 key_count;
    struct ksort_part *keys; /* one per key, as measured */
    u32 *text_bytes;         /* of text: the longest, without what all begin with */
    i64 pieces;              /* of a text, at most */
    b8 cut;                  /* some text has more */
    b8 selecting;            /* the first rows are looked for */
    VEC(struct ksort_part) parts;
    VEC(struct ksort_level) levels;
    struct gpu_col *made; /* the columns in their order */
    struct ksort_col *moves; /* from where to where they are gathered */
    u32 move_count;
    u64 moves_addr;
    struct gpu_block *reserve; /* room that parts are sorted in, kept from all that comes before */
    i64 part_most;             /* rows that have it */
    b8 gathered;
    /* on the card */
    u64 parts_addr, levels_addr;
    i64 part_room;
    const u32 *selected; /* rows that take part, in any order; NULL = all */
    const u32 *order;    /* the same, as far as they are sorted; NULL = as they lie */
    i64 rows;            /* how many */
    /* what is known of them for the next time */
    b8 measured, has_cut;
    u32 cut_count;       /* of these words, the last one without the row's number: few rows come before */
    u64 cuts[SORT_CUTS];
    /* of a queue */
    i64 event_base;
    u32 step_no;
    b8 idle;       /* one row at most: nothing is done */
    u64 count_at;  /* of the variable before the sort; 0 = there are n */
    u64 rows_at;   /* how many `rows` there are; 0 = so many */
    u64 report;
    u64 keys_addr; /* with their bounds, which rows may not keep; 0 = they cannot but keep them */
    struct gpu_col *old;
};

/* --- keys --- */

struct ranked {
    struct sv text;
    i64 row;
};
static int by_text(const void *a, const void *b) {
    return sv_cmp(((const struct ranked *)a)->text, ((const struct ranked *)b)->text);
}

/* Of few rows among many entries of an interner: a column of the ranks that these texts have. */
static FALLIBLE rank_rows(struct sorter *s, const struct dict *dict, i64 len,
                          struct ksort_part *key) {
    struct exec *x = s->x;
    i64 bytes = s->n * 4;
    i32 *codes = NEW_ARRAY(x->arena, i32, s->n + 1);
    b8 *nulls = NEW_ARRAY(x->arena, b8, s->n + 1);
    struct ranked *list = NEW_ARRAY(x->arena, struct ranked, s->n + 1);
    TRY(arena_check(x->arena, x->err));
    TRY(order_receive(&s->o, codes, (u64)(size_t)key->data, bytes));
    if (key->nulls) {
        TRY(order_receive(&s->o, nulls, (u64)(size_t)key->nulls, s->n));
    }
    i64 count = 0;
    for (i64 i = 0; i < s->n; i++) {
        bool coded = !nulls[i] && codes[i] >= 0 && codes[i] < len;
        if (coded) {
            list[count++] = (struct ranked){dict_get(dict, codes[i]), i};
        }
    }
    qsort(list, (size_t)count, sizeof *list, by_text);
    i32 rank = 0;
    for (i64 i = 0; i < count; i++) {
        rank += i > 0 && sv_cmp(list[i - 1].text, list[i].text) != 0;
        codes[list[i].row] = rank;
    }
    u64 addr = 0;
    TRY(order_block(&s->o, bytes, &addr));
    TRY(order_send(&s->o, addr, codes, bytes));
    s->o.metric->bytes_moved += 2 * bytes;
    s->o.metric->bytes_fetched += bytes;
    key->data = DEV(const u8 *, addr);
    return ERR_OK;
}

/* An interner that the card has whole: its texts are read there. NULL: it is none, or elsewhere. */
static const struct gpu_var *interner_of(const struct sorter *s, u32 dict_no) {
    const struct dict_ref *ref = &s->x->program->dicts[dict_no];
    const struct gpu_var *gv = ref->table == NO_VAR ? s->x->vars[ref->values].copy : NULL;
    const struct gpu_card *card = s->o.g->card;
    bool whole = gv && gv->card == card && gv->epoch == card->epoch && gv->intern.entries &&
                 gv->intern_count >= s->x->dict_lens[dict_no];
    return whole ? gv : NULL;
}

/* Whether so few rows hold codes of an interner that the host ranks their texts alone. */
static bool ranks_rows(const struct sorter *s, u32 dict_no) {
    return s->x->program->dicts[dict_no].table == NO_VAR && s->n < s->x->dict_lens[dict_no] / FEW_OF;
}

/* Codes are ordered by their texts, or by the ranks of those. */
static FALLIBLE rank_key(struct sorter *s, u32 dict_no, struct ksort_part *key) {
    struct exec *x = s->x;
    const struct gpu_var *interner = interner_of(s, dict_no);
    if (interner) {
        key->value = SORT_STR;
        key->entries = interner->intern.entries;
        key->heap = interner->intern.heap;
        return ERR_OK;
    }
    struct dict *dict = x->dicts[dict_no];
    i32 len = x->dict_lens[dict_no];
    if (ranks_rows(s, dict_no)) {
        return rank_rows(s, dict, len, key);
    }
    const i32 *rank = NULL;
    const i32 *code_at = NULL;
    if (!dict_ranks(dict, len, &rank, &code_at)) {
        return memory_refused(x->mem, x->err, (i64)len * 8);
    }
    u64 addr = 0;
    TRY(order_block(&s->o, (i64)len * 4, &addr));
    TRY(order_send(&s->o, addr, rank, (i64)len * 4));
    s->o.metric->bytes_moved += (i64)len * 4;
    key->rank = DEV(const i32 *, addr);
    return ERR_OK;
}

static FALLIBLE open_key(struct sorter *s, const struct sort_key *from, struct ksort_part *key) {
    struct exec *x = s->x;
    const struct var *def = &x->program->vars[s->step->src];
    TRY(order_column(&s->o, s->step->src, from->col, key));
    key->descending = from->descending;
    key->nulls_first = from->nulls_first;
    u32 dict = def->dicts ? def->dicts[from->col] : 0;
    if (dict && key->value == SORT_I32 && x->dicts[dict - 1]) {
        return rank_key(s, dict - 1, key);
    }
    return ERR_OK;
}

static struct ksort sort_args(const struct sorter *s) {
    return (struct ksort){.parts = DEV(const struct ksort_part *, s->parts_addr),
                          .levels = DEV(const struct ksort_level *, s->levels_addr),
                          .part_count = (u32)s->parts.count,
                          .level_count = (u32)s->levels.count,
                          .rows = s->rows,
                          .order = s->order,
                          .texts = s->o.texts,
                          .rows_at = DEV(const i64 *, s->rows_at)};
}

/* The rows at hand have not been looked at: their keys may be out of bounds. */
static void check_keys(const struct sorter *s, struct ksort *args) {
    if (s->keys_addr) {
        args->keys = DEV(const struct ksort_part *, s->keys_addr);
        args->key_count = s->key_count;
        args->report = DEV(u64 *, s->report + 8 * REPORT_RETRY);
    }
}

static void set_bounds(struct ksort_part *key, u128 lo, u128 hi) {
    key->lo[0] = (u64)lo;
    key->lo[1] = (u64)(lo >> 64);
    key->hi[0] = (u64)hi;
    key->hi[1] = (u64)(hi >> 64);
}

static u128 pair(const u64 *words) {
    return (u128)words[1] << 64 | words[0];
}

static u32 bits_of(u128 range) {
    u32 bits = 0;
    while (bits < 128 && range >> bits) {
        bits++;
    }
    return bits;
}

/* The greatest number of the kind. */
static u128 most_of(u32 value) {
    switch (value) {
    case SORT_B8:
        return 1;
    case SORT_I32:
    case SORT_F32:
        return 0xffffffffu;
    case SORT_I64:
    case SORT_F64:
        return ~(u64)0;
    default:
        return ~(u128)0;
    }
}

/* So that they hold the next time, too, if there are somewhat other values then. */
static void set_wider(const struct sorter *s, struct ksort_part *key, u128 lo, u128 hi) {
    u128 slack = (hi - lo) / 2;
    u128 most = most_of(key->value);
    if (s->x->past && bits_of(hi - lo) <= WIDENED_MOST) {
        lo -= MIN_OF(slack, lo);
        hi += MIN_OF(slack, most - hi);
    }
    set_bounds(key, lo, hi);
}

/* The bounds of every key, of what each block found. */
static FALLIBLE measure(struct sorter *s) {
    u32 keys = s->key_count;
    i64 per_key = MIN_OF(order_blocks(&s->o, s->n), BOUND_BLOCKS);
    i64 bytes = per_key * keys * SORT_BOUND_WORDS * 8;
    u64 found_addr = 0;
    TRY(order_block(&s->o, bytes, &found_addr));
    TRY(order_send(&s->o, s->parts_addr, s->keys, keys * (i64)sizeof *s->keys));
    struct ksort args = sort_args(s);
    args.part_count = keys;
    args.rows = s->n;
    args.words = DEV(u64 *, found_addr);
    TRY(order_start(&s->o, KERNEL_SORT_BOUNDS, per_key * keys, SORT_THREADS, &args));
    u64 *found = NEW_ARRAY(s->x->arena, u64, bytes / 8);
    TRY(arena_check(s->x->arena, s->x->err));
    TRY(order_receive(&s->o, found, found_addr, bytes));
    for (u32 k = 0; k < keys; k++) {
        u128 lo = ~(u128)0;
        u128 hi = 0;
        for (i64 b = 0; b < per_key; b++) {
            const u64 *at = found + (b * keys + k) * SORT_BOUND_WORDS;
            lo = MIN_OF(lo, pair(at));
            hi = MAX_OF(hi, pair(at + 2));
        }
        lo = lo <= hi ? lo : hi; /* nothing but NULLs */
        if (s->keys[k].value == SORT_STR) {
            s->keys[k].skip = (u32)lo;
            s->text_bytes[k] = (u32)(hi - lo);
        } else {
            set_wider(s, &s->keys[k], lo, hi);
        }
    }
    s->measured = 1;
    return ERR_OK;
}

/* Those of the kind: few rows are sorted sooner than measured. */
static void assume(struct sorter *s) {
    for (u32 k = 0; k < s->key_count; k++) {
        set_bounds(&s->keys[k], 0, most_of(s->keys[k].value));
    }
}

static void add_part(struct sorter *s, struct ksort_part part, enum sort_form form, u32 bits) {
    part.form = form;
    part.bits = bits;
    if (bits) {
        VEC_PUSH(s->x->arena, &s->parts, part);
    }
}

static void add_pieces(struct sorter *s, struct ksort_part part, u32 bytes) {
    i64 all = MAX_OF((bytes + SORT_PIECE_BYTES - 1) / SORT_PIECE_BYTES, 1);
    i64 count = MIN_OF(all, s->pieces);
    for (i64 i = 0; i < count; i++) {
        u32 left = bytes - (u32)(i * SORT_PIECE_BYTES);
        part.bytes = MIN_OF(left, (u32)SORT_PIECE_BYTES);
        part.cut = i == count - 1 && count < all;
        s->cut |= (b8)part.cut;
        add_part(s, part, SORT_PIECE, 8 * part.bytes + SORT_LEN_BITS);
        part.skip += part.bytes;
    }
}

static void add_key(struct sorter *s, u32 k) {
    struct ksort_part part = s->keys[k];
    u128 range = pair(part.hi) - pair(part.lo);
    bool wraps = part.with_nulls && range == ~(u128)0;
    u32 bits = part.value == SORT_STR || wraps ? 129 : bits_of(range + part.with_nulls);
    if (bits <= 64) {
        part.null_number = part.nulls_first ? 0 : (u64)range + 1;
        add_part(s, part, SORT_WHOLE, bits);
        return;
    }
    if (part.with_nulls) {
        add_part(s, part, SORT_NULLS, 1);
        part.with_nulls = 0;
    }
    if (part.value == SORT_STR) {
        add_pieces(s, part, s->text_bytes[k]);
    } else if (bits_of(range) <= 64) {
        add_part(s, part, SORT_WHOLE, bits_of(range));
    } else {
        add_part(s, part, SORT_HIGH, 64);
        add_part(s, part, SORT_LOW, 64);
    }
}

/* Parts side by side in words; rows that were selected are out of order, so their numbers count.
 * While they are selected, nothing that comes behind a text tells rows apart before all of it does. */
static FALLIBLE make_parts(struct sorter *s) {
    s->parts.count = s->levels.count = 0;
    s->cut = 0;
    for (u32 k = 0; k < s->key_count && !(s->selecting && s->cut); k++) {
        add_key(s, k);
    }
    if (s->selected || !s->parts.count || (s->selecting && !s->cut)) {
        add_part(s, (struct ksort_part){0}, SORT_ROW, bits_of((u128)s->n));
    }
    u32 bits = 64;
    for (i64 p = 0; p < s->parts.count; p++) {
        bits += s->parts.items[p].bits;
        if (bits > 64) {
            struct ksort_level level = {(u32)p, 0};
            VEC_PUSH(s->x->arena, &s->levels, level);
            bits = s->parts.items[p].bits;
        }
        s->levels.items[s->levels.count - 1].count++;
    }
    TRY(arena_check(s->x->arena, s->x->err));
    i64 part_bytes = s->parts.count * (i64)sizeof(struct ksort_part);
    i64 bytes = part_bytes + s->levels.count * (i64)sizeof(struct ksort_level);
    if (bytes > s->part_room) {
        TRY(order_block(&s->o, 2 * bytes, &s->parts_addr));
        s->part_room = 2 * bytes;
    }
    s->levels_addr = s->parts_addr + (u64)part_bytes;
    TRY(order_send(&s->o, s->parts_addr, s->parts.items, part_bytes));
    return order_send(&s->o, s->levels_addr, s->levels.items, bytes - part_bytes);
}

static u32 level_bits(const struct sorter *s, i64 level) {
    const struct ksort_level *l = &s->levels.items[level];
    u32 bits = 0;
    for (u32 p = 0; p < l->count; p++) {
        bits += s->parts.items[l->first + p].bits;
    }
    return bits;
}

static FALLIBLE make_words(struct sorter *s, i64 level, u64 *words, u32 *out_rows) {
    struct ksort args = sort_args(s);
    args.levels += level;
    args.words = words;
    args.out_rows = out_rows;
    if (!s->selected && level == s->levels.count - 1) {
        check_keys(s, &args);
    }
    return order_start(&s->o, KERNEL_SORT_WORDS, order_blocks(&s->o, s->rows), SORT_THREADS, &args);
}

/* --- the first rows --- */

/* The digits of words[] down to `shift` up to which there are enough rows; how many, and how many
 * are below. */
struct row_bound {
    u64 top;
    u32 shift;
    i64 rows, below;
    i64 level, before; /* rows that lie before all of these */
};

/* So few that sorting them is no more work than telling them apart. */
static i64 few_enough(i64 want) {
    return MAX_OF(2 * want, (i64)FEW_ROWS);
}

/* Bits of a word that are the row's number, its lowest. */
static u32 row_bits(const struct sorter *s, i64 level) {
    const struct ksort_level *l = &s->levels.items[level];
    const struct ksort_part *last = &s->parts.items[l->first + l->count - 1];
    return last->form == SORT_ROW ? last->bits : 0;
}

/* Where the first rows end, with some to spare, as far as that is known without their numbers: by the word of this
 * level, for rows that agree in those before it. */
static void keep_cut(struct sorter *s, const struct row_bound *bound, const u64 *counts, u32 digit) {
    u64 d = bound->top & ((1ULL << digit) - 1);
    u64 top = bound->top;
    i64 rows = bound->before + bound->rows;
    i64 most = few_enough(s->want);
    s->has_cut = 0;
    if (bound->level >= SORT_CUTS) {
        return;
    }
    while (d + 1 < 1ULL << digit && rows + (i64)counts[d + 1] <= most / 2) {
        rows += (i64)counts[++d];
        top++;
    }
    u32 numbers = row_bits(s, bound->level);
    s->has_cut = rows <= most && bound->shift >= numbers;
    s->cuts[bound->level] = (top << bound->shift | ((1ULL << bound->shift) - 1)) >> numbers;
    s->cut_count = (u32)bound->level + 1;
}

static FALLIBLE find_bound(struct sorter *s, const u64 *words, struct row_bound *out) {
    enum { DIGITS = 1 << SORT_DIGIT_BITS };
    struct gpu *g = s->o.g;
    struct error *err = s->x->err;
    u64 *counts = NEW_ARRAY(s->x->arena, u64, DIGITS);
    TRY(arena_check(s->x->arena, err));
    u64 counts_addr = 0;
    TRY(order_block(&s->o, DIGITS * 8, &counts_addr));
    i64 want = s->want - out->before;
    out->shift = level_bits(s, out->level);
    out->top = 0;
    while (out->shift > 0 && out->rows > few_enough(want)) {
        u32 digit = MIN_OF(out->shift, (u32)SORT_DIGIT_BITS);
        out->shift -= digit;
        struct ksort_select args = {.words = words,
                                    .rows = s->rows,
                                    .bound = out->top,
                                    .shift = out->shift,
                                    .digit_bits = digit,
                                    .counts = DEV(u64 *, counts_addr)};
        CU(g->api->set_bytes(counts_addr, 0, DIGITS * 8, g->streams[0]));
        TRY(order_start(&s->o, KERNEL_SORT_COUNT, order_blocks(&s->o, s->rows), SORT_THREADS,
                        &args));
        TRY(order_receive(&s->o, counts, counts_addr, DIGITS * 8));
        u64 d = 0;
        while (d + 1 < 1ULL << digit && out->below + (i64)counts[d] < want) {
            out->below += (i64)counts[d++];
        }
        out->rows = out->below + (i64)counts[d];
        out->top = out->top << digit | d;
        keep_cut(s, out, counts, digit);
    }
    return ERR_OK;
}

/* Of the rows at hand those up to the bound; where they are too many, those below it go to the
 * `first` ones, of which there are *count, and the others are the rows at hand. */
static FALLIBLE take_rows(struct sorter *s, u64 words, const struct row_bound *bound, u64 first,
                          i64 *count) {
    struct gpu *g = s->o.g;
    struct error *err = s->x->err;
    u64 counts = 0;
    u64 rows = 0;
    bool last = bound->rows <= few_enough(s->want - *count);
    u64 behind = first + (u64)*count * 4;
    TRY(order_block(&s->o, 16, &counts));
    TRY(order_block(&s->o, (last ? 1 : bound->rows - bound->below) * 4, &rows));
    struct ksort_select args = {.words = DEV(const u64 *, words),
                                .rows = s->rows,
                                .bound = bound->top,
                                .shift = bound->shift,
                                .counts = DEV(u64 *, counts),
                                .order = s->order,
                                .out_rows = DEV(u32 *, last ? behind : rows),
                                .less = DEV(u32 *, last ? 0 : behind)};
    CU(g->api->set_bytes(counts, 0, 16, g->streams[0]));
    TRY(order_start(&s->o, KERNEL_SORT_TAKE, order_blocks(&s->o, s->rows), SORT_THREADS, &args));
    s->order = DEV(const u32 *, rows);
    s->rows = last ? 0 : bound->rows - bound->below;
    *count += last ? bound->rows : bound->below;
    return ERR_OK;
}

/* The rows that may be among the first, by one word of their keys after the other: rows that agree
 * in all words so far are told apart by the next one, texts that do by more pieces of them. */
static FALLIBLE select_rows(struct sorter *s) {
    u64 words = 0;
    u64 first = 0;
    i64 count = 0;
    i64 level = 0;
    TRY(order_block(&s->o, s->n * 8, &words));
    TRY(order_block(&s->o, (s->want + few_enough(s->want)) * 4, &first));
    while (s->rows > 0) {
        if (level == s->levels.count) { /* the last one tells all rows apart, but for this */
            ASSERT(s->cut);
            s->pieces *= PIECES_GROWTH;
            TRY(make_parts(s));
            level = 0;
        }
        struct row_bound bound = {.top = ~0ULL, .rows = s->rows, .level = level, .before = count};
        if (s->rows > few_enough(s->want - count)) {
            TRY(make_words(s, level, DEV(u64 *, words), NULL));
            TRY(find_bound(s, DEV(const u64 *, words), &bound));
            level++;
        }
        if (bound.rows < s->rows || bound.below > 0 || bound.top == ~0ULL) {
            TRY(take_rows(s, words, &bound, first, &count));
        }
    }
    s->selecting = 0;
    s->selected = s->order = DEV(const u32 *, first);
    s->rows = count;
    return make_parts(s);
}

/* --- sorting --- */

static FALLIBLE radix(struct sorter *s, u32 bits, const struct prim_array *keys,
                      const struct prim_array *rows) {
    struct prim_sort how = {.by = SORT_RADIX, .high_bit = (i32)ALIGN_UP(bits, 8)};
    struct prim_payload payload = {.count = 1, .out = {rows[1]}, .in = {rows[0]}};
    struct prim_job job = prim_job_inside(s->x, &s->o.g->device);
    TRY(prim_sort_array(&job, &how, keys[1], keys[0], &payload));
    TRY(order_work(&s->o, job.work_peak));
    prim_job_go(&job, DEV(void *, s->o.work));
    TRY(prim_sort_array(&job, &how, keys[1], keys[0], &payload));
    s->o.launches += job.launches;
    return ERR_OK;
}

static struct prim_array array_at(enum elem type, u64 addr, i64 count) {
    return (struct prim_array){.type = (u8)type, .data = DEV(void *, addr), .count = count};
}

static FALLIBLE sort_few(struct sorter *s) {
    u64 words = 0;
    u64 rows = 0;
    TRY(order_block(&s->o, s->rows * 8 * MAX_OF(s->levels.count, 1), &words));
    TRY(order_block(&s->o, s->rows * 4, &rows));
    struct ksort args = sort_args(s);
    args.words = DEV(u64 *, words);
    args.out_rows = DEV(u32 *, rows);
    if (!s->selected) {
        check_keys(s, &args);
    }
    u32 threads = 32;
    while (threads < SORT_FEW_THREADS && 2 * (i64)threads < s->rows) {
        threads *= 2;
    }
    TRY(order_start(&s->o, KERNEL_SORT_FEW, 1, threads, &args));
    s->order = DEV(const u32 *, rows);
    return ERR_OK;
}

/* The last word first; every pass keeps the order of those before. */
static FALLIBLE sort_many(struct sorter *s) {
    u64 words[2];
    u64 rows[2];
    for (i32 i = 0; i < 2; i++) {
        TRY(order_block(&s->o, s->rows * 8, &words[i]));
        TRY(order_block(&s->o, s->rows * 4, &rows[i]));
    }
    for (i64 level = s->levels.count; level-- > 0;) {
        struct prim_array keys[2] = {array_at(ELEM_U64, words[0], s->rows),
                                     array_at(ELEM_U64, words[1], s->rows)};
        struct prim_array order[2] = {array_at(ELEM_U32, rows[0], s->rows),
                                      array_at(ELEM_U32, rows[1], s->rows)};
        TRY(make_words(s, level, DEV(u64 *, words[0]), DEV(u32 *, rows[0])));
        TRY(radix(s, level_bits(s, level), keys, order));
        s->order = DEV(const u32 *, rows[1]);
        u64 sorted = rows[1];
        rows[1] = rows[0];
        rows[0] = sorted;
    }
    return ERR_OK;
}

/* Whether some neighbours need more of their text. */
static FALLIBLE is_settled(struct sorter *s, bool *out) {
    struct gpu *g = s->o.g;
    struct error *err = s->x->err;
    u64 report = 0;
    u64 found = 0;
    *out = true;
    if (!s->cut || s->rows < 2) {
        return ERR_OK;
    }
    TRY(order_block(&s->o, 8, &report));
    CU(g->api->set_bytes(report, 0, 8, g->streams[0]));
    struct ksort args = sort_args(s);
    args.report = DEV(u64 *, report);
    TRY(order_start(&s->o, KERNEL_SORT_UNSETTLED, order_blocks(&s->o, s->rows), SORT_THREADS, &args));
    TRY(order_receive(&s->o, &found, report, 8));
    *out = !found;
    return ERR_OK;
}

static FALLIBLE open_keys(struct sorter *s) {
    bool column = false; /* of text */
    for (u32 k = 0; k < s->key_count; k++) {
        TRY(open_key(s, &s->step->keys[k], &s->keys[k]));
        column = column || (s->keys[k].value == SORT_STR && !s->keys[k].entries);
    }
    return column ? order_texts(&s->o, s->gv) : ERR_OK;
}

/* The rows at hand in their order. */
static FALLIBLE sort_settled(struct sorter *s) {
    i64 kept = s->o.temps.count;
    bool settled = false;
    while (!settled) {
        s->order = s->selected;
        TRY(s->rows <= FEW_ROWS ? sort_few(s) : sort_many(s));
        TRY(is_settled(s, &settled));
        if (!settled) { /* the host has waited for all that was queued */
            order_drop(&s->o, kept);
            s->o.work_bytes = 0;
            s->pieces *= PIECES_GROWTH;
            TRY(make_parts(s));
            kept = s->o.temps.count;
        }
    }
    return ERR_OK;
}

/* --- rows in their order --- */

/* Room for the rows that are wanted. */
static FALLIBLE open_gather(struct sorter *s) {
    struct exec *x = s->x;
    const struct var *def = &x->program->vars[s->step->src];
    s->moves = NEW_ARRAY(x->arena, struct ksort_col, 2 * s->col_count + 1);
    TRY(arena_check(x->arena, x->err));
    for (u32 c = 0; c < s->col_count; c++) {
        const struct gpu_col *from = &s->gv->cols[c];
        struct gpu_col *to = &s->made[c];
        i64 width = kind_bytes[def->kinds[c]];
        TRY(gpu_alloc(s->o.g, MAX_OF(s->want * width, 1), &to->data, x->err));
        to->addr = to->data->addr;
        s->moves[s->move_count++] = (struct ksort_col){DEV(const u8 *, from->addr),
                                                       DEV(u8 *, to->addr), (u64)width};
        if (from->nulls_addr) {
            TRY(gpu_alloc(s->o.g, MAX_OF(s->want, 1), &to->nulls, x->err));
            to->nulls_addr = to->nulls->addr;
            s->moves[s->move_count++] = (struct ksort_col){DEV(const u8 *, from->nulls_addr),
                                                           DEV(u8 *, to->nulls_addr), 1};
        }
        s->o.metric->bytes_read += s->want * width;
        s->o.metric->bytes_written += s->want * width;
    }
    return order_block(&s->o, s->move_count * (i64)sizeof *s->moves, &s->moves_addr);
}

/* The first `rows` of the order, behind as many as were gathered before. */
static FALLIBLE gather(struct sorter *s, i64 rows) {
    if (rows == 0) {
        return ERR_OK;
    }
    TRY(order_send(&s->o, s->moves_addr, s->moves, s->move_count * (i64)sizeof *s->moves));
    struct ksort_gather args = {.cols = DEV(const struct ksort_col *, s->moves_addr),
                                .col_count = s->move_count,
                                .rows = rows,
                                .order = s->order,
                                .rows_at = DEV(const i64 *, s->rows_at)};
    TRY(order_start(&s->o, KERNEL_SORT_GATHER, order_blocks(&s->o, rows), SORT_THREADS, &args));
    for (u32 i = 0; i < s->move_count; i++) {
        s->moves[i].out += (u64)rows * s->moves[i].bytes;
    }
    return ERR_OK;
}

/* --- in parts --- */

struct sort_part {
    u64 lo, hi; /* of the first word */
    i64 rows;
};
struct dividing {
    const u64 *words;
    u64 counts_addr;
    VEC(struct sort_part) parts;
};

/* Keeps half of what the card has, which columns and rows in their order would take. Nothing is
 * sorted over the bus: where there is too little, the host does it. */
static FALLIBLE take_reserve(struct sorter *s) {
    struct gpu *g = s->o.g;
    i64 bytes = (gpu_heap_available(g->card) + gpu_cache_evictable(g)) / 2;
    while (!s->reserve && bytes >= PART_LEAST) {
        s->reserve = gpu_alloc_try(g, bytes);
        s->part_most = bytes / PART_ROW_BYTES;
        bytes /= 2;
    }
    return s->reserve ? ERR_OK : gpu_alloc_here(g, PART_LEAST, &s->reserve, s->x->err);
}

static void give_reserve(struct sorter *s) {
    gpu_heap_free(s->o.g->card, s->reserve);
    s->reserve = NULL;
}

/* The parts of rows whose first words begin with the bits `top`, of which `bits` follow: as many
 * neighbours together as can be sorted at once. */
static FALLIBLE divide(struct sorter *s, struct dividing *d, u64 top, u32 bits) {
    enum { DIGITS = 1 << SORT_DIGIT_BITS };
    struct gpu *g = s->o.g;
    struct error *err = s->x->err;
    u32 digit = MIN_OF(bits, (u32)SORT_DIGIT_BITS);
    u32 shift = bits - digit;
    u64 *counts = NEW_ARRAY(s->x->arena, u64, DIGITS);
    TRY(arena_check(s->x->arena, err));
    struct ksort_select args = {.words = d->words,
                                .rows = s->n,
                                .bound = top,
                                .shift = shift,
                                .digit_bits = digit,
                                .counts = DEV(u64 *, d->counts_addr)};
    CU(g->api->set_bytes(d->counts_addr, 0, DIGITS * 8, g->streams[0]));
    TRY(order_start(&s->o, KERNEL_SORT_COUNT, order_blocks(&s->o, s->n), SORT_THREADS, &args));
    TRY(order_receive(&s->o, counts, d->counts_addr, DIGITS * 8));
    for (u64 at = 0; at < 1ULL << digit; at++) {
        u64 lo = (top << digit | at) << shift;
        struct sort_part part = {lo, lo | ((1ULL << shift) - 1), (i64)counts[at]};
        struct sort_part *last = d->parts.count ? &d->parts.items[d->parts.count - 1] : NULL;
        if (part.rows > s->part_most && shift > 0) {
            TRY(divide(s, d, top << digit | at, shift));
        } else if (last && last->rows + part.rows <= s->part_most) {
            last->hi = part.hi;
            last->rows += part.rows;
        } else if (part.rows > 0) {
            VEC_PUSH(s->x->arena, &d->parts, part);
        }
    }
    return arena_check(s->x->arena, err);
}

static FALLIBLE take_part(struct sorter *s, const u64 *words, const struct sort_part *part) {
    struct gpu *g = s->o.g;
    struct error *err = s->x->err;
    u64 counts = 0;
    u64 rows = 0;
    TRY(order_block(&s->o, 16, &counts));
    TRY(order_block(&s->o, part->rows * 4, &rows));
    struct ksort_select args = {.words = words,
                                .rows = s->n,
                                .bound = part->hi,
                                .least = part->lo,
                                .counts = DEV(u64 *, counts),
                                .out_rows = DEV(u32 *, rows)};
    CU(g->api->set_bytes(counts, 0, 16, g->streams[0]));
    TRY(order_start(&s->o, KERNEL_SORT_TAKE, order_blocks(&s->o, s->n), SORT_THREADS, &args));
    s->selected = DEV(const u32 *, rows);
    s->rows = part->rows;
    s->part_room = 0; /* what it makes goes with it */
    return make_parts(s);
}

static FALLIBLE sort_in_parts(struct sorter *s) {
    struct gpu *g = s->o.g;
    struct error *err = s->x->err;
    struct dividing d = {0};
    u64 words = 0;
    i64 done = 0;
    TRY(order_block(&s->o, s->n * 8, &words));
    TRY(order_block(&s->o, (1 << SORT_DIGIT_BITS) * 8, &d.counts_addr));
    d.words = DEV(const u64 *, words);
    TRY(make_words(s, 0, DEV(u64 *, words), NULL));
    TRY(divide(s, &d, 0, level_bits(s, 0)));
    if (d.parts.count > PARTS_MOST) {
        FAIL(err, DEVICE_MEMORY, "out of GPU memory: a sort of %lld rows in %lld parts", s->n,
             d.parts.count);
    }
    TRY(open_gather(s));
    give_reserve(s);
    for (i64 p = 0; p < d.parts.count && done < s->want; p++) {
        i64 kept = s->o.temps.count;
        i64 rows = MIN_OF(d.parts.items[p].rows, s->want - done);
        TRY(take_part(s, d.words, &d.parts.items[p]));
        TRY(sort_settled(s));
        TRY(gather(s, rows));
        CU(gpu_sync(g, g->streams[0])); /* the next part takes its place */
        order_drop(&s->o, kept);
        s->o.work_bytes = 0;
        done += rows;
    }
    s->gathered = 1;
    s->o.metric->how = arena_printf(exec_arena(s->x), "in %lld parts", d.parts.count);
    return ERR_OK;
}

/* Few numbers are ordered whatever they are. */
static bool needs_bounds(const struct sorter *s) {
    bool needs = s->n > FEW_ROWS;
    for (u32 k = 0; k < s->key_count; k++) {
        needs = needs || s->keys[k].value == SORT_STR;
    }
    return needs;
}

static FALLIBLE part_block(struct sorter *s) {
    s->part_room = s->key_count * PARTS_PER_KEY * (i64)sizeof(struct ksort_part);
    return order_block(&s->o, s->part_room, &s->parts_addr);
}

/* Whether the first rows are few enough to be looked for before anything is sorted. */
static bool may_select(const struct sorter *s) {
    return s->n >= SELECT_LEAST && s->want < s->n / 4;
}

/* By keys that have been opened. */
static FALLIBLE sort_keys(struct sorter *s) {
    TRY(part_block(s));
    if (needs_bounds(s)) {
        TRY(measure(s));
    } else {
        assume(s);
    }
    bool many = s->reserve && s->want > s->part_most;
    s->selecting = may_select(s) && !many;
    bool parted = s->reserve && s->n > s->part_most && !s->selecting;
    TRY(make_parts(s));
    if (parted) {
        return sort_in_parts(s);
    }
    if (s->selecting) {
        TRY(select_rows(s));
    }
    give_reserve(s);
    return sort_settled(s);
}

/* Columns that nobody wants any more have no address. */
static void replace(struct sorter *s) {
    struct variable *v = &s->x->vars[s->step->src];
    gpu_var_replace(s->o.g->card, v, s->gv, s->made);
    v->rows = s->gv->rows = s->want;
}

static FALLIBLE sort_all(struct sorter *s) {
    struct gpu *g = s->o.g;
    struct exec *x = s->x;
    struct error *err = x->err;
    void *first = NULL;
    void *last = NULL;
    float ms = 0;
    TRY(gpu_event(g, 0, &first, err));
    TRY(gpu_event(g, 1, &last, err));
    if (g->tight >= TIGHT_SPILL) {
        TRY(take_reserve(s));
    }
    for (u32 c = 0; c < s->col_count; c++) {
        struct kcol col;
        TRY(gpu_var_col(g, x, s->step->src, c, &col, &s->o.metric->bytes_moved));
    }
    s->gv = x->vars[s->step->src].copy;
    CU(g->api->event_record(first, g->streams[0]));
    if (s->want > 0) {
        TRY(open_keys(s));
        TRY(sort_keys(s));
    }
    if (!s->gathered) {
        TRY(open_gather(s));
        TRY(gather(s, s->want));
    }
    CU(g->api->event_record(last, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    CU(g->api->event_elapsed(&ms, first, last));
    s->o.metric->device_ns += (i64)((f64)ms * 1e6);
    return ERR_OK;
}

static void sorter_init(struct gpu *g, struct exec *x, u32 step_no, const struct step *step, struct sorter *out) {
    const struct var *def = &x->program->vars[step->src];
    *out = (struct sorter){.o = {.g = g, .x = x, .metric = &x->metrics[step_no]},
                           .x = x,
                           .step = step,
                           .step_no = step_no,
                           .n = x->vars[step->src].rows,
                           .key_count = step->key_count,
                           .pieces = PIECES_FIRST};
    out->rows = out->n;
    out->want = step->limit >= 0 && step->limit_lit == NO_LIT ? MIN_OF(step->limit, out->n) : out->n;
    out->col_count = step->col_count ? step->col_count : def->col_count;
    out->made = NEW_ARRAY(x->arena, struct gpu_col, def->col_count + 1);
    out->keys = NEW_ARRAY(x->arena, struct ksort_part, step->key_count + 1);
    out->text_bytes = NEW_ARRAY(x->arena, u32, step->key_count + 1);
    out->o.metric->device = "gpu";
}

static void free_made(struct sorter *s) {
    for (u32 c = 0; c < s->col_count; c++) {
        gpu_heap_free(s->o.g->card, s->made[c].data);
        gpu_heap_free(s->o.g->card, s->made[c].nulls);
    }
}

/* What a sort of the same rows need not find out again. */
static void leave_note(const struct sorter *s) {
    u64 words[NOTE_WORDS] = {s->has_cut ? s->cut_count : 0, (u64)s->pieces};
    memcpy(words + 2, s->cuts, sizeof s->cuts);
    u32 count = NOTE_HEAD + NOTE_KEY * s->key_count;
    if (!s->measured || count > NOTE_WORDS) {
        return;
    }
    for (u32 k = 0; k < s->key_count; k++) {
        u64 *at = words + NOTE_HEAD + NOTE_KEY * k;
        const struct ksort_part *key = &s->keys[k];
        at[0] = key->value;
        if (key->value == SORT_STR) {
            at[1] = key->skip;
            at[2] = s->text_bytes[k];
        } else {
            memcpy(at + 1, key->lo, sizeof key->lo);
            memcpy(at + 3, key->hi, sizeof key->hi);
        }
    }
    exec_remember(s->x, s->step_no, words, count);
}

wf_status gpu_run_sort(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    struct sorter s;
    sorter_init(g, x, step_no, step, &s);
    s.o.metric->rows_in += s.n;
    if (s.n <= 1 || step->key_count == 0) {
        s.o.metric->rows_out += s.n;
        return ERR_OK;
    }
    wf_status status = arena_check(x->arena, x->err);
    status = status ? status : sort_all(&s);
    if (status) { /* nothing may still be writing what is freed below */
        gpu_wait(g);
        free_made(&s);
    } else {
        replace(&s);
        leave_note(&s);
        s.o.metric->rows_out += s.want;
    }
    give_reserve(&s);
    order_drop(&s.o, 0);
    s.o.metric->launches += s.o.launches;
    return status;
}

/* --- of a queue --- */

/* Whether its rows are on the card, and all else goes there without waiting. */
static bool may_queue(const struct sorter *s) {
    const struct exec *x = s->x;
    const struct variable *v = &x->vars[s->step->src];
    const struct var *def = &x->program->vars[s->step->src];
    const struct gpu_var *gv = v->copy;
    if (!gv || v->on_host || gv->card != s->o.g->card || gv->epoch != gv->card->epoch || gv->parts.count ||
        !s->key_count || s->want < 1 || NOTE_HEAD + NOTE_KEY * s->key_count > NOTE_WORDS) {
        return false;
    }
    i64 bytes = ORDER_SEND_BYTES / 2 + gv->texts.count * (i64)sizeof(struct ktext);
    for (u32 k = 0; k < s->key_count; k++) {
        u32 col = s->step->keys[k].col;
        u32 dict = def->dicts && def->kinds[col] == KIND_I32 ? def->dicts[col] : 0;
        if (dict && x->dicts[dict - 1] && !interner_of(s, dict - 1)) {
            if (ranks_rows(s, dict - 1)) {
                return false;
            }
            bytes += (i64)x->dict_lens[dict - 1] * 4;
        }
    }
    return bytes <= ORDER_SEND_BYTES;
}

/* False: nothing is noted of keys like these. */
static bool take_note(struct sorter *s) {
    u64 words[NOTE_WORDS];
    bool fits = exec_recall(s->x, s->step_no, words) == NOTE_HEAD + NOTE_KEY * s->key_count;
    for (u32 k = 0; fits && k < s->key_count; k++) {
        const u64 *at = words + NOTE_HEAD + NOTE_KEY * k;
        struct ksort_part *key = &s->keys[k];
        fits = at[0] == key->value;
        if (key->value == SORT_STR) {
            key->skip = (u32)at[1];
            key->bytes = s->text_bytes[k] = (u32)at[2];
        } else {
            memcpy(key->lo, at + 1, sizeof key->lo);
            memcpy(key->hi, at + 3, sizeof key->hi);
            fits = fits && pair(key->lo) <= pair(key->hi);
        }
    }
    if (fits) {
        s->has_cut = words[0] != 0;
        s->pieces = (i64)words[1];
        s->cut_count = (u32)words[0];
        memcpy(s->cuts, words + 2, sizeof s->cuts);
    }
    return fits;
}

static FALLIBLE send_keys(struct sorter *s) {
    i64 bytes = s->key_count * (i64)sizeof *s->keys;
    TRY(order_block(&s->o, bytes, &s->keys_addr));
    return order_send(&s->o, s->keys_addr, s->keys, bytes);
}

/* The rows up to the word that had enough of them the time before. */
static FALLIBLE take_first(struct sorter *s) {
    struct gpu *g = s->o.g;
    struct error *err = s->x->err;
    i64 room = few_enough(s->want);
    u64 count = 0;
    u64 first = 0;
    TRY(order_block(&s->o, 8, &count));
    TRY(order_block(&s->o, room * 4, &first));
    CU(g->api->set_bytes(count, 0, 8, g->streams[0]));
    struct ksort args = sort_args(s);
    check_keys(s, &args);
    args.out_rows = DEV(u32 *, first);
    args.count = DEV(u64 *, count);
    args.cut_count = s->cut_count;
    args.cut_shift = row_bits(s, s->cut_count - 1);
    memcpy(args.cuts, s->cuts, sizeof s->cuts);
    args.room = room;
    args.want = s->want;
    TRY(order_start(&s->o, KERNEL_SORT_FIRST, order_blocks(&s->o, s->n), SORT_THREADS, &args));
    TRY(order_start(&s->o, KERNEL_SORT_ENOUGH, 1, 32, &args));
    s->selecting = 0;
    s->selected = DEV(const u32 *, first);
    s->rows = room;
    s->rows_at = count;
    return make_parts(s);
}

static FALLIBLE queue_unsettled(struct sorter *s) {
    struct ksort args = sort_args(s);
    args.report = DEV(u64 *, s->report + 8 * REPORT_RETRY);
    return s->cut ? order_start(&s->o, KERNEL_SORT_UNSETTLED, order_blocks(&s->o, s->rows), SORT_THREADS, &args)
                  : ERR_OK;
}

/* All kernels. *out = false: something has to be found out first. */
static FALLIBLE queue_all(struct sorter *s, bool *out) {
    struct gpu *g = s->o.g;
    struct error *err = s->x->err;
    void *first = NULL;
    void *last = NULL;
    *out = false;
    TRY(gpu_event(g, s->event_base, &first, err));
    TRY(gpu_event(g, s->event_base + 1, &last, err));
    CU(g->api->event_record(first, g->streams[0]));
    TRY(open_keys(s));
    bool bounds = needs_bounds(s);
    if ((bounds && !take_note(s)) || (may_select(s) && !s->has_cut)) {
        return ERR_OK;
    }
    TRY(order_block(&s->o, REPORT_WORDS * 8, &s->report));
    CU(g->api->set_bytes(s->report, 0, REPORT_WORDS * 8, g->streams[0]));
    TRY(part_block(s));
    if (bounds) {
        TRY(send_keys(s));
    } else {
        assume(s);
    }
    s->selecting = may_select(s);
    TRY(make_parts(s));
    if (s->selecting && s->cut_count > s->levels.count) {
        return ERR_OK;
    }
    if (s->selecting) {
        TRY(take_first(s));
    }
    s->order = s->selected;
    TRY(s->rows <= FEW_ROWS ? sort_few(s) : sort_many(s));
    TRY(queue_unsettled(s));
    TRY(open_gather(s));
    TRY(gather(s, s->want));
    CU(g->api->event_record(last, g->streams[0]));
    *out = true;
    return ERR_OK;
}

/* Until it is settled, nobody knows which are needed. */
static void exchange(struct sorter *s) {
    struct variable *v = &s->x->vars[s->step->src];
    struct gpu_var *gv = s->gv;
    s->old = NEW_ARRAY(s->x->arena, struct gpu_col, gv->col_count + 1);
    for (u32 c = 0; s->old && c < gv->col_count; c++) {
        s->old[c] = gv->cols[c];
        gv->cols[c] = s->made[c];
    }
    v->rows = gv->rows = s->want;
}

wf_status gpu_sort_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step, struct sorter **out) {
    struct sorter *s = NEW(x->arena, struct sorter);
    bool done = false;
    *out = NULL;
    TRY(arena_check(x->arena, x->err));
    sorter_init(g, x, step_no, step, s);
    TRY(arena_check(x->arena, x->err));
    if (!may_queue(s)) {
        return ERR_OK;
    }
    s->o.queued = 1;
    s->idle = s->n <= 1;
    s->event_base = g->queue.event_count;
    s->gv = x->vars[step->src].copy;
    s->count_at = s->rows_at = s->gv->count_at;
    wf_status status = s->idle ? ERR_OK : queue_all(s, &done);
    if (status || (!s->idle && !done)) {
        gpu_sort_close(s, status ? status : ERR_NOT_SUPPORTED);
        return status;
    }
    if (!s->idle) {
        exchange(s);
    }
    *out = s;
    return arena_check(x->arena, x->err);
}

struct krelay gpu_sort_relay(const struct sorter *s) {
    return s->idle ? (struct krelay){0}
                   : (struct krelay){.report = DEV(const u64 *, s->report),
                                     .rows = DEV(const u64 *, s->count_at),
                                     .known = (u64)s->n,
                                     .most = (u64)s->want,
                                     .limit = (u64)s->want,
                                     .retry = ~0ULL};
}

wf_status gpu_sort_settle(struct sorter *s, i64 rows) {
    struct gpu *g = s->o.g;
    struct error *err = s->x->err;
    struct variable *v = &s->x->vars[s->step->src];
    float ms = 0;
    s->o.metric->rows_in += s->count_at ? v->rows : s->n;
    if (!s->idle) {
        CU(g->api->event_elapsed(&ms, g->events[s->event_base], g->events[s->event_base + 1]));
        s->o.metric->device_ns += (i64)((f64)ms * 1e6);
        v->rows = s->gv->rows = rows;
        s->gv->count_at = 0;
    }
    s->o.metric->rows_out += v->rows;
    return ERR_OK;
}

/* The rows as they were, or the room that they took. */
void gpu_sort_close(struct sorter *s, wf_status status) {
    struct gpu_card *card = s->o.g->card;
    if (status) { /* nothing may still be writing what is freed below */
        gpu_wait(s->o.g);
    }
    if (status && !s->old) {
        free_made(s);
    }
    for (u32 c = 0; s->old && c < s->gv->col_count; c++) {
        struct gpu_col *mine = &s->gv->cols[c];
        struct gpu_col *other = &s->old[c];
        if (status) { /* also what was added to them since */
            struct gpu_col made = *mine;
            *mine = *other;
            *other = made;
        }
        gpu_heap_free(card, other->data);
        gpu_heap_free(card, other->nulls);
    }
    if (status && s->old) {
        s->gv->rows = s->x->vars[s->step->src].rows = s->n;
        s->gv->count_at = s->count_at;
    }
    order_drop(&s->o, 0);
    s->o.metric->launches += s->o.launches;
}

/* --- ranks --- */

static FALLIBLE number(struct sorter *s, const u32 *order, u64 out) {
    struct ksort_number args = {order, DEV(u32 *, out), s->n};
    return s->n ? order_start(&s->o, KERNEL_SORT_NUMBER, order_blocks(&s->o, s->n), SORT_THREADS, &args)
                : ERR_OK;
}

/* A table of `s->n` numbers on the card, which nobody but kernels has. */
static FALLIBLE new_table(struct sorter *s, u32 var, u64 *out) {
    struct gpu *g = s->o.g;
    struct variable *v = &s->x->vars[var];
    struct gpu_var *gv = NULL;
    variable_reset(v);
    TRY(gpu_var_new(g, s->x, var, 0, &gv));
    TRY(gpu_alloc(g, MAX_OF(s->n, 1) * 4, &gv->lut, s->x->err));
    v->rows = v->lut_len = gv->rows = s->n;
    *out = gv->lut->addr;
    return ERR_OK;
}

static FALLIBLE rank_all(void *arg) {
    struct sorter *s = arg;
    struct gpu *g = s->o.g;
    struct error *err = s->x->err;
    u64 ranks = 0;
    u64 codes = 0;
    u64 numbers = 0;
    TRY(order_block(&s->o, s->n * 4, &numbers));
    TRY(number(s, NULL, numbers));
    s->keys[0] = (struct ksort_part){.data = DEV(const u8 *, numbers),
                                     .entries = s->gv->intern.entries,
                                     .heap = s->gv->intern.heap,
                                     .value = SORT_STR};
    s->order = DEV(const u32 *, numbers);
    if (s->n > 1) {
        s->order = NULL;
        TRY(sort_keys(s));
    }
    TRY(new_table(s, s->step->dst, &ranks));
    TRY(number(s, s->order, ranks));
    if (s->step->dst2 != NO_VAR) {
        TRY(new_table(s, s->step->dst2, &codes));
        u64 order = (u64)(size_t)s->order;
        CU(s->n ? g->api->copy_device(codes, order, (size_t)s->n * 4, g->streams[0]) : 0);
    }
    return ERR_OK;
}

wf_status gpu_run_rank(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    u32 var = program_interner(x->program, step->dict);
    struct step_metric *metric = &x->metrics[step_no];
    struct kintern opened;
    TRY(gpu_intern_open(g, x, var, true, (struct intern_size){0}, &opened, &metric->bytes_moved));
    struct gpu_var *gv = x->vars[var].copy;
    struct ksort_part key;
    u32 text_bytes = 0;
    struct sorter s = {.o = {.g = g, .x = x, .metric = metric},
                       .x = x,
                       .step = step,
                       .gv = gv,
                       .n = gv->intern_count,
                       .want = gv->intern_count,
                       .rows = gv->intern_count,
                       .key_count = 1,
                       .keys = &key,
                       .text_bytes = &text_bytes,
                       .pieces = PIECES_FIRST};
    wf_status status = order_timed(&s.o, rank_all, &s);
    order_end(&s.o, status);
    metric->rows_in += s.n;
    metric->rows_out += s.n;
    metric->bytes_read += gv->intern_bytes + s.n * INTERN_WORDS * 8;
    metric->bytes_written += s.n * 8;
    return status;
}
