/* virginian_data.c: the table of the Virginian experiment.
 *
 * Every value is a function of its row number, so that any part can be made alone, by any thread, and twice: integer
 * key; uniform in [-100, 100]; normal with sigma 5 and 20; as 32-bit integers and as 32-bit floats. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* In (0, 1). */
static float unit(uint64_t bits) {
    return ((float)(bits >> 40) + 0.5f) * (1.0f / 16777216.0f);
}

/* Two independent normal values by Box and Muller. */
static void normals(uint64_t bits, float *a, float *b) {
    float radius = sqrtf(-2.0f * logf(unit(bits)));
    float angle = 6.2831853f * unit(bits << 24);
    *a = radius * cosf(angle);
    *b = radius * sinf(angle);
}

struct part {
    struct virginian_data *data;
    int64_t first_row, from, to;
};

static int make_part(void *arg) {
    const struct part *part = arg;
    struct virginian_data *d = part->data;
    for (int64_t i = part->from; i < part->to; i++) {
        uint64_t row = (uint64_t)(part->first_row + i);
        uint64_t u = mix(row * 3), v = mix(row * 3 + 1), w = mix(row * 3 + 2);
        float a, b, c, e;
        normals(v, &a, &b);
        normals(w, &c, &e);
        d->id[i] = (int32_t)row;
        d->uniformi[i] = (int32_t)(u % 201) - 100;
        d->uniformf[i] = unit(u) * 200.0f - 100.0f;
        d->normali5[i] = (int32_t)lrintf(a * 5.0f);
        d->normalf5[i] = b * 5.0f;
        d->normali20[i] = (int32_t)lrintf(c * 20.0f);
        d->normalf20[i] = e * 20.0f;
    }
    return 0;
}

bool virginian_make(struct virginian_data *out, int64_t first, int64_t rows) {
    enum { PARTS = 16 };
    memset(out, 0, sizeof *out);
    out->rows = rows;
    int32_t *block = malloc((size_t)rows * 7 * sizeof *block);
    if (!block) {
        return false;
    }
    out->id = block;
    out->uniformi = block + rows;
    out->normali5 = block + 2 * rows;
    out->normali20 = block + 3 * rows;
    out->uniformf = (float *)(void *)(block + 4 * rows);
    out->normalf5 = out->uniformf + rows;
    out->normalf20 = out->normalf5 + rows;
    thrd_t threads[PARTS];
    struct part parts[PARTS];
    for (int i = 0; i < PARTS; i++) {
        parts[i] = (struct part){out, first, rows * i / PARTS, rows * (i + 1) / PARTS};
        thrd_create(&threads[i], make_part, &parts[i]);
    }
    for (int i = 0; i < PARTS; i++) {
        thrd_join(threads[i], NULL);
    }
    return true;
}

void virginian_free(struct virginian_data *data) {
    free(data->id);
    memset(data, 0, sizeof *data);
}
