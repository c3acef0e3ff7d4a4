/* csv_write.c: values to delimited text, as COPY TO writes it.
 *
 * CSV quotes a field only where reading it back would give something else: it holds a delimiter,
 * a quote or a line end, it is the NULL text, or it would be the end-of-data mark of old readers.
 * TBL has no quotes and ends every field with the delimiter; what it cannot say is an error. */
#include "io/io.h"

i64 csv_put_most(i64 value_bytes) {
    return 2 * value_bytes + 8;
}

static void put_bytes(struct csv_out *out, const char *bytes, i64 len) {
    if (len) {
        memcpy(out->buf + out->len, bytes, (size_t)len);
    }
    out->len += len;
}

static void put_byte(struct csv_out *out, char c) {
    out->buf[out->len++] = c;
}

static bool needs_quotes(const struct csv_options *options, bool first, struct sv value) {
    if (sv_eq(value, sv_from(options->null_text)) || (first && sv_eq(value, SV("\\.")))) {
        return true;
    }
    for (i64 i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        if (c == options->delimiter || c == options->quote || c == '\n' || c == '\r') {
            return true;
        }
    }
    return false;
}

FALLIBLE csv_put(struct csv_out *out, const struct csv_options *options, bool first, bool is_null,
                 struct sv value, bool quoted, struct error *err) {
    if (!first) {
        put_byte(out, options->delimiter);
    }
    if (is_null) {
        put_bytes(out, options->null_text, (i64)strlen(options->null_text));
        return ERR_OK;
    }
    quoted = quoted || needs_quotes(options, first, value);
    if (!quoted || (!options->quote && value.len == 0)) {
        put_bytes(out, value.ptr, value.len);
        return ERR_OK;
    }
    if (!options->quote) {
        FAIL(err, BAD_COPY_FORMAT,
             "the format has no quotes, and a value holds the delimiter or a line end: \"%.*s\"",
             (int)MIN_OF(value.len, 60), value.ptr);
    }
    put_byte(out, options->quote);
    for (i64 i = 0; i < value.len; i++) {
        if (value.ptr[i] == options->quote || value.ptr[i] == options->escape) {
            put_byte(out, options->escape);
        }
        put_byte(out, value.ptr[i]);
    }
    put_byte(out, options->quote);
    return ERR_OK;
}

void csv_put_end(struct csv_out *out, const struct csv_options *options) {
    if (options->trailing_delimiter) {
        put_byte(out, options->delimiter);
    }
    put_byte(out, '\n');
}
