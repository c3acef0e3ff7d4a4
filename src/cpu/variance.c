/* variance.c: the opcode VARIANCE: variance and standard deviation from exact sums.
 *
 * With n values, their sum S and the sum Q of their squares, all exact, the variance is
 * (n Q - S S) / (n (n - 1)), or / (n n) of a population. The numerator is computed without
 * rounding, as a number of many 32-bit digits, and so neither order nor cancellation matter; one
 * division, one root and one rounding follow. The sums are integers times a power of two (floats)
 * or of ten (decimals). Two sums S and T, and that of the products, give in the same way
 * (n Q - S T) / n: the sum of the products of the distances from the means, which may be
 * negative. */
#include "cpu/cpu_int.h"

#include <math.h>

enum { DIGITS = 640 }; /* of 32 bits: two sums over all exponents, and room to scale them */

struct big { /* not negative */
    u32 digit[DIGITS];
    i32 count; /* digits; none above is set */
};

static void trim(struct big *x) {
    while (x->count > 0 && x->digit[x->count - 1] == 0) {
        x->count--;
    }
}

/* Words `spacing` bits apart, low to high, overlapping and signed. The magnitude of their sum;
 * whether it is negative. */
static bool from_words(struct big *out, const i64 *words, i32 count, i32 spacing) {
    i128 carry = 0;
    for (i32 i = 0; i < count; i++) {
        carry = (carry + words[i]) >> spacing;
    }
    bool negative = carry < 0;
    i32 per = 32 / spacing;
    memset(out->digit, 0, sizeof out->digit);
    carry = 0;
    i32 i = 0;
    for (; i < count || carry != 0; i++) {
        i128 word = i < count ? (i128)words[i] : (i128)0;
        carry += negative ? -word : word;
        u32 part = (u32)((u64)carry & ((1ULL << spacing) - 1));
        carry >>= spacing;
        out->digit[i / per] |= part << (i % per * spacing);
    }
    out->count = i / per + 1;
    trim(out);
    return negative;
}

static void mul_small(struct big *x, u64 by) {
    u128 carry = 0;
    u32 low = (u32)by;
    u32 high = (u32)(by >> 32);
    u32 before = 0; /* the digit below, as it was */
    i32 end = x->count + 3;
    for (i32 i = 0; i < end; i++) {
        u32 digit = i < x->count ? x->digit[i] : 0;
        carry += (u128)digit * low + (u128)before * high;
        before = digit;
        x->digit[i] = (u32)carry;
        carry >>= 32;
    }
    x->count = end;
    trim(x);
}

static void multiply(struct big *out, const struct big *x, const struct big *y) {
    memset(out->digit, 0, sizeof out->digit);
    for (i32 i = 0; i < x->count; i++) {
        u64 carry = 0;
        for (i32 j = 0; j < y->count || carry; j++) {
            u64 digit = j < y->count ? y->digit[j] : 0;
            u64 sum = out->digit[i + j] + digit * x->digit[i] + carry;
            out->digit[i + j] = (u32)sum;
            carry = sum >> 32;
        }
    }
    out->count = x->count + y->count + 1;
    trim(out);
}

static i32 compare(const struct big *x, const struct big *y) {
    i32 cmp = x->count - y->count;
    for (i32 i = x->count; cmp == 0 && i-- > 0;) {
        cmp = (x->digit[i] > y->digit[i]) - (x->digit[i] < y->digit[i]);
    }
    return cmp;
}

static void add(struct big *x, const struct big *y) {
    u64 carry = 0;
    i32 end = MAX_OF(x->count, y->count) + 1;
    for (i32 i = 0; i < end; i++) {
        carry += (i < x->count ? (u64)x->digit[i] : 0) + (i < y->count ? (u64)y->digit[i] : 0);
        x->digit[i] = (u32)carry;
        carry >>= 32;
    }
    x->count = end;
    trim(x);
}

/* x -= y, where x >= y. */
static void subtract(struct big *x, const struct big *y) {
    i64 borrow = 0;
    for (i32 i = 0; i < x->count; i++) {
        i64 diff = (i64)x->digit[i] - (i < y->count ? (i64)y->digit[i] : 0) + borrow;
        x->digit[i] = (u32)diff;
        borrow = diff < 0 ? -1 : 0;
    }
    trim(x);
}

/* x /= by; whether there was a remainder. */
static bool div_small(struct big *x, u64 by) {
    u128 rest = 0;
    for (i32 i = x->count; i-- > 0;) {
        rest = rest << 32 | x->digit[i];
        x->digit[i] = (u32)(rest / by);
        rest %= by;
    }
    trim(x);
    return rest != 0;
}

static void shift_left(struct big *x, i32 bits) {
    i32 digits = bits / 32;
    i32 rest = bits % 32;
    for (i32 i = x->count + digits; i >= 0; i--) {
        u64 high = i - digits >= 0 && i - digits < x->count ? x->digit[i - digits] : 0;
        u64 low = i - digits - 1 >= 0 && i - digits - 1 < x->count ? x->digit[i - digits - 1] : 0;
        x->digit[i] = (u32)((high << 32 | low) << rest >> 32);
    }
    x->count += digits + 1;
    trim(x);
}

static i32 bit_length(const struct big *x) {
    return x->count == 0 ? 0 : 32 * x->count - __builtin_clz(x->digit[x->count - 1]);
}

static u64 bits_at(const struct big *x, i32 from) { /* 64 of them */
    u64 out = 0;
    for (i32 i = 0; i < 64; i++) {
        i32 at = from + i;
        bool set = at >= 0 && at / 32 < x->count && (x->digit[at / 32] >> (at % 32) & 1);
        out |= (u64)set << i;
    }
    return out;
}

static bool any_below(const struct big *x, i32 bit) {
    for (i32 i = 0; i < MIN_OF(bit, 32 * x->count); i++) {
        if (x->digit[i / 32] >> (i % 32) & 1) {
            return true;
        }
    }
    return false;
}

/* The highest 128 bits of x as a number, x below 2^128. */
static u128 as_u128(const struct big *x) {
    return (u128)bits_at(x, 64) << 64 | bits_at(x, 0);
}

/* The largest r with r r <= x, x below 2^256; *exact when equal. */
static u128 root_of(const struct big *x, bool *exact) {
    u128 r = 0;
    *exact = false;
    struct big t, s;
    for (i32 bit = (bit_length(x) - 1) / 2; bit >= 0; bit--) {
        u128 more = r | (u128)1 << bit;
        t.count = 4;
        for (i32 i = 0; i < 4; i++) {
            t.digit[i] = (u32)(more >> (32 * i));
        }
        trim(&t);
        multiply(&s, &t, &t);
        i32 cmp = compare(&s, x);
        r = cmp <= 0 ? more : r;
        *exact = *exact || cmp == 0;
    }
    return r;
}

struct how { /* VARIANCE's literal */
    i32 spacing, scale;
    bool population, root;
    i32 n2;    /* words of the second sum; 0: there is none */
    i32 shift; /* floats: exponent of the sum's lowest bit, or of the products' where there is a
                * second sum; decimals: scale of the values */
};

static struct how read_how(i64 lit) {
    struct how h = {.spacing = (i32)(lit & 0xff), .scale = (i32)(lit >> 16 & 0xff)};
    h.population = lit >> 8 & 1;
    h.root = lit >> 9 & 1;
    h.n2 = (i32)(lit >> 24 & 0xff);
    h.shift = (i32)((u64)lit >> 32);
    return h;
}

/* n Q - S S into num. */
static void numerator(struct big *num, const i64 *words, i32 n1, i32 count, const struct how *h) {
    struct big sum, sum_square;
    from_words(&sum, words + 1, n1, h->spacing);
    from_words(num, words + 1 + n1, count - 1 - n1, h->spacing);
    mul_small(num, (u64)words[0]);
    multiply(&sum_square, &sum, &sum);
    subtract(num, &sum_square);
}

/* n Q - S T into num; whether it is negative. */
static bool cross_numerator(struct big *num, const i64 *words, i32 n1, i32 count,
                            const struct how *h) {
    struct big x, y, other;
    bool x_negative = from_words(&x, words + 1, n1, h->spacing);
    bool y_negative = from_words(&y, words + 1 + n1, h->n2, h->spacing);
    bool negative = from_words(num, words + 1 + n1 + h->n2, count - 1 - n1 - h->n2, h->spacing);
    mul_small(num, (u64)words[0]);
    multiply(&other, &x, &y);
    if (negative != (x_negative != y_negative)) {
        add(num, &other);
        return negative;
    }
    if (compare(num, &other) >= 0) {
        subtract(num, &other);
        return negative;
    }
    struct big less = *num;
    *num = other;
    subtract(num, &less);
    return !negative;
}

static f64 to_f64(const struct big *x, i32 exponent, bool sticky) {
    i32 drop = MAX_OF(bit_length(x) - 64, 0);
    u64 top = bits_at(x, drop);
    top |= (u64)(sticky || any_below(x, drop));
    return ldexp((f64)top, exponent + drop);
}

static f64 float_result(struct big *num, const struct how *h, u64 n) {
    u64 m = h->n2 ? 1 : h->population ? n : n - 1;
    if (num->count == 0) {
        return 0;
    }
    /* A quotient of 130 bits and more; of an even exponent, for the root. */
    i32 up = MAX_OF(0, 260 - bit_length(num));
    i32 exponent = (h->n2 ? h->shift : 2 * h->shift) - up;
    up += exponent & 1;
    exponent -= exponent & 1;
    shift_left(num, up);
    bool rest = div_small(num, n);
    rest = div_small(num, m) || rest;
    if (!h->root) {
        return to_f64(num, exponent, rest);
    }
    i32 drop = MAX_OF(bit_length(num) - 250, 0);
    drop += drop & 1;
    rest = rest || any_below(num, drop);
    for (i32 i = 0; i < drop; i += 2) {
        rest = div_small(num, 4) || rest;
    }
    bool exact;
    u128 r = root_of(num, &exact);
    struct big root = {.count = 4};
    for (i32 i = 0; i < 4; i++) {
        root.digit[i] = (u32)(r >> (32 * i));
    }
    trim(&root);
    return to_f64(&root, (exponent + drop) / 2, rest || !exact);
}

/* Half away from zero, at the result's scale. */
static i128 decimal_result(struct big *num, const struct how *h, u64 n, u8 *fault) {
    u64 m = h->population ? n : n - 1;
    i32 up = (h->root ? 2 * h->scale : h->scale) - 2 * h->shift;
    for (i32 i = 0; i < up; i++) {
        mul_small(num, 10);
    }
    mul_small(num, h->root ? 4 : 2); /* one binary digit more, to round by */
    div_small(num, n);
    div_small(num, m);
    for (i32 i = 0; i < -up; i++) {
        div_small(num, 10);
    }
    if (bit_length(num) > (h->root ? 255 : 127)) {
        *fault = FAULT_DECIMAL;
        return 0;
    }
    bool exact;
    u128 twice = h->root ? root_of(num, &exact) : as_u128(num);
    u128 result = (twice + 1) / 2;
    if (result >= (u128)pow10_i128(38)) {
        *fault = FAULT_DECIMAL;
        return 0;
    }
    return (i128)result;
}

bool variance_run(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    i64 words[FROUND_WORDS_MAX];
    struct how h = read_how(w->run->x->lits[op->op->imm].i64);
    bool is_float = w->run->pipe.pipe->regs[op->dst].kind == KIND_F64;
    void *dst = frame_dst(w, fr, op->dst);
    struct big num;
    u8 any = 0;
    memset(w->fault, 0, (size_t)fr->n);
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        frame_words(w, fr, op, i, words);
        bool enough = words[0] > (h.population ? 0 : 1);
        bool negative = enough && h.n2 && cross_numerator(&num, words, op->c, op->b, &h);
        if (enough && !h.n2) {
            numerator(&num, words, op->c, op->b, &h);
        }
        if (is_float) {
            f64 v = enough ? float_result(&num, &h, (u64)words[0]) : 0;
            w->fault[i] = v > 1.7976931348623157e308 ? FAULT_FLOAT_OVERFLOW : 0;
            ((f64 *)dst)[i] = negative ? -v : v;
        } else {
            ((i128 *)dst)[i] = enough ? decimal_result(&num, &h, (u64)words[0], &w->fault[i]) : 0;
        }
        any |= w->fault[i];
    }
    return any && ops_fault(w, fr, op);
}
