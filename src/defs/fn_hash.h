/* fn_hash.h: MD5 and SHA-2 of bytes. Kernel text (see fn_int.h); needs fn_str.h and fn_make.h.
 *
 * Both families of SHA-2 are one algorithm on words of 32 and of 64 bits. Their constants are the first
 * bits of the fractions of cube roots (rounds) and square roots (initial states) of the first primes,
 * and those of the narrow family are the upper halves of the wide one's. See fn_make.h for `out`. */
#ifndef WF_DEFS_FN_HASH_H
#define WF_DEFS_FN_HASH_H

CONST_TABLE u8 fn_md5_shifts[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};
CONST_TABLE u32 fn_md5_sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

/* RFC 1321. */
FN_SLOW void fn_md5_block(u32 *state, const u8 *block) {
    u32 a = state[0];
    u32 b = state[1];
    u32 c = state[2];
    u32 d = state[3];
    NO_UNROLL
    for (u32 i = 0; i < 64; i++) {
        u32 mix = i < 16   ? (b & c) | (~b & d)
                  : i < 32 ? (d & b) | (~d & c)
                  : i < 48 ? b ^ c ^ d
                           : c ^ (b | ~d);
        u32 k = i < 16 ? i : i < 32 ? (5 * i + 1) & 15 : i < 48 ? (3 * i + 5) & 15 : 7 * i & 15;
        const u8 *p = block + 4 * k;
        u32 word = (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
        u32 turn = fn_md5_shifts[i / 16 * 4 + (i & 3)];
        u32 sum = a + mix + fn_md5_sines[i] + word;
        a = d;
        d = c;
        c = b;
        b += sum << turn | sum >> (32 - turn);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

/* The last block or two of `size` bytes: the rest of the text, a bit, and its length, `last` bytes of
 * which end it. How many bytes they are. */
FN u32 fn_hash_tail(u8 *tail, str a, u32 size, u32 last) {
    u32 rest = a.len % size;
    u32 total = rest + 1 + last <= size ? size : 2 * size;
    for (u32 i = 0; i < total; i++) {
        tail[i] = 0;
    }
    copy_bytes(tail, fn_str_ptr(a) + (a.len - rest), rest);
    tail[rest] = 0x80;
    return total;
}

FN_SLOW i64 fn_md5(u8 *out, str a) {
    u32 state[4];
    u8 tail[128];
    if (!out) {
        return 32;
    }
    state[0] = 0x67452301;
    state[1] = 0xefcdab89;
    state[2] = 0x98badcfe;
    state[3] = 0x10325476;
    for (u32 at = 0; a.len - at >= 64 && !stop_due(at, at + 64u); at += 64) {
        fn_md5_block(state, fn_str_ptr(a) + at);
    }
    u32 total = fn_hash_tail(tail, a, 64, 8);
    for (u32 i = 0; i < 8; i++) {
        tail[total - 8 + i] = (u8)((u64)a.len * 8 >> (8 * i));
    }
    for (u32 at = 0; at < total; at += 64) {
        fn_md5_block(state, tail + at);
    }
    for (u32 i = 0; i < 16; i++) {
        u32 byte = state[i / 4] >> (8 * (i % 4));
        out[2 * i] = fn_hex_digit(byte >> 4);
        out[2 * i + 1] = fn_hex_digit(byte);
    }
    return 32;
}

CONST_TABLE u64 fn_sha_rounds[80] = {
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
CONST_TABLE u64 fn_sha_512[8] = {
    0x6a09e667f3bcc908ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL, 0xa54ff53a5f1d36f1ULL,
    0x510e527fade682d1ULL, 0x9b05688c2b3e6c1fULL, 0x1f83d9abfb41bd6bULL, 0x5be0cd19137e2179ULL};
CONST_TABLE u64 fn_sha_384[8] = {
    0xcbbb9d5dc1059ed8ULL, 0x629a292a367cd507ULL, 0x9159015a3070dd17ULL, 0x152fecd8f70e5939ULL,
    0x67332667ffc00b31ULL, 0x8eb44a8768581511ULL, 0xdb0c2e0d64f98fa7ULL, 0x47b5481dbefa4fa4ULL};

/* Turns of the two sums, and turns and shifts of the two that extend the message: narrow, wide. */
CONST_TABLE u8 fn_sha_turns[24] = {2,  13, 22, 6,  11, 25, 7, 18, 3, 17, 19, 10,
                                   28, 34, 39, 14, 18, 41, 1, 8,  7, 19, 61, 6};

FN u64 fn_sha_cut(u32 bits, u64 x) {
    return bits == 64 ? x : x & 0xffffffff;
}

FN u64 fn_sha_turned(u32 bits, u64 x, u32 by) {
    return fn_sha_cut(bits, x >> by | x << (bits - by));
}

FN_SLOW u64 fn_sha_sum(u32 bits, u64 x,
                       u32 which) { /* the first two turn, the others shift at last */
    const u8 *by = fn_sha_turns + (bits == 64 ? 12 : 0) + 3 * which;
    return fn_sha_turned(bits, x, by[0]) ^ fn_sha_turned(bits, x, by[1]) ^
           (which < 2 ? fn_sha_turned(bits, x, by[2]) : x >> by[2]);
}

FN_SLOW void fn_sha_block(u32 bits, u64 *state, const u8 *p) {
    u64 w[80];
    u64 v[8];
    u32 width = bits / 8;
    u32 rounds = bits == 64 ? 80 : 64;
    for (u32 i = 0; i < 16; i++) {
        w[i] = 0;
        for (u32 k = 0; k < width; k++) {
            w[i] = w[i] << 8 | p[i * width + k];
        }
    }
    NO_UNROLL
    for (u32 i = 16; i < rounds; i++) {
        w[i] = fn_sha_cut(bits, w[i - 16] + fn_sha_sum(bits, w[i - 15], 2) + w[i - 7] +
                                    fn_sha_sum(bits, w[i - 2], 3));
    }
    for (u32 i = 0; i < 8; i++) {
        v[i] = state[i];
    }
    NO_UNROLL
    for (u32 i = 0; i < rounds; i++) {
        u64 constant = bits == 64 ? fn_sha_rounds[i] : fn_sha_rounds[i] >> 32;
        u64 choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        u64 most = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        u64 x = v[7] + fn_sha_sum(bits, v[4], 1) + choice + constant + w[i];
        u64 y = fn_sha_sum(bits, v[0], 0) + most;
        for (u32 k = 7; k > 0; k--) {
            v[k] = v[k - 1];
        }
        v[4] = fn_sha_cut(bits, v[4] + x);
        v[0] = fn_sha_cut(bits, x + y);
    }
    for (u32 i = 0; i < 8; i++) {
        state[i] = fn_sha_cut(bits, state[i] + v[i]);
    }
}

/* `bytes` of the hash from words of `bits`; the first states are start[i] >> shift. */
FN_SLOW i64 fn_sha(u8 *out, str a, u32 bits, const u64 *start, u32 shift, u32 bytes) {
    u64 state[8];
    u8 tail[256];
    u32 width = bits / 8;
    u32 size = 16 * width;
    if (!out) {
        return bytes;
    }
    for (u32 i = 0; i < 8; i++) {
        state[i] = fn_sha_cut(bits, start[i] >> shift);
    }
    for (u32 at = 0; a.len - at >= size && !stop_due(at, at + size); at += size) {
        fn_sha_block(bits, state, fn_str_ptr(a) + at);
    }
    u32 total = fn_hash_tail(tail, a, size, 2 * width);
    for (u32 i = 0; i < 8; i++) {
        tail[total - 1 - i] = (u8)((u64)a.len * 8 >> (8 * i));
    }
    for (u32 at = 0; at < total; at += size) {
        fn_sha_block(bits, state, tail + at);
    }
    for (u32 i = 0; i < bytes; i++) {
        out[i] = (u8)(state[i / width] >> (8 * (width - 1 - i % width)));
    }
    return bytes;
}

FN i64 fn_sha224(u8 *out, str a) {
    return fn_sha(out, a, 32, fn_sha_384, 0, 28);
}

FN i64 fn_sha256(u8 *out, str a) {
    return fn_sha(out, a, 32, fn_sha_512, 32, 32);
}

FN i64 fn_sha384(u8 *out, str a) {
    return fn_sha(out, a, 64, fn_sha_384, 0, 48);
}

FN i64 fn_sha512(u8 *out, str a) {
    return fn_sha(out, a, 64, fn_sha_512, 0, 64);
}

#endif
