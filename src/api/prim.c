/* prim.c: the primitives' handle, its memory, and the frame operations run in.
 *
 * Blocks handed out are in one list: programs hold few. A pointer into one lies on that block's
 * device; every other pointer is the host's. */
#include "api/prim_int.h"

#include <stdarg.h>
#include <stdio.h>

/* --- the handle --- */

wf_status wf_prim_open(wf_database *db, wf_prim **out_prim) {
    if (!db || !out_prim) {
        return WF_MISUSE;
    }
    *out_prim = NULL;
    struct wf_prim *prim = mem_alloc(&db->mem, (i64)sizeof *prim);
    if (!prim) {
        return WF_NO_MEMORY;
    }
    memset(prim, 0, sizeof *prim);
    prim->db = database_retain(db);
    prim->settings = db->defaults;
    arena_init(&prim->arena, &db->mem);
    error_reset(&prim->err);
    public_error(&prim->last, &prim->err, (struct sv){NULL, 0});
    atomic_init(&prim->cancel, 0);
    atomic_init(&prim->busy, 0);
    prim->program.arena = &prim->arena;
    prim->x = (struct exec){.program = &prim->program,
                            .arena = &prim->arena,
                            .mem = &db->mem,
                            .err = &prim->err,
                            .pool = db->pool,
                            .settings = &prim->settings,
                            .cancel = &prim->cancel};
    bool stale;
    if (exec_open(&prim->x, &stale)) {
        wf_status status = public_status(prim->err.code);
        wf_prim_close(prim);
        return status;
    }
    *out_prim = prim;
    return WF_OK;
}

void wf_prim_close(wf_prim *prim) {
    if (!prim) {
        return;
    }
    struct wf_database *db = prim->db;
    for (struct prim_owned *owned = prim->owned, *next; owned; owned = next) {
        next = owned->next;
        owned->dev->prims->free(owned->dev, &prim->x, &owned->block);
        mem_free(&db->mem, owned, (i64)sizeof *owned);
    }
    exec_close(&prim->x);
    arena_fini(&prim->arena);
    mem_free(&db->mem, prim, (i64)sizeof *prim);
    database_release(db);
}

const wf_error *wf_prim_error(const wf_prim *prim) {
    return prim ? &prim->last : NULL;
}

void wf_prim_cancel(wf_prim *prim) {
    if (prim) {
        atomic_store(&prim->cancel, 1);
    }
}

int64_t wf_prim_metric(const wf_prim *prim, const char *name) {
    if (!prim || !name) {
        return -1;
    }
    static const char *const stages[PRIM_STAGES] = {"partition_ns", "load_cycles", "compute_cycles",
                                                    "place_cycles", "gather_cycles"};
    for (i32 s = 0; s < PRIM_STAGES; s++) {
        if (!strcmp(name, stages[s])) {
            return prim->stages[s];
        }
    }
    return !strcmp(name, "ns")             ? prim->ns
           : !strcmp(name, "device_ns")    ? prim->device_ns
           : !strcmp(name, "launches")     ? prim->launches
           : !strcmp(name, "bytes_moved")  ? prim->bytes_moved
           : !strcmp(name, "cub")          ? prim->cub
           : !strcmp(name, "registers")    ? prim->kernel.registers
           : !strcmp(name, "shared_bytes") ? prim->kernel.shared_bytes
           : !strcmp(name, "occupancy")    ? prim->kernel.occupancy
                                           : -1;
}

static wf_status prim_enter(struct wf_prim *prim) {
    i32 expected = 0;
    if (!prim || !atomic_compare_exchange_strong(&prim->busy, &expected, 1)) {
        return WF_MISUSE;
    }
    error_reset(&prim->err);
    atomic_store(&prim->cancel, 0);
    return WF_OK;
}

static wf_status prim_leave(struct wf_prim *prim, wf_status internal);

wf_status wf_prim_setting(wf_prim *prim, const char *name, const char *value) {
    if (!name || !value || prim_enter(prim)) {
        return WF_MISUSE;
    }
    return prim_leave(
        prim, setting_set(&prim->settings, sv_from(name), sv_from(value), false, &prim->err));
}

static wf_status prim_leave(struct wf_prim *prim, wf_status internal) {
    public_error(&prim->last, &prim->err, (struct sv){NULL, 0});
    atomic_store(&prim->busy, 0);
    return public_status(internal);
}

static FALLIBLE device_of(struct wf_prim *prim, wf_place place, struct device **out) {
    if (place == WF_ON_CPU) {
        *out = prim->db->cpu;
        return ERR_OK;
    }
    if (place != WF_ON_GPU) {
        FAIL(&prim->err, INVALID_PARAMETER, "there is no device number %d", (int)place);
    }
    *out = database_gpu(prim->db);
    if (!*out) {
        FAIL(&prim->err, NO_DEVICE, "no GPU can be used: %s", prim->db->no_gpu);
    }
    return ERR_OK;
}

/* --- memory --- */

static struct prim_owned *owned_find(const struct wf_prim *prim, const void *at) {
    struct prim_owned *owned = prim->owned;
    while (owned && ((const u8 *)at < (const u8 *)owned->block.addr ||
                     (const u8 *)at >= (const u8 *)owned->block.addr + owned->block.bytes)) {
        owned = owned->next;
    }
    return owned;
}

static FALLIBLE own(struct wf_prim *prim, wf_place place, i64 bytes, void **out) {
    struct device *dev = NULL;
    TRY(device_of(prim, place, &dev));
    if (bytes < 0) {
        FAIL(&prim->err, INVALID_PARAMETER, "%lld bytes cannot be allocated", bytes);
    }
    struct prim_owned *owned = mem_alloc(&prim->db->mem, (i64)sizeof *owned);
    if (!owned) {
        return memory_refused(&prim->db->mem, &prim->err, (i64)sizeof *owned);
    }
    memset(owned, 0, sizeof *owned);
    owned->dev = dev;
    wf_status status = dev->prims->alloc(dev, &prim->x, MAX_OF(bytes, 1), &owned->block);
    if (status) {
        mem_free(&prim->db->mem, owned, (i64)sizeof *owned);
        return status;
    }
    owned->next = prim->owned;
    prim->owned = owned;
    *out = owned->block.addr;
    return ERR_OK;
}

wf_status wf_prim_alloc(wf_prim *prim, wf_place place, int64_t bytes, void **out_data) {
    if (prim_enter(prim) || !out_data) {
        return WF_MISUSE;
    }
    *out_data = NULL;
    return prim_leave(prim, own(prim, place, bytes, out_data));
}

void wf_prim_free(wf_prim *prim, void *data) {
    if (!data || prim_enter(prim)) {
        return;
    }
    for (struct prim_owned **at = &prim->owned; *at; at = &(*at)->next) {
        struct prim_owned *owned = *at;
        if (owned->block.addr == data) {
            *at = owned->next;
            owned->dev->prims->free(owned->dev, &prim->x, &owned->block);
            mem_free(&prim->db->mem, owned, (i64)sizeof *owned);
            break;
        }
    }
    atomic_store(&prim->busy, 0);
}

/* The block of the card that holds [at, at + bytes), NULL for host memory; an error when it only
 * begins in one. */
static FALLIBLE on_card(struct wf_prim *prim, const void *at, i64 bytes, const char *name,
                        struct prim_owned **out) {
    struct prim_owned *owned = owned_find(prim, at);
    *out = NULL;
    if (!owned) {
        return ERR_OK;
    }
    i64 room = owned->block.bytes - ((const u8 *)at - (const u8 *)owned->block.addr);
    if (bytes > room) {
        FAIL(&prim->err, INVALID_PARAMETER,
             "%s: %lld bytes are asked of a block that has %lld from there on", name, bytes, room);
    }
    if (owned->dev->prims->lost && owned->dev->prims->lost(owned->dev, &owned->block)) {
        FAIL(&prim->err, GPU,
             "%s: its memory was lost when the GPU was reset after an error; free it and allocate "
             "it again",
             name);
    }
    *out = owned->dev == prim->db->cpu ? NULL : owned;
    return ERR_OK;
}

static FALLIBLE copy_bytes(struct wf_prim *prim, void *dst, const void *src, i64 bytes) {
    struct prim_owned *to = NULL;
    struct prim_owned *from = NULL;
    if (bytes < 0 || ((!dst || !src) && bytes > 0)) {
        FAIL(&prim->err, INVALID_PARAMETER, "%lld bytes cannot be copied from %p to %p", bytes, src,
             dst);
    }
    if (bytes == 0) {
        return ERR_OK;
    }
    TRY(on_card(prim, dst, bytes, "destination", &to));
    TRY(on_card(prim, src, bytes, "source", &from));
    struct device *dev = to ? to->dev : from ? from->dev : prim->db->cpu;
    return dev->prims->copy(dev, &prim->x, dst, to != NULL, src, from != NULL, bytes);
}

wf_status wf_prim_copy(wf_prim *prim, void *dst, const void *src, int64_t bytes) {
    if (prim_enter(prim)) {
        return WF_MISUSE;
    }
    return prim_leave(prim, copy_bytes(prim, dst, src, bytes));
}

/* --- calls --- */

void call_fail(struct call *call, wf_status code, const char *format, ...) {
    if (call->status) {
        return;
    }
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    call->status = error_set(&call->prim->err, code, -1, "%s: %s", call->what, text);
}

bool call_open(struct call *call, wf_prim *prim, wf_place place, const char *what, wf_work *work) {
    memset(call, 0, sizeof *call);
    call->prim = prim;
    call->what = what;
    call->work = work;
    if (prim_enter(prim)) {
        return false;
    }
    call->entered = 1;
    call->started_ns = clock_ns();
    prim->device_ns = prim->launches = prim->bytes_moved = 0;
    call->status = device_of(prim, place, &call->dev);
    call->job = (struct prim_job){.x = &prim->x, .dev = call->dev};
    call->only_size = work && !work->data;
    return !call->status;
}

static bool type_allowed(wf_elem type, const char *types) {
    return type >= 0 && (i32)type < ELEM_COUNT && strchr(types, elem_kinds[type]);
}

static FALLIBLE check_array(struct call *call, const char *name, const wf_array *a,
                            const char *types) {
    struct error *err = &call->prim->err;
    if (!type_allowed(a->type, types)) {
        bool known = a->type >= 0 && (i32)a->type < ELEM_COUNT;
        FAIL(err, DATATYPE_MISMATCH, "%s: %s cannot be of type %s", call->what, name,
             known ? elem_names[a->type] : "unknown");
    }
    if (a->count < 0 || a->count > I64_MAX / 64 || a->byte_count < 0) {
        FAIL(err, INVALID_PARAMETER, "%s: %s has %lld elements", call->what, name, (i64)a->count);
    }
    if (a->count > 0 && !a->data && !call->only_size) {
        FAIL(err, INVALID_PARAMETER, "%s: %s has %lld elements and no memory", call->what, name,
             (i64)a->count);
    }
    if ((size_t)a->data % (size_t)MIN_OF(elem_bytes[a->type], 8)) {
        FAIL(err, INVALID_PARAMETER, "%s: %s is not aligned for its type", call->what, name);
    }
    return ERR_OK;
}

/* Memory of the card for a host array, with its contents when it is read. */
static FALLIBLE stage(struct call *call, void *host, i64 bytes, bool is_in,
                      struct prim_block *out) {
    struct device *dev = call->dev;
    TRY(dev->prims->alloc(dev, &call->prim->x, MAX_OF(bytes, 1), out));
    if (is_in && bytes > 0) {
        TRY(dev->prims->copy(dev, &call->prim->x, out->addr, true, host, false, bytes));
        call->prim->bytes_moved += bytes;
    }
    return ERR_OK;
}

/* Where the device finds bytes of the caller: there already, or staged. */
static FALLIBLE place(struct call *call, const char *name, void *data, i64 bytes, bool is_in,
                      struct placed *out) {
    struct wf_prim *prim = call->prim;
    struct prim_owned *owned = NULL;
    out->at = data;
    if (call->only_size || !data) {
        return ERR_OK;
    }
    TRY(on_card(prim, data, bytes, name, &owned));
    if (call->dev == prim->db->cpu) {
        if (owned) {
            FAIL(&prim->err, INVALID_PARAMETER, "%s: %s lies on the GPU, the operation on the CPU",
                 call->what, name);
        }
        return ERR_OK;
    }
    if (owned) {
        if ((size_t)data % 16) {
            FAIL(&prim->err, INVALID_PARAMETER,
                 "%s: %s is not aligned to 16 bytes, as arrays on the GPU must be", call->what,
                 name);
        }
        return ERR_OK;
    }
    out->host = data;
    TRY(stage(call, data, bytes, is_in, &out->block));
    out->at = out->block.addr;
    return ERR_OK;
}

static FALLIBLE add_array(struct call *call, const char *name, const wf_array *a, const char *types,
                          bool is_in, bool is_out, struct prim_array *out) {
    TRY(check_array(call, name, a, types));
    CHECK(call->array_count < CALL_ARRAYS);
    struct call_array *slot = &call->arrays[call->array_count++];
    *slot = (struct call_array){.name = name, .is_in = is_in, .is_out = is_out};
    slot->bytes = a->count * elem_bytes[a->type];
    slot->filled = slot->bytes;
    TRY(place(call, name, a->data, slot->bytes, is_in, &slot->data));
    slot->text.at = (void *)(size_t)a->bytes;
    if (a->type == WF_ELEM_TEXT) {
        TRY(place(call, name, slot->text.at, a->byte_count, true, &slot->text));
    }
    *out = (struct prim_array){(u8)a->type, slot->data.at, a->count, slot->text.at, a->byte_count};
    return ERR_OK;
}

static struct prim_array take_array(struct call *call, const char *name, const wf_array *array,
                                    const char *types, bool is_in, bool is_out) {
    struct prim_array out = {.type = ELEM_U32};
    if (!call->status) {
        call->status = add_array(call, name, array, types, is_in, is_out, &out);
    }
    return out;
}

struct prim_array call_in(struct call *call, const char *name, wf_array array, const char *types) {
    return take_array(call, name, &array, types, true, false);
}

struct prim_array call_out(struct call *call, const char *name, wf_array array, const char *types) {
    return take_array(call, name, &array, types, false, true);
}

struct prim_array call_inout(struct call *call, const char *name, wf_array array,
                             const char *types) {
    return take_array(call, name, &array, types, true, true);
}

void call_filled(struct call *call, struct prim_array array, i64 count) {
    for (i32 i = 0; i < call->array_count; i++) {
        struct call_array *a = &call->arrays[i];
        if (a->is_out && a->data.at == array.data) {
            a->filled = MIN_OF(a->bytes, count * elem_bytes[array.type]);
        }
    }
}

static const u8 *array_start(const struct call_array *a) {
    return a->data.host ? a->data.host : a->data.at;
}

void call_apart(struct call *call, const char *same_a, const char *same_b) {
    for (i32 i = 0; i < call->array_count; i++) {
        for (i32 k = 0; k < i; k++) {
            const struct call_array *a = &call->arrays[k];
            const struct call_array *b = &call->arrays[i];
            const u8 *x = array_start(a);
            const u8 *y = array_start(b);
            bool meet = x && y && x < y + b->bytes && y < x + a->bytes;
            bool named = same_a && ((!strcmp(a->name, same_a) && !strcmp(b->name, same_b)) ||
                                    (!strcmp(a->name, same_b) && !strcmp(b->name, same_a)));
            if (meet && (a->is_out || b->is_out) && !(named && x == y)) {
                call_fail(call, ERR_INVALID_PARAMETER, "%s and %s overlap", a->name, b->name);
            }
        }
    }
}

static FALLIBLE run_job(struct call *call, call_body body, void *arg) {
    struct prim_job *job = &call->job;
    const struct prim_class *prims = call->dev->prims;
    job->work_used = 0;
    if (prims->begin) {
        TRY(prims->begin(job));
    }
    i64 started = clock_ns();
    wf_status status = body(job, arg);
    if (prims->end) {
        return prims->end(job, status);
    }
    job->device_ns = clock_ns() - started;
    return status;
}

static FALLIBLE find_work(struct call *call) {
    struct prim_job *job = &call->job;
    i64 needed = job->work_peak;
    struct wf_prim *prim = call->prim;
    struct prim_owned *owned = NULL;
    if (!call->work) {
        TRY(call->dev->prims->alloc(call->dev, &prim->x, MAX_OF(needed, 1), &call->work_block));
        job->work = call->work_block.addr;
        job->work_bytes = call->work_block.bytes;
        return ERR_OK;
    }
    call->work->needed = needed;
    if (call->only_size) {
        return ERR_OK;
    }
    TRY(on_card(prim, call->work->data, call->work->bytes, "workspace", &owned));
    if (call->work->bytes < needed || (size_t)call->work->data % PRIM_ALIGN ||
        (owned == NULL) != (call->dev == prim->db->cpu)) {
        FAIL(&prim->err, INVALID_PARAMETER,
             "%s: %lld bytes of workspace on this device, aligned to %d, are needed, %lld given",
             call->what, needed, PRIM_ALIGN, (i64)call->work->bytes);
    }
    job->work = call->work->data;
    job->work_bytes = call->work->bytes;
    return ERR_OK;
}

void call_run(struct call *call, call_body body, void *arg) {
    if (call->status) {
        return;
    }
    call->job.measuring = 1;
    call->status = run_job(call, body, arg);
    call->job.measuring = 0;
    call->status = call->status ? call->status : find_work(call);
    if (!call->status && !call->only_size) {
        call->status = run_job(call, body, arg);
    }
}

static FALLIBLE bring_back(struct call *call) {
    for (i32 i = 0; i < call->array_count; i++) {
        struct call_array *a = &call->arrays[i];
        if (a->is_out && a->data.host && a->filled > 0) {
            TRY(call->dev->prims->copy(call->dev, &call->prim->x, a->data.host, false,
                                       a->data.block.addr, true, a->filled));
            call->prim->bytes_moved += a->filled;
        }
    }
    return ERR_OK;
}

void call_drop(struct call *call) {
    struct wf_prim *prim = call->prim;
    for (i32 i = 0; i < call->array_count; i++) {
        call->dev->prims->free(call->dev, &prim->x, &call->arrays[i].data.block);
        call->dev->prims->free(call->dev, &prim->x, &call->arrays[i].text.block);
    }
    if (call->dev) {
        call->dev->prims->free(call->dev, &prim->x, &call->work_block);
    }
}

wf_status call_rest(struct call *call) {
    struct wf_prim *prim = call->prim;
    prim->ns = clock_ns() - call->started_ns;
    prim->device_ns = call->job.device_ns;
    prim->launches = call->job.launches;
    memcpy(prim->stages, call->job.stages, sizeof prim->stages);
    prim->cub = call->job.cub;
    prim->kernel = call->job.kernel;
    return prim_leave(prim, call->status);
}

wf_status call_close(struct call *call) {
    if (!call->entered) {
        return WF_MISUSE;
    }
    if (!call->status && !call->only_size) {
        call->status = bring_back(call);
    }
    call_drop(call);
    return call_rest(call);
}
