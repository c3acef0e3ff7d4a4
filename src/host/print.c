/* print.c: format() whose template is known only when its row is.
 *
 * A template that is constant becomes a concatenation when the query is bound; this is for all
 * others, and for widths that are arguments. The arguments arrive as one text in parts (a byte 0xff
 * stands between them), a NULL as the byte 0xfe; neither is text. The template is walked twice,
 * to count and to write. */
#include "host/bodies.h"

#include "defs/fault.h"
#include "defs/value.h"
#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_str.h"
#include "defs/fn_str2.h"

struct printing {
    struct sv template;
    str args;
    i64 arg_count;
    i64 arg; /* the one used last, from 1 */
    i64 at;
    u8 *out; /* NULL: only count */
    i64 n;
    u8 fault;
};

struct spec { /* %[place$][-][width]kind; a width may be * or *place$ */
    i64 place, width, width_place;
    bool left, starred;
    char kind;
};

static void put_byte(struct printing *p, char c) {
    if (p->out) {
        p->out[p->n] = (u8)c;
    }
    p->n++;
}

static void put_text(struct printing *p, struct sv s) {
    if (p->out && s.len > 0) {
        memcpy(p->out + p->n, s.ptr, (size_t)s.len);
    }
    p->n += s.len;
}

static void put_quoted(struct printing *p, struct sv s, char quote, bool slashes) {
    put_byte(p, quote);
    for (i64 i = 0; i < s.len; i++) {
        if (s.ptr[i] == quote || (slashes && s.ptr[i] == '\\')) {
            put_byte(p, s.ptr[i]);
        }
        put_byte(p, s.ptr[i]);
    }
    put_byte(p, quote);
}

/* The current byte of the template; 0 and a fault behind its end. */
static char look(struct printing *p) {
    if (p->at >= p->template.len) {
        p->fault = FAULT_FORMAT;
        return 0;
    }
    return p->template.ptr[p->at];
}

/* Digits, if there are any; false when there are none. */
static bool read_digits(struct printing *p, i64 *out) {
    i64 value = 0, digits = 0;
    for (; (u8)(look(p) - '0') < 10; p->at++, digits++) {
        value = value * 10 + (look(p) - '0');
        if (value > I32_MAX) {
            p->fault = FAULT_TEXT_SIZE;
            return false;
        }
    }
    *out = digits ? value : *out;
    return digits > 0;
}

/* A number followed by $, which is not zero. */
static void end_place(struct printing *p, i64 place) {
    if (look(p) != '$' || place == 0) {
        p->fault = FAULT_FORMAT;
    }
    p->at++;
}

static struct spec read_spec(struct printing *p) {
    struct spec spec = {0};
    i64 number = 0;
    if (read_digits(p, &number)) {
        if (look(p) != '$') {
            spec.width = number;
            spec.kind = look(p);
            return spec;
        }
        spec.place = number;
        end_place(p, number);
    }
    for (; look(p) == '-'; p->at++) {
        spec.left = true;
    }
    if (look(p) == '*') {
        spec.starred = true;
        p->at++;
        if (read_digits(p, &spec.width_place)) {
            end_place(p, spec.width_place);
        }
    } else {
        read_digits(p, &spec.width);
    }
    spec.kind = look(p);
    return spec;
}

/* The argument at a place, or the next one when that is 0. */
static struct sv argument(struct printing *p, i64 place, bool *out_null) {
    p->arg = place ? place : p->arg + 1;
    if (p->arg > p->arg_count) {
        p->fault = FAULT_FORMAT_FEW;
        return (struct sv){"", 0};
    }
    struct sv s = sv_of(p->arg > 1 ? fn_parts_tail(p->args, p->arg - 1) : p->args);
    const char *end = s.len ? memchr(s.ptr, 0xff, (size_t)s.len) : NULL;
    s.len = end ? end - s.ptr : s.len;
    *out_null = s.len == 1 && (u8)s.ptr[0] == 0xfe;
    return *out_null ? (struct sv){"", 0} : s;
}

/* A width that is an argument; a negative one fills on the right. */
static void read_width(struct printing *p, struct spec *spec) {
    bool none = false;
    struct sv s = argument(p, spec->width_place, &none);
    if (p->fault || none) {
        return;
    }
    i64 width = 0;
    p->fault = value_parse_int(s, &width);
    if (width <= I32_MIN || width > I32_MAX) {
        p->fault = FAULT_INTEGER;
        return;
    }
    spec->left = spec->left || width < 0;
    spec->width = width < 0 ? -width : width;
}

static void put_value(struct printing *p, char kind, struct sv s, bool none) {
    if (kind == 's') {
        put_text(p, s);
    } else if (kind == 'L' && none) {
        put_text(p, SV("NULL"));
    } else if (kind == 'L') {
        bool slashes = s.len && memchr(s.ptr, '\\', (size_t)s.len);
        put_text(p, slashes ? SV("E") : SV(""));
        put_quoted(p, s, '\'', slashes);
    } else if (kind != 'I' || none) {
        p->fault = kind == 'I' ? FAULT_NULL_NAME : FAULT_FORMAT;
    } else if (text_is_name(str_from(s))) {
        put_text(p, s);
    } else {
        put_quoted(p, s, '"', false);
    }
}

/* Characters a value takes: as many as bytes that are added, less those inside characters. */
static i64 chars_of(struct sv s, i64 bytes) {
    return fn_length(str_from(s)) + bytes - s.len;
}

static void put_spec(struct printing *p) {
    bool none = false;
    struct spec spec = read_spec(p);
    if (!p->fault && spec.starred) {
        read_width(p, &spec);
    }
    struct sv s = p->fault ? (struct sv){"", 0} : argument(p, spec.place, &none);
    if (p->fault) {
        return;
    }
    p->at++;
    struct printing dry = {.n = 0};
    put_value(&dry, spec.kind, s, none);
    p->fault = dry.fault;
    i64 blanks = MAX_OF(spec.width - chars_of(s, dry.n), 0);
    if (!spec.left && p->out) {
        memset(p->out + p->n, ' ', (size_t)blanks);
    }
    p->n += spec.left ? 0 : blanks;
    put_value(p, spec.kind, s, none);
    if (spec.left && p->out) {
        memset(p->out + p->n, ' ', (size_t)blanks);
    }
    p->n += spec.left ? blanks : 0;
}

static void print_all(struct printing *p) {
    while (p->at < p->template.len && !p->fault) {
        char c = p->template.ptr[p->at++];
        if (c != '%') {
            put_byte(p, c);
        } else if (look(p) == '%') {
            put_byte(p, '%');
            p->at++;
        } else if (!p->fault) {
            put_spec(p);
        }
    }
}

void mt_print(struct made *made, str a, str b, i32 c, u8 *f) {
    struct printing count = {.template = sv_of(a), .args = b, .arg_count = c};
    struct printing write = count;
    print_all(&count);
    if (count.fault) {
        *f = count.fault;
        return;
    }
    write.out = made_room(made, count.n, f);
    if (write.out) {
        print_all(&write);
    }
}
