/* prim_order.c: the public primitives that order elements: checks, then the device. */
#include "api/prim_int.h"
#include "prim/order.h"

#define ANY_TYPE "UIFWT"

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
    bool text = keys.type == WF_ELEM_TEXT;
    i32 most = how->by == WF_SPLIT_HASH || text ? hash_bits : 8 * elem_bytes[a->keys.type];
    a->how.by = (u8)how->by;
    a->how.unstable = how->unstable != 0;
    if (how->by == WF_SPLIT_RANGE) {
        a->how.splitters = call_in(c, "splitters", how->splitters, ANY_TYPE);
        CALL_NEED(c, how->splitters.type == keys.type, DATATYPE_MISMATCH,
                  "splitters are of another type than keys");
        CALL_NEED(c, how->splitters.count < 1LL << SPLIT_BITS_MAX, INVALID_PARAMETER,
                  "%lld splitters are more than 2^%d - 1", (i64)how->splitters.count,
                  SPLIT_BITS_MAX);
        CALL_NEED(c, !text || how->splitters.bytes == keys.bytes || !how->splitters.count,
                  INVALID_PARAMETER, "splitters and keys refer to different bytes");
        a->how.splitters.bytes = a->keys.bytes;
        a->how.splitters.byte_count = MIN_OF(a->how.splitters.byte_count, a->keys.byte_count);
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

/* Many because a public call names each of its arrays. */
wf_status wf_prim_split(wf_prim *prim, wf_place place, const wf_split *how, wf_array out_keys,
                        wf_array out_starts, wf_array keys, const wf_array *out_payloads,
                        const wf_array *payloads, int payload_count, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "split", work)) {
        struct split_args a = {0};
        CALL_NEED(&c, how, INVALID_PARAMETER, "nothing says how");
        take_keys(&c, &a.out_keys, &a.keys, out_keys, keys, ANY_TYPE);
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

/* Many because a public call names each of its arrays. */
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

/* --- ascending arrays --- */

/* Two inputs of one type; text over the same bytes. */
static void take_both(struct call *c, struct prim_array *to_a, struct prim_array *to_b, wf_array a,
                      wf_array b) {
    *to_a = call_in(c, "a", a, ANY_TYPE);
    *to_b = call_in(c, "b", b, ANY_TYPE);
    CALL_NEED(c, a.type == b.type, DATATYPE_MISMATCH, "a and b are of different types");
    CALL_NEED(c, a.type != WF_ELEM_TEXT || a.bytes == b.bytes, INVALID_PARAMETER,
              "the texts of a and b refer to different bytes");
    if (a.type == WF_ELEM_TEXT) {
        i64 bytes = MIN_OF(to_a->byte_count, to_b->byte_count);
        to_b->bytes = to_a->bytes;
        to_a->byte_count = to_b->byte_count = bytes;
    }
}

struct merge_args {
    struct prim_array out, a, b, out_payload, a_payload, b_payload;
};

static wf_status merge_body(struct prim_job *job, void *arg) {
    struct merge_args *m = arg;
    return prim_merge_array(job, m->out, m->a, m->b, m->out_payload, m->a_payload, m->b_payload);
}

static void take_merge_payload(struct call *c, struct merge_args *m, wf_array out, wf_array a,
                               wf_array b) {
    m->a_payload = call_in(c, "a payload", a, ANY_TYPE);
    m->b_payload = call_in(c, "b payload", b, ANY_TYPE);
    m->out_payload = call_out(c, "out payload", out, ANY_TYPE);
    CALL_NEED(c, a.type == out.type && b.type == out.type, DATATYPE_MISMATCH,
              "payloads are of different types");
    CALL_NEED(c, a.count >= m->a.count && b.count >= m->b.count, INVALID_PARAMETER,
              "a payload has fewer elements than there are keys");
    CALL_NEED(c, out.count >= m->a.count + m->b.count, INVALID_PARAMETER,
              "out payload has room for %lld of %lld", (i64)out.count, m->a.count + m->b.count);
    call_filled(c, m->out_payload, m->a.count + m->b.count);
}

/* Many because a public call names each of its arrays. */
wf_status wf_prim_merge(wf_prim *prim, wf_place place, wf_array out, wf_array a, wf_array b,
                        wf_array out_payload, wf_array a_payload, wf_array b_payload,
                        wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "merge", work)) {
        struct merge_args m = {.out_payload = {.type = ELEM_U32}};
        take_both(&c, &m.a, &m.b, a, b);
        m.out = call_out(&c, "out", out, ANY_TYPE);
        CALL_NEED(&c, out.type == a.type, DATATYPE_MISMATCH, "out is of another type than a");
        CALL_NEED(&c, c.status || out.count >= a.count + b.count, INVALID_PARAMETER,
                  "out has room for %lld of %lld", (i64)out.count, (i64)(a.count + b.count));
        call_filled(&c, m.out, m.a.count + m.b.count);
        if (!c.status && (wanted(out_payload) || wanted(a_payload) || wanted(b_payload))) {
            take_merge_payload(&c, &m, out_payload, a_payload, b_payload);
        }
        call_apart(&c, NULL, NULL);
        call_run(&c, merge_body, &m);
    }
    return call_close(&c);
}

struct search_args {
    struct prim_search how;
    struct prim_array out, needles, among;
};

static wf_status search_body(struct prim_job *job, void *arg) {
    struct search_args *s = arg;
    return prim_search_array(job, s->how, s->out, s->needles, s->among);
}

/* Many because a public call names each of its arrays. */
wf_status wf_prim_search(wf_prim *prim, wf_place place, int upper, int sorted, wf_array out,
                         wf_array needles, wf_array among, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "search", work)) {
        struct search_args s = {.how = {.upper = upper != 0, .sorted = sorted != 0}};
        take_both(&c, &s.needles, &s.among, needles, among);
        s.out = call_out(&c, "out", out, "UI");
        CALL_NEED(&c, out.count >= needles.count, INVALID_PARAMETER,
                  "out has room for %lld of %lld", (i64)out.count, (i64)needles.count);
        call_filled(&c, s.out, needles.count);
        call_apart(&c, NULL, NULL);
        call_run(&c, search_body, &s);
    }
    return call_close(&c);
}

wf_status wf_prim_balance(wf_prim *prim, wf_place place, wf_array out, int64_t count,
                          wf_array starts, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "balance", work)) {
        struct search_args s = {.how = {.upper = 1, .sorted = 1, .minus_one = 1, .counting = 1}};
        s.among = call_in(&c, "starts", starts, "UI");
        s.out = call_out(&c, "out", out, "UI");
        s.needles = (struct prim_array){.type = s.among.type, .count = count};
        CALL_NEED(&c, count >= 0 && out.count >= count, INVALID_PARAMETER,
                  "out has room for %lld of %lld", (i64)out.count, (i64)count);
        CALL_NEED(&c, elem_bytes[s.among.type] == 8 || count <= 1LL << 31, INVALID_PARAMETER,
                  "starts of 32 bits cannot tell %lld places apart", (i64)count);
        call_filled(&c, s.out, count);
        call_apart(&c, NULL, NULL);
        call_run(&c, search_body, &s);
    }
    return call_close(&c);
}

struct runs_args {
    struct prim_array out_keys, out_starts, out_counts, keys;
    i64 count;
};

static wf_status runs_body(struct prim_job *job, void *arg) {
    struct runs_args *r = arg;
    return prim_runs_array(job, r->out_keys, r->out_starts, r->out_counts, r->keys, &r->count);
}

/* Many because a public call names each of its arrays. */
wf_status wf_prim_runs(wf_prim *prim, wf_place place, wf_array out_keys, wf_array out_starts,
                       wf_array out_counts, wf_array keys, int64_t *out_count, wf_work *work) {
    struct call c;
    struct runs_args r = {.count = 0};
    if (call_open(&c, prim, place, "runs", work)) {
        r.keys = call_in(&c, "keys", keys, ANY_TYPE);
        r.out_keys = call_out_if(&c, "out keys", out_keys, ANY_TYPE);
        r.out_starts = call_out_if(&c, "out starts", out_starts, "U");
        r.out_counts = call_out_if(&c, "out counts", out_counts, "U");
        CALL_NEED(&c, out_count, INVALID_PARAMETER, "there is no place for the count");
        CALL_NEED(&c, !wanted(out_keys) || out_keys.type == keys.type, DATATYPE_MISMATCH,
                  "out keys are of another type than keys");
        call_apart(&c, NULL, NULL);
        call_run(&c, runs_body, &r);
        call_filled(&c, r.out_keys, r.count);
        call_filled(&c, r.out_starts, r.count);
        call_filled(&c, r.out_counts, r.count);
    }
    if (out_count) {
        *out_count = r.count;
    }
    return call_close(&c);
}

struct set_args {
    struct prim_set how;
    struct prim_array out, a, b;
    i64 count;
};

static wf_status set_body(struct prim_job *job, void *arg) {
    struct set_args *s = arg;
    return prim_set_array(job, s->how, s->out, s->a, s->b, &s->count);
}

static void take_set(struct call *c, struct prim_set *to, const wf_set_how *how, wf_elem type) {
    CALL_NEED(c, how->op >= 0 && (i32)how->op < SET_COUNT, INVALID_PARAMETER,
              "there is no operation number %d", (int)how->op);
    CALL_NEED(c, how->ignore_bits >= 0 && how->ignore_bits < 8 * elem_bytes[type],
              INVALID_PARAMETER, "%d bits cannot be left out", how->ignore_bits);
    CALL_NEED(c, !how->ignore_bits || elem_kinds[type] == 'U' || elem_kinds[type] == 'W',
              NOT_SUPPORTED, "bits of %s cannot be left out", elem_names[type]);
    *to = (struct prim_set){(u8)how->op, how->distinct != 0, how->ignore_bits};
}

/* Many because a public call names each of its arrays. */
wf_status wf_prim_set(wf_prim *prim, wf_place place, const wf_set_how *how, wf_array out,
                      wf_array a, wf_array b, int64_t *out_count, wf_work *work) {
    struct call c;
    struct set_args s = {.count = 0};
    if (call_open(&c, prim, place, "set operation", work)) {
        CALL_NEED(&c, how && out_count, INVALID_PARAMETER,
                  "nothing says which, or there is no place for the count");
        take_both(&c, &s.a, &s.b, a, b);
        s.out = call_out(&c, "out", out, ANY_TYPE);
        CALL_NEED(&c, out.type == a.type, DATATYPE_MISMATCH, "out is of another type than a");
        if (!c.status) {
            take_set(&c, &s.how, how, a.type);
        }
        call_apart(&c, NULL, NULL);
        call_run(&c, set_body, &s);
        call_filled(&c, s.out, s.count);
    }
    if (out_count) {
        *out_count = s.count;
    }
    return call_close(&c);
}
