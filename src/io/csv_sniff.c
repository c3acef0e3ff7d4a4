/* csv_sniff.c: what a delimited file looks like: its delimiter, quotes, comments, header, columns
 * and types.
 *
 * The first records are cut once for every candidate dialect: four delimiters, quotes or none,
 * comments or none, as far as the bytes occur at all. The one wins that gives the same number of
 * columns in (nearly) every record, and of several the one with more columns, with more quoted
 * fields, and the earlier one. Lines before the first record of that number are notes and skipped.
 * Types are then the narrowest that all values of a column read as (csv_guess.c). The first record
 * is the header when it does not fit the types of those below it, or when all is text. With
 * sample_rows -1 every record is looked at, through a window that slides over an archive; otherwise
 * a value that the sample did not show is an error of whoever reads the file. What comes out is
 * what DuckDB makes of such files, but for lines of another number of fields: where nine of ten
 * agree, the others are errors that the load names. */
#include "defs/value.h"
#include "host/chars.h"
#include "io/csv_int.h"

#include <stdio.h>

enum {
    SAMPLE_BYTES = 1 << 20,
    SAMPLE_RECORDS = 20480,
    DIALECT_BYTES = 1 << 18,
    DIALECT_RECORDS = 2000,
    FIELDS_MAX = 1600,
    CHECK_RECORDS = STOP_EVERY(4096)
};

struct sniff {
    struct arena *arena;
    struct input *in;
    const struct load_progress *progress;
    const struct csv_options *options; /* of the dialect being tried, then of the file */
    char newline;
    const char *begin, *end; /* of the sample */
    bool cut;                /* the file goes on behind it */
    bool slides;             /* ... and what is behind it is looked at, too */
    /* The record read last. */
    VEC(struct sv) fields; /* quotes removed from around them; no more than FIELDS_MAX + 1 */
    VEC(b8) quoted;
    i64 field_count;
    bool no_row;     /* a blank line, or nothing but a comment */
    bool is_comment; /* it ends in one */
    bool at_end;     /* it ends where the sample does, maybe before its time */
    /* Of all records read since it was set to 0. */
    i64 quoted_count, odd_count; /* fields in quotes; quotes elsewhere than around a field */
};

static const char *skip_blanks(const char *p, const char *end) {
    while (p < end && *p == ' ') {
        p++;
    }
    return p;
}

static bool ends_field(const struct sniff *s, const char *p) {
    return p >= s->end || *p == s->options->delimiter || *p == s->newline;
}

/* A field in quotes; `p` is behind the first. Returns the place of the closing one, or the end. */
static const char *find_close(const struct sniff *s, const char *p) {
    char quote = s->options->quote, escape = s->options->escape;
    for (; p < s->end; p++) {
        bool next_quote = p + 1 < s->end && p[1] == quote;
        if (escape != quote && *p == escape) {
            p++;
        } else if (*p == quote && escape == quote && next_quote) {
            p++;
        } else if (*p == quote) {
            return p;
        }
    }
    return s->end;
}

/* Reads one field at p; returns where it ends. */
static const char *next_field(struct sniff *s, const char *p, struct sv *out, b8 *out_quoted,
                              bool *out_comment) {
    char quote = s->options->quote, comment = s->options->comment;
    const char *open = skip_blanks(p, s->end), *start = p, *stop = NULL;
    *out_quoted = quote && open < s->end && *open == quote;
    if (*out_quoted) {
        start = open + 1;
        stop = find_close(s, start);
        s->quoted_count++;
        s->odd_count += stop == s->end && !s->cut;
        p = skip_blanks(MIN_OF(stop + 1, s->end), s->end);
        bool return_char = p < s->end && *p == '\r' && (p + 1 == s->end || p[1] == '\n');
        s->odd_count += !ends_field(s, p + return_char) && !(comment && *p == comment);
    }
    while (!ends_field(s, p) && !(comment && *p == comment)) {
        s->odd_count += quote && *p == quote && !*out_quoted;
        p++;
    }
    stop = stop ? stop : p;
    *out_comment = comment && p < s->end && *p == comment;
    while (*out_comment && p < s->end && *p != s->newline) {
        p++;
    }
    bool last = p >= s->end || *p == s->newline;
    stop -= last && !*out_quoted && stop > start && stop[-1] == '\r' && !*out_comment;
    *out = (struct sv){start, stop - start};
    return p;
}

/* Reads the record at *io_at into s->fields; false at the end. */
static bool next_record(struct sniff *s, const char **io_at) {
    const char *p = *io_at;
    s->fields.count = s->quoted.count = s->field_count = 0;
    if (p >= s->end) {
        return false;
    }
    for (bool last = false; !last; p++) {
        struct sv field;
        b8 quoted;
        bool comment;
        p = next_field(s, p, &field, &quoted, &comment);
        last = p >= s->end || *p == s->newline;
        if (s->field_count == 0) {
            bool blank = skip_blanks(field.ptr, field.ptr + field.len) == field.ptr + field.len;
            s->no_row = last && !quoted && blank;
        }
        s->is_comment = comment;
        if (s->field_count++ <= FIELDS_MAX) {
            VEC_PUSH(s->arena, &s->fields, field);
            VEC_PUSH(s->arena, &s->quoted, quoted);
        }
    }
    s->at_end = p > s->end;
    *io_at = MIN_OF(p, s->end);
    return true;
}

/* The sample begins at its byte `begin`, and reaches further into the archive. */
static FALLIBLE slide(struct sniff *s, const char *begin, struct error *err) {
    TRY(input_slide(s->in, begin - s->in->data, s->progress, err));
    s->begin = s->in->data;
    s->end = s->in->data + s->in->bytes;
    return ERR_OK;
}

/* Like next_record, to the end of the archive where the sample slides over it. */
static FALLIBLE next_of_all(struct sniff *s, const char **io_at, bool *out_any, struct error *err) {
    const char *at = *io_at;
    *out_any = next_record(s, &at);
    while (s->slides && s->in->cut && (!*out_any || s->at_end)) {
        TRY(slide(s, *io_at, err));
        at = *io_at = s->begin;
        *out_any = next_record(s, &at);
    }
    *io_at = at;
    return ERR_OK;
}

static bool ends_empty(const struct sniff *s) {
    i64 last = s->fields.count - 1;
    return s->field_count == s->fields.count && last > 0 && s->fields.items[last].len == 0 &&
           !s->quoted.items[last];
}

/* --- the dialect ------------------------------------------------------------------------------ */

struct dialect {
    struct csv_options options;
    i64 fields; /* of most records */
    i64 share;  /* of the records that have so many, in thousandths */
    i64 quoted, odd;
    b8 all_end_empty;  /* every record ends with the delimiter */
    b8 first_agrees;   /* the first record after notes has so many fields */
    const char *begin; /* of the first record of so many fields */
};

struct record_shape {
    const char *begin;
    i64 fields;
    b8 ends_empty;
};
typedef VEC(struct record_shape) shape_list;

static bool has_fields(const struct record_shape *shape, i64 fields) {
    return shape->fields == fields || (shape->fields == fields + 1 && shape->ends_empty);
}

/* The most common number of fields; with padding, the largest. */
static i64 common_fields(struct sniff *s, const shape_list *shapes, bool padding) {
    i64 *counts = NEW_ARRAY(s->arena, i64, FIELDS_MAX + 3);
    i64 best = 1;
    for (i64 i = 0; i < shapes->count; i++) {
        i64 fields = shapes->items[i].fields;
        counts[fields]++;
        best = padding ? MAX_OF(best, fields) : best;
    }
    for (i64 i = 1; i <= FIELDS_MAX + 1 && !padding; i++) {
        best = counts[i] > counts[best] || (counts[i] == counts[best] && i > best && counts[i])
                   ? i
                   : best;
    }
    bool ends = !padding && best > 2 && shapes->count && shapes->items[0].fields == best - 1;
    for (i64 i = 1; ends && i < shapes->count; i++) {
        ends = shapes->items[i].fields != best || shapes->items[i].ends_empty;
    }
    return best - ends; /* only the header has no delimiter at its end */
}

/* Cuts the sample by d->options, and says how well that went. */
static void try_dialect(struct sniff *s, const struct csv_given *given, struct dialect *d) {
    shape_list shapes = {0};
    const char *at = s->begin, *record = at;
    s->options = &d->options;
    s->quoted_count = s->odd_count = 0;
    while (shapes.count < DIALECT_RECORDS && at - s->begin < DIALECT_BYTES && next_record(s, &at)) {
        struct record_shape shape = {record, MIN_OF(s->field_count, FIELDS_MAX + 1), ends_empty(s)};
        if (!s->no_row) {
            VEC_PUSH(s->arena, &shapes, shape);
        }
        record = at;
    }
    bool padding = given->options.null_padding;
    d->fields = common_fields(s, &shapes, padding);
    i64 first = 0, agree = 0, ending = 0;
    while (!padding && d->fields > 1 && first + 1 < shapes.count &&
           shapes.items[first].fields < d->fields) {
        first++;
    }
    for (i64 i = first; i < shapes.count; i++) {
        agree += padding || has_fields(&shapes.items[i], d->fields);
        ending += shapes.items[i].ends_empty;
    }
    d->first_agrees = padding || (shapes.count && has_fields(&shapes.items[first], d->fields));
    d->all_end_empty = ending == shapes.count - first;
    d->share = shapes.count ? agree * 1000 / (shapes.count - first) : 0;
    d->begin = first > 0 ? shapes.items[first].begin : s->begin;
    d->quoted = s->quoted_count;
    d->odd = s->odd_count;
}

/* Several columns: the first record and nearly all others have so many; most will do when there are
 * no notes above. */
static bool is_fine(const struct sniff *s, const struct dialect *d) {
    return d->fields > 1 && d->first_agrees &&
           (d->share >= 900 || (d->share >= 500 && d->begin == s->begin));
}

static bool is_better(const struct sniff *s, const struct dialect *d, const struct dialect *best) {
    bool fine = is_fine(s, d), best_fine = is_fine(s, best);
    if (fine != best_fine) {
        return fine;
    }
    if (!fine) { /* one column each */
        return d->quoted - d->odd > best->quoted - best->odd &&
               d->options.comment == best->options.comment;
    }
    bool notes = d->begin > s->begin, best_notes = best->begin > s->begin;
    if (notes != best_notes) {
        return best_notes;
    }
    if (d->share != best->share) {
        return d->share > best->share;
    }
    if (d->options.delimiter == best->options.delimiter && d->quoted != best->quoted) {
        return d->quoted > best->quoted;
    }
    return d->fields > best->fields;
}

/* Tries quotes and escapes with the delimiter and comment that d has. Without quotes only when
 * there are none, or they stand elsewhere than around fields. */
static void try_quotes(struct sniff *s, const struct csv_given *given, struct dialect *d,
                       struct dialect *best) {
    static const char candidates[][2] = {
        {'"', '"'}, {'"', '\\'}, {'\'', '\''}, {'\'', '\\'}, {0, 0}};
    size_t bytes = (size_t)MIN_OF(s->end - s->begin, DIALECT_BYTES);
    bool any = false;
    for (i64 i = 0; i < COUNT_OF(candidates); i++) {
        char quote = given->has_quote ? given->options.quote : candidates[i][0];
        char escape = given->has_escape ? given->options.escape : candidates[i][1];
        bool occurs = quote && memchr(s->begin, quote, bytes);
        if ((i > 0 && !occurs && (any || quote)) || (given->has_quote && i > 1)) {
            continue; /* the first stands for quotes that come further down */
        }
        d->options.quote = quote;
        d->options.escape = given->has_quote && !given->has_escape && i == 0 ? quote : escape;
        try_dialect(s, given, d);
        if (d->odd * 20 <= d->quoted || given->has_quote) {
            any = any || d->quoted > 0 || !occurs;
            *best = !best->begin || is_better(s, d, best) ? *d : *best;
        }
    }
}

static FALLIBLE choose_dialect(struct sniff *s, const struct csv_given *given, struct dialect *best,
                               struct error *err) {
    static const char delimiters[] = {',', '|', ';', '\t'};
    static const char comments[] = {0, '#'};
    size_t bytes = (size_t)MIN_OF(s->end - s->begin, DIALECT_BYTES);
    for (i64 c = 0; c < (given->has_comment ? 1 : COUNT_OF(comments)); c++) {
        char comment = given->has_comment ? given->options.comment : comments[c];
        if (c > 0 && ((best->share == 1000 && best->fields > 1) || !memchr(s->begin, '#', bytes))) {
            break; /* lines that fit without are no comments */
        }
        for (i64 i = 0; i < (given->has_delimiter ? 1 : COUNT_OF(delimiters)); i++) {
            struct dialect d = {.options = given->options};
            d.options.comment = comment;
            d.options.delimiter = given->has_delimiter ? given->options.delimiter : delimiters[i];
            try_quotes(s, given, &d, best);
            TRY(load_progress_check(s->progress, err));
            TRY(arena_check(s->arena, err));
        }
    }
    if (!given->has_delimiter && !is_fine(s, best)) { /* one column, whatever it holds */
        best->fields = 1;
        best->begin = s->begin;
        best->options.delimiter = '\x1f';
        for (i64 i = 0; i < COUNT_OF(delimiters) && best->options.delimiter == '\x1f'; i++) {
            if (!memchr(s->begin, delimiters[i], (size_t)(s->end - s->begin))) {
                best->options.delimiter = delimiters[i];
            }
        }
    }
    return ERR_OK;
}

/* --- columns ---------------------------------------------------------------------------------- */

static bool is_null(const struct sniff *s, i64 i) {
    struct sv field = s->fields.items[i];
    const char *const *more = s->options->null_more;
    if (field.len == 0 || sv_eq(field, sv_from(s->options->null_text))) {
        return true; /* also in quotes: the type is that of the others */
    }
    for (; more && *more; more++) {
        if (sv_eq(field, sv_from(*more))) {
            return true;
        }
    }
    return false;
}

struct columns {
    i64 count;
    struct sv *first; /* fields of the first record */
    u8 *first_guess;  /* what they read as */
    u8 *guess;        /* those of all others */
    i64 records;
};

/* Looks at the records of the sample, or at all. */
static FALLIBLE guess_columns(struct sniff *s, const struct csv_given *given, bool whole,
                              struct columns *c, struct error *err) {
    i64 most = given->sample_rows > 0 ? given->sample_rows : SAMPLE_RECORDS;
    const char *at = s->begin;
    bool any = false;
    c->first = NEW_ARRAY(s->arena, struct sv, c->count);
    c->first_guess = NEW_ARRAY(s->arena, u8, c->count);
    c->guess = NEW_ARRAY(s->arena, u8, c->count);
    while (whole || c->records <= most) {
        TRY(next_of_all(s, &at, &any, err));
        if (!any) {
            break;
        }
        if (s->no_row && (c->count > 1 || c->records == 0 || s->is_comment)) {
            continue; /* in one column a blank line below the first is a NULL */
        }
        bool fits = s->field_count == c->count || s->options->null_padding || c->records == 0 ||
                    (s->field_count == c->count + 1 && ends_empty(s));
        for (i64 i = 0; fits && i < MIN_OF(s->fields.count, c->count); i++) {
            u8 one = is_null(s, i) ? GUESS_NONE : csv_guess(s->fields.items[i]);
            if (c->records == 0) {
                struct sv field = s->fields.items[i];
                c->first[i] = s->slides ? arena_sv(s->arena, field) : field;
                c->first_guess[i] = one;
            } else {
                c->guess[i] = csv_guess_both(c->guess[i], one);
            }
        }
        if (++c->records % CHECK_RECORDS == 0) {
            TRY(load_progress_check(s->progress, err));
        }
    }
    return arena_check(s->arena, err);
}

static struct sv trim(struct sv s) {
    while (s.len > 0 && s.ptr[0] == ' ') {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && s.ptr[s.len - 1] == ' ') {
        s.len--;
    }
    return s;
}

/* The type the user gave column i, if any. */
static bool given_type(const struct csv_given *given, const char *name, i64 i, struct type *out) {
    for (i32 k = 0; k < given->col_count; k++) {
        const struct column_def *col = &given->cols[k];
        if (col->name && !given->all_cols ? strcmp(col->name, name) == 0 : k == i) {
            *out = col->type;
            return true;
        }
    }
    return false;
}

static bool reads_as(struct type type, struct sv field) {
    u8 value[16];
    return field.len == 0 || type_kind(type) == KIND_STR ||
           !value_parse(type, field, (struct when){0}, value);
}

/* All names the user gave stand in the first record. */
static bool names_stand(const struct csv_given *given, const struct columns *c) {
    for (i64 i = 0; i < MIN_OF(c->count, given->col_count); i++) {
        if (!sv_eq_nocase(trim(c->first[i]), sv_from(given->cols[i].name))) {
            return false;
        }
    }
    return true;
}

/* The first record does not fit the types of the others, or all is text. */
static bool looks_like_header(const struct csv_given *given, const struct columns *c) {
    bool all_text = true, empty = c->records > 1;
    for (i64 i = 0; i < c->count; i++) {
        struct type type;
        u8 rest = c->guess[i] == GUESS_NONE ? c->first_guess[i] : c->guess[i];
        bool is_given = given->all_cols && given_type(given, "", i, &type);
        if (is_given
                ? !reads_as(type, c->first[i])
                : rest != GUESS_TEXT && csv_guess_both(rest, c->first_guess[i]) == GUESS_TEXT) {
            return true;
        }
        empty = empty && c->first[i].len == 0;
        all_text = all_text && (rest == GUESS_TEXT || rest == GUESS_NONE);
    }
    return given->all_cols ? names_stand(given, c) : all_text || empty;
}

/* A quote that was doubled in the file stands once in the name. */
static struct sv unescaped(struct sniff *s, struct sv name) {
    char *to = NEW_ARRAY(s->arena, char, name.len + 1);
    char quote = s->options->quote, escape = s->options->escape;
    i64 n = 0;
    for (i64 i = 0; i < name.len; i++) {
        bool escaped = quote && name.ptr[i] == escape && i + 1 < name.len &&
                       (name.ptr[i + 1] == quote || name.ptr[i + 1] == escape);
        i += escaped;
        to[n++] = name.ptr[i];
    }
    return (struct sv){to, n};
}

static const char *column_name(struct sniff *s, const struct column_def *cols, i64 i,
                               struct sv given) {
    enum { NAME_BYTES = 63 }; /* what the grammar keeps of a name */
    given = trim(unescaped(s, (struct sv){given.ptr, MIN_OF(given.len, 4 * NAME_BYTES)}));
    if (given.len > NAME_BYTES) {
        given.len = NAME_BYTES;
        while (given.len > 0 && ((u8)given.ptr[given.len] & 0xc0) == 0x80) {
            given.len--; /* not in the middle of a character */
        }
    }
    const char *base = given.len && utf8_valid(given.ptr, given.len, NULL)
                           ? arena_sv(s->arena, given).ptr
                           : arena_printf(s->arena, "column%lld", i);
    const char *name = base;
    for (i64 k = 0, n = 1; k < i; k++) {
        if (strcmp(cols[k].name, name) == 0) {
            name = arena_printf(s->arena, "%s_%lld", base, n++);
            k = -1;
        }
    }
    return name;
}

static FALLIBLE check_given(const struct csv_given *given, const struct csv_sniffed *found,
                            struct error *err) {
    if (given->all_cols && (i64)given->col_count != (i64)found->col_count) {
        FAIL(err, BAD_COPY_FORMAT, "the file has %u columns, %d were named", found->col_count,
             given->col_count);
    }
    for (i32 k = 0; k < given->col_count; k++) {
        bool known = given->all_cols || (!given->cols[k].name && k < (i32)found->col_count);
        for (u32 i = 0; i < found->col_count && given->cols[k].name; i++) {
            known = known || strcmp(found->cols[i].name, given->cols[k].name) == 0;
        }
        if (!known && given->cols[k].name) {
            FAIL(err, UNDEFINED_COLUMN, "the file has no column \"%.100s\"", given->cols[k].name);
        }
        if (!known) {
            FAIL(err, INVALID_PARAMETER, "%d types were given for %u columns", given->col_count,
                 found->col_count);
        }
    }
    return ERR_OK;
}

static FALLIBLE make_columns(struct sniff *s, const struct csv_given *given,
                             const struct columns *c, struct csv_sniffed *out, struct error *err) {
    struct csv_options *options = &out->options;
    b8 *guessed = NEW_ARRAY(s->arena, b8, c->count + 1);
    b8 *quoted_null = NEW_ARRAY(s->arena, b8, c->count + 1);
    out->cols = NEW_ARRAY(s->arena, struct column_def, c->count + 1);
    out->col_count = (u32)c->count;
    for (i64 i = 0; i < c->count; i++) {
        struct column_def *col = &out->cols[i];
        struct sv name = options->header ? c->first[i] : SV("");
        name = i < given->name_count                     ? sv_from(given->names[i])
               : given->all_cols && i < given->col_count ? sv_from(given->cols[i].name)
                                                         : name;
        u8 guess = options->header ? c->guess[i] : csv_guess_both(c->guess[i], c->first_guess[i]);
        col->name = column_name(s, out->cols, i, name);
        if (!given_type(given, col->name, i, &col->type)) {
            col->type = csv_guess_type(given->all_text ? GUESS_TEXT : guess);
            guessed[i] = col->type.id != TYPE_TEXT;
        }
        quoted_null[i] = col->type.id != TYPE_TEXT;
    }
    options->guessed = guessed;
    options->force_null = quoted_null;
    TRY(arena_check(s->arena, err));
    return check_given(given, out, err);
}

static FALLIBLE sniff_columns(struct sniff *s, const struct csv_given *given, bool whole,
                              const struct dialect *dialect, struct csv_sniffed *out,
                              struct error *err) {
    struct csv_options *options = &out->options;
    struct columns c = {.count = dialect->fields};
    if (c.count > FIELDS_MAX) {
        FAIL(err, TOO_MANY_COLUMNS, "the file has more than %d columns, the most a table can have",
             (int)FIELDS_MAX);
    }
    const char *at = s->begin;
    bool any = false;
    for (bool more = true; more && !any; any = more && !s->no_row) {
        TRY(next_of_all(s, &at, &more, err));
    }
    if (!any) { /* one column, and no rows of it */
        options->skip = I64_MAX;
    }
    options->trailing_delimiter =
        c.count > 1 && options->delimiter == '|' && dialect->all_end_empty && !given->all_cols;
    c.count -= options->trailing_delimiter;
    if (options->trailing_delimiter && !given->has_quote && s->quoted_count == 0) {
        options->quote = options->escape = 0;
    }
    out->newline = csv_line_end(s->in->data, s->in->bytes, options->quote);
    TRY(guess_columns(s, given, whole, &c, err));
    options->header = given->has_header ? given->options.header : looks_like_header(given, &c);
    options->header = options->header && any;
    return make_columns(s, given, &c, out, err);
}

/* Cuts the sample off at the end of a line. */
static void cut_sample(struct sniff *s) {
    const char *end = s->begin + MIN_OF(s->end - s->begin, SAMPLE_BYTES);
    s->cut = true;
    s->end = end;
    while (s->end > s->begin && s->end[-1] != s->newline) {
        s->end--;
    }
    s->end = s->end > s->begin ? s->end : end;
}

/* Leaves out the lines to be skipped, however far down they reach. */
static FALLIBLE skip_lines(struct sniff *s, i64 count, struct error *err) {
    struct csv_marks lines = {.newline = s->newline};
    for (i64 i = 0; i < count && s->begin < s->end; i++) {
        const char *next = csv_next_record(s->begin, s->end, &lines, QUOTE_OUT);
        while (next == s->end && s->in->cut) {
            TRY(slide(s, s->begin, err));
            next = csv_next_record(s->begin, s->end, &lines, QUOTE_OUT);
        }
        s->begin = next;
    }
    return s->in->cut && s->end - s->begin < SAMPLE_BYTES ? slide(s, s->begin, err) : ERR_OK;
}

wf_status csv_sniff(struct arena *arena, struct input *in, const struct csv_given *given,
                    const struct load_progress *progress, struct csv_sniffed *out,
                    struct error *err) {
    struct sniff s = {.arena = arena, .progress = progress, .in = in, .begin = in->data};
    s.begin += in->bytes >= 3 && !memcmp(in->data, "\xef\xbb\xbf", 3) ? 3 : 0;
    s.end = in->data + in->bytes;
    s.newline =
        csv_line_end(s.begin, s.end - s.begin, given->has_quote ? given->options.quote : '"');
    TRY(skip_lines(&s, given->options.skip, err));
    const char *read_end = s.end;
    bool whole = given->sample_rows < 0;
    if (s.end - s.begin > SAMPLE_BYTES || in->cut) {
        cut_sample(&s);
    }
    struct dialect best = {0};
    struct csv_given known = *given;
    known.options.null_text = given->options.null_text ? given->options.null_text : "";
    TRY(choose_dialect(&s, &known, &best, err));
    out->options = best.options;
    out->options.lenient = 1;
    if (best.begin > s.begin && !given->has_skip) { /* notes above */
        out->options.skip += csv_newlines(s.begin, best.begin - s.begin, s.newline);
        s.begin = best.begin;
    }
    if (whole || given->sample_rows > SAMPLE_RECORDS) {
        s.end = read_end;
        s.cut = false;
        s.slides = in->cut;
    }
    s.options = &out->options;
    s.quoted_count = best.quoted;
    wf_status status = sniff_columns(&s, &known, whole, &best, out, err);
    if (!status && input_torn(in)) {
        status = error_set(err, ERR_IO, -1, "cannot read \"%s\": it was cut short", in->path);
    }
    return status;
}
