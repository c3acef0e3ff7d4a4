/* blob.c: numbers and texts to bytes of files, and back. */
#include "store/blob.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files have numbers with their little end first, and so must the machine"
#endif

enum { FIRST_BYTES = 256 };

void blob_init(struct blob *blob, struct memory *mem) {
    *blob = (struct blob){.mem = mem};
}

void blob_fini(struct blob *blob) {
    mem_free(blob->mem, blob->data, blob->cap);
    *blob = (struct blob){.mem = blob->mem};
}

u8 *blob_room(struct blob *blob, i64 bytes) {
    if (blob->len + bytes > blob->cap) {
        i64 cap = MAX_OF(MAX_OF(blob->cap * 2, FIRST_BYTES), blob->len + bytes);
        u8 *grown = blob->refused_bytes ? NULL : mem_alloc(blob->mem, cap);
        if (!grown) {
            blob->refused_bytes = cap;
            return NULL;
        }
        if (blob->len) {
            memcpy(grown, blob->data, (size_t)blob->len);
        }
        mem_free(blob->mem, blob->data, blob->cap);
        blob->data = grown;
        blob->cap = cap;
    }
    blob->len += bytes;
    return blob->data + blob->len - bytes;
}

void blob_bytes(struct blob *blob, const void *from, i64 bytes) {
    u8 *to = bytes ? blob_room(blob, bytes) : NULL;
    if (to) {
        memcpy(to, from, (size_t)bytes);
    }
}

void blob_u8(struct blob *blob, u8 value) {
    blob_bytes(blob, &value, 1);
}

void blob_u32(struct blob *blob, u32 value) {
    blob_bytes(blob, &value, 4);
}

void blob_u64(struct blob *blob, u64 value) {
    blob_bytes(blob, &value, 8);
}

void blob_i128(struct blob *blob, i128 value) {
    blob_bytes(blob, &value, 16);
}

void blob_f64(struct blob *blob, f64 value) {
    blob_bytes(blob, &value, 8);
}

void blob_text(struct blob *blob, const char *text) {
    u32 len = text ? (u32)strlen(text) : 0;
    blob_u32(blob, text ? len + 1 : 0);
    blob_bytes(blob, text, len);
}

wf_status blob_check(const struct blob *blob, struct error *err) {
    return blob->refused_bytes ? memory_refused(blob->mem, err, blob->refused_bytes) : ERR_OK;
}

const u8 *read_bytes(struct blob_reader *from, i64 bytes) {
    if (from->bad || bytes < 0 || from->end - from->at < bytes) {
        from->bad = 1;
        return NULL;
    }
    from->at += bytes;
    return from->at - bytes;
}

static void read_value(struct blob_reader *from, void *out, i64 bytes) {
    const u8 *at = read_bytes(from, bytes);
    if (at) {
        memcpy(out, at, (size_t)bytes);
    }
}

u8 read_u8(struct blob_reader *from) {
    u8 value = 0;
    read_value(from, &value, 1);
    return value;
}

u32 read_u32(struct blob_reader *from) {
    u32 value = 0;
    read_value(from, &value, 4);
    return value;
}

u64 read_u64(struct blob_reader *from) {
    u64 value = 0;
    read_value(from, &value, 8);
    return value;
}

i128 read_i128(struct blob_reader *from) {
    i128 value = 0;
    read_value(from, &value, 16);
    return value;
}

f64 read_f64(struct blob_reader *from) {
    f64 value = 0;
    read_value(from, &value, 8);
    return value;
}

const char *read_text(struct blob_reader *from, struct arena *arena) {
    u32 len = read_u32(from);
    const u8 *text = len ? read_bytes(from, (i64)len - 1) : NULL;
    if (!text || memchr(text, 0, len - 1)) {
        from->bad |= text != NULL;
        return NULL;
    }
    return arena_sv(arena, (struct sv){(const char *)text, (i64)len - 1}).ptr;
}

u32 read_count(struct blob_reader *from, i64 least) {
    u32 count = read_u32(from);
    if (from->bad || (i64)count * least > from->end - from->at) {
        from->bad = 1;
        return 0;
    }
    return count;
}
