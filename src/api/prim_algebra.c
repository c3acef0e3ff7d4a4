/* prim_algebra.c: the public operators on packed tuples: checks, and fields turned into shifts and
 * masks.
 *
 * What an operation has put out is known when it has run: the room behind it is not copied back to
 * the host. */
#include "api/prim_int.h"
#include "prim/algebra.h"

/* --- relations --- */

static i32 word_bits(const wf_relation *r) {
    return elem_bytes[r->word] * 8;
}

static i32 bits_of(const wf_relation *r, i32 first, i32 count) {
    i32 bits = 0;
    for (i32 f = first; f < count; f++) {
        bits += r->bits[f];
    }
    return bits;
}
static i32 used_bits(const wf_relation *r) {
    return bits_of(r, 0, r->field_count);
}
static i32 key_bits(const wf_relation *r) {
    return bits_of(r, 0, r->key_count);
}

/* Where field f starts, counted from the lowest bit. */
static u32 field_shift(const wf_relation *r, i32 f) {
    return (u32)(word_bits(r) - bits_of(r, 0, f + 1));
}

static void check_form(struct call *c, const char *name, const wf_relation *r, i64 pages) {
    CALL_NEED(c, r->word == WF_ELEM_U32 || r->word == WF_ELEM_U64 || r->word == WF_ELEM_U128,
              DATATYPE_MISMATCH, "words of %s must be U32, U64 or U128", name);
    CALL_NEED(c, r->form == WF_DENSE || r->form == WF_PAGED, INVALID_PARAMETER,
              "%s has no form number %d", name, (int)r->form);
    if (r->form == WF_PAGED) {
        CALL_NEED(c, r->page_rows > 0 && r->page_rows % 16 == 0 && r->page_rows < 1LL << 31,
                  INVALID_PARAMETER, "%s has pages of %lld rows, which is no multiple of 16", name,
                  (i64)r->page_rows);
        CALL_NEED(c, pages >= 0 && (c->status || pages <= I64_MAX / 64 / r->page_rows),
                  INVALID_PARAMETER, "%s has %lld pages", name, pages);
    }
}

static void check_fields(struct call *c, const char *name, const wf_relation *r) {
    CALL_NEED(c,
              r->field_count >= 1 && r->field_count <= WF_FIELDS && r->key_count >= 0 &&
                  r->key_count <= r->field_count,
              INVALID_PARAMETER, "%s has %d fields, of which %d are the key", name, r->field_count,
              r->key_count);
    for (i32 f = 0; !c->status && f < r->field_count; f++) {
        CALL_NEED(c, r->bits[f] >= 1 && r->bits[f] <= 64, INVALID_PARAMETER,
                  "field %d of %s has %d bits", f, name, r->bits[f]);
    }
    CALL_NEED(c, c->status || used_bits(r) <= word_bits(r), INVALID_PARAMETER,
              "the fields of %s do not fit its word", name);
}

static struct rel_rows take_rows(struct call *c, const char *name, const char *fill_name,
                                 const wf_relation *r, bool is_out) {
    struct rel_rows rows = {.type = (u8)r->word};
    i64 count = is_out ? r->room : r->count;
    if (r->form == WF_PAGED && !c->status) {
        rows.page_rows = r->page_rows;
        rows.page_count = is_out ? r->room : r->page_count;
        wf_array fills = {.type = WF_ELEM_U32, .data = r->fills, .count = rows.page_count};
        rows.fills = (is_out ? call_out : call_in)(c, fill_name, fills, "U").data;
        rows.paged = 1;
        count = rows.page_count * rows.page_rows;
    }
    wf_array array = {.type = r->word, .data = r->data, .count = count};
    rows.data = (is_out ? call_out : call_in)(c, name, array, "UW").data;
    rows.count = count;
    return rows;
}

static struct rel_rows input(struct call *c, const char *name, const char *fill_name,
                             const wf_relation *r) {
    CALL_NEED(c, r != NULL, INVALID_PARAMETER, "%s is NULL", name);
    if (c->status) {
        return (struct rel_rows){.type = ELEM_U32};
    }
    check_form(c, name, r, r->page_count);
    check_fields(c, name, r);
    return take_rows(c, name, fill_name, r, false);
}

static struct rel_rows output(struct call *c, const wf_relation *r) {
    CALL_NEED(c, r != NULL, INVALID_PARAMETER, "out is NULL");
    if (c->status) {
        return (struct rel_rows){.type = ELEM_U32};
    }
    check_form(c, "out", r, r->room);
    return take_rows(c, "out", "fills of out", r, true);
}

static void need_key(struct call *c, const char *name, const wf_relation *r) {
    CALL_NEED(c, c->status || r->key_count >= 1, INVALID_PARAMETER, "%s has no key", name);
}

/* Of the array so named only the first bytes go back to the host. */
static void filled(struct call *c, const char *name, i64 bytes) {
    for (i32 i = 0; i < c->array_count; i++) {
        if (!strcmp(c->arrays[i].name, name)) {
            c->arrays[i].bytes = MIN_OF(c->arrays[i].bytes, bytes);
        }
    }
}

/* What an output came to be: fields as set already, `count` rows, in the pages of `in` or full ones
 * (pages < 0). */
static void put_out(struct call *c, wf_relation *out, const wf_relation *fields, i64 count,
                    i64 pages) {
    if (c->only_size) {
        return;
    }
    if (!c->status || (c->status == ERR_PROGRAM_LIMIT && count > 0)) {
        out->count = count;
    }
    if (c->status) {
        return;
    }
    out->field_count = fields->field_count;
    out->key_count = fields->key_count;
    memcpy(out->bits, fields->bits, sizeof out->bits);
    i64 rows = count;
    if (out->form == WF_PAGED) {
        out->page_count = pages >= 0 ? pages : (count + out->page_rows - 1) / out->page_rows;
        rows = out->page_count * out->page_rows;
        filled(c, "fills of out", out->page_count * 4);
    }
    filled(c, "out", rows * elem_bytes[out->word]);
}

/* Pages that an operation page by page has. */
static i64 pages_by_page(const wf_relation *out, const wf_relation *in) {
    return in->form == WF_PAGED ? in->page_count
                                : (in->count + out->page_rows - 1) / out->page_rows;
}

static void check_pages(struct call *c, const wf_relation *out, const wf_relation *in) {
    if (c->status || out->form != WF_PAGED) {
        return;
    }
    CALL_NEED(c, in->form != WF_PAGED || in->page_rows == out->page_rows, INVALID_PARAMETER,
              "pages of out have %lld rows, those of in %lld", (i64)out->page_rows,
              (i64)in->page_rows);
    CALL_NEED(c, out->room >= pages_by_page(out, in), INVALID_PARAMETER,
              "out has room for %lld pages of %lld", (i64)out->room, pages_by_page(out, in));
}

static u128 ones(i32 bits) {
    return bits >= 128 ? ~(u128)0 : ((u128)1 << bits) - 1;
}

static struct rel_move move_of(i32 bits, i32 from, i32 to) {
    u128 mask = ones(bits);
    return (struct rel_move){(u64)mask, (u64)(mask >> 64), (u32)MAX_OF(from, 0),
                             (u32)MAX_OF(to, 0)};
}

/* --- project, select --- */

struct rel_args {
    struct rel_rows out, x, y;
    struct rel_moves moves;
    struct rel_terms terms;
    struct rel_combine combine;
    bool unordered;
    i64 count;
};

static wf_status project_body(struct prim_job *job, void *arg) {
    struct rel_args *a = arg;
    return prim_rel_project(job, a->out, a->x, &a->moves, &a->count);
}

/* Neighbours that stay neighbours move together. */
static void plan_moves(const wf_relation *out, const wf_relation *in, const int *fields, i32 count,
                       struct rel_moves *moves) {
    i32 at = 0;
    for (i32 f = 0; f < count;) {
        i32 next = f + 1;
        i32 bits = in->bits[fields[f]];
        while (next < count && fields[next] == fields[next - 1] + 1) {
            bits += in->bits[fields[next++]];
        }
        i32 from = word_bits(in) - bits_of(in, 0, fields[f]) - bits;
        moves->move[moves->count++] = move_of(bits, from, word_bits(out) - at - bits);
        at += bits;
        f = next;
    }
}

static void plan_project(struct call *c, const wf_relation *out, const wf_relation *in,
                         const int *fields, int field_count, wf_relation *result,
                         struct rel_moves *moves) {
    CALL_NEED(c, fields && field_count >= 1 && field_count <= WF_FIELDS, INVALID_PARAMETER,
              "%d fields cannot be kept", field_count);
    for (i32 f = 0; !c->status && f < field_count; f++) {
        CALL_NEED(c, fields[f] >= 0 && fields[f] < in->field_count, INVALID_PARAMETER,
                  "in has no field %d", fields[f]);
        if (!c->status) {
            result->bits[f] = in->bits[fields[f]];
            result->field_count = f + 1;
            bool leads = fields[f] == f && f < in->key_count && result->key_count == f;
            result->key_count += leads;
        }
    }
    CALL_NEED(c, c->status || used_bits(result) <= word_bits(out), INVALID_PARAMETER,
              "the fields kept do not fit the word of out");
    if (!c->status) {
        plan_moves(out, in, fields, field_count, moves);
    }
}

wf_status wf_prim_rel_project(wf_prim *prim, wf_place place, wf_relation *out,
                              const wf_relation *in, const int *fields, int field_count,
                              wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "project", work)) {
        struct rel_args a = {.x = input(&c, "in", "fills of in", in), .out = output(&c, out)};
        wf_relation result = {.field_count = 0};
        if (!c.status) {
            plan_project(&c, out, in, fields, field_count, &result, &a.moves);
            check_pages(&c, out, in);
            a.count = in->count;
        }
        call_apart(&c, NULL, NULL);
        call_run(&c, project_body, &a);
        if (in && out) {
            bool by_page = out->form == WF_PAGED && !c.status;
            put_out(&c, out, &result, a.count, by_page ? pages_by_page(out, in) : -1);
        }
    }
    return call_close(&c);
}

static wf_status select_body(struct prim_job *job, void *arg) {
    struct rel_args *a = arg;
    return prim_rel_select(job, a->out, a->x, &a->terms, a->unordered, &a->count);
}

/* A comparison as a range, or as all but one. */
static struct rel_term plan_term(const wf_relation *in, const wf_term *t) {
    struct rel_term term = {.mask = (u64)ones(in->bits[t->field]),
                            .shift = field_shift(in, t->field)};
    bool equality = t->compare == WF_COMPARE_EQ || t->compare == WF_COMPARE_NE;
    bool strict = t->compare == WF_COMPARE_LT || t->compare == WF_COMPARE_GE;
    bool never = (equality && t->value > term.mask) || (strict && t->value == 0);
    term.inverted =
        t->compare == WF_COMPARE_NE || t->compare == WF_COMPARE_GT || t->compare == WF_COMPARE_GE;
    term.low = equality ? t->value : 0;
    term.span = equality ? 0 : strict ? t->value - 1 : t->value;
    if (never) {
        term.low = 0;
        term.span = term.mask;
        term.inverted = !term.inverted;
    }
    term.span = MIN_OF(term.span, term.mask);
    return term;
}

static void plan_terms(struct call *c, const wf_relation *in, const wf_term *terms, i32 count,
                       struct rel_terms *out) {
    CALL_NEED(c, count >= 0 && count <= WF_TERMS && (terms || !count), INVALID_PARAMETER,
              "there are %d terms", count);
    for (i32 i = 0; !c->status && i < count; i++) {
        const wf_term *t = &terms[i];
        CALL_NEED(c, t->field >= 0 && t->field < in->field_count, INVALID_PARAMETER,
                  "in has no field %d", t->field);
        CALL_NEED(c, (i32)t->compare >= 0 && t->compare <= WF_COMPARE_GE, INVALID_PARAMETER,
                  "there is no comparison number %d", (int)t->compare);
        CALL_NEED(c, i == 0 || t->clause >= terms[i - 1].clause, INVALID_PARAMETER,
                  "clauses of the terms do not ascend");
        if (!c->status) {
            out->term[i] = plan_term(in, t);
            out->term[i].last = i + 1 == count || terms[i + 1].clause != t->clause;
            out->count++;
        }
    }
}

/* Many because a public call names each of its arrays. */
wf_status wf_prim_rel_select(wf_prim *prim, wf_place place, wf_relation *out, const wf_relation *in,
                             const wf_term *terms, int term_count, int unordered, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "select", work)) {
        struct rel_args a = {.x = input(&c, "in", "fills of in", in),
                             .out = output(&c, out),
                             .unordered = unordered != 0};
        if (!c.status) {
            CALL_NEED(&c, out->word == in->word, DATATYPE_MISMATCH, "words of out are %s, of in %s",
                      elem_names[out->word], elem_names[in->word]);
            plan_terms(&c, in, terms, term_count, &a.terms);
            check_pages(&c, out, in);
        }
        call_apart(&c, NULL, NULL);
        call_run(&c, select_body, &a);
        if (in && out) {
            bool by_page = out->form == WF_PAGED && !c.status;
            put_out(&c, out, in, a.count, by_page ? pages_by_page(out, in) : -1);
        }
    }
    return call_close(&c);
}

static wf_status convert_body(struct prim_job *job, void *arg) {
    struct rel_args *a = arg;
    return prim_rel_convert(job, a->out, a->x, &a->count);
}

wf_status wf_prim_rel_convert(wf_prim *prim, wf_place place, wf_relation *out,
                              const wf_relation *in, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "convert", work)) {
        struct rel_args a = {.x = input(&c, "in", "fills of in", in), .out = output(&c, out)};
        CALL_NEED(&c, c.status || out->word == in->word, DATATYPE_MISMATCH,
                  "words of out are not those of in");
        call_apart(&c, NULL, NULL);
        call_run(&c, convert_body, &a);
        if (in && out) {
            put_out(&c, out, in, a.count, -1);
        }
    }
    return call_close(&c);
}

/* --- product, sets, joins --- */

static wf_status product_body(struct prim_job *job, void *arg) {
    struct rel_args *a = arg;
    return prim_rel_product(job, a->out, a->x, a->y, &a->combine, &a->count);
}

/* The fields of x, then those of y from field `first` on; and the shifts that make them. */
static void plan_pair(struct call *c, const wf_relation *out, const wf_relation *x,
                      const wf_relation *y, i32 first, wf_relation *result,
                      struct rel_combine *combine) {
    i32 more = y->field_count - first;
    CALL_NEED(c, x->word == y->word, DATATYPE_MISMATCH, "words of x are %s, of y %s",
              elem_names[x->word], elem_names[y->word]);
    CALL_NEED(c, x->field_count + more <= WF_FIELDS, INVALID_PARAMETER, "there are %d fields",
              x->field_count + more);
    i32 y_bits = bits_of(y, first, y->field_count);
    i32 bits = used_bits(x) + y_bits;
    CALL_NEED(c, bits <= word_bits(out), INVALID_PARAMETER,
              "tuples of %d bits do not fit the word of out", bits);
    if (c->status) {
        return;
    }
    *result = *x;
    memcpy(result->bits + x->field_count, y->bits + first, (size_t)more);
    result->field_count = x->field_count + more;
    i32 width = word_bits(x);
    i32 top = word_bits(out);
    combine->x = move_of(used_bits(x), width - used_bits(x), top - used_bits(x));
    combine->y = move_of(y_bits, width - used_bits(y), top - bits);
}

wf_status wf_prim_rel_product(wf_prim *prim, wf_place place, wf_relation *out, const wf_relation *x,
                              const wf_relation *y, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "product", work)) {
        wf_relation result = {.field_count = 0};
        struct rel_args a = {.x = input(&c, "x", "fills of x", x),
                             .y = input(&c, "y", "fills of y", y),
                             .out = output(&c, out)};
        if (!c.status) {
            plan_pair(&c, out, x, y, 0, &result, &a.combine);
        }
        call_apart(&c, NULL, NULL);
        call_run(&c, product_body, &a);
        if (out) {
            put_out(&c, out, &result, a.count, -1);
        }
    }
    return call_close(&c);
}

struct join_args {
    struct rel_join join;
    i64 count;
};

static wf_status join_body(struct prim_job *job, void *arg) {
    struct join_args *a = arg;
    return prim_rel_join(job, &a->join, &a->count);
}

static void same_keys(struct call *c, const wf_relation *x, const wf_relation *y) {
    need_key(c, "x", x);
    need_key(c, "y", y);
    CALL_NEED(c, c->status || key_bits(x) == key_bits(y), DATATYPE_MISMATCH,
              "keys of x have %d bits, of y %d", key_bits(x), key_bits(y));
}

static void plan_set(struct call *c, wf_rel_set set, const wf_relation *out, const wf_relation *x,
                     const wf_relation *y, struct rel_join *join) {
    static const u8 kinds[] = {REL_X_ONCE | REL_X_ALONE | REL_Y_ALONE, REL_X_ONCE, REL_X_ALONE};
    same_keys(c, x, y);
    CALL_NEED(c, (i32)set >= 0 && set <= WF_DIFFERENCE, INVALID_PARAMETER,
              "there is no set operation number %d", (int)set);
    CALL_NEED(c, x->word == y->word && x->word == out->word, DATATYPE_MISMATCH,
              "words of x, y and out differ");
    bool alike = x->field_count == y->field_count && x->key_count == y->key_count &&
                 !memcmp(x->bits, y->bits, (size_t)x->field_count);
    CALL_NEED(c, c->status || set != WF_UNION || alike, DATATYPE_MISMATCH,
              "fields of x and y differ");
    if (c->status) {
        return;
    }
    i32 low = word_bits(x) - used_bits(x);
    static const u8 ops[] = {SET_UNION, SET_INTERSECTION, SET_DIFFERENCE};
    join->kind = kinds[set];
    join->whole = alike && x->key_count == x->field_count;
    join->set = (struct prim_set){.op = ops[set], .ignore_bits = low};
    join->combine.key_shift = (u32)(word_bits(x) - key_bits(x));
    join->combine.x = join->combine.y = join->combine.key = move_of(used_bits(x), low, low);
}

wf_status wf_prim_rel_set(wf_prim *prim, wf_place place, wf_rel_set set, wf_relation *out,
                          const wf_relation *x, const wf_relation *y, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "set operation", work)) {
        struct join_args a = {.join = {.x = input(&c, "x", "fills of x", x),
                                       .y = input(&c, "y", "fills of y", y),
                                       .out = output(&c, out)}};
        if (!c.status) {
            plan_set(&c, set, out, x, y, &a.join);
        }
        call_apart(&c, NULL, NULL);
        call_run(&c, join_body, &a);
        if (out && x) {
            put_out(&c, out, x, a.count, -1);
        }
    }
    return call_close(&c);
}

static const u8 join_kinds[] = {REL_PAIRS, REL_PAIRS | REL_X_ALONE, REL_PAIRS | REL_Y_ALONE,
                                REL_PAIRS | REL_X_ALONE | REL_Y_ALONE};

static void plan_kind(struct call *c, const wf_rel_join *how, struct rel_join *join) {
    CALL_NEED(c, how != NULL, INVALID_PARAMETER, "join is NULL");
    if (c->status) {
        return;
    }
    CALL_NEED(c, (i32)how->kind >= 0 && how->kind <= WF_REL_FULL, INVALID_PARAMETER,
              "there is no kind number %d", (int)how->kind);
    CALL_NEED(c, (i32)how->stage >= 0 && (i32)how->stage < REL_STAGE_COUNT, INVALID_PARAMETER,
              "there is no stage number %d", (int)how->stage);
    bool plain = how->stage == WF_STAGE_MERGE;
    CALL_NEED(c, plain || how->kind <= WF_REL_LEFT, NOT_SUPPORTED,
              "right and full joins by this stage");
    if (!c->status) {
        join->kind = join_kinds[how->kind];
        join->stage = (u8)how->stage;
        join->profile = how->profile != 0;
    }
}

static void plan_join(struct call *c, const wf_rel_join *how, const wf_relation *out,
                      const wf_relation *x, const wf_relation *y, wf_relation *result,
                      struct rel_join *join) {
    plan_kind(c, how, join);
    same_keys(c, x, y);
    plan_pair(c, out, x, y, y->key_count, result, &join->combine);
    if (c->status) {
        return;
    }
    struct rel_combine *combine = &join->combine;
    i32 key = key_bits(x);
    i32 top = word_bits(out);
    i32 x_bits = used_bits(x);
    i32 y_bits = used_bits(y) - key;
    combine->key_shift = (u32)(word_bits(x) - key);
    combine->key = move_of(key, word_bits(x) - key, top - key);
    if (how->missing) {
        u128 no_x = x_bits > key ? ones(x_bits - key) << (top - x_bits) : 0;
        u128 no_y = y_bits ? ones(y_bits) << (top - x_bits - y_bits) : 0;
        combine->no_x_low = (u64)no_x;
        combine->no_x_high = (u64)(no_x >> 64);
        combine->no_y_low = (u64)no_y;
        combine->no_y_high = (u64)(no_y >> 64);
    }
}

wf_status wf_prim_rel_join(wf_prim *prim, wf_place place, const wf_rel_join *join, wf_relation *out,
                           const wf_relation *x, const wf_relation *y, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "join", work)) {
        wf_relation result = {.field_count = 0};
        struct join_args a = {.join = {.x = input(&c, "x", "fills of x", x),
                                       .y = input(&c, "y", "fills of y", y),
                                       .out = output(&c, out)}};
        if (!c.status) {
            plan_join(&c, join, out, x, y, &result, &a.join);
        }
        call_apart(&c, NULL, NULL);
        call_run(&c, join_body, &a);
        if (out) {
            put_out(&c, out, &result, a.count, -1);
        }
    }
    return call_close(&c);
}

/* Many because a public call names each of its arrays. */
wf_status wf_prim_join_sorted(wf_prim *prim, wf_place place, const wf_rel_join *join,
                              wf_array out_x, wf_array out_y, wf_array x, wf_array y,
                              int64_t *out_count, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "join of sorted keys", work)) {
        struct join_args a = {.join = {.indexes = 1}};
        struct prim_array in_x = call_in(&c, "x", x, "U");
        struct prim_array in_y = call_in(&c, "y", y, "U");
        a.join.out_x = call_out(&c, "out_x", out_x, "U");
        a.join.out_y = call_out(&c, "out_y", out_y, "U");
        plan_kind(&c, join, &a.join);
        CALL_NEED(&c, out_count != NULL, INVALID_PARAMETER, "out_count is NULL");
        CALL_NEED(&c, x.type == y.type, DATATYPE_MISMATCH, "x and y are of different types");
        CALL_NEED(&c, out_x.type == out_y.type, DATATYPE_MISMATCH,
                  "out_x and out_y are of different types");
        CALL_NEED(&c, out_x.type != WF_ELEM_U32 || (x.count < 0xffffffff && y.count < 0xffffffff),
                  DATATYPE_MISMATCH, "positions do not fit U32");
        a.join.x = (struct rel_rows){.type = in_x.type, .data = in_x.data, .count = in_x.count};
        a.join.y = (struct rel_rows){.type = in_y.type, .data = in_y.data, .count = in_y.count};
        a.join.out_x.count = MIN_OF(a.join.out_x.count, a.join.out_y.count);
        call_apart(&c, NULL, NULL);
        call_run(&c, join_body, &a);
        if (out_count) {
            *out_count = a.count;
            filled(&c, "out_x", a.count * elem_bytes[a.join.out_x.type]);
            filled(&c, "out_y", a.count * elem_bytes[a.join.out_x.type]);
        }
    }
    return call_close(&c);
}

/* --- reduction --- */

struct reduce_args {
    struct rel_reduce reduce;
    i64 count;
};

static wf_status reduce_body(struct prim_job *job, void *arg) {
    struct reduce_args *a = arg;
    return prim_rel_reduce(job, &a->reduce, &a->count);
}

/* Many because a public call names each of its arrays. */
wf_status wf_prim_rel_reduce(wf_prim *prim, wf_place place, wf_reduce reduce, int field,
                             wf_relation *out, wf_array values, const wf_relation *in,
                             wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "reduce", work)) {
        wf_relation result = {.field_count = 0};
        struct reduce_args a = {.reduce = {.reduce = (u8)reduce,
                                           .in = input(&c, "in", "fills of in", in),
                                           .out = output(&c, out)}};
        struct prim_array to = call_out(&c, "values", values, "U");
        need_key(&c, "in", in);
        if (!c.status) {
            CALL_NEED(&c, (i32)reduce >= 0 && (i32)reduce < REDUCE_OPS, INVALID_PARAMETER,
                      "there is no reduction number %d", (int)reduce);
            CALL_NEED(&c, reduce == WF_REDUCE_COUNT || (field >= 0 && field < in->field_count),
                      INVALID_PARAMETER, "in has no field %d", field);
            CALL_NEED(&c, values.type == WF_ELEM_U64, DATATYPE_MISMATCH, "values must be U64");
            CALL_NEED(&c, out->word == in->word, DATATYPE_MISMATCH,
                      "words of out are not those of in");
            CALL_NEED(&c, out->form == WF_DENSE, NOT_SUPPORTED, "paged output");
        }
        if (!c.status) {
            result = *in;
            result.field_count = in->key_count;
            i32 at = reduce == WF_REDUCE_COUNT ? 0 : field;
            a.reduce.key_shift = (u8)(word_bits(in) - key_bits(in));
            a.reduce.field_shift = (u8)field_shift(in, at);
            a.reduce.field_mask = (u64)ones(in->bits[at]);
            a.reduce.values = to.data;
            a.reduce.value_room = to.count;
        }
        call_apart(&c, NULL, NULL);
        call_run(&c, reduce_body, &a);
        if (out) {
            put_out(&c, out, &result, a.count, -1);
            filled(&c, "values", a.count * 8);
        }
    }
    return call_close(&c);
}
