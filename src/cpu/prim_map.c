/* prim_map.c: the CPU's map: an opcode over arrays, by the engine's vector loops.
 *
 * A block of rows goes through the loop in vectors of VECTOR elements. Operands are used where they
 * lie, unless the loop could not take them so: booleans are made 0 or 1, single elements repeated,
 * spans turned into strings, 128-bit elements aligned. Rare opcodes, which have no loop, go through
 * the scalar evaluator. */
#include "cpu/cpu_int.h"
#include "cpu/prim_int.h"
#include "host/eval.h"

#include "defs/host_words.h"
/* after the words it is written in */
#include "defs/fn_str.h"

enum { MAP_ROWS = 1 << 15, VECTOR = 1024 };

struct map_run {
    const struct prim_map *map;
    vec_fn *fn; /* NULL: the scalar evaluator */
    b8 const_b; /* fn takes one value as its second operand */
    _Atomic u64 fault;
};

struct map_frame { /* of one vector */
    i64 first, n;
    const void *operand[3];
    u8 fault[VECTOR];
    _Alignas(64) u8 copy[4][VECTOR * 16]; /* operands, result */
};

/* Spans to strings; one that leaves the bytes is a fault. */
static void take_text(struct map_frame *fr, const struct prim_array *in, bool single, i32 no,
                      bool *bad) {
    const struct prim_span *spans = in->data;
    str *to = (str *)(void *)fr->copy[no];
    for (i64 i = 0; i < fr->n; i++) {
        struct prim_span s = spans[single ? 0 : fr->first + i];
        bool fits = s.length <= (u64)in->byte_count && s.offset <= (u64)in->byte_count - s.length &&
                    s.length <= I32_MAX;
        const u8 *at = fits && s.length ? in->bytes + s.offset : NULL;
        u32 length = fits ? (u32)s.length : 0;
        to[i] = (str){length, at ? fn_prefix(at, length) : 0, (u64)(size_t)at};
        if (!fits) {
            fr->fault[i] = FAULT_INPUT_RANGE;
            *bad = true;
        }
    }
}

static const void *take_operand(const struct map_run *r, struct map_frame *fr, i32 no, bool *bad) {
    const struct prim_array *in = &r->map->in[no];
    i32 width = elem_bytes[in->type];
    bool single = in->count == 1 && r->map->count > 1;
    const u8 *at = (const u8 *)in->data + (single ? 0 : fr->first * width);
    u8 *copy = fr->copy[no];
    if (in->type == ELEM_TEXT) {
        take_text(fr, in, single, no, bad);
    } else if (in->type == ELEM_BOOL) {
        for (i64 i = 0; i < fr->n; i++) {
            copy[i] = at[single ? 0 : i] != 0;
        }
    } else if (single && no == 1 && r->const_b) {
        memcpy(copy, at, (size_t)width);
    } else if (single) {
        for (i64 i = 0; i < fr->n; i++) {
            memcpy(copy + i * width, at, (size_t)width);
        }
    } else if ((size_t)at % 16 && width == 16) {
        memcpy(copy, at, (size_t)(fr->n * width));
    } else {
        return at;
    }
    return copy;
}

static u8 map_rare(const struct map_run *r, struct map_frame *fr, u8 *dst) {
    const struct prim_map *m = r->map;
    i32 width = elem_bytes[m->out.type];
    u8 any = 0;
    for (i64 i = 0; i < fr->n; i++) {
        union lit v[3] = {{0}};
        union lit out = {0};
        for (i32 k = 0; k < m->arity; k++) {
            i32 bytes = elem_bytes[m->in[k].type];
            memcpy(&v[k], (const u8 *)fr->operand[k] + i * bytes, (size_t)bytes);
        }
        fr->fault[i] = op_eval(m->code, &out, v[0], v[1], v[2], NULL);
        any |= fr->fault[i];
        memcpy(dst + i * width, &out, (size_t)width);
    }
    return any;
}

static void note_fault(struct map_run *r, const struct map_frame *fr) {
    i64 i = 0;
    while (i < fr->n && !fr->fault[i]) {
        i++;
    }
    u64 key = (u64)(fr->first + i) << 8 | (i < fr->n ? fr->fault[i] : 0);
    u64 least = atomic_load(&r->fault);
    while (i < fr->n && key < least && !atomic_compare_exchange_weak(&r->fault, &least, key)) {
    }
}

static void map_vector(struct map_run *r, struct map_frame *fr) {
    const struct prim_map *m = r->map;
    i32 width = elem_bytes[m->out.type];
    u8 *dst = (u8 *)m->out.data + fr->first * width;
    bool aside = (size_t)dst % 16 && width == 16;
    bool bad = false;
    memset(fr->fault, 0, sizeof fr->fault);
    for (i32 i = 0; i < m->arity; i++) {
        fr->operand[i] = take_operand(r, fr, i, &bad);
        aside = aside || fr->operand[i] == dst; /* the loops' arrays are apart */
    }
    if (bad) {
        note_fault(r, fr);
        return;
    }
    u8 *to = aside ? fr->copy[3] : dst;
    u8 any = r->fn ? r->fn(to, fr->operand[0], fr->operand[1], fr->operand[2], fr->n, fr->fault)
                   : map_rare(r, fr, to);
    if (any) {
        note_fault(r, fr);
    }
    if (aside) {
        memcpy(dst, to, (size_t)(fr->n * width));
    }
}

static void map_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    struct map_run *r = arg;
    struct map_frame fr;
    i64 end = MIN_OF((b + 1) * MAP_ROWS, r->map->count);
    memset(fr.operand, 0, sizeof fr.operand);
    for (fr.first = b * MAP_ROWS; fr.first < end; fr.first += VECTOR) {
        fr.n = MIN_OF(VECTOR, end - fr.first);
        map_vector(r, &fr);
    }
}

wf_status prim_cpu_map(struct prim_job *job, const struct prim_map *map) {
    if (job->measuring || !map->count) {
        return ERR_OK;
    }
    const struct vec_table *vec = ((const struct cpu_device *)job->dev->self)->vec;
    bool single_b = map->arity == 2 && map->in[1].count == 1 && map->count > 1 &&
                    map->in[1].type != ELEM_TEXT && map->in[1].type != ELEM_BOOL;
    struct vec_loops loops = vec_loops_of(vec, map->code);
    struct map_run r = {.map = map, .fn = loops.dense};
    if (single_b && loops.dense_const) {
        r.fn = loops.dense_const;
        r.const_b = 1;
    }
    atomic_init(&r.fault, ~0ULL);
    tasks_run(job->x, (map->count + MAP_ROWS - 1) / MAP_ROWS, map_task, &r);
    TRY(exec_check(job->x));
    return prim_map_fault(job, atomic_load(&r.fault));
}
