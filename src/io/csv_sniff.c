/* csv_sniff.c: what a delimited file looks like: its delimiter, quotes, header, columns and types.
 *
 * The first megabyte is cut into records once per candidate delimiter; the one that gives the most
 * columns, the same number in (nearly) every record, wins. Types are the narrowest that all values
 * of a column read as: boolean, integer, bigint, decimal-free double precision, date, else text.
 * The first line is a header when it does not fit the types of the lines below it, or, where all is
 * text, when none of its fields comes again. A caller whose load then meets a value the sample did
 * not show asks again with `whole`, and every record is looked at. */
#include "defs/value.h"
#include "io/csv_int.h"

#include <stdio.h>

enum { SAMPLE_BYTES = 1 << 20, SAMPLE_RECORDS = 5000, FIELDS_MAX = 1600 };

/* What values of a column have read as so far, narrowest first. */
enum guess {
    GUESS_NONE,
    GUESS_BOOL,
    GUESS_INT,
    GUESS_BIGINT,
    GUESS_DOUBLE,
    GUESS_DATE,
    GUESS_TEXT
};

struct sniff {
    struct arena *arena;
    const struct csv_options *options;
    const char *begin, *end;
    VEC(struct sv) fields; /* of one record, quotes removed from around them */
    VEC(b8) quoted;
};

/* Reads the record at *io_at into s->fields; false at the end. */
static bool next_record(struct sniff *s, const char **io_at) {
    const char *p = *io_at;
    char quote = s->options->quote;
    s->fields.count = s->quoted.count = 0;
    if (p >= s->end) {
        return false;
    }
    for (bool last = false; !last;) {
        bool is_quoted = quote && p < s->end && *p == quote;
        const char *start = p += is_quoted;
        const char *stop = NULL;
        for (; is_quoted && p < s->end; p++) {
            if (*p == quote && !(p + 1 < s->end && p[1] == quote)) {
                stop = p++;
                break;
            }
            p += *p == quote;
        }
        while (p < s->end && *p != s->options->delimiter && *p != '\n') {
            p++;
        }
        stop = stop ? stop : p;
        last = p >= s->end || *p == '\n';
        stop -= last && !is_quoted && stop > start && stop[-1] == '\r';
        struct sv field = {start, stop - start};
        b8 flag = is_quoted;
        VEC_PUSH(s->arena, &s->fields, field);
        VEC_PUSH(s->arena, &s->quoted, flag);
        p++;
    }
    *io_at = MIN_OF(p, s->end);
    return true;
}

/* How many records of the sample have the most common number of fields, and that number. */
static i64 consistent(struct sniff *s, i64 *out_fields) {
    i64 counts[65] = {0};
    i64 records = 0;
    const char *at = s->begin;
    while (records < SAMPLE_RECORDS && next_record(s, &at)) {
        records++;
        counts[MIN_OF(s->fields.count, 64)]++;
    }
    i64 best = 1;
    for (i64 i = 1; i <= 64; i++) {
        best = counts[i] > counts[best] ? i : best;
    }
    *out_fields = best;
    return records ? counts[best] * 1000 / records : 0;
}

static void choose_delimiter(struct sniff *s, struct csv_options *options) {
    static const char candidates[] = {',', '|', ';', '\t'};
    i64 best_score = -1;
    char best = ',';
    for (i64 i = 0; i < COUNT_OF(candidates); i++) {
        i64 fields = 0;
        options->delimiter = candidates[i];
        i64 share = consistent(s, &fields);
        i64 score = fields > 1 && share >= 900 ? share * 100 + fields : 0;
        if (score > best_score) {
            best_score = score;
            best = candidates[i];
        }
    }
    options->delimiter = best;
}

static u8 guess_of(struct sv field) {
    i64 whole = 0;
    f64 real = 0;
    i32 day = 0;
    bool word = sv_eq_nocase(field, SV("true")) || sv_eq_nocase(field, SV("false"));
    if (word) {
        return GUESS_BOOL;
    }
    char c = field.len ? field.ptr[0] : 0;
    if ((c < '0' || c > '9') && c != '-' && c != '+' && c != '.') {
        return GUESS_TEXT;
    }
    if (!value_parse_int(field, &whole)) {
        return whole >= I32_MIN && whole <= I32_MAX ? GUESS_INT : GUESS_BIGINT;
    }
    if (!value_parse_f64(field, &real)) {
        return GUESS_DOUBLE;
    }
    return value_parse_date(field, &day) ? GUESS_TEXT : GUESS_DATE;
}

/* What both read as. */
static u8 guess_both(u8 a, u8 b) {
    if (a == GUESS_NONE || b == GUESS_NONE || a == b) {
        return MAX_OF(a, b);
    }
    bool numbers = a >= GUESS_INT && a <= GUESS_DOUBLE && b >= GUESS_INT && b <= GUESS_DOUBLE;
    return numbers ? MAX_OF(a, b) : GUESS_TEXT;
}

static struct type guess_type(u8 guess) {
    static const u8 types[] = {TYPE_TEXT,   TYPE_BOOLEAN, TYPE_INTEGER, TYPE_BIGINT,
                               TYPE_DOUBLE, TYPE_DATE,    TYPE_TEXT};
    return type_of(types[guess]);
}

static bool is_null(const struct sniff *s, i64 i) {
    return !s->quoted.items[i] && sv_eq(s->fields.items[i], sv_from(s->options->null_text));
}

/* Types of all records but the first; how many records there were. */
static i64 guess_columns(struct sniff *s, u8 *guesses, i64 count, bool whole) {
    const char *at = s->begin;
    i64 records = 0;
    while ((whole || records < SAMPLE_RECORDS) && next_record(s, &at)) {
        for (i64 i = 0; records > 0 && i < MIN_OF(s->fields.count, count); i++) {
            if (!is_null(s, i)) {
                u8 one = s->quoted.items[i] ? GUESS_TEXT : guess_of(s->fields.items[i]);
                guesses[i] = guess_both(guesses[i], one);
            }
        }
        records++;
    }
    return records;
}

/* Whether a field of the first line comes again in its column. */
static bool comes_again(struct sniff *s, const struct sv *first, i64 count) {
    const char *at = s->begin;
    for (i64 records = 0; records < SAMPLE_RECORDS && next_record(s, &at); records++) {
        for (i64 i = 0; records > 0 && i < MIN_OF(s->fields.count, count); i++) {
            if (sv_eq(s->fields.items[i], first[i])) {
                return true;
            }
        }
    }
    return false;
}

static bool looks_like_header(struct sniff *s, const struct sv *first, i64 count, const u8 *guesses,
                              i64 records) {
    bool all_text = true;
    for (i64 i = 0; i < count; i++) {
        u8 own = guess_of(first[i]);
        if (own != GUESS_TEXT || first[i].len == 0) {
            return false; /* no name */
        }
        all_text = all_text && (guesses[i] == GUESS_TEXT || guesses[i] == GUESS_NONE);
    }
    return !all_text || (records > 1 && !comes_again(s, first, count));
}

static const char *column_name(struct arena *arena, struct column_def *cols, i64 i,
                               struct sv given) {
    const char *name = given.len && utf8_valid(given.ptr, given.len, NULL)
                           ? arena_sv(arena, given).ptr
                           : arena_printf(arena, "column%lld", i);
    for (i64 k = 0, n = 1; k < i; k++) {
        if (strcmp(cols[k].name, name) == 0) {
            name = arena_printf(arena, "%.*s_%lld", (int)given.len, given.ptr, n++);
            k = -1;
        }
    }
    return name;
}

static FALLIBLE sniff_columns(struct sniff *s, const struct csv_given *given, bool whole,
                              struct csv_options *options, struct csv_sniffed *out,
                              struct error *err) {
    const char *at = s->begin;
    if (!next_record(s, &at)) {
        FAIL(err, BAD_COPY_FORMAT, "the file is empty: it shows no columns");
    }
    i64 count = s->fields.count;
    options->trailing_delimiter =
        count > 1 && options->delimiter == '|' && s->fields.items[count - 1].len == 0;
    count -= options->trailing_delimiter;
    bool quotes = memchr(s->begin, '"', (size_t)(s->end - s->begin)) != NULL;
    if (options->trailing_delimiter && !given->has_quote && !quotes) {
        options->quote = options->escape = 0;
    }
    if (count > FIELDS_MAX) {
        FAIL(err, TOO_MANY_COLUMNS, "the file has %lld columns: a table has at most %d", count,
             (int)FIELDS_MAX);
    }
    struct sv *first = NEW_ARRAY(s->arena, struct sv, count);
    memcpy(first, s->fields.items, sizeof *first * (size_t)count);
    u8 *guesses = NEW_ARRAY(s->arena, u8, count);
    i64 records = guess_columns(s, guesses, count, whole);
    options->header = given->has_header ? given->options.header
                                        : looks_like_header(s, first, count, guesses, records);
    out->cols = NEW_ARRAY(s->arena, struct column_def, count);
    out->col_count = (u32)count;
    for (i64 i = 0; i < count; i++) {
        if (!options->header && !(first[i].len == 0)) {
            guesses[i] = guess_both(guesses[i], guess_of(first[i]));
        }
        struct sv name = options->header ? first[i] : (struct sv){NULL, 0};
        out->cols[i].name = column_name(s->arena, out->cols, i, name);
        out->cols[i].type = guess_type(guesses[i]);
    }
    return arena_check(s->arena, err);
}

wf_status csv_sniff(struct arena *arena, const struct input *in, const struct csv_given *given,
                    bool whole, struct csv_sniffed *out, struct error *err) {
    struct csv_options *options = &out->options;
    *options = given->options;
    struct sniff s = {.arena = arena, .options = options};
    s.begin = in->data;
    s.begin += in->bytes >= 3 && !memcmp(in->data, "\xef\xbb\xbf", 3) ? 3 : 0;
    s.end = in->data + in->bytes;
    if (!whole && s.end - s.begin > SAMPLE_BYTES) { /* up to the end of a line */
        s.end = s.begin + SAMPLE_BYTES;
        while (s.end > s.begin && s.end[-1] != '\n') {
            s.end--;
        }
        s.end = s.end > s.begin ? s.end : s.begin + SAMPLE_BYTES;
    }
    if (!given->has_quote) { /* quotes may come further down */
        options->quote = '"';
    }
    options->escape = given->has_escape ? given->options.escape : options->quote;
    options->null_text = given->options.null_text ? given->options.null_text : "";
    if (!given->has_delimiter) {
        choose_delimiter(&s, options);
    }
    wf_status status = sniff_columns(&s, given, whole, options, out, err);
    if (!status && input_torn(in)) {
        status = error_set(err, ERR_IO, -1, "cannot read \"%s\": it was cut short", in->path);
    }
    return status;
}
