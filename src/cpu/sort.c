/* sort.c: sorts a variable, and ranks a dictionary.
 *
 * Every key column becomes one or two arrays of 64-bit numbers that order like the column (NULLs as
 * a number of their own in front, descending keys complemented). Numbers that together need at most
 * 64 bits, by their actual ranges, are packed into one and sorted by radix with the row number
 * alongside; a small LIMIT keeps a heap instead. Otherwise a merge sort compares number by number,
 * and text beyond its first eight bytes byte by byte. Both are stable, so ties keep the order of
 * the input. */
#include "cpu/cpu_int.h"

enum { PARTS_MAX = 3, RADIX_BITS = 8, RADIX_MIN = 256, HEAP_SHARE = 16, ROWS_PER_CHECK = 1 << 16 };

struct part { /* one array of numbers */
    u64 *value;
    const str *text; /* compare these where the numbers are equal */
    b8 descending;
};

struct entry {
    u64 key;
    u64 row;
};

struct sort {
    struct exec *x;
    const struct chunk *chunk;
    i64 n;
    u32 part_count;
    struct part *parts;
};

static u64 *part_new(struct sort *s) {
    u64 *value = mem_alloc(s->x->mem, MAX_OF(s->n, 1) * (i64)sizeof(u64));
    if (value) {
        s->parts[s->part_count++] = (struct part){.value = value};
    }
    return value;
}

static u64 order_f64(f64 x) {
    u64 bits = 0;
    x = x == 0 ? 0 : x;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) {
        return ~0ULL; /* NaN is greatest */
    }
    return bits >> 63 ? ~bits : bits | 1ULL << 63;
}

static u64 text_prefix(str s) {
    u64 prefix = 0;
    const u8 *bytes = (const u8 *)(size_t)s.addr;
    for (u32 i = 0; i < 8; i++) {
        prefix = prefix << 8 | (i < s.len ? bytes[i] : 0u);
    }
    return prefix;
}

/* The number that orders like row i of the column; of an i128 its high half. */
static u64 order_of(const struct column *col, const i32 *rank, i64 i) {
    const u64 sign = 1ULL << 63;
    switch (col->kind) {
    case KIND_B8:
        return ((const b8 *)col->data)[i];
    case KIND_I32: {
        i32 v = ((const i32 *)col->data)[i];
        return (u64)(i64)(rank ? rank[v] : v) ^ sign;
    }
    case KIND_I64:
        return (u64)((const i64 *)col->data)[i] ^ sign;
    case KIND_I128:
        return (u64)((u128)((const i128 *)col->data)[i] >> 64) ^ sign;
    case KIND_F32:
        return order_f64((f64)((const f32 *)col->data)[i]);
    case KIND_F64:
        return order_f64(((const f64 *)col->data)[i]);
    default:
        return text_prefix(((const str *)col->data)[i]);
    }
}

static bool add_null_part(struct sort *s, const struct column *col, const struct sort_key *key) {
    u64 *value = part_new(s);
    for (i64 i = 0; value && i < s->n; i++) {
        value[i] = col->nulls[i] ? !key->nulls_first : key->nulls_first;
    }
    return value != NULL;
}

static bool add_value_part(struct sort *s, const struct column *col, const struct sort_key *key,
                           const i32 *rank, bool low) {
    u64 *value = part_new(s);
    if (!value) {
        return false;
    }
    u64 flip = key->descending ? ~0ULL : 0;
    for (i64 i = 0; i < s->n; i++) {
        bool is_null = col->nulls && col->nulls[i];
        u64 v = is_null ? 0 : low ? (u64)((const i128 *)col->data)[i] : order_of(col, rank, i);
        value[i] = is_null ? 0 : v ^ flip;
    }
    return true;
}

static FALLIBLE add_key(struct sort *s, u32 var, const struct sort_key *key) {
    struct exec *x = s->x;
    const struct column *col = &s->chunk->cols[key->col];
    const struct var *def = &x->program->vars[var];
    const i32 *rank = NULL;
    const i32 *code_at = NULL;
    u32 dict = def->dicts ? def->dicts[key->col] : 0;
    bool fine = true;
    if (dict && col->kind == KIND_I32 && x->dicts[dict - 1]) {
        fine = dict_ranks(x->dicts[dict - 1], x->dict_lens[dict - 1], &rank, &code_at);
    }
    fine = fine && (!col->nulls || add_null_part(s, col, key));
    fine = fine && add_value_part(s, col, key, rank, false);
    if (fine && col->kind == KIND_I128) {
        fine = add_value_part(s, col, key, NULL, true);
    }
    if (fine && col->kind == KIND_STR) {
        s->parts[s->part_count - 1].text = col->data;
        s->parts[s->part_count - 1].descending = key->descending;
    }
    return fine ? ERR_OK : memory_refused(x->mem, x->err, s->n * (i64)sizeof(u64));
}

static i32 bits_needed(u64 range) {
    return range ? 64 - __builtin_clzll(range) : 0;
}

/* Packs all parts into entries[].key when they fit 64 bits. */
static bool pack(struct sort *s, struct entry *entries, i32 *out_bits) {
    i32 bits = 0;
    for (u32 p = 0; p < s->part_count; p++) {
        u64 lo = ~0ULL;
        u64 hi = 0;
        for (i64 i = 0; i < s->n; i++) {
            lo = MIN_OF(lo, s->parts[p].value[i]);
            hi = MAX_OF(hi, s->parts[p].value[i]);
        }
        i32 more = bits_needed(hi - lo);
        if (s->parts[p].text || bits + more > 64) {
            return false;
        }
        for (i64 i = 0; i < s->n; i++) {
            u64 before = more == 64 || p == 0 ? 0 : entries[i].key << more;
            entries[i].key = before | (s->parts[p].value[i] - lo);
        }
        bits += more;
    }
    *out_bits = bits;
    return true;
}

static int text_cmp(str a, str b) {
    return sv_cmp(sv_of(a), sv_of(b));
}

static bool before(const struct sort *s, const struct entry *a, const struct entry *b) {
    if (a->key != b->key) {
        return a->key < b->key;
    }
    for (u32 p = 0; s && p < s->part_count; p++) {
        const struct part *part = &s->parts[p];
        if (part->value[a->row] != part->value[b->row]) {
            return part->value[a->row] < part->value[b->row];
        }
        int cmp = part->text ? text_cmp(part->text[a->row], part->text[b->row]) : 0;
        if (cmp) {
            return part->descending ? cmp > 0 : cmp < 0;
        }
    }
    return false;
}

static FALLIBLE merge_runs(const struct sort *s, struct exec *x, const struct entry *from,
                           struct entry *to, i64 n, i64 width) {
    for (i64 lo = 0; lo < n; lo += 2 * width) {
        i64 mid = MIN_OF(lo + width, n);
        i64 hi = MIN_OF(lo + 2 * width, n);
        i64 a = lo;
        i64 b = mid;
        for (i64 i = lo; i < hi; i++) {
            bool take_b = b < hi && (a >= mid || before(s, &from[b], &from[a]));
            to[i] = from[take_b ? b++ : a++];
            if (i % ROWS_PER_CHECK == 0) {
                TRY(exec_check(x));
            }
        }
    }
    return ERR_OK;
}

/* Stable; the result is in *data, which may be either array. */
static FALLIBLE merge_sort(const struct sort *s, struct exec *x, struct entry **data,
                           struct entry **other, i64 n) {
    for (i64 width = 1; width < n; width *= 2) {
        TRY(merge_runs(s, x, *data, *other, n, width));
        struct entry *swap = *data;
        *data = *other;
        *other = swap;
    }
    return ERR_OK;
}

static FALLIBLE radix_sort(struct exec *x, struct entry **data, struct entry **other, i64 n,
                           i32 bits) {
    for (i32 shift = 0; shift < bits; shift += RADIX_BITS) {
        TRY(exec_check(x));
        i64 at[1 << RADIX_BITS] = {0};
        const struct entry *from = *data;
        for (i64 i = 0; i < n; i++) {
            at[from[i].key >> shift & 0xff]++;
        }
        i64 sum = 0;
        for (i32 d = 0; d < 1 << RADIX_BITS; d++) {
            i64 count = at[d];
            at[d] = sum;
            sum += count;
        }
        for (i64 i = 0; i < n; i++) {
            (*other)[at[from[i].key >> shift & 0xff]++] = from[i];
        }
        struct entry *swap = *data;
        *data = *other;
        *other = swap;
    }
    return ERR_OK;
}

/* Greater in the order (key, row): what a heap of the least keeps on top. */
static bool greater(const struct entry *a, const struct entry *b) {
    return a->key != b->key ? a->key > b->key : a->row > b->row;
}

static void sift_down(struct entry *heap, i64 n, i64 at) {
    for (;;) {
        i64 big = at;
        for (i64 child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++) {
            big = greater(&heap[child], &heap[big]) ? child : big;
        }
        if (big == at) {
            return;
        }
        struct entry swap = heap[at];
        heap[at] = heap[big];
        heap[big] = swap;
        at = big;
    }
}

/* Moves the `want` least entries to the front, in any order. */
static void keep_least(struct entry *data, i64 n, i64 want) {
    for (i64 i = want / 2 - 1; i >= 0; i--) {
        sift_down(data, want, i);
    }
    for (i64 i = want; i < n; i++) {
        if (greater(&data[0], &data[i])) {
            data[0] = data[i];
            sift_down(data, want, 0);
        }
    }
    /* Radix and merge sort are stable by position: rows must ascend among equal keys again. */
    for (i64 end = want - 1; end > 0; end--) {
        struct entry swap = data[0];
        data[0] = data[end];
        data[end] = swap;
        sift_down(data, end, 0);
    }
}

static FALLIBLE sort_entries(struct sort *s, struct entry **data, struct entry **other, i64 want) {
    i32 bits = 0;
    for (i64 i = 0; i < s->n; i++) {
        (*data)[i] = (struct entry){0, (u64)i};
    }
    if (!pack(s, *data, &bits)) {
        for (i64 i = 0; i < s->n; i++) {
            (*data)[i].key = s->parts[0].value[i];
        }
        return merge_sort(s, s->x, data, other, s->n);
    }
    if (want > 0 && want <= s->n / HEAP_SHARE) {
        keep_least(*data, s->n, want);
        return ERR_OK;
    }
    if (s->n < RADIX_MIN) {
        return merge_sort(NULL, s->x, data, other, s->n);
    }
    return radix_sort(s->x, data, other, s->n, bits);
}

#define GATHER_ROWS(type)                                     \
    for (i64 i = 0; i < n; i++) {                             \
        ((type *)to)[i] = ((const type *)from)[order[i].row]; \
    }

static void gather_rows(void *to, const void *from, const struct entry *order, i64 n, i64 bytes) {
    switch (bytes) {
    case 1:
        GATHER_ROWS(u8)
        break;
    case 4:
        GATHER_ROWS(u32)
        break;
    case 8:
        GATHER_ROWS(u64)
        break;
    default:
        GATHER_ROWS(str)
        break;
    }
}
#undef GATHER_ROWS

static FALLIBLE reorder(struct sort *s, u32 var, const struct entry *order, i64 want) {
    struct exec *x = s->x;
    const struct chunk *from = s->chunk;
    struct chunk *out = chunk_new(x, &x->program->vars[var], want, false);
    if (!out) {
        return memory_refused(x->mem, x->err, want * 8);
    }
    for (u32 c = 0; c < from->col_count; c++) {
        const struct column *col = &from->cols[c];
        gather_rows(out->cols[c].data, col->data, order, want, kind_bytes[col->kind]);
        if (col->nulls) {
            struct buffer *nulls = buffer_new(x->mem, MAX_OF(want, 1));
            if (!nulls) {
                chunk_release(out);
                return memory_refused(x->mem, x->err, want);
            }
            out->buffers[2 * c + 1] = nulls;
            out->cols[c].nulls = nulls->data;
            gather_rows(nulls->data, col->nulls, order, want, 1);
        }
    }
    struct variable *v = &x->vars[var];
    chunk_release(v->chunks.items[0]);
    v->chunks.items[0] = out;
    v->rows = want;
    return ERR_OK;
}

static FALLIBLE sort_all(struct sort *s, const struct step *step, i64 want) {
    i64 bytes = MAX_OF(s->n, 1) * (i64)sizeof(struct entry);
    struct entry *data = mem_alloc(s->x->mem, bytes);
    struct entry *other = data ? mem_alloc(s->x->mem, bytes) : NULL;
    wf_status status =
        other ? sort_entries(s, &data, &other, want) : memory_refused(s->x->mem, s->x->err, bytes);
    mem_free(s->x->mem, other, bytes);
    status = status ? status : reorder(s, step->src, data, want < 0 ? s->n : want);
    mem_free(s->x->mem, data, bytes);
    return status;
}

wf_status sort_run(struct exec *x, const struct step *step) {
    TRY(variable_flatten(x, step->src));
    struct sort s = {.x = x, .chunk = x->vars[step->src].chunks.items[0]};
    s.n = s.chunk->rows;
    i64 want = step->limit >= 0 && step->limit_lit == NO_LIT ? MIN_OF(step->limit, s.n) : -1;
    if (s.n <= 1 || step->key_count == 0) {
        return ERR_OK;
    }
    s.parts = NEW_ARRAY(x->arena, struct part, step->key_count * PARTS_MAX);
    wf_status status = ERR_OK;
    for (u32 k = 0; k < step->key_count && !status; k++) {
        status = exec_check(x);
        status = status ? status : add_key(&s, step->src, &step->keys[k]);
    }
    status = status ? status : sort_all(&s, step, want);
    for (u32 p = 0; p < s.part_count; p++) {
        mem_free(x->mem, s.parts[p].value, MAX_OF(s.n, 1) * (i64)sizeof(u64));
    }
    return status;
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
        memcpy(v->lut, from, (size_t)len * sizeof(i32));
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
    if (len > 0 && !dict_ranks(dict, len, &rank, &code_at)) {
        return memory_refused(x->mem, x->err, (i64)len * 8);
    }
    TRY(fill_rank(x, step->dst, rank, len));
    return step->dst2 == NO_VAR ? ERR_OK : fill_rank(x, step->dst2, code_at, len);
}
