/* index.c: what every device may ask of an index: its size, its end, and the plain form.
 *
 * The CPU builds forms that suit its caches. Kernels know an array indexed by the key, a set's
 * bitmap and the slots of open addressing, which are the same on both sides, but not a bitmap with
 * counts: an index of that form that is wanted on a card becomes an array first. See decision 0001. */
#include "run/run_int.h"
#include "run/tries.h"

#include "codes/control.h"

static _Atomic i64 rows_limit;

i64 index_rows_most(i64 base) {
    i64 limit = atomic_load_explicit(&rows_limit, memory_order_relaxed);
    i64 most = limit ? limit : INDEX_ROWS_MOST;
#ifdef WF_HARD
    most = limit ? limit : MAX_OF(base, 100); /* many chains, of few parts */
#endif
    UNUSED(base);
    return most;
}

void index_rows_limit(i64 rows) {
    atomic_store(&rows_limit, rows);
}

static i64 parts_bytes(const struct index *index) {
    return index->part_count * (i64)sizeof(struct index);
}

static void measure_chain(struct index *index) {
    index->bytes = parts_bytes(index);
    index->row_count = 0;
    for (i64 p = 0; p < index->part_count; p++) {
        index_measure(&index->parts[p]);
        index->bytes += index->parts[p].bytes;
        index->row_count += index->parts[p].row_count;
    }
}

void index_measure(struct index *index) {
    if (index->form == INDEX_CHAIN) {
        measure_chain(index);
        return;
    }
    index->bytes = (index->slots ? index->slot_count * (i64)sizeof(struct hash_slot) : 0) +
                   index->block_count * (i64)sizeof(struct rank_block) +
                   (index->heads ? index->head_count * (i64)sizeof(u32) : 0) +
                   (index->rows ? index->row_count * (i64)sizeof(u32) : 0) +
                   (index->filter ? index_filter_bytes(index) : 0);
}

static void release_blocks(struct memory *mem, struct index *index) {
    mem_free(mem, index->blocks, index->block_count * (i64)sizeof(struct rank_block));
    index->blocks = NULL;
    index->block_count = 0;
}

void index_release(struct memory *mem, struct index *index) {
    if (index->kept) {
        kept_trie_release(index->kept);
        *index = (struct index){0};
        return;
    }
    mem_free(mem, index->slots, index->slot_count * (i64)sizeof(struct hash_slot));
    index->slots = NULL;
    release_blocks(mem, index);
    mem_free(mem, index->heads, index->head_count * (i64)sizeof(u32));
    mem_free(mem, index->rows, index->row_count * (i64)sizeof(u32));
    mem_free(mem, index->filter, index_filter_bytes(index));
    index->filter = NULL;
    index->heads = NULL;
    index->rows = NULL;
    for (i64 p = 0; p < index->part_count; p++) {
        index_release(mem, &index->parts[p]);
    }
    mem_free(mem, index->parts, parts_bytes(index));
    index->parts = NULL;
    index->part_count = 0;
}

wf_status index_add_part(struct exec *x, struct index *index, i64 base, struct index **out) {
    bool first = index->form != INDEX_CHAIN; /* of two */
    i64 count = first ? 2 : index->part_count + 1;
    i64 bytes = count * (i64)sizeof(struct index);
    struct index *parts = mem_alloc(x->mem, bytes);
    if (!parts) {
        return memory_refused(x->mem, x->err, bytes);
    }
    if (first) {
        ASSERT(!index->kept && !index->class_bits);
        parts[0] = *index;
        *index = (struct index){.form = INDEX_CHAIN, .grown_rows = index->grown_rows};
    } else if (index->part_count) {
        memcpy(parts, index->parts, (size_t)parts_bytes(index));
        mem_free(x->mem, index->parts, parts_bytes(index));
    }
    index->parts = parts;
    index->part_count = count;
    parts[count - 1] = (struct index){.base = base};
    *out = &parts[count - 1];
    return ERR_OK;
}

static void *copy_of(struct exec *x, const void *data, i64 bytes, wf_status *status) {
    void *copy = data && !*status ? mem_alloc(x->mem, bytes) : NULL;
    if (copy) {
        memcpy(copy, data, (size_t)bytes);
    } else if (data && !*status) {
        *status = memory_refused(x->mem, x->err, bytes);
    }
    return copy;
}

/* Arrays that others read, too, are copied before they change. */
static FALLIBLE own_arrays(struct exec *x, struct index *index) {
    struct index own = *index;
    wf_status status = ERR_OK;
    own.kept = NULL;
    own.slots = copy_of(x, index->slots, index->slot_count * (i64)sizeof(struct hash_slot), &status);
    own.blocks = copy_of(x, index->blocks, index->block_count * (i64)sizeof(struct rank_block), &status);
    own.heads = copy_of(x, index->heads, index->head_count * (i64)sizeof(u32), &status);
    own.rows = copy_of(x, index->rows, index->row_count * (i64)sizeof(u32), &status);
    own.filter = copy_of(x, index->filter, index_filter_bytes(index), &status);
    if (status) {
        index_release(x->mem, &own);
        return status;
    }
    kept_trie_release(index->kept);
    *index = own;
    return ERR_OK;
}

/* Rows in the order of their keys have no list: kernels want one. */
static FALLIBLE plain_rows(struct exec *x, struct index *index) {
    if (index->unique || index->rows) {
        return ERR_OK;
    }
    i64 bytes = index->row_count * (i64)sizeof(u32);
    index->rows = mem_alloc(x->mem, bytes);
    if (!index->rows) {
        return memory_refused(x->mem, x->err, bytes);
    }
    for (i64 i = 0; i < index->row_count; i++) {
        index->rows[i] = (u32)i;
    }
    return ERR_OK;
}

static FALLIBLE plain_rank(struct exec *x, struct index *index) {
    i64 count = index->slot_count + 1;
    u32 *heads = mem_alloc(x->mem, count * (i64)sizeof(u32));
    if (!heads) {
        return memory_refused(x->mem, x->err, count * (i64)sizeof(u32));
    }
    u32 rank = 0;
    for (i64 s = 0; s < count; s++) {
        bool there = s < index->slot_count && (index->blocks[s >> 6].bits >> (s & 63) & 1);
        if (index->unique) {
            u32 row = there && index->rows ? index->rows[rank] : rank;
            heads[s] = there ? row + 1 : 0;
        } else {
            heads[s] = index->heads[rank];
        }
        rank += there;
    }
    mem_free(x->mem, index->heads, index->head_count * (i64)sizeof(u32));
    index->heads = heads;
    index->head_count = count;
    release_blocks(x->mem, index);
    index->form = INDEX_DIRECT;
    return plain_rows(x, index);
}

wf_status index_plain(struct exec *x, struct index *index) {
    ASSERT(index->form != INDEX_CHAIN); /* its pipelines are the host's (run/choose.c) */
    bool changes = index->blocks || (!index->unique && !index->rows);
    if (index->kept && changes) {
        TRY(own_arrays(x, index));
    }
    if (index->blocks) {
        TRY(plain_rank(x, index));
    }
    index_measure(index);
    ASSERT(!index->blocks); /* a form that kernels know */
    return ERR_OK;
}

/* That the opcode looks a key up in, as far as the host has it. */
static const struct index *index_of(const struct exec *x, const struct op *op) {
    u32 var = op_variable(op);
    return var != NO_VAR && x->program->vars[var].kind == VAR_INDEX ? x->vars[var].index : NULL;
}

bool exec_chains(const struct exec *x, const struct pipeline *pipe) {
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct index *index = index_of(x, &pipe->ops[i]);
        if (index && index->form == INDEX_CHAIN) {
            return true;
        }
    }
    return false;
}

bool exec_passes(const struct exec *x, const struct pipeline *pipe) {
    for (u32 i = 0; i < pipe->op_count; i++) {
        u32 var = op_variable(&pipe->ops[i]);
        const struct index *index = index_of(x, &pipe->ops[i]);
        bool parted = var != NO_VAR && x->program->vars[var].kind == VAR_INTERN &&
                      pipe->ops[i].code != OP_UNPAIR && x->vars[var].leaves;
        if (parted || (index && index->class_bits)) {
            return true;
        }
    }
    return false;
}
