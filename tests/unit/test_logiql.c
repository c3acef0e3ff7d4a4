/* test_logiql.c: LogiQL text to clauses and back, its mistakes, and what a script would do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "logiql/logiql.h"

struct reading {
    struct memory mem;
    struct arena arena;
    struct error err;
    struct lq_program program;
};

static void read_text(struct reading *r, const char *text) {
    memory_init(&r->mem, NULL, 0, "memory");
    arena_init(&r->arena, &r->mem);
    error_reset(&r->err);
    assert_int_equal(lq_parse(&r->arena, sv_from(text), &r->program, &r->err), ERR_OK);
}

static const char *printed(struct reading *r) {
    struct text out;
    text_init(&out, &r->arena);
    for (i64 i = 0; i < r->program.clauses.count; i++) {
        text_append(&out, i ? SV(" ") : SV(""));
        lq_print_clause(r->program.clauses.items[i], &out);
    }
    return out.ptr ? out.ptr : "";
}

/* What is printed is what was written, but for blanks and comments; and is read as the same. */
static void prints(const char *text, const char *expected) {
    struct reading first;
    struct reading again;
    read_text(&first, text);
    assert_int_equal(first.program.mistakes.count, 0);
    assert_string_equal(printed(&first), expected);
    read_text(&again, expected);
    assert_string_equal(printed(&again), expected);
    arena_fini(&again.arena);
    arena_fini(&first.arena);
}

static void test_clauses(void **state) {
    UNUSED(state);
    prints("edge(1,2).   price[\"a\"] = 3.5. // facts", "edge(1, 2). price[\"a\"] = 3.5.");
    prints("path(x,z)<-path(x,y),edge(y,z).", "path(x, z) <- path(x, y), edge(y, z).");
    prints("leaf(x) <- node(x), !edge(x,_).", "leaf(x) <- node(x), !edge(x, _).");
    prints("v(n) <- e(n,_) ; e(_,n).", "v(n) <- e(n, _) ; e(_, n).");
    prints("f[i] = f[i-1] + f[i-2] <- 2 < i <= 20.", "f[i] = f[i - 1] + f[i - 2] <- 2 < i <= 20.");
    prints("n[] = c <- agg<<c=count()>> e(_, _).", "n[] = c <- agg<< c = count() >> e(_, _).");
    prints("q[k]=a, r[k]=b <- agg<< a=total(x), b=count() >> f[k,i]=x.",
           "q[k] = a, r[k] = b <- agg<< a = total(x), b = count() >> f[k, i] = x.");
    prints("s[i] = x <- seq<< desc x, y >> a(x,y).", "s[i] = x <- seq<< desc x, y >> a(x, y).");
    prints("s[i] = x <- seq<<>> a(x).", "s[i] = x <- seq<<>> a(x).");
    prints("+p(1,2). -p(1,2). -f[1] = _. ^f[1] = 3.", "+p(1, 2). -p(1, 2). -f[1] = _. ^f[1] = 3.");
    prints("e(x, y) -> int(x), int(y).", "e(x, y) -> int(x), int(y).");
    prints("a(x) <- ((x)+1)*2<4, (b(x) ; c(x), d(x)), !(e(x), f(x)).",
           "a(x) <- (x + 1) * 2 < 4, (b(x) ; c(x), d(x)), !(e(x), f(x)).");
    prints("p(?x) <- q(?x, ?y), ?y = -?x.", "p(x) <- q(x, y), y = -x.");
    prints("d(#2012-03-04#, \"a\" \"b\\n\", 1.5f, true).",
           "d(#2012-03-04#, \"ab\\n\", 1.5f, true).");
    prints("_in(o; a, b) -> int(o), int(a), string(b).",
           "_in(o; a, b) -> int(o), int(a), string(b).");
    prints("a(x) <- x - (y - z) = 1, b(x, y, z).", "a(x) <- x - (y - z) = 1, b(x, y, z).");
}

struct expected_mistake {
    i32 position;
    const char *part; /* of the message */
    bool has_hint;
};

static void mistaken(const char *text, i64 clauses, i64 count,
                     const struct expected_mistake *expected) {
    struct reading r;
    read_text(&r, text);
    assert_int_equal(r.program.clauses.count, clauses);
    assert_int_equal(r.program.mistakes.count, count);
    for (i64 i = 0; i < count; i++) {
        const struct lq_mistake *m = &r.program.mistakes.items[i];
        assert_int_equal(m->position, expected[i].position);
        assert_non_null(strstr(m->message, expected[i].part));
        assert_int_equal(m->hint != NULL, expected[i].has_hint);
    }
    arena_fini(&r.arena);
}

/* Several in one text: what is whole between them is read. */
static void test_mistakes(void **state) {
    UNUSED(state);
    mistaken("bad(a <- b. c(1). x(2) <- 3 3. good(2).", 2, 2,
             (struct expected_mistake[]){{6, "expected", false}, {26, "neither", true}});
    mistaken(
        "a(x) <- x. b(x) <- f(x) + 1 = 2. c(1).", 1, 2,
        (struct expected_mistake[]){{8, "neither true nor false", true}, {24, "expected", false}});
    mistaken("z(1). $$$ y(2).", 2, 1,
             (struct expected_mistake[]){{6, "unexpected character", false}});
    mistaken("a(1)", 0, 1, (struct expected_mistake[]){{4, "end of the text", true}});
    mistaken("a(\"x).", 0, 2,
             (struct expected_mistake[]){{2, "unterminated string", true},
                                         {6, "end of the text", true}});
    mistaken("block(`b){ a(x) <- b(x). clauses(`{ c(1). }) } <-- . d(2). e(3", 1, 2,
             (struct expected_mistake[]){{0, "blocks", true}, {62, "expected", true}});
}

static void test_depth(void **state) {
    UNUSED(state);
    struct reading r;
    char text[4000] = "a(x) <- x = ";
    size_t at = strlen(text);
    memset(text + at, '(', 1500);
    text[at + 1500] = 0;
    read_text(&r, text);
    assert_int_equal(r.program.mistakes.count, 1);
    assert_int_equal(r.program.mistakes.items[0].code, ERR_TOO_COMPLEX);
    arena_fini(&r.arena);
}

/* Queries stand alone; what stands between them goes together. */
static void test_split(void **state) {
    UNUSED(state);
    struct memory mem;
    struct arena arena;
    struct error err;
    struct lq_parts parts;
    const char *text = "a(1). b(2).\n_(x) <- a(x). c(3). _(y) <- b(y).";
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    error_reset(&err);
    assert_int_equal(logiql_split(&arena, sv_from(text), &parts, &err), ERR_OK);
    assert_int_equal(parts.items.count, 4);
    assert_int_equal(parts.items.items[0].text.len, 11);
    assert_true(parts.items.items[1].is_query);
    assert_int_equal(parts.items.items[1].position, 12);
    assert_false(parts.items.items[2].is_query);
    assert_int_equal(logiql_split(&arena, SV("explain analyze _(x) <- a(x)."), &parts, &err),
                     ERR_OK);
    assert_int_equal(parts.items.count, 1);
    assert_int_equal(parts.items.items[0].explain.len, 15);
    assert_int_equal(parts.items.items[0].position, 16);
    arena_fini(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clauses),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
