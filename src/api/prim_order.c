/* prim_order.c: the public primitives that order elements: checks, then the device. */
#include "api/prim_int.h"
#include "prim/order.h"

#define ANY_TYPE "UIFWT"
#define NOT_TEXT "UIFW"

static bool wanted(wf_array array) {
    return array.data != NULL || array.count != 0;
}

static struct prim_array call_out_if(struct call *c, const char *name, wf_array array,
                                     const char *types) {
    return wanted(array) ? call_out(c, name, array, types) : (struct prim_array){.type = ELEM_U64};
}

static void take_payload(struct call *c, struct prim_payload *to, const wf_array *out,
                         const wf_array *in, int count, i64 n) {
    static const char *const in_names[] = {"payload 0", "payload 1"};
    static const char *const out_names[] = {"out payload 0", "out payload 1"};
    CALL_NEED(c, count >= 0 && count <= ORDER_PAYLOADS, INVALID_PARAMETER,
              "%d payload arrays are not 0 to %d", count, ORDER_PAYLOADS);
    CALL_NEED(c, count <= 0 || (out && in), INVALID_PARAMETER, "payload arrays are NULL");
    for (i32 i = 0; i < count && !c->status; i++) {
        to->in[i] = call_in(c, in_names[i], in[i], ANY_TYPE);
        to->out[i] = call_out(c, out_names[i], out[i], ANY_TYPE);
        CALL_NEED(c, in[i].type == out[i].type, DATATYPE_MISMATCH,
                  "payload %d: out is of another type", i);
        CALL_NEED(c, in[i].count >= n && out[i].count >= n, INVALID_PARAMETER,
                  "payload %d: in or out has fewer elements than the %lld keys", i, n);
        call_filled(c, to->out[i], n);
        to->count = i + 1;
    }
}

/* Keys in and out: one type, room. */
static void take_keys(struct call *c, struct prim_array *out, struct prim_array *in,
                      wf_array out_keys, wf_array keys, const char *types) {
    *in = call_in(c, "keys", keys, types);
    *out = call_out(c, "out keys", out_keys, types);
    CALL_NEED(c, out_keys.type == keys.type, DATATYPE_MISMATCH,
              "out keys are of another type than keys");
    CALL_NEED(c, out_keys.count >= keys.count, INVALID_PARAMETER,
              "out keys has room for %lld of %lld", (i64)out_keys.count, (i64)keys.count);
    call_filled(c, *out, keys.count);
}

/* --- split --- */

struct split_args {
    struct prim_split how;
    struct prim_array out_keys, out_starts, keys;
    struct prim_payload payload;
};

static wf_status split_body(struct prim_job *job, void *arg) {
    struct split_args *a = arg;
    return prim_split_array(job, &a->how, a->out_keys, a->out_starts, a->keys, &a->payload);
}

static void take_split(struct call *c, struct split_args *a, const wf_split *how, wf_array keys) {
    i32 hash_bits = elem_bytes[a->keys.type] == 4 ? 32 : 64;
    i32 most = how->by == WF_SPLIT_HASH ? hash_bits : 8 * elem_bytes[a->keys.type];
    a->how.by = (u8)how->by;
    if (how->by == WF_SPLIT_RANGE) {
        a->how.splitters = call_in(c, "splitters", how->splitters, NOT_TEXT);
        CALL_NEED(c, how->splitters.type == keys.type, DATATYPE_MISMATCH,
                  "splitters are of another type than keys");
        CALL_NEED(c, how->splitters.count < 1LL << SPLIT_BITS_MAX, INVALID_PARAMETER,
                  "%lld splitters are more than 2^%d - 1", (i64)how->splitters.count,
                  SPLIT_BITS_MAX);
        return;
    }
    CALL_NEED(c, how->by == WF_SPLIT_RADIX || how->by == WF_SPLIT_HASH, INVALID_PARAMETER,
              "there is no way number %d", (int)how->by);
    CALL_NEED(c,
              how->bits >= 0 && how->bits <= SPLIT_BITS_MAX && how->shift >= 0 &&
                  how->shift < most && how->shift + how->bits <= most,
              INVALID_PARAMETER, "%d bits from bit %d on cannot be had", how->bits, how->shift);
    a->how.shift = c->status ? 0 : how->shift;
    a->how.bits = c->status ? 0 : how->bits;
}

wf_status wf_prim_split(wf_prim *prim, wf_place place, const wf_split *how, wf_array out_keys,
                        wf_array out_starts, wf_array keys, const wf_array *out_payloads,
                        const wf_array *payloads, int payload_count, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "split", work)) {
        struct split_args a = {0};
        CALL_NEED(&c, how, INVALID_PARAMETER, "nothing says how");
        take_keys(&c, &a.out_keys, &a.keys, out_keys, keys, NOT_TEXT);
        a.out_starts = call_out_if(&c, "out starts", out_starts, "U");
        if (!c.status) {
            take_split(&c, &a, how, keys);
        }
        i64 parts = c.status ? 0 : split_parts(&a.how);
        if (wanted(out_starts)) {
            CALL_NEED(&c, out_starts.type == WF_ELEM_U64, DATATYPE_MISMATCH,
                      "out starts is not U64");
            CALL_NEED(&c, out_starts.count > parts, INVALID_PARAMETER,
                      "out starts has room for %lld of %lld", (i64)out_starts.count, parts + 1);
            call_filled(&c, a.out_starts, parts + 1);
        }
        take_payload(&c, &a.payload, out_payloads, payloads, payload_count, keys.count);
        call_apart(&c, NULL, NULL);
        call_run(&c, split_body, &a);
    }
    return call_close(&c);
}

/* --- sort --- */

struct sort_args {
    struct prim_sort how;
    struct prim_array out_keys, keys;
    struct prim_payload payload;
};

static wf_status sort_body(struct prim_job *job, void *arg) {
    struct sort_args *a = arg;
    return prim_sort_array(job, &a->how, a->out_keys, a->keys, &a->payload);
}

static void take_sort(struct call *c, struct prim_sort *to, const wf_sort *how, wf_elem type) {
    i32 most = 8 * elem_bytes[type];
    CALL_NEED(c, how->by >= 0 && (i32)how->by < SORT_COUNT, INVALID_PARAMETER,
              "there is no algorithm number %d", (int)how->by);
    CALL_NEED(c, how->by != WF_SORT_RADIX || type != WF_ELEM_TEXT, NOT_SUPPORTED,
              "RADIX does not exist for TEXT");
    if (how->low_bit || how->high_bit) {
        CALL_NEED(c, how->low_bit >= 0 && how->low_bit < how->high_bit && how->high_bit <= most,
                  INVALID_PARAMETER, "there are no bits from %d to %d", how->low_bit,
                  how->high_bit);
        CALL_NEED(c,
                  (how->by == WF_SORT_AUTO || how->by == WF_SORT_RADIX) &&
                      (elem_kinds[type] == 'U' || elem_kinds[type] == 'W'),
                  NOT_SUPPORTED, "a range of bits is for RADIX of unsigned keys, not for %s",
                  elem_names[type]);
    }
    *to = (struct prim_sort){(u8)how->by, how->descending != 0, how->low_bit, how->high_bit};
}

wf_status wf_prim_sort(wf_prim *prim, wf_place place, const wf_sort *how, wf_array out_keys,
                       wf_array keys, const wf_array *out_payloads, const wf_array *payloads,
                       int payload_count, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "sort", work)) {
        struct sort_args a = {0};
        take_keys(&c, &a.out_keys, &a.keys, out_keys, keys, ANY_TYPE);
        if (how && !c.status) {
            take_sort(&c, &a.how, how, keys.type);
        }
        take_payload(&c, &a.payload, out_payloads, payloads, payload_count, keys.count);
        call_apart(&c, NULL, NULL);
        call_run(&c, sort_body, &a);
    }
    return call_close(&c);
}
