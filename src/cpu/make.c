/* make.c: opcodes that exist on the host only: parsing text, making strings, and what is too rare
 * for vector loops.
 *
 * Made strings lie in the worker's heap, in blocks that are reused from vector to vector; sinks
 * copy what they keep. Both kinds run over the active rows alone, as their operands are undefined
 * elsewhere. */
#include "cpu/cpu_int.h"

#include "codes/op.h"
#include "host/bodies.h"
#include "defs/host_words.h"
#include "defs/op.def"
/* after the words they are written in */
#include "defs/fn_int.h"
#include "defs/fn_date.h"
#include "defs/fn_float.h"
#include "defs/fn_math.h"
#include "defs/fn_str.h"
#include "defs/fn_str2.h"
#include "defs/fn_like.h"
#include "defs/fn_time.h"
#include "defs/case_map.h"
#include "defs/fn_case.h"
#include "defs/fn_make.h"
#include "defs/fn_encode.h"
#include "defs/fn_hash.h"
#include "defs/char_class.h"
#include "defs/fn_initcap.h"
#include "defs/fn_format.h"
#include "defs/pow10_table.h"
#include "defs/fn_shortest.h"
#include "defs/fn_parse.h"
#include "defs/fn_fround.h"
#include "defs/fn_variance.h"
#include "defs/fn_parse_real.h"

enum { HEAP_BLOCK_MIN = 16 << 10, HEAP_BLOCK_MAX = 16 << 20 };

struct heap_block {
    struct heap_block *next;
    i64 bytes; /* of data */
    i64 pad[6];
    u8 data[];
};

u8 *heap_alloc(struct heap *heap, i64 bytes) {
    if (!heap->head || heap->head->bytes - heap->used < bytes) {
        i64 size = heap->head ? MIN_OF(heap->head->bytes * 2, HEAP_BLOCK_MAX) : HEAP_BLOCK_MIN;
        size = MAX_OF(size, bytes);
        struct heap_block *block = mem_alloc(heap->mem, (i64)sizeof *block + size);
        if (!block) {
            return NULL;
        }
        block->next = heap->head;
        block->bytes = size;
        heap->head = block;
        heap->used = 0;
    }
    u8 *at = heap->head->data + heap->used;
    heap->used += bytes;
    return at;
}

/* What a body took of its room; the rest is for the next. */
static void heap_trim(struct heap *heap, const u8 *end) {
    bool last = heap->head && end >= heap->head->data && end <= heap->head->data + heap->used;
    heap->used = last ? end - heap->head->data : heap->used;
}

/* The newest block stays: the others have served their time. */
void heap_reset(struct heap *heap) {
    heap->used = 0;
    struct heap_block *rest = heap->head ? heap->head->next : NULL;
    while (rest) {
        struct heap_block *next = rest->next;
        mem_free(heap->mem, rest, (i64)sizeof *rest + rest->bytes);
        rest = next;
    }
    if (heap->head) {
        heap->head->next = NULL;
    }
}

void heap_fini(struct heap *heap) {
    heap_reset(heap);
    if (heap->head) {
        mem_free(heap->mem, heap->head, (i64)sizeof *heap->head + heap->head->bytes);
        heap->head = NULL;
    }
}

/* The operands of an opcode, by kind; `no` is no operand. */
typedef u8 no;
#define PASS_no(x)
#define PASS_b8(x) , x
#define PASS_i32(x) , x
#define PASS_i64(x) , x
#define PASS_i128(x) , x
#define PASS_f32(x) , x
#define PASS_f64(x) , x
#define PASS_str(x) , x
/* Values of a register are as aligned as the vector: 128-bit ones too. */
#define TAKE(k, x)                    \
    const k x = ((const k *)p##x)[i]; \
    UNUSED(x)
#define REST_no(x) UNUSED(p##x)
#define REST_b8(x) TAKE(b8, x)
#define REST_i32(x) TAKE(i32, x)
#define REST_i64(x) TAKE(i64, x)
#define REST_i128(x) TAKE(i128, x)
#define REST_f32(x) TAKE(f32, x)
#define REST_f64(x) TAKE(f64, x)
#define REST_str(x) TAKE(str, x)

#define XH(A, name, r, ka, kb, kc, fn, text)                               \
    case OP_##name:                                                        \
        for (i64 j = 0; j < fr->m; j++) {                                  \
            u32 i = ACTIVE(fr, j);                                         \
            TAKE(ka, a);                                                   \
            REST_##kb(b);                                                  \
            REST_##kc(c);                                                  \
            ((r *)dst)[i] = fn(a PASS_##kb(b) PASS_##kc(c), &w->fault[i]); \
            any |= w->fault[i];                                            \
        }                                                                  \
        break;
#define XR(A, name, fails, r, ka, kb, kc, part, expr, text) \
    case OP_##name:                                         \
        for (i64 j = 0; j < fr->m; j++) {                   \
            u32 i = ACTIVE(fr, j);                          \
            u8 *f = &w->fault[i];                           \
            TAKE(ka, a);                                    \
            REST_##kb(b);                                   \
            REST_##kc(c);                                   \
            ((r *)dst)[i] = expr;                           \
            any |= *f;                                      \
        }                                                   \
        break;
#define XT(A, name, ka, kb, kc, fn, text)                                                \
    case OP_##name:                                                                      \
        for (i64 j = 0; j < fr->m; j++) {                                                \
            u32 i = ACTIVE(fr, j);                                                       \
            TAKE(ka, a);                                                                 \
            REST_##kb(b);                                                                \
            REST_##kc(c);                                                                \
            made.bytes = (const u8 *)"";                                                 \
            made.len = 0;                                                                \
            fn(&made, a PASS_##kb(b) PASS_##kc(c), &w->fault[i]);                        \
            if (made.asked) {                                                            \
                return memory_refused(w->heap.mem, &w->err, made.asked);                 \
            }                                                                            \
            heap_trim(&w->heap, made.bytes + made.len);                                  \
            ((str *)dst)[i] = str_from((struct sv){(const char *)made.bytes, made.len}); \
            any |= w->fault[i];                                                          \
        }                                                                                \
        break;
#define XM(A, name, fails, ka, kb, kc, part, most, body, text)                \
    case OP_##name:                                                           \
        for (i64 j = 0; j < fr->m; j++) {                                     \
            u32 i = ACTIVE(fr, j);                                            \
            u8 *f = &w->fault[i];                                             \
            u8 *out = NULL;                                                   \
            TAKE(ka, a);                                                      \
            REST_##kb(b);                                                     \
            REST_##kc(c);                                                     \
            i64 room = most;                                                  \
            room = room > TEXT_BYTES_MAX ? body : room;                       \
            if (room <= TEXT_BYTES_MAX) {                                     \
                out = heap_alloc(&w->heap, MAX_OF(room, 1));                  \
                if (!out) {                                                   \
                    return memory_refused(w->heap.mem, &w->err, room);        \
                }                                                             \
            }                                                                 \
            i64 bytes = out ? body : 0;                                       \
            *f = out ? *f : FAULT_TEXT_SIZE;                                  \
            const u8 *at = out ? out : (const u8 *)"";                        \
            heap_trim(&w->heap, at + bytes);                                  \
            ((str *)dst)[i] = str_from((struct sv){(const char *)at, bytes}); \
            any |= *f;                                                        \
        }                                                                     \
        break;

static u8 *heap_room(void *heap, i64 bytes) {
    return heap_alloc(heap, bytes);
}

/* Numbers and parts of text. */
static FALLIBLE rare_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u8 *out_any) {
    u32 arity = op_infos[op->op->code].arity;
    const void *pa = frame_read(w, fr, op->a);
    const void *pb = arity > 1 ? frame_read(w, fr, op->b) : NULL;
    const void *pc = arity > 2 ? frame_read(w, fr, op->c) : NULL;
    void *dst = frame_dst(w, fr, op->dst);
    u8 any = 0;
    memset(w->fault, 0, (size_t)fr->n);
    switch (op->op->code) {
        WF_OPS_HOST(XH, )
        WF_OPS_RARE_TIME(XR, )
        WF_OPS_RARE_MATH(XR, )
        WF_OPS_RARE_STR(XR, )
        WF_OPS_RARE_READ(XR, )
    default:
        return error_set(&w->err, ERR_INTERNAL, -1, "opcode %s has no host body",
                         op_infos[op->op->code].name);
    }
    *out_any = any;
    return ERR_OK;
}

static FALLIBLE make_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u8 *out_any) {
    u32 arity = op_infos[op->op->code].arity;
    const void *pa = frame_read(w, fr, op->a);
    const void *pb = arity > 1 ? frame_read(w, fr, op->b) : NULL;
    const void *pc = arity > 2 ? frame_read(w, fr, op->c) : NULL;
    void *dst = frame_dst(w, fr, op->dst);
    struct made made = {.room = heap_room, .from = &w->heap};
    u8 any = 0;
    memset(w->fault, 0, (size_t)fr->n);
    switch (op->op->code) {
        WF_OPS_MAKE(XM, )
        WF_OPS_TEXT(XT, )
    default:
        return error_set(&w->err, ERR_INTERNAL, -1, "opcode %s makes no text",
                         op_infos[op->op->code].name);
    }
    *out_any = any;
    return ERR_OK;
}
#undef XH
#undef XM
#undef XR
#undef XT

wf_status host_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u8 *out_any) {
    bool makes = op_infos[op->op->code].flags & OP_MAKES;
    TRY(makes ? make_run(w, fr, op, out_any) : rare_run(w, fr, op, out_any));
    return exec_check(w->run->x); /* a body that was told to stop gave anything */
}
