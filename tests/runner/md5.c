/* md5.c: the digest sqllogictest uses to name results; RFC 1321. */
#include "runner.h"

#include <math.h>
#include <string.h>

static const uint8_t shifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t sine(int i) {
    return (uint32_t)(fabs(sin((double)(i + 1))) * 4294967296.0);
}

static void transform(uint32_t state[4], const uint8_t block[64]) {
    uint32_t word[16];
    memcpy(word, block, 64);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (int i = 0; i < 64; i++) {
        uint32_t mix;
        int k;
        if (i < 16) {
            mix = (b & c) | (~b & d);
            k = i;
        } else if (i < 32) {
            mix = (d & b) | (~d & c);
            k = (5 * i + 1) % 16;
        } else if (i < 48) {
            mix = b ^ c ^ d;
            k = (3 * i + 5) % 16;
        } else {
            mix = c ^ (b | ~d);
            k = (7 * i) % 16;
        }
        uint32_t sum = a + mix + sine(i) + word[k];
        int by = shifts[i / 16][i % 4];
        a = d;
        d = c;
        c = b;
        b += (sum << by) | (sum >> (32 - by));
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void md5_init(struct md5 *md5) {
    static const uint32_t start[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    memcpy(md5->state, start, sizeof start);
    md5->bytes = 0;
}

void md5_add(struct md5 *md5, const void *data, size_t len) {
    const uint8_t *in = data;
    for (size_t i = 0; i < len; i++) {
        md5->block[md5->bytes++ % 64] = in[i];
        if (md5->bytes % 64 == 0) {
            transform(md5->state, md5->block);
        }
    }
}

void md5_hex(struct md5 *md5, char out[33]) {
    uint64_t bits = md5->bytes * 8;
    static const uint8_t one = 0x80, zero = 0;
    md5_add(md5, &one, 1);
    while (md5->bytes % 64 != 56) {
        md5_add(md5, &zero, 1);
    }
    md5_add(md5, &bits, 8);
    const uint8_t *digest = (const uint8_t *)md5->state;
    for (int i = 0; i < 16; i++) {
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    }
}
