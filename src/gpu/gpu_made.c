/* gpu_made.c: strings that a step makes: the heap its kernels write them to.
 *
 * A warp reserves the bytes of its rows by adding to the heap's first word. A heap that runs full
 * counts on, and the step runs once more with as much as was asked for. Strings that leave the step
 * have an address on the host from the beginning, as all text in variables has; their bytes come there
 * with rows that may point to them (gpu_var_fetch). Other steps find them on the card. */
#include "gpu/gpu_job.h"

#define MADE_FIRST_BYTES 24 /* of a string, before anything is known */
#define MADE_LEAST_BYTES (64LL << 10)

/* Whether rows hold text that is no host's. */
static bool hands_on(const struct job *j) {
    const struct sink *sink = j->plan.sink;
    for (u32 c = 0; sink->kind == SINK_ROWS && c < sink->col_count; c++) {
        u16 reg = sink->cols[c].reg;
        if (j->pipe->regs[reg].kind == KIND_STR && !j->plan.host_text[reg]) {
            return true;
        }
    }
    return false;
}

void gpu_far_release(struct gpu_far *far) {
    if (far && atomic_fetch_sub(&far->refs, 1) == 1) {
        gpu_heap_free(far->card, far->block);
        buffer_release(far->host);
        mem_free(far->card->mem, far, (i64)sizeof *far);
    }
}

wf_status gpu_far_fetch(struct gpu *g, struct exec *x, struct gpu_far *far) {
    struct error *err = x->err;
    if (far->used && !atomic_load(&far->is_here)) {
        CU(g->api->copy_to_host(far->host->data, far->block->addr + HEAP_HEAD, (size_t)far->used,
                                g->streams[0]));
        CU(gpu_sync(g, g->streams[0]));
        atomic_store(&far->is_here, 1);
    }
    return ERR_OK;
}

/* The block is its own from now on, even if this fails. */
static FALLIBLE make_far(struct job *j) {
    struct gpu_card *card = j->g->card;
    struct gpu_far *far = mem_alloc(card->mem, (i64)sizeof *far);
    if (!far) {
        return memory_refused(card->mem, j->x->err, (i64)sizeof *far);
    }
    *far = (struct gpu_far){.refs = 1, .card = card, .block = j->made};
    j->far = far;
    far->host = buffer_new(j->x->mem, j->made_bytes);
    return far->host ? ERR_OK : memory_refused(j->x->mem, j->x->err, j->made_bytes);
}

/* As much as the step's strings took when it ran last, or a guess. */
static i64 first_bytes(const struct job *j) {
    i64 literals = MIN_OF(gpu_job_literal_bytes(j), 3 * MADE_FIRST_BYTES); /* some are put together */
    i64 row = (i64)j->plan.makes * (MADE_FIRST_BYTES + literals);
    i64 rows = MIN_OF(j->source_rows, gpu_heap_available(j->g->card) / 4 / row);
    i64 before = atomic_load(&j->kept->made_rows);
    i64 bytes = rows * row;
    if (before > 0 && before == j->source_rows) {
        bytes = atomic_load(&j->kept->made_bytes);
    }
    return MAX_OF(bytes, MADE_LEAST_BYTES);
}

static FALLIBLE make_room(struct job *j) {
    j->made_bytes = j->made_bytes ? j->made_bytes : first_bytes(j);
    TRY(gpu_alloc(j->g, HEAP_HEAD + j->made_bytes, &j->made, j->x->err));
    return hands_on(j) ? make_far(j) : ERR_OK;
}

wf_status gpu_job_made_begin(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    if (!j->plan.makes) {
        return ERR_OK;
    }
    if (!j->made) {
        TRY(make_room(j));
    }
    if (j->far) {
        struct buffer *host = j->far->host;
        struct job_text text = {
            .text = {.host = host->data, .bytes = host->bytes, .heap = host, .far = j->far},
            .addr = j->made->addr + HEAP_HEAD};
        if (!j->made_text) {
            VEC_PUSH(j->x->arena, &j->texts, text);
            j->made_text = j->texts.count;
        }
        j->texts.items[j->made_text - 1] = text;
    }
    CU(g->api->set_bytes(j->made->addr, 0, 8, g->streams[0]));
    return ERR_OK;
}

void gpu_job_made_note(struct job *j, i64 used) {
    if (j->plan.makes) {
        atomic_store(&j->kept->made_rows, 0); /* whoever reads one of them may read the other */
        atomic_store(&j->kept->made_bytes, used + used / 16);
        atomic_store(&j->kept->made_rows, j->source_rows);
    }
    if (j->far) {
        j->far->used = MIN_OF(used, j->made_bytes);
    }
}

wf_status gpu_job_made_end(struct job *j, bool *out_again) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    u64 used = 0;
    *out_again = false;
    if (!j->plan.makes) {
        return ERR_OK;
    }
    CU(g->api->copy_to_host(&used, j->made->addr, sizeof used, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    gpu_job_made_note(j, (i64)used);
    if ((i64)used > j->made_bytes) {
        gpu_job_made_drop(j);
        /* What was made of strings that had no room is missing in it. */
        j->made_bytes = j->g->known.made_bytes = MAX_OF((i64)used, 2 * j->made_bytes);
        *out_again = true;
    }
    return ERR_OK;
}

void gpu_job_made_drop(struct job *j) {
    if (j->far) {
        gpu_far_release(j->far);
    } else {
        gpu_heap_free(j->g->card, j->made);
    }
    j->made = NULL;
    j->far = NULL;
}
