/* hash.c: SHA-2, the hashes sha224 to sha512 of bytes.
 *
 * Both families are one algorithm on words of 32 and of 64 bits. Their constants are the first bits
 * of the fractions of cube roots (rounds) and square roots (initial states) of the first primes,
 * and those of the narrow family are the upper halves of the wide one's. */
#include "host/bodies.h"

#include "base/stop.h"
#include "defs/types.h"

static const u64 rounds[80] = {
    0x428a2f98d728ae22ULL, 0x7137449123ef65cdULL, 0xb5c0fbcfec4d3b2fULL, 0xe9b5dba58189dbbcULL,
    0x3956c25bf348b538ULL, 0x59f111f1b605d019ULL, 0x923f82a4af194f9bULL, 0xab1c5ed5da6d8118ULL,
    0xd807aa98a3030242ULL, 0x12835b0145706fbeULL, 0x243185be4ee4b28cULL, 0x550c7dc3d5ffb4e2ULL,
    0x72be5d74f27b896fULL, 0x80deb1fe3b1696b1ULL, 0x9bdc06a725c71235ULL, 0xc19bf174cf692694ULL,
    0xe49b69c19ef14ad2ULL, 0xefbe4786384f25e3ULL, 0x0fc19dc68b8cd5b5ULL, 0x240ca1cc77ac9c65ULL,
    0x2de92c6f592b0275ULL, 0x4a7484aa6ea6e483ULL, 0x5cb0a9dcbd41fbd4ULL, 0x76f988da831153b5ULL,
    0x983e5152ee66dfabULL, 0xa831c66d2db43210ULL, 0xb00327c898fb213fULL, 0xbf597fc7beef0ee4ULL,
    0xc6e00bf33da88fc2ULL, 0xd5a79147930aa725ULL, 0x06ca6351e003826fULL, 0x142929670a0e6e70ULL,
    0x27b70a8546d22ffcULL, 0x2e1b21385c26c926ULL, 0x4d2c6dfc5ac42aedULL, 0x53380d139d95b3dfULL,
    0x650a73548baf63deULL, 0x766a0abb3c77b2a8ULL, 0x81c2c92e47edaee6ULL, 0x92722c851482353bULL,
    0xa2bfe8a14cf10364ULL, 0xa81a664bbc423001ULL, 0xc24b8b70d0f89791ULL, 0xc76c51a30654be30ULL,
    0xd192e819d6ef5218ULL, 0xd69906245565a910ULL, 0xf40e35855771202aULL, 0x106aa07032bbd1b8ULL,
    0x19a4c116b8d2d0c8ULL, 0x1e376c085141ab53ULL, 0x2748774cdf8eeb99ULL, 0x34b0bcb5e19b48a8ULL,
    0x391c0cb3c5c95a63ULL, 0x4ed8aa4ae3418acbULL, 0x5b9cca4f7763e373ULL, 0x682e6ff3d6b2b8a3ULL,
    0x748f82ee5defb2fcULL, 0x78a5636f43172f60ULL, 0x84c87814a1f0ab72ULL, 0x8cc702081a6439ecULL,
    0x90befffa23631e28ULL, 0xa4506cebde82bde9ULL, 0xbef9a3f7b2c67915ULL, 0xc67178f2e372532bULL,
    0xca273eceea26619cULL, 0xd186b8c721c0c207ULL, 0xeada7dd6cde0eb1eULL, 0xf57d4f7fee6ed178ULL,
    0x06f067aa72176fbaULL, 0x0a637dc5a2c898a6ULL, 0x113f9804bef90daeULL, 0x1b710b35131c471bULL,
    0x28db77f523047d84ULL, 0x32caab7b40c72493ULL, 0x3c9ebe0a15c9bebcULL, 0x431d67c49c100d4cULL,
    0x4cc5d4becb3e42b6ULL, 0x597f299cfc657e2aULL, 0x5fcb6fab3ad6faecULL, 0x6c44198c4a475817ULL};
static const u64 start_512[8] = {
    0x6a09e667f3bcc908ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL, 0xa54ff53a5f1d36f1ULL,
    0x510e527fade682d1ULL, 0x9b05688c2b3e6c1fULL, 0x1f83d9abfb41bd6bULL, 0x5be0cd19137e2179ULL};
static const u64 start_384[8] = {
    0xcbbb9d5dc1059ed8ULL, 0x629a292a367cd507ULL, 0x9159015a3070dd17ULL, 0x152fecd8f70e5939ULL,
    0x67332667ffc00b31ULL, 0x8eb44a8768581511ULL, 0xdb0c2e0d64f98fa7ULL, 0x47b5481dbefa4fa4ULL};

struct sha { /* shifts and turns of the two sums, and of the two that extend the message */
    i32 bits, round_count;
    i32 a[3], e[3], low[3], high[3];
};
static const struct sha narrow = {32, 64, {2, 13, 22}, {6, 11, 25}, {7, 18, 3}, {17, 19, 10}};
static const struct sha wide = {64, 80, {28, 34, 39}, {14, 18, 41}, {1, 8, 7}, {19, 61, 6}};

static u64 cut(const struct sha *s, u64 x) {
    return s->bits == 64 ? x : x & 0xffffffff;
}

static u64 turned(const struct sha *s, u64 x, i32 by) {
    return cut(s, x >> by | x << (s->bits - by));
}

static u64 sum(const struct sha *s, u64 x, const i32 *by, bool last_shifts) {
    return turned(s, x, by[0]) ^ turned(s, x, by[1]) ^
           (last_shifts ? x >> by[2] : turned(s, x, by[2]));
}

static void block(const struct sha *s, u64 *state, const u8 *p) {
    u64 w[80], v[8];
    i32 width = s->bits / 8;
    for (i32 i = 0; i < 16; i++) {
        w[i] = 0;
        for (i32 k = 0; k < width; k++) {
            w[i] = w[i] << 8 | p[i * width + k];
        }
    }
    for (i32 i = 16; i < s->round_count; i++) {
        w[i] = cut(s, w[i - 16] + sum(s, w[i - 15], s->low, true) + w[i - 7] +
                          sum(s, w[i - 2], s->high, true));
    }
    memcpy(v, state, sizeof v);
    for (i32 i = 0; i < s->round_count; i++) {
        u64 constant = s->bits == 64 ? rounds[i] : rounds[i] >> 32;
        u64 choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        u64 most = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        u64 x = v[7] + sum(s, v[4], s->e, false) + choice + constant + w[i];
        u64 y = sum(s, v[0], s->a, false) + most;
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] = cut(s, v[4] + x);
        v[0] = cut(s, x + y);
    }
    for (i32 i = 0; i < 8; i++) {
        state[i] = cut(s, state[i] + v[i]);
    }
}

static void hash(struct made *made, const struct sha *s, str a, const u64 *start, i32 start_shift,
                 i32 bytes, u8 *f) {
    u64 state[8];
    u8 tail[256] = {0};
    struct sv text = sv_of(a);
    i32 width = s->bits / 8, size = 16 * width;
    for (i32 i = 0; i < 8; i++) {
        state[i] = cut(s, start[i] >> start_shift);
    }
    i64 whole = text.len / size * size, rest = text.len - whole;
    for (i64 at = 0; at < whole && !stop_due((u64)at, (u64)(at + size)); at += size) {
        block(s, state, (const u8 *)text.ptr + at);
    }
    if (rest) {
        memcpy(tail, text.ptr + whole, (size_t)rest);
    }
    tail[rest] = 0x80;
    i32 total = rest + 1 + 2 * width <= size ? size : 2 * size;
    for (i32 i = 0; i < 8; i++) {
        tail[total - 1 - i] = (u8)((u64)text.len * 8 >> (8 * i));
    }
    for (i32 at = 0; at < total; at += size) {
        block(s, state, tail + at);
    }
    u8 *out = made_room(made, bytes, f);
    for (i32 i = 0; out && i < bytes; i++) {
        out[i] = (u8)(state[i / width] >> (8 * (width - 1 - i % width)));
    }
    made->len = out ? bytes : 0;
}

void mt_sha224(struct made *made, str a, u8 *f) {
    hash(made, &narrow, a, start_384, 0, 28, f);
}

void mt_sha256(struct made *made, str a, u8 *f) {
    hash(made, &narrow, a, start_512, 32, 32, f);
}

void mt_sha384(struct made *made, str a, u8 *f) {
    hash(made, &wide, a, start_384, 0, 48, f);
}

void mt_sha512(struct made *made, str a, u8 *f) {
    hash(made, &wide, a, start_512, 0, 64, f);
}
