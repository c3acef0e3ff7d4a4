/* split.c: a text of clauses in parts: queries, one by one, and what stands between them.
 *
 * A query may be asked to be explained: words of EXPLAIN stand before it. */
#include "logiql/bind_int.h"

static bool is_word(struct sv text, i64 at, const char *word) {
    i64 len = (i64)strlen(word);
    if (at + len > text.len || !sv_eq_nocase((struct sv){text.ptr + at, len}, sv_from(word))) {
        return false;
    }
    return at + len == text.len || text.ptr[at + len] == ' ' || text.ptr[at + len] == '\n' ||
           text.ptr[at + len] == '\t' || text.ptr[at + len] == '(';
}

static i64 skip_blanks(struct sv text, i64 at) {
    while (at < text.len &&
           (text.ptr[at] == ' ' || (text.ptr[at] >= '\t' && text.ptr[at] <= '\r'))) {
        at++;
    }
    return at;
}

/* explain, explain analyze, explain (…): how long it is; 0 = there is none. */
static i64 explain_length(struct sv text) {
    i64 start = skip_blanks(text, 0);
    if (!is_word(text, start, "explain")) {
        return 0;
    }
    i64 at = skip_blanks(text, start + 7);
    if (is_word(text, at, "analyze")) {
        return at + 7;
    }
    if (at < text.len && text.ptr[at] == '(') {
        while (at < text.len && text.ptr[at] != ')') {
            at++;
        }
        return MIN_OF(at + 1, text.len);
    }
    return start + 7;
}

static bool is_query(const struct lq_clause *clause) {
    return clause->kind != LQ_CONSTRAINT && clause->heads.count == 1 &&
           sv_eq(clause->heads.items[0]->name, SV("_"));
}

FALLIBLE logiql_split(struct arena *arena, struct sv text, struct lq_parts *out,
                      struct error *err) {
    *out = (struct lq_parts){0};
    i64 skip = explain_length(text);
    struct sv rest = {text.ptr + skip, text.len - skip};
    struct lq_program program;
    TRY(lq_parse(arena, arena_sv(arena, rest), &program, err));
    for (i64 i = 0; i < program.mistakes.count; i++) {
        program.mistakes.items[i].position += (i32)skip;
    }
    out->mistakes = program.mistakes;
    for (i64 i = 0; i < program.clauses.count; i++) {
        const struct lq_clause *clause = program.clauses.items[i];
        struct lq_part *last = out->items.count ? &out->items.items[out->items.count - 1] : NULL;
        if (last && !last->is_query && !is_query(clause)) {
            last->text.len = rest.ptr + clause->end - last->text.ptr;
            continue;
        }
        struct lq_part part = {
            .is_query = is_query(clause),
            .text = {rest.ptr + clause->position, clause->end - clause->position},
            .position = (i32)skip + clause->position};
        part.explain = i == 0 ? (struct sv){text.ptr, skip} : (struct sv){NULL, 0};
        VEC_PUSH(arena, &out->items, part);
    }
    return arena_check(arena, err);
}
