/* json.c: reads the JSON of a parse tree into an arena.
 *
 * First stage after the parser. The reader keeps its own stack of open containers, so a tree of any
 * depth can be read on any stack; the depth it met tells the binder how much stack the rest needs.
 * Keys are few and repeat, so equal keys share one copy through a small direct-mapped cache; a node
 * is 32 bytes, since an INSERT of a million values makes five million of them. The writer of this
 * JSON is trusted no further than that: a malformed document is an internal error, never a crash.
 */
#include "sql/sql_int.h"

enum { KEY_CACHE = 256, BYTES_PER_CHECK = STOP_EVERY(1 << 20) };

struct reader {
    struct arena *arena;
    const char *at;
    const char *end;
    const char *keys[KEY_CACHE];
    VEC(struct json *) open;  /* containers being read */
    VEC(struct json *) tails; /* their last member */
    struct error *err;
};

static void skip_space(struct reader *r) {
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r')) {
        r->at++;
    }
}

static wf_status malformed(struct reader *r) {
    FAIL(r->err, INTERNAL, "the parse tree is malformed");
}

static i32 hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    char low = (char)(c | 32);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* \uXXXX: the writer uses it for control characters and a few ASCII marks only. */
static bool read_hex(struct reader *r, char **io_out) {
    i32 code = 0;
    for (i32 i = 0; i < 4; i++) {
        i32 digit = r->at < r->end ? hex_digit(*r->at) : -1;
        if (digit < 0) {
            return false;
        }
        code = code * 16 + digit;
        r->at++;
    }
    char *out = *io_out;
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 63));
    } else {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 63));
        *out++ = (char)(0x80 | (code & 63));
    }
    *io_out = out;
    return true;
}

static bool read_escape(struct reader *r, char **io_out) {
    static const char marks[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    if (r->at >= r->end) {
        return false;
    }
    char mark = *r->at++;
    if (mark == 'u') {
        return read_hex(r, io_out);
    }
    const char *found = memchr(marks, mark, sizeof marks - 1);
    if (!found) {
        return false;
    }
    *(*io_out)++ = meant[found - marks];
    return true;
}

/* The string after an opening quote. Without escapes the view is into the document. */
static FALLIBLE read_string(struct reader *r, struct sv *out) {
    const char *start = r->at;
    while (r->at < r->end && *r->at != '"' && *r->at != '\\') {
        r->at++;
    }
    if (r->at < r->end && *r->at == '"') {
        *out = (struct sv){start, r->at++ - start};
        return ERR_OK;
    }
    const char *close = r->at;
    while (close < r->end && *close != '"') {
        close += *close == '\\' ? 2 : 1;
    }
    if (close >= r->end) {
        return malformed(r);
    }
    char *copy = arena_alloc(r->arena, close - start + 1);
    memcpy(copy, start, (size_t)(r->at - start));
    char *to = copy + (r->at - start);
    while (r->at < close) {
        char c = *r->at++;
        if (c != '\\') {
            *to++ = c;
        } else if (!read_escape(r, &to)) {
            return malformed(r);
        }
    }
    r->at = close + 1;
    *out = (struct sv){copy, to - copy};
    return ERR_OK;
}

static const char *intern_key(struct reader *r, struct sv key) {
    u64 hash = (u64)key.len * 31;
    if (key.len > 0) {
        hash += (u64)(u8)key.ptr[0] * 7 + (u64)(u8)key.ptr[key.len - 1] * 3;
        hash += (u64)(u8)key.ptr[key.len / 2];
    }
    const char **slot = &r->keys[hash % KEY_CACHE];
    if (!*slot || strncmp(*slot, key.ptr, (size_t)key.len) != 0 || (*slot)[key.len] != '\0') {
        *slot = arena_sv(r->arena, key).ptr;
    }
    return *slot;
}

static bool read_word(struct reader *r, const char *word) {
    i64 len = (i64)strlen(word);
    if (r->end - r->at < len || memcmp(r->at, word, (size_t)len) != 0) {
        return false;
    }
    r->at += len;
    return true;
}

static FALLIBLE read_number(struct reader *r, struct json *node) {
    node->kind = JSON_NUMBER;
    bool minus = *r->at == '-';
    r->at += minus;
    if (r->at >= r->end || *r->at < '0' || *r->at > '9') {
        return malformed(r);
    }
    u64 value = 0;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
        value = value * 10 + (u64)(*r->at++ - '0');
    }
    node->number = minus ? -(i64)(value & I64_MAX) : (i64)(value & I64_MAX);
    return ERR_OK;
}

static FALLIBLE read_value(struct reader *r, struct json *node) {
    if (r->at >= r->end) {
        return malformed(r);
    }
    switch (*r->at) {
    case '{':
    case '[':
        node->kind = *r->at++ == '{' ? JSON_OBJECT : JSON_ARRAY;
        VEC_PUSH(r->arena, &r->open, node);
        VEC_PUSH(r->arena, &r->tails, NULL);
        return ERR_OK;
    case '"': {
        struct sv text;
        r->at++;
        TRY(read_string(r, &text));
        node->kind = JSON_STRING;
        node->text = arena_sv(r->arena, text).ptr;
        node->len = (u32)text.len;
        return ERR_OK;
    }
    case 't':
    case 'f':
        node->kind = JSON_BOOL;
        node->number = *r->at == 't';
        return read_word(r, node->number ? "true" : "false") ? ERR_OK : malformed(r);
    case 'n':
        return read_word(r, "null") ? ERR_OK : malformed(r);
    default:
        return read_number(r, node);
    }
}

static void attach(struct reader *r, struct json *node) {
    struct json *owner = r->open.items[r->open.count - 1];
    struct json **tail = &r->tails.items[r->tails.count - 1];
    if (*tail) {
        (*tail)->next = node;
    } else {
        owner->first = node;
    }
    *tail = node;
    owner->len++;
}

/* One member of the innermost container, or its end. */
static FALLIBLE read_member(struct reader *r) {
    const struct json *owner = r->open.items[r->open.count - 1];
    skip_space(r);
    if (r->at < r->end && *r->at == (owner->kind == JSON_OBJECT ? '}' : ']')) {
        r->at++;
        r->open.count--;
        r->tails.count--;
        return ERR_OK;
    }
    if (owner->len > 0) {
        if (r->at >= r->end || *r->at != ',') {
            return malformed(r);
        }
        r->at++;
        skip_space(r);
    }
    struct json *node = NEW(r->arena, struct json);
    node->key = "";
    if (owner->kind == JSON_OBJECT) {
        struct sv key;
        if (r->at >= r->end || *r->at++ != '"') {
            return malformed(r);
        }
        TRY(read_string(r, &key));
        node->key = intern_key(r, key);
        skip_space(r);
        if (r->at >= r->end || *r->at++ != ':') {
            return malformed(r);
        }
        skip_space(r);
    }
    attach(r, node);
    return read_value(r, node);
}

FALLIBLE json_read(struct arena *arena, struct sv text, struct json **out, i32 *out_depth,
                   struct error *err) {
    struct reader *r = NEW(arena, struct reader);
    r->arena = arena;
    r->at = text.ptr;
    r->end = text.ptr + text.len;
    r->err = err;
    *out = NEW(arena, struct json);
    (*out)->key = "";
    *out_depth = 0;
    skip_space(r);
    TRY(read_value(r, *out));
    for (const char *checked = r->at; r->open.count > 0;) {
        *out_depth = MAX_OF(*out_depth, (i32)r->open.count);
        TRY(read_member(r));
        if (r->at - checked > BYTES_PER_CHECK) {
            TRY(stop_check(err));
            checked = r->at;
        }
    }
    return ERR_OK;
}

const struct json *json_first(const struct json *list) {
    return list && list->kind >= JSON_ARRAY ? list->first : NULL;
}

i32 json_count(const struct json *list) {
    return list && list->kind >= JSON_ARRAY ? (i32)list->len : 0;
}

const struct json *json_get(const struct json *object, const char *key) {
    JSON_EACH(it, object) {
        if (strcmp(it->key, key) == 0) {
            return it;
        }
    }
    return NULL;
}

const char *json_text(const struct json *object, const char *key) {
    const struct json *it = json_get(object, key);
    return it && it->kind == JSON_STRING ? it->text : NULL;
}

i64 json_number(const struct json *object, const char *key) {
    const struct json *it = json_get(object, key);
    return it && it->kind == JSON_NUMBER ? it->number : 0;
}

bool json_flag(const struct json *object, const char *key) {
    const struct json *it = json_get(object, key);
    return it && it->kind == JSON_BOOL && it->number;
}

bool json_is(const struct json *object, const char *key, const char *text) {
    const char *value = json_text(object, key);
    return strcmp(value ? value : "", text) == 0;
}

i32 json_position(const struct json *object) {
    return (i32)json_number(object, "location");
}

const char *node_type(const struct json *node) {
    const struct json *body = node_body(node);
    return body ? body->key : "";
}

const struct json *node_body(const struct json *node) {
    return node && node->kind == JSON_OBJECT ? node->first : NULL;
}

bool node_is(const struct json *node, const char *type) {
    return strcmp(node_type(node), type) == 0;
}

const char *node_string(const struct json *node) {
    const char *text = node_is(node, "String") ? json_text(node_body(node), "sval") : NULL;
    return text ? text : "";
}

/* The value of an integer that is not above zero stands in the text only. */
static bool same_dropped(const struct json *a, const struct json *b, struct sv script) {
    const struct json *x = json_get(a, "ival");
    const struct json *y = json_get(b, "ival");
    if (!x || !y || json_get(x, "ival") || json_get(y, "ival")) {
        return true;
    }
    return lex_integer(script, json_position(a)) == lex_integer(script, json_position(b));
}

bool json_same(const struct json *a, const struct json *b, struct sv script) {
    if (a->kind != b->kind || strcmp(a->key, b->key) != 0) {
        return false;
    }
    if (strcmp(a->key, "location") == 0) {
        return true;
    }
    switch (a->kind) {
    case JSON_BOOL:
    case JSON_NUMBER:
        return a->number == b->number;
    case JSON_STRING:
        return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    default:
        return true;
    }
    const struct json *x = json_first(a);
    const struct json *y = json_first(b);
    for (; x && y && json_same(x, y, script); x = x->next, y = y->next) {
    }
    return !x && !y && (strcmp(a->key, "A_Const") != 0 || same_dropped(a, b, script));
}
