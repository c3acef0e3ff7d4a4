/* pack.c: gzip and zstd: files unpacked as they are loaded, packed as they are written.
 *
 * The one file that knows zlib and libzstd. What an archive says about its size is not believed:
 * bytes are unpacked a megabyte at a time into memory that counts, so an archive that would fill
 * the machine meets the budget. No more is unpacked than was asked for, since a few bytes of zstd
 * may hold some gigabytes; what was read and not unpacked yet waits here. An archive may have
 * several parts one after the other (gzip's members, zstd's frames); one that ends inside a part
 * was cut short. */
#include "io/pack.h"

#include <zlib.h>
#include <zstd.h>

enum {
    STEP_BYTES = 1 << 20,
    STEP_LEAST = 1 << 12,
    PACKED_BYTES = 1 << 16,
    OUT_BYTES = 1 << 18,
    ZLIB_GZIP = 16,
    ZLIB_STATE_BYTES = 1 << 16
};

struct unpack {
    struct memory *mem;
    struct file_in *file;
    z_stream gzip;
    ZSTD_DStream *zstd;
    u8 packing;
    b8 started;           /* some bytes came */
    b8 inside;            /* a part has begun and not ended */
    b8 full;              /* more may come out without more going in */
    b8 ended;             /* the file has no more bytes */
    const char *at, *end; /* of packed, not unpacked yet */
    char packed[PACKED_BYTES];
};

enum packing packing_of(const char *path) {
    struct sv name = sv_from(path);
    bool gz = name.len > 3 && sv_eq_nocase((struct sv){name.ptr + name.len - 3, 3}, SV(".gz"));
    bool zst = name.len > 4 && sv_eq_nocase((struct sv){name.ptr + name.len - 4, 4}, SV(".zst"));
    return gz ? PACKING_GZIP : zst ? PACKING_ZSTD : PACKING_NONE;
}

wf_status unpack_open(struct unpack **out, enum packing packing, struct file_in *file,
                      struct memory *mem, struct error *err) {
    struct unpack *u = mem_alloc(mem, (i64)sizeof *u);
    *out = u;
    if (!u) {
        return memory_refused(mem, err, (i64)sizeof *u);
    }
    memset(u, 0, offsetof(struct unpack, packed));
    u->mem = mem;
    u->file = file;
    u->packing = (u8)packing;
    u->at = u->end = u->packed;
    bool fine = packing == PACKING_GZIP ? inflateInit2(&u->gzip, ZLIB_GZIP + MAX_WBITS) == Z_OK
                                        : (u->zstd = ZSTD_createDStream()) != NULL;
    if (!fine) {
        mem_free(mem, u, (i64)sizeof *u);
        *out = NULL;
        return memory_refused(mem, err, ZLIB_STATE_BYTES);
    }
    return ERR_OK;
}

enum packing packing_named(const char *name) {
    return sv_eq_nocase(sv_from(name), SV("gzip"))   ? PACKING_GZIP
           : sv_eq_nocase(sv_from(name), SV("zstd")) ? PACKING_ZSTD
                                                     : PACKING_NONE;
}

static FALLIBLE damaged(const struct unpack *u, const char *why, struct error *err) {
    FAIL(err, BAD_COPY_FORMAT, "cannot unpack \"%.300s\": %s", u->file->path, why);
}

static FALLIBLE corrupt(const struct unpack *u, struct error *err) {
    if (u->started) {
        return damaged(u, "the archive is damaged", err);
    }
    bool gzip = u->packing == PACKING_GZIP;
    wf_status status = damaged(u, gzip ? "it is no gzip archive" : "it is no zstd archive", err);
    error_hint(err, "compression => 'none' (in COPY: COMPRESSION none) reads it as it is.");
    return status;
}

/* One step of unpacking, into `room` bytes. */
static FALLIBLE step_gzip(struct unpack *u, char *to, i64 room, i64 *out_len, struct error *err) {
    z_stream *z = &u->gzip;
    if (!u->inside && u->at < u->end) { /* zeros may fill up the last block of a tape */
        while (u->started && u->at < u->end && *u->at == 0) {
            u->at++;
        }
        u->inside = u->at < u->end;
    }
    z->next_in = (Bytef *)(size_t)u->at;
    z->avail_in = (uInt)(u->end - u->at);
    z->next_out = (Bytef *)to;
    z->avail_out = (uInt)room;
    int status = u->inside ? inflate(z, Z_NO_FLUSH) : Z_BUF_ERROR;
    u->at = (const char *)z->next_in;
    *out_len = room - (i64)z->avail_out;
    if (status == Z_MEM_ERROR) {
        return memory_refused(u->mem, err, ZLIB_STATE_BYTES);
    }
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        return corrupt(u, err);
    }
    u->started = 1;
    if (status == Z_STREAM_END) {
        u->inside = 0;
        inflateReset(z);
    }
    u->full = u->inside && *out_len == room;
    return ERR_OK;
}

static FALLIBLE step_zstd(struct unpack *u, char *to, i64 room, i64 *out_len, struct error *err) {
    ZSTD_inBuffer in = {u->at, (size_t)(u->end - u->at), 0};
    ZSTD_outBuffer out = {to, (size_t)room, 0};
    size_t status = ZSTD_decompressStream(u->zstd, &out, &in);
    if (ZSTD_isError(status)) {
        return corrupt(u, err);
    }
    u->at += in.pos;
    *out_len = (i64)out.pos;
    u->started = 1;
    u->inside = status != 0;
    u->full = out.pos == out.size;
    return ERR_OK;
}

static FALLIBLE read_packed(struct unpack *u, struct error *err) {
    i64 got = 0;
    TRY(file_in_read(u->file, u->packed, PACKED_BYTES, &got, err));
    u->at = u->packed;
    u->end = u->packed + got;
    u->ended = got == 0;
    return u->ended && u->inside ? damaged(u, "the archive was cut short", err) : ERR_OK;
}

wf_status unpack_fill(struct unpack *u, struct file_bytes *to, i64 bytes,
                      const struct load_progress *progress, bool *out_end, struct error *err) {
    while (to->len < bytes && !u->ended) {
        if (u->at == u->end && !u->full) {
            TRY(read_packed(u, err));
            continue;
        }
        i64 room = MIN_OF(MAX_OF(bytes - to->len, STEP_LEAST), STEP_BYTES), got = 0;
        TRY(file_bytes_reserve(to, room, err));
        TRY(u->packing == PACKING_GZIP ? step_gzip(u, to->data + to->len, room, &got, err)
                                       : step_zstd(u, to->data + to->len, room, &got, err));
        to->len += got;
        TRY(load_progress_check(progress, err));
    }
    *out_end = u->ended;
    return ERR_OK;
}

void unpack_close(struct unpack *u) {
    if (u && u->packing == PACKING_GZIP) {
        inflateEnd(&u->gzip);
    } else if (u) {
        ZSTD_freeDStream(u->zstd);
    }
    if (u) {
        mem_free(u->mem, u, (i64)sizeof *u);
    }
}

/* --- out -------------------------------------------------------------------------------------- */

wf_status pack_open(struct pack *out, enum packing packing, struct file_out *file,
                    struct memory *mem, struct error *err) {
    *out = (struct pack){.file = file, .mem = mem, .packing = (u8)packing};
    if (packing == PACKING_NONE) {
        return ERR_OK;
    }
    out->buf = mem_alloc(mem, OUT_BYTES);
    z_stream *gzip = packing == PACKING_GZIP ? mem_alloc(mem, (i64)sizeof *gzip) : NULL;
    bool fine = out->buf && packing == PACKING_ZSTD;
    if (gzip) {
        *gzip = (z_stream){0};
        fine = out->buf && deflateInit2(gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                        ZLIB_GZIP + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK;
        out->stream = gzip;
    } else if (fine) {
        out->stream = ZSTD_createCStream();
    }
    if (fine && out->stream) {
        return ERR_OK;
    }
    if (gzip) {
        mem_free(mem, gzip, (i64)sizeof *gzip);
    }
    mem_free(mem, out->buf, OUT_BYTES);
    out->stream = out->buf = NULL;
    return memory_refused(mem, err, OUT_BYTES);
}

static FALLIBLE write_gzip(struct pack *pack, const char *bytes, i64 len, bool end,
                           struct error *err) {
    enum { PART_BYTES = 1 << 30 };
    z_stream *z = pack->stream;
    int status = Z_OK;
    for (bool more = len > 0 || end; more;) {
        i64 part = MIN_OF(len, PART_BYTES);
        z->next_in = (Bytef *)(size_t)bytes;
        z->avail_in = (uInt)part;
        z->next_out = (Bytef *)pack->buf;
        z->avail_out = OUT_BYTES;
        status = deflate(z, end ? Z_FINISH : Z_NO_FLUSH);
        bytes += part - (i64)z->avail_in;
        len -= part - (i64)z->avail_in;
        TRY(file_out_write(pack->file, pack->buf, OUT_BYTES - (i64)z->avail_out, err));
        more = end ? status != Z_STREAM_END : len > 0 || z->avail_out == 0;
    }
    return ERR_OK;
}

static FALLIBLE write_zstd(struct pack *pack, const char *bytes, i64 len, bool end,
                           struct error *err) {
    ZSTD_inBuffer in = {bytes, (size_t)len, 0};
    for (bool more = true; more;) {
        ZSTD_outBuffer out = {pack->buf, OUT_BYTES, 0};
        size_t left =
            ZSTD_compressStream2(pack->stream, &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left)) {
            return memory_refused(pack->mem, err, OUT_BYTES);
        }
        TRY(file_out_write(pack->file, pack->buf, (i64)out.pos, err));
        more = end ? left > 0 : in.pos < in.size;
    }
    return ERR_OK;
}

wf_status pack_write(struct pack *pack, const char *bytes, i64 len, struct error *err) {
    return pack->packing == PACKING_NONE   ? file_out_write(pack->file, bytes, len, err)
           : pack->packing == PACKING_GZIP ? write_gzip(pack, bytes, len, false, err)
                                           : write_zstd(pack, bytes, len, false, err);
}

wf_status pack_end(struct pack *pack, struct error *err) {
    return pack->packing == PACKING_NONE   ? ERR_OK
           : pack->packing == PACKING_GZIP ? write_gzip(pack, NULL, 0, true, err)
                                           : write_zstd(pack, NULL, 0, true, err);
}

void pack_close(struct pack *pack) {
    if (pack->packing == PACKING_GZIP && pack->stream) {
        deflateEnd(pack->stream);
        mem_free(pack->mem, pack->stream, (i64)sizeof(z_stream));
    } else if (pack->stream) {
        ZSTD_freeCStream(pack->stream);
    }
    mem_free(pack->mem, pack->buf, OUT_BYTES);
    *pack = (struct pack){.packing = PACKING_NONE};
}
