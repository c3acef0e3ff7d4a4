/* ranks.c: ranks of a dictionary's texts, where memory has no room for all of them.
 *
 * Their texts lie in the order of their codes. They are sorted as rows are, in runs that have their texts beside
 * them (sort_runs.c), with the code along; so the codes come in the order of the texts, and nothing was read
 * in another order than it lies in. From codes in the order of ranks to ranks in the order of codes it is some
 * passes over the former, each for as many of the latter as memory has room for. See decision 0065. */
#include "cpu/sort_int.h"

enum {
    PIECE_ROWS = 1 << 16, /* of a chunk of what is sorted */
    AT_ONCE = 1024,
#ifdef WF_HARD
    ALWAYS_FEW = 16
#else
    ALWAYS_FEW = 1 << 12 /* texts that are ranked in memory wherever they lie */
#endif
};

/* Views of texts first..first + n, and their codes. */
static FALLIBLE add_piece(struct exec *x, struct variable *v, const struct dict *dict, i32 first,
                          i64 n) {
    static const u8 kinds[] = {KIND_STR, KIND_I32};
    struct chunk *chunk = chunk_view_new(x, COUNT_OF(kinds));
    for (u32 c = 0; chunk && c < COUNT_OF(kinds); c++) {
        struct buffer *data = buffer_new_at(x->mem, n * kind_bytes[kinds[c]], BUFFER_ASIDE);
        if (!data) {
            chunk_release(chunk);
            chunk = NULL;
            break;
        }
        chunk->buffers[2 * c] = data;
        chunk->cols[c] = (struct column){.kind = kinds[c], .data = data->data};
    }
    if (!chunk) {
        return memory_refused(x->mem, x->err, n * (i64)sizeof(str));
    }
    chunk->rows = n;
    for (i64 at = 0; at < n; at += AT_ONCE) {
        str text[AT_ONCE];
        i32 codes[AT_ONCE];
        i64 count = MIN_OF(n - at, (i64)AT_ONCE);
        dict_views(dict, first + (i32)at, count, text);
        for (i64 i = 0; i < count; i++) {
            codes[i] = first + (i32)(at + i);
        }
        mem_copy(x->mem, (str *)chunk->cols[0].data + at, text, count * (i64)sizeof *text);
        mem_copy(x->mem, (i32 *)chunk->cols[1].data + at, codes, count * (i64)sizeof *codes);
    }
    VEC_PUSH(x->arena, &v->chunks, chunk);
    v->rows += n;
    return exec_check(x);
}

/* The codes of sorted rows, one behind the other. */
static void take_codes(const struct exec *x, const struct variable *v, i32 *code_at) {
    i64 done = 0;
    for (i64 c = 0; c < v->chunks.count; c++) {
        const struct chunk *chunk = v->chunks.items[c];
        for (i64 at = 0; at < chunk->rows; at += AT_ONCE) {
            i32 codes[AT_ONCE];
            i64 n = MIN_OF(chunk->rows - at, (i64)AT_ONCE);
            mem_copy(x->mem, codes, (const i32 *)chunk->cols[1].data + at,
                     n * (i64)sizeof *codes);
            mem_copy(x->mem, code_at + done, codes, n * (i64)sizeof *codes);
            done += n;
        }
    }
}

/* rank[code_at[i]] = i for codes in [first, first + n), at `to`. */
static FALLIBLE invert_some(struct exec *x, const i32 *code_at, i32 len, i32 first, i64 n, i32 *to) {
    for (i32 at = 0; at < len; at += AT_ONCE) {
        i32 codes[AT_ONCE];
        i32 count = MIN_OF(len - at, AT_ONCE);
        mem_copy(x->mem, codes, code_at + at, count * (i64)sizeof *codes);
        for (i32 i = 0; i < count; i++) {
            u32 place = (u32)codes[i] - (u32)first;
            if (place < (u32)n) {
                to[place] = at + i;
            }
        }
        TRY(exec_check(x));
    }
    return ERR_OK;
}

static FALLIBLE invert(struct exec *x, const i32 *code_at, i32 len, i32 *rank) {
    if (!mem_in_temp(x->mem, rank)) {
        return invert_some(x, code_at, len, 0, len, rank);
    }
    i64 n = MAX_OF(memory_left(x->mem) / 2 / (i64)sizeof(i32), (i64)AT_ONCE);
    n = MIN_OF(n, (i64)len);
    i64 bytes = n * (i64)sizeof(i32);
    i32 *some = mem_alloc(x->mem, bytes);
    wf_status status = some ? ERR_OK : memory_refused(x->mem, x->err, bytes);
    for (i64 first = 0; first < len && !status; first += n) {
        i64 count = MIN_OF(n, len - first);
        status = invert_some(x, code_at, len, (i32)first, count, some);
        mem_copy(x->mem, rank + first, some, count * (i64)sizeof *some);
    }
    mem_free(x->mem, some, bytes);
    return status;
}

static FALLIBLE sort_aside(struct exec *x, const struct dict *dict, i32 len, i32 *room) {
    struct variable v = {.kind = VAR_ROWS, .mem = x->mem};
    wf_status status = ERR_OK;
    for (i64 first = 0; first < len && !status; first += PIECE_ROWS) {
        status = add_piece(x, &v, dict, (i32)first, MIN_OF(len - first, (i64)PIECE_ROWS));
    }
    status = status ? status : sort_by_text(x, &v, 2);
    if (!status) {
        take_codes(x, &v, room + len);
    }
    variable_reset(&v);
    return status ? status : invert(x, room + len, len, room);
}

wf_status ranks_find(struct exec *x, struct dict *dict, i32 len, const i32 **out_rank,
                     const i32 **out_code_at) {
    bool aside = len > ALWAYS_FEW && x->mem->temp &&
                 (dict_is_aside(dict) || dict_ranks_bytes(len) > memory_left(x->mem));
    if (dict_ranks_known(dict, len, out_rank, out_code_at) ||
        (!aside && dict_ranks(dict, len, out_rank, out_code_at))) {
        return ERR_OK;
    }
    i32 *room = aside ? dict_ranks_room(dict, len) : NULL;
    if (!room) {
        return memory_refused(x->mem, x->err, (i64)len * 8);
    }
    TRY(sort_aside(x, dict, len, room));
    dict_ranks_set(dict, room);
    *out_rank = room;
    *out_code_at = room + len;
    return ERR_OK;
}
