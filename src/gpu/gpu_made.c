/* gpu_made.c: strings that a step makes: the heap its kernels write them to.
 *
 * A warp reserves the bytes of its rows by adding to the heap's first word. A heap that runs full
 * counts on, and the step runs once more with as much as was asked for. Strings that leave the step
 * have an address on the host from the beginning, as all text in variables has; their bytes come there
 * when the step ends. */
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

static FALLIBLE make_room(struct job *j) {
    struct exec *x = j->x;
    if (!j->made_bytes) {
        i64 row = (i64)j->plan.makes * MADE_FIRST_BYTES;
        i64 rows = MIN_OF(j->source_rows, gpu_heap_available(j->g->card) / 4 / row);
        j->made_bytes = MAX_OF(rows * row, MADE_LEAST_BYTES);
    }
    TRY(gpu_alloc(j->g, HEAP_HEAD + j->made_bytes, &j->made, x->err));
    if (!hands_on(j)) {
        return ERR_OK;
    }
    j->made_host = buffer_new(x->mem, j->made_bytes);
    return j->made_host ? ERR_OK : memory_refused(x->mem, x->err, j->made_bytes);
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
    if (j->made_host) {
        struct job_text text = {.text = {.host = j->made_host->data,
                                         .bytes = j->made_host->bytes,
                                         .heap = j->made_host},
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

wf_status gpu_job_made_end(struct job *j, bool *out_again) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    u64 used = 0;
    *out_again = false;
    if (!j->plan.makes) {
        return ERR_OK;
    }
    CU(g->api->copy_to_host(&used, j->made->addr, sizeof used, g->streams[0]));
    CU(g->api->stream_synchronize(g->streams[0]));
    if ((i64)used > j->made_bytes) {
        gpu_job_made_drop(j);
        j->made_bytes = j->g->known.made_bytes = (i64)used;
        *out_again = true;
    } else if (j->made_host && used) {
        CU(g->api->copy_to_host(j->made_host->data, j->made->addr + HEAP_HEAD, (size_t)used,
                                g->streams[0]));
        CU(g->api->stream_synchronize(g->streams[0]));
        gpu_job_fetched(j, (i64)used);
    }
    return ERR_OK;
}

void gpu_job_made_drop(struct job *j) {
    gpu_heap_free(j->g->card, j->made);
    buffer_release(j->made_host);
    j->made = NULL;
    j->made_host = NULL;
}
