/* csv_parse.c: records to columns: the second pass of a load, and every part of a scan.
 *
 * A block is parsed record by record; a field's bytes are converted where they lie in the mapped
 * file, text is kept as a view of it. Quotes may begin and end anywhere in a field, as in
 * PostgreSQL; only fields that hold escapes, or quotes elsewhere than around them, are copied. How
 * many records a block has is known, and so is the row each belongs to: parsing and the first pass
 * agree on what ends a record. */
#include "io/csv_int.h"

#include <stdarg.h>
#include <stdio.h>

#include "defs/value.h"
#include "host/chars.h"

enum { HEAP_BYTES = 1 << 16, SHOWN_BYTES = 60 };

struct heap {
    struct heap *next;
    i64 bytes, used;
    char data[];
};

struct parser {
    struct csv_job *job;
    struct csv_cursor cursor;
    const char *pos, *end;
    const char *record; /* where the current one begins */
    b8 plain;           /* text needs no check */
    b8 ended;           /* the field read last was its line's last */
    char quote, newline, comment;
    struct csv_tablet *tablet;
    u8 *block;
    i64 row; /* within the tablet */
    struct heap *heap;
};

struct field {
    struct sv text;
    b8 quoted;
    b8 last; /* of its line */
};

void heap_free_all(struct memory *mem, struct heap *heap) {
    while (heap) {
        struct heap *next = heap->next;
        mem_free(mem, heap, heap->bytes);
        heap = next;
    }
}

/* Records an error of the current record, unless one nearer to the start of the file is known.
 * field is -1 for errors of the whole line. Always false. */
__attribute__((format(printf, 6, 7))) static bool bad(struct parser *p, const char *at, i64 field,
                                                      enum bad_why why, wf_status code,
                                                      const char *format, ...) {
    struct csv_job *job = p->job;
    i64 record = p->record - job->data;
    char message[400];
    if (job->options->ignore_errors || atomic_load(&job->stop)) { /* stopped: cut off somewhere */
        return false;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    mutex_lock(&job->lock);
    if (record < atomic_load(&job->bad_record)) {
        error_reset(&job->bad);
        code = error_set(&job->bad, code, -1, "%s", message);
        job->bad_at = at - job->data;
        job->bad_field = field;
        job->bad_why = (u8)why;
        atomic_store(&job->bad_record, record);
    }
    mutex_unlock(&job->lock);
    return false;
}

/* The value as it may be shown: not too long, nothing that could disturb a terminal. */
static const char *shown(struct sv s, char buf[SHOWN_BYTES + 8]) {
    i64 n = MIN_OF(s.len, SHOWN_BYTES);
    while (n > 0 && n < s.len && ((u8)s.ptr[n] & 0xc0) == 0x80) {
        n--; /* not in the middle of a character */
    }
    bool valid = utf8_valid(s.ptr, n, NULL);
    for (i64 i = 0; i < n; i++) {
        u8 c = (u8)s.ptr[i];
        buf[i] = c < 32 || c == 127 || (c > 127 && !valid) ? '?' : s.ptr[i];
    }
    memcpy(buf + n, n < s.len ? "..." : "", n < s.len ? 4 : 1);
    return buf;
}

static bool bad_value(struct parser *p, i64 i, struct sv s, u8 fault) {
    const struct csv_field *field = &p->job->fields[i];
    char type[32], value[SHOWN_BYTES + 8];
    wf_status code = fault_error(fault);
    if (!utf8_valid(s.ptr, s.len, NULL)) {
        return bad(p, s.ptr, i, BAD_ENCODING, ERR_INVALID_ENCODING, "invalid UTF-8: \"%s\"",
                   shown(s, value));
    }
    type_print(field->type, type);
    if (code == ERR_OUT_OF_RANGE || code == ERR_DATETIME_OVERFLOW) {
        return bad(p, s.ptr, i, BAD_VALUE, code, "\"%s\" is out of range for %s", shown(s, value),
                   type);
    }
    return bad(p, s.ptr, i, BAD_VALUE, code, "\"%s\" is not %s %s", shown(s, value),
               strchr("aeiou", type[0]) ? "an" : "a", type);
}

/* Room for a field's unescaped bytes; it lives as long as the tablet is being filled. */
static char *heap_reserve(struct parser *p, i64 bytes) {
    struct csv_job *job = p->job;
    if (!p->heap || p->heap->bytes - (i64)sizeof(struct heap) - p->heap->used < bytes) {
        i64 size = MAX_OF(HEAP_BYTES, bytes + (i64)sizeof(struct heap));
        struct heap *heap = mem_alloc(job->mem, size);
        if (!heap) {
            csv_refused(job, size);
            return NULL;
        }
        heap->bytes = size;
        heap->used = 0;
        mutex_lock(&job->lock);
        heap->next = p->tablet->heaps;
        p->tablet->heaps = heap;
        mutex_unlock(&job->lock);
        p->heap = heap;
    }
    return p->heap->data + p->heap->used;
}

/* [begin, end) without its quotes and escapes. */
static bool unescape(struct parser *p, const char *begin, const char *end, struct sv *out) {
    char quote = p->job->marks.quote, escape = p->job->marks.escape;
    char *to = heap_reserve(p, end - begin);
    if (!to) {
        return false;
    }
    i64 n = 0;
    bool inside = false;
    for (const char *c = begin; c < end; c++) {
        if (inside && *c == escape && c + 1 < end && (c[1] == quote || c[1] == escape)) {
            to[n++] = *++c;
        } else if (*c == quote) {
            inside = !inside;
        } else {
            to[n++] = *c;
        }
    }
    p->heap->used += n;
    *out = (struct sv){to, n};
    return true;
}

/* The quote that closes the one at `open`; NULL when there is none. Doubled quotes on the way set
 * *doubled. */
static const char *closing_quote(struct parser *p, const char *open, bool *doubled) {
    char quote = p->job->marks.quote, escape = p->job->marks.escape;
    for (;;) {
        const char *at = cursor_next(&p->cursor);
        if (at == p->end) {
            return NULL;
        }
        if (*at != quote) {
            continue;
        }
        if (escape == quote) {
            if (at + 1 == p->end || at[1] != quote) {
                return at;
            }
            cursor_next(&p->cursor);
            *doubled = true;
            continue;
        }
        const char *before = at; /* an odd run of escapes protects the quote */
        while (before - 1 > open && before[-1] == escape) {
            before--;
        }
        if ((at - before) % 2 == 0) {
            return at;
        }
    }
}

/* The field ends in a comment: goes to the end of its line. */
static const char *comment_end(struct parser *p, const char *at) {
    while (at < p->end && *at != p->job->marks.newline) {
        at = cursor_next(&p->cursor);
    }
    return at;
}

/* A return before the line's end is part of the end. */
static const char *without_return(const struct parser *p, const char *begin, const char *end) {
    bool at_end = end == p->end || *end == '\n';
    return at_end && end > begin && end[-1] == '\r' ? end - 1 : end;
}

static bool all_blank(const char *begin, const char *end) {
    while (begin < end && *begin == ' ') {
        begin++;
    }
    return begin == end;
}

/* A field in which a quote was met at `open`. Sets pos to the delimiter, line end or end of file.
 */
static bool read_quoted(struct parser *p, const char *open, struct field *out) {
    const struct csv_marks *marks = &p->job->marks;
    const char *begin = p->pos, *close, *next;
    bool copy = false, lenient = p->job->options->lenient;
    begin = lenient && all_blank(begin, open) ? open : begin;
    copy = open != begin;
    for (;;) {
        close = closing_quote(p, open, &copy);
        if (!close) {
            p->pos = p->end;
            p->ended = 1;
            return bad(p, open, -1, BAD_QUOTE, ERR_BAD_COPY_FORMAT,
                       "the quote that begins here never ends");
        }
        next = cursor_next(&p->cursor);
        bool comment =
            marks->comment && memchr(close + 1, marks->comment, (size_t)(next - close - 1));
        if (comment || next == p->end || *next != marks->quote) {
            break;
        }
        open = next;
        copy = true;
    }
    copy |= marks->escape != marks->quote && memchr(begin, marks->escape, (size_t)(close - begin));
    const char *end = without_return(p, close + 1, next);
    const char *comment =
        marks->comment ? memchr(close + 1, marks->comment, (size_t)(next - close - 1)) : NULL;
    if (comment) {
        end = comment;
        next = comment_end(p, next);
    }
    if (lenient && all_blank(close + 1, end)) {
        end = close + 1;
    }
    p->pos = next;
    out->quoted = 1;
    if (!copy && close + 1 == end) {
        out->text = (struct sv){begin + 1, close - begin - 1};
        return true;
    }
    return unescape(p, begin, end, &out->text);
}

/* An unquoted field up to `at`, or up to a comment before it; where the field ends. */
__attribute__((noinline)) static const char *read_commented(struct parser *p, const char *at,
                                                            struct field *out) {
    const char *comment = memchr(p->pos, p->comment, (size_t)(at - p->pos));
    if (comment) {
        out->text = (struct sv){p->pos, comment - p->pos};
        return comment_end(p, at);
    }
    out->text.ptr = NULL;
    return at;
}

/* Runs once for every field of a file. */
__attribute__((always_inline)) static inline bool read_field(struct parser *p, struct field *out) {
    const char *begin = p->pos, *at = cursor_next(&p->cursor);
    out->quoted = 0;
    out->text.ptr = NULL;
    if (__builtin_expect(p->comment, 0)) {
        at = read_commented(p, at, out);
    }
    if (out->text.ptr) {
        /* a comment ended it */
    } else if (at < p->end && *at == p->quote && p->quote) {
        if (!read_quoted(p, at, out)) {
            return false;
        }
        at = p->pos;
    } else {
        bool return_char = at > begin && at[-1] == '\r' && (at == p->end || *at == '\n');
        out->text = (struct sv){begin, at - begin - return_char};
    }
    out->last = p->ended = at == p->end || *at == p->newline;
    p->pos = at == p->end ? at : at + 1;
    return true;
}

/* varchar(n): longer text is an error, unless only spaces are cut off. */
static bool check_length(struct parser *p, i64 i, struct sv *s) {
    const struct csv_field *field = &p->job->fields[i];
    i64 chars = 0, keep = 0;
    for (; keep < s->len; keep++) {
        chars += ((u8)s->ptr[keep] & 0xc0) != 0x80;
        if (chars > field->type.length) {
            break;
        }
    }
    for (i64 k = keep; k < s->len; k++) {
        if (s->ptr[k] != ' ') {
            char buf[SHOWN_BYTES + 8];
            return bad(p, s->ptr, i, BAD_VALUE, ERR_STRING_TOO_LONG,
                       "\"%s\" is longer than %u characters", shown(*s, buf), field->type.length);
        }
    }
    s->len = keep;
    return true;
}

static bool store_text(struct parser *p, i64 i, const char *at, struct sv s, void *data) {
    const struct csv_field *field = &p->job->fields[i];
    i64 offset;
    if (!p->plain && !utf8_valid(s.ptr, s.len, &offset)) {
        return bad(p, at, i, BAD_ENCODING, ERR_INVALID_ENCODING, "invalid UTF-8: byte 0x%02x",
                   (unsigned)(u8)s.ptr[offset]);
    }
    if (s.len > 0xffffffffLL) {
        return bad(p, at, i, BAD_VALUE, ERR_STRING_TOO_LONG, "a text of %lld bytes is too long",
                   s.len);
    }
    if (field->type.length && s.len > (i64)field->type.length && !check_length(p, i, &s)) {
        return false;
    }
    while (field->type.id == TYPE_CHAR && s.len > 0 && s.ptr[s.len - 1] == ' ') {
        s.len--;
    }
    ((str *)data)[p->row] = str_from(s);
    return true;
}

static bool store_bytes(struct parser *p, i64 i, const char *at, struct sv s, void *data) {
    char *to = heap_reserve(p, s.len);
    i64 len = 0;
    if (!to) {
        return false;
    }
    u8 fault = value_parse_bytes(s, (u8 *)to, &len);
    if (fault) {
        UNUSED(at);
        return bad_value(p, i, s, fault);
    }
    p->heap->used += len;
    ((str *)data)[p->row] = str_from((struct sv){to, len});
    return true;
}

static u8 store_decimal(const struct csv_field *field, struct sv s, void *data, i64 row) {
    i128 value = 0;
    u8 fault = value_parse_dec(s, field->type.scale, &value);
    if (!fault && (value >= field->dec_limit || value <= -field->dec_limit)) {
        fault = FAULT_DECIMAL;
    }
    if (field->kind == KIND_I64) {
        ((i64 *)data)[row] = (i64)value;
    } else {
        ((i128 *)data)[row] = value;
    }
    return fault;
}

static u8 store_int(const struct csv_field *field, struct sv s, void *data, i64 row) {
    i64 value = 0;
    u8 fault = value_parse_int(s, &value);
    if (!fault && (value < field->lo || value > field->hi)) {
        fault = field->type.id == TYPE_SMALLINT ? FAULT_SMALLINT : FAULT_INTEGER;
    }
    if (field->kind == KIND_I64) {
        ((i64 *)data)[row] = value;
    } else {
        ((i32 *)data)[row] = (i32)value;
    }
    return fault;
}

static bool store_value(struct parser *p, i64 i, const char *at, struct sv s) {
    struct csv_job *job = p->job;
    const struct csv_field *field = &job->fields[i];
    void *data = p->block + job->data_at[field->col];
    u8 fault = FAULT_NONE;
    switch (field->type.id) {
    case TYPE_SMALLINT:
    case TYPE_INTEGER:
    case TYPE_BIGINT:
        fault = store_int(field, s, data, p->row);
        break;
    case TYPE_DECIMAL:
        fault = store_decimal(field, s, data, p->row);
        break;
    case TYPE_DATE:
        fault = value_parse_date(s, job->options->when, (i32 *)data + p->row);
        break;
    case TYPE_DOUBLE:
        fault = value_parse_f64(s, (f64 *)data + p->row);
        break;
    case TYPE_REAL:
        fault = value_parse_f32(s, (f32 *)data + p->row);
        break;
    case TYPE_TEXT:
    case TYPE_CHAR:
        return store_text(p, i, at, s, data);
    case TYPE_BLOB:
        return store_bytes(p, i, at, s, data);
    default:
        fault = value_parse(field->type, s, job->options->when,
                            (u8 *)data + p->row * kind_bytes[field->kind]);
        break;
    }
    if (!fault && field->guessed && !csv_guess_holds(field->type, s)) {
        fault = FAULT_TEXT_NUM;
    }
    if (fault) { /* the bytes may be a copy: the line is that of the field itself */
        i64 record = p->record - job->data;
        bad_value(p, i, s, fault);
        mutex_lock(&job->lock);
        if (atomic_load(&job->bad_record) == record) {
            job->bad_at = at - job->data;
        }
        mutex_unlock(&job->lock);
    }
    return !fault;
}

static bool is_listed_null(const char *const *list, struct sv text) {
    for (; *list; list++) {
        if (sv_eq(text, sv_from(*list))) {
            return true;
        }
    }
    return false;
}

static inline bool is_null_text(const struct csv_job *job, struct sv text) {
    const struct csv_options *options = job->options;
    bool same =
        text.len == job->null_len && !memcmp(text.ptr, options->null_text, (size_t)job->null_len);
    return same || (options->null_more && is_listed_null(options->null_more, text));
}

/* What lies under a NULL is zero: who reads a column may rely on the range of its type. */
static void store_null(struct parser *p, const struct csv_field *field) {
    struct csv_job *job = p->job;
    u8 *data = p->block + job->data_at[field->col];
    p->block[job->nulls_at[field->col] + p->row] = 1;
    if (field->kind == KIND_STR) {
        ((str *)(void *)data)[p->row] = str_from(SV(""));
    } else {
        i64 bytes = kind_bytes[field->kind];
        memset(data + p->row * bytes, 0, (size_t)bytes);
    }
}

static bool store_field(struct parser *p, i64 i, const char *at, const struct field *value) {
    struct csv_job *job = p->job;
    const struct csv_field *field = &job->fields[i];
    if (field->unread) {
        return true;
    }
    bool null = (!value->quoted || field->quoted_null) && !field->never_null &&
                is_null_text(job, value->text);
    if (null && field->not_null) {
        return bad(p, at, i, BAD_VALUE, ERR_NOT_NULL, "a NULL in a column that is NOT NULL");
    }
    if (null) {
        store_null(p, field);
        return true;
    }
    p->block[job->nulls_at[field->col] + p->row] = 0;
    return store_value(p, i, at, value->text);
}

static bool too_few(struct parser *p, i64 found) {
    return bad(p, p->record, -1, found == 1 ? BAD_ONE : BAD_FEW, ERR_BAD_COPY_FORMAT,
               "%lld field%s found, %u expected", found, found == 1 ? "" : "s",
               p->job->field_count);
}

/* The columns a line lacks are NULL. */
static bool pad(struct parser *p, u32 first) {
    struct csv_job *job = p->job;
    for (u32 i = first; i < job->field_count; i++) {
        const struct csv_field *field = &job->fields[i];
        if (field->not_null) {
            return bad(p, p->record, i, BAD_VALUE, ERR_NOT_NULL,
                       "a NULL in a column that is NOT NULL");
        }
        if (!field->unread) {
            store_null(p, field);
        }
    }
    return true;
}

/* The line goes on after `found` fields, of which it should have had no more. */
static bool line_rest_from(struct parser *p, i64 found) {
    struct csv_job *job = p->job;
    struct field field;
    do {
        if (!read_field(p, &field)) {
            return false;
        }
        found++;
    } while (!field.last);
    bool may_end = job->options->trailing_delimiter || job->options->lenient;
    bool trailing =
        may_end && found == job->field_count + 1 && field.text.len == 0 && !field.quoted;
    return trailing || found <= job->field_count ||
           bad(p, p->record, -1, BAD_MANY, ERR_BAD_COPY_FORMAT, "%lld fields found, %u expected",
               found, job->field_count);
}

static bool line_rest(struct parser *p) {
    return line_rest_from(p, p->job->field_count);
}

/* A value of field i is wrong; when the line has too many fields, that is what to say. */
__attribute__((noinline)) static void prefer_shape(struct parser *p, u32 i) {
    struct csv_job *job = p->job;
    i64 record = p->record - job->data;
    if (p->ended || job->options->ignore_errors || atomic_load(&job->stop)) {
        return;
    }
    mutex_lock(&job->lock);
    bool ours = atomic_load(&job->bad_record) == record;
    struct error value = job->bad;
    i64 at = job->bad_at, field = job->bad_field;
    u8 why = job->bad_why;
    if (ours) {
        atomic_store(&job->bad_record, I64_MAX);
    }
    mutex_unlock(&job->lock);
    if (ours && line_rest_from(p, i + 1)) { /* no: the value it is */
        bad(p, job->data + at, field, (enum bad_why)why, value.code, "%s", value.message);
    }
}

enum outcome { RECORD_ROW, RECORD_NONE, RECORD_BAD };

/* A line of nothing, or of nothing but a comment. */
__attribute__((noinline)) static bool is_no_row(const struct parser *p, const struct field *first) {
    const struct csv_options *options = p->job->options;
    bool several = p->job->field_count > 1;
    if (!first->last || first->quoted ||
        !all_blank(first->text.ptr, first->text.ptr + first->text.len)) {
        return false;
    }
    const char *behind = first->text.ptr + first->text.len;
    bool comment = options->comment && behind < p->pos && *behind == options->comment;
    return comment || (options->lenient && several);
}

/* The line ends with field i, and more columns should follow. */
__attribute__((noinline)) static enum outcome short_record(struct parser *p, u32 i, const char *at,
                                                           const struct field *field) {
    if (!p->job->options->null_padding) {
        too_few(p, i == 0 && field->text.len == 0 && !field->quoted ? 0 : i + 1);
        return RECORD_BAD;
    }
    return store_field(p, i, at, field) && pad(p, i + 1) ? RECORD_ROW : RECORD_BAD;
}

static enum outcome parse_record(struct parser *p) {
    u32 count = p->job->field_count;
    struct field field = {0};
    p->record = p->pos;
    if (count == 0) { /* a row of a table without columns is an empty line */
        bool read = read_field(p, &field);
        bool fine = read && ((field.last && field.text.len == 0 && !field.quoted) || line_rest(p));
        return fine ? RECORD_ROW : RECORD_BAD;
    }
    for (u32 i = 0; i < count; i++) {
        const char *at = p->pos;
        if (!read_field(p, &field)) {
            return RECORD_BAD;
        }
        if (field.last) {
            if (i == 0 && p->job->gaps && is_no_row(p, &field)) {
                return RECORD_NONE;
            }
            if (i + 1 < count) {
                return short_record(p, i, at, &field);
            }
        }
        if (!store_field(p, i, at, &field)) {
            prefer_shape(p, i);
            return RECORD_BAD;
        }
    }
    return field.last || line_rest(p) ? RECORD_ROW : RECORD_BAD;
}

/* The current line is no row, or is left out; goes on behind it. */
static bool leave_out(struct parser *p, enum outcome outcome) {
    struct csv_job *job = p->job;
    struct field field;
    if (outcome == RECORD_BAD && (!job->options->ignore_errors || atomic_load(&job->stop))) {
        return false;
    }
    while (!p->ended) {
        read_field(p, &field);
    }
    p->block[job->gaps_at + p->row] = 1;
    atomic_fetch_add(&p->tablet->gap_rows, 1);
    atomic_fetch_add(&job->gap_rows, 1);
    atomic_fetch_add(&job->ignored_rows, outcome == RECORD_BAD);
    return true;
}

i64 csv_parse_rows(struct csv_job *job, struct csv_tablet *tablet, i64 first, i64 rows, bool plain,
                   const char **io_at) {
    struct parser p = {.job = job,
                       .pos = *io_at,
                       .end = job->end,
                       .tablet = tablet,
                       .block = tablet->block,
                       .plain = plain};
    p.quote = job->marks.quote;
    p.newline = job->marks.newline;
    p.comment = job->marks.comment;
    cursor_init(&p.cursor, p.pos, p.end, &job->marks, job);
    i64 done = 0;
    for (; done < rows; done++) {
        p.row = first + done;
        enum outcome outcome = parse_record(&p);
        if (outcome != RECORD_ROW && !leave_out(&p, outcome)) {
            break;
        }
    }
    *io_at = p.pos;
    return done;
}

void csv_parse_block(struct csv_job *job, i64 block_no) {
    const struct csv_block *block = &job->blocks[block_no], *next = block + 1;
    if (csv_stopped(job) || block->begin - job->data > atomic_load(&job->bad_record)) {
        return;
    }
    const char *at = block->begin;
    bool plain = block->count.plain;
    for (const char *end = job->start + (block_no + 1) * job->block_bytes; end < next->begin;
         end += job->block_bytes) { /* the last record may reach into later blocks */
        plain &= job->blocks[(end - job->start) / job->block_bytes].count.plain;
    }
    for (i64 row = block->first_row, end; row < next->first_row; row = end) {
        i64 tablet_no = row / job->tablet_rows;
        struct csv_tablet *tablet = &job->tablets[tablet_no];
        if (!csv_tablet_block(job, tablet)) {
            return;
        }
        end = MIN_OF(next->first_row, tablet->first_row + tablet->rows);
        if (csv_parse_rows(job, tablet, row - tablet->first_row, end - row, plain, &at) <
            end - row) {
            return;
        }
        csv_tablet_parsed(job, tablet_no, end - row);
    }
    if (at != next->begin && !atomic_load(&job->stop)) { /* counted otherwise a moment ago */
        csv_changed(job);
    }
    if (job->progress) {
        atomic_fetch_add(&job->progress->bytes_done, next->begin - block->begin);
    }
}
