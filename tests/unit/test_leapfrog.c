/* test_leapfrog.c: leapfrog triejoin as papers have it, one thread and one tuple at a time, against the engine.
 *
 * A relation is sorted tuples, in the order of a query's variables, and how often each is there. A linear
 * iterator goes through it as through a trie: open goes down to the values behind those chosen so far, next
 * and seek go on among them, up goes back. The join binds variable by variable: all iterators that have it
 * leapfrog to the next value they agree in, then the same for the next variable.
 *
 * Queries are drawn at random: relations with repeated rows, loops and NULLs; paths, cycles, cliques and
 * whatever else comes; comparisons of variables. Counts and sums must be those that SQL gives by pairs, by
 * runs that meet and by counting cliques, on the CPU and, where there is a driver, on the card. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include "base/mem.h"
#include "base/stop.h"

enum { TABLES = 5, ROWS_MOST = 90, VARS_MOST = 16, ATOMS_MOST = 40, COLS = 2, SQL_BYTES = 8000 };
enum { NONE = -1 };

static u64 rng = 88172645463325252ULL;

static int draw(int below) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (int)((rng >> 20) % (u64)below);
}

struct tuple {
    int value[COLS];
    long long times;
};

struct relation {
    int count;
    struct tuple rows[ROWS_MOST];
};

struct atom {
    int table;
    int vars[COLS];
};

struct query {
    int vars, atoms;
    struct atom atom[ATOMS_MOST];
    int smaller[VARS_MOST]; /* than which variable this one must be; NONE = any */
};

static struct relation tables[TABLES];

/* --- linear iterators --- */

struct iterator {
    int depth;              /* of the values at hand; NONE = above them all */
    int levels;             /* how many variables it has, */
    int vars[COLS];         /* ascending */
    struct relation sorted; /* by them */
    int at[COLS], end[COLS];
};

static int iterator_key(const struct iterator *i) {
    return i->sorted.rows[i->at[i->depth]].value[i->depth];
}

static bool iterator_at_end(const struct iterator *i) {
    return i->at[i->depth] >= i->end[i->depth];
}

/* The end of the rows that have the value at hand. */
static int iterator_run(const struct iterator *i) {
    int end = i->at[i->depth];
    while (end < i->end[i->depth] && i->sorted.rows[end].value[i->depth] == iterator_key(i)) {
        end++;
    }
    return end;
}

static void iterator_open(struct iterator *i) {
    int from = i->depth == NONE ? 0 : i->at[i->depth];
    int end = i->depth == NONE ? i->sorted.count : iterator_run(i);
    i->depth++;
    i->at[i->depth] = from;
    i->end[i->depth] = end;
}

static void iterator_up(struct iterator *i) {
    i->depth--;
}

static void iterator_next(struct iterator *i) {
    i->at[i->depth] = iterator_run(i);
}

/* To the first value that is not below this one. */
static void iterator_seek(struct iterator *i, int value) {
    while (!iterator_at_end(i) && iterator_key(i) < value) {
        iterator_next(i);
    }
}

static int by_value(const void *a, const void *b) {
    const struct tuple *x = a, *y = b;
    return x->value[0] != y->value[0] ? x->value[0] - y->value[0] : x->value[1] - y->value[1];
}

/* Rows of an atom that can be part of an answer, in the order of its variables; equal ones together. */
static void iterator_init(struct iterator *i, const struct atom *atom) {
    const struct relation *table = &tables[atom->table];
    bool loop = atom->vars[0] == atom->vars[1];
    int first = atom->vars[0] > atom->vars[1];
    *i = (struct iterator){.depth = NONE, .levels = loop ? 1 : 2};
    i->vars[0] = atom->vars[first];
    i->vars[1] = atom->vars[!first];
    struct relation *sorted = &i->sorted;
    for (int r = 0; r < table->count; r++) {
        const struct tuple *row = &table->rows[r];
        if (row->value[0] != NONE && row->value[1] != NONE &&
            (!loop || row->value[0] == row->value[1])) {
            sorted->rows[sorted->count++] =
                (struct tuple){{row->value[first], row->value[!first]}, 1};
        }
    }
    qsort(sorted->rows, (size_t)sorted->count, sizeof *sorted->rows, by_value);
    int kept = 0;
    for (int r = 0; r < sorted->count; r++) {
        if (kept && by_value(&sorted->rows[kept - 1], &sorted->rows[r]) == 0) {
            sorted->rows[kept - 1].times++;
        } else {
            sorted->rows[kept++] = sorted->rows[r];
        }
    }
    sorted->count = kept;
}

/* --- the join --- */

struct join {
    const struct query *q;
    struct iterator *iterators;
    int bound[VARS_MOST];
    long long count, first_sum, last_sum;
};

/* All iterators that have the variable go to the next value that they agree in; false: there is none. */
static bool leapfrog(struct join *j, int var) {
    int most = NONE;
    for (bool same = false; !same;) {
        same = true;
        for (int a = 0; a < j->q->atoms; a++) {
            struct iterator *i = &j->iterators[a];
            if (i->depth == NONE || i->vars[i->depth] != var) {
                continue;
            }
            iterator_seek(i, most);
            if (iterator_at_end(i)) {
                return false;
            }
            same = same && (most == NONE || iterator_key(i) == most);
            most = iterator_key(i);
        }
    }
    j->bound[var] = most;
    return true;
}

static void each_of(struct join *j, int var, void (*move)(struct iterator *)) {
    for (int a = 0; a < j->q->atoms; a++) {
        struct iterator *i = &j->iterators[a];
        bool has = i->vars[0] == var || (i->levels > 1 && i->vars[1] == var);
        if (has) {
            move(i);
        }
    }
}

static bool compares(const struct join *j, int var) {
    bool ok = true;
    for (int v = 0; v <= var; v++) {
        int other = j->q->smaller[v];
        ok = ok && (other == NONE || other > var || j->bound[v] < j->bound[other]);
    }
    return ok;
}

static void join_from(struct join *j, int var) {
    if (var == j->q->vars) {
        long long times = 1;
        for (int a = 0; a < j->q->atoms; a++) {
            const struct iterator *i = &j->iterators[a];
            times *= i->sorted.rows[i->at[i->depth]].times;
        }
        j->count += times;
        j->first_sum += times * j->bound[0];
        j->last_sum += times * j->bound[j->q->vars - 1];
        return;
    }
    each_of(j, var, iterator_open);
    while (leapfrog(j, var)) {
        if (compares(j, var)) {
            join_from(j, var + 1);
        }
        each_of(j, var, iterator_next);
    }
    each_of(j, var, iterator_up);
}

/* --- drawn relations and queries --- */

static void draw_table(int number) {
    struct relation *t = &tables[number];
    int nodes = number < 2 ? 9 + draw(9) : 4 + draw(8);
    int most = number == 4 ? 0 : number < 2 ? ROWS_MOST : 40;
    t->count = 0;
    if (number == 2 || number == 3) {
        t->rows[t->count++] = (struct tuple){{1, 1}, 1};
    }
    for (int r = 0; r < most / 2; r++) {
        int a = draw(nodes), b = draw(nodes);
        bool again = false;
        for (int k = 0; k < t->count && number < 2; k++) {
            again = again || (t->rows[k].value[0] == MIN_OF(a, b) && t->rows[k].value[1] == MAX_OF(a, b)) ||
                    (t->rows[k].value[0] == MAX_OF(a, b) && t->rows[k].value[1] == MIN_OF(a, b));
        }
        if (number < 2 && (again || a == b)) {
            continue; /* table 0: every edge once, upwards; 1: in both directions */
        }
        bool turn = number < 2 && a > b;
        int x = number > 2 && draw(12) == 0 ? NONE : turn ? b : a;
        t->rows[t->count++] = (struct tuple){{x, turn ? a : b}, 1};
        if (number == 1) {
            t->rows[t->count++] = (struct tuple){{turn ? a : b, x}, 1};
        }
    }
}

static void draw_tables(void) {
    char sql[SQL_BYTES];
    for (int i = 0; i < TABLES; i++) {
        draw_table(i);
        snprintf(sql, sizeof sql, "create or replace table t%d (a %s, b %s)", i, i % 2 ? "int" : "bigint",
                 i % 2 ? "int" : "bigint");
        run(sql);
        int used = snprintf(sql, sizeof sql, "insert into t%d values ", i);
        for (int r = 0; r < tables[i].count; r++) {
            const int *v = tables[i].rows[r].value;
            char a[20], b[20];
            snprintf(a, sizeof a, v[0] == NONE ? "null" : "%d", v[0]);
            snprintf(b, sizeof b, v[1] == NONE ? "null" : "%d", v[1]);
            used += snprintf(sql + used, sizeof sql - (size_t)used, "%s(%s, %s)", r ? ", " : "", a, b);
        }
        if (tables[i].count) {
            run(sql);
        }
    }
}

static void add_atom(struct query *q, int table, int a, int b) {
    q->atom[q->atoms++] = (struct atom){table, {a, b}};
}

static void draw_query(struct query *q, int kind) {
    *q = (struct query){.vars = kind < 4 ? 3 + draw(4) : 3 + draw(3)};
    int table = draw(TABLES);
    for (int v = 0; v < VARS_MOST; v++) {
        q->smaller[v] = NONE;
    }
    for (int b = 1; b < q->vars && kind < 4; b++) { /* a clique, and comparisons of all its nodes */
        for (int a = 0; a < b; a++) {
            add_atom(q, table, a, b);
        }
        if (kind > 1) {
            q->smaller[kind == 2 ? b - 1 : b] = kind == 2 ? b : b - 1;
        }
    }
    for (int v = 0; v < q->vars && kind >= 4; v++) { /* a cycle, then anything */
        int next = (v + 1) % q->vars;
        add_atom(q, draw(3) ? table : draw(TABLES - 1), draw(2) ? v : next, 0);
        struct atom *last = &q->atom[q->atoms - 1];
        last->vars[1] = last->vars[0] == v ? next : v;
    }
    for (int more = kind >= 4 ? draw(4) : 0; more > 0; more--) {
        add_atom(q, draw(TABLES - 1), draw(q->vars), draw(q->vars));
        q->smaller[draw(q->vars)] = draw(q->vars);
    }
}

/* One variable in as many lists as there are others, which all are in a path, some of them turned: `runs`
 * lists meet at once. Edges and loops of table 0 and 1 are there once, so lists of these have no value twice. */
static void draw_star(struct query *q, int runs) {
    *q = (struct query){.vars = runs + 1};
    int table = draw(4);
    for (int v = 0; v < VARS_MOST; v++) {
        q->smaller[v] = NONE;
    }
    for (int v = 0; v + 1 < runs; v++) {
        add_atom(q, table, v, v + 1);
    }
    for (int v = 0; v < runs; v++) {
        bool turned = draw(4) == 0;
        add_atom(q, draw(4) ? table : draw(TABLES - 1), turned ? runs : v, turned ? v : runs);
    }
}

/* A clique of many nodes of which each is in few others' lists: 16 variables, as many atoms. */
static void long_query(struct query *q) {
    *q = (struct query){.vars = VARS_MOST};
    for (int v = 0; v < VARS_MOST; v++) {
        q->smaller[v] = NONE;
        add_atom(q, 2, v, (v + 1) % VARS_MOST);
        add_atom(q, 3, v, (v + 2) % VARS_MOST);
    }
}

struct words {
    char text[SQL_BYTES];
    int used;
};

__attribute__((format(printf, 2, 3))) static void put(struct words *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    t->used += vsnprintf(t->text + t->used, sizeof t->text - (size_t)t->used, format, args);
    va_end(args);
}

static void put_var(struct words *t, const struct query *q, int var) {
    for (int a = 0; a < q->atoms; a++) {
        for (int c = 0; c < COLS; c++) {
            if (q->atom[a].vars[c] == var) {
                put(t, "a%d.%c", a, 'a' + c);
                return;
            }
        }
    }
}

static void put_query(struct words *t, const struct query *q, bool sums) {
    const char *join = " where ";
    put(t, "select count(*)");
    if (sums) {
        put(t, " || ' ' || coalesce(sum(");
        put_var(t, q, 0);
        put(t, "), 0) || ' ' || coalesce(sum(");
        put_var(t, q, q->vars - 1);
        put(t, "), 0)");
    } else {
        put(t, " || ''");
    }
    for (int a = 0; a < q->atoms; a++) {
        put(t, "%s t%d a%d", a ? "," : " from", q->atom[a].table, a);
    }
    for (int a = 0; a < q->atoms; a++) {
        for (int c = 0; c < COLS; c++) {
            put(t, "%s", join);
            put_var(t, q, q->atom[a].vars[c]);
            put(t, " = a%d.%c", a, 'a' + c);
            join = " and ";
        }
    }
    for (int v = 0; v < q->vars; v++) {
        if (q->smaller[v] != NONE) {
            put(t, " and ");
            put_var(t, q, v);
            put(t, " < ");
            put_var(t, q, q->smaller[v]);
        }
    }
}

struct answer {
    const char *sql, *setting, *right;
};

static void compare_line(const char *line, void *arg) {
    const struct answer *answer = arg;
    if (strcmp(line, answer->right) != 0) {
        fail_msg("%s; %s: %s, not %s", answer->setting, answer->sql, line, answer->right);
    }
}

/* What the engine says, in every way, is what the reference says. */
static void check_query(const struct query *q, const char *const *settings) {
    static struct iterator iterators[ATOMS_MOST];
    struct join j = {.q = q, .iterators = iterators};
    char right[2][100];
    for (int a = 0; a < q->atoms; a++) {
        iterator_init(&iterators[a], &q->atom[a]);
    }
    join_from(&j, 0);
    snprintf(right[0], sizeof right[0], "%lld", j.count);
    snprintf(right[1], sizeof right[1], "%lld %lld %lld", j.count, j.first_sum, j.last_sum);
    for (const char *const *s = settings; *s; s++) {
        run(*s);
        for (int sums = 0; sums < 2; sums++) {
            struct words t = {.used = 0};
            put_query(&t, q, sums);
            struct answer answer = {t.text, *s, right[sums]};
            each_line(t.text, compare_line, &answer);
        }
    }
}

static const char *const on_cpu[] = {"set device = cpu; set multiway = on", "set multiway = auto", "set multiway = off",
                                     NULL};
static const char *const on_both[] = {"set device = cpu; set multiway = on", "set device = gpu", NULL};

static void test_drawn(void **state) {
    (void)state;
    struct query q;
    open_db("64MB", "vm");
    for (int round = 0; round < 6; round++) {
        draw_tables();
        for (int kind = 0; kind < 8; kind++) {
            draw_query(&q, kind);
            check_query(&q, on_cpu);
        }
    }
    close_db();
}

/* Four to six lists at once, in order and out of it, with values that repeat and without. */
static void test_lists(void **state) {
    (void)state;
    struct query q;
    open_db("64MB", "vm");
    for (int round = 0; round < 2; round++) {
        draw_tables();
        for (int runs = 4; runs <= 6; runs++) {
            draw_star(&q, runs);
            check_query(&q, on_cpu);
        }
    }
    close_db();
}

static void test_long(void **state) {
    (void)state;
    struct query q;
    open_db("64MB", "vm");
    draw_tables();
    long_query(&q);
    check_query(&q, on_cpu);
    close_db();
}

static void test_devices(void **state) {
    (void)state;
    struct query q;
    open_db("64MB", "woven");
    draw_tables();
    for (int kind = 0; kind < 5; kind += 2) {
        draw_query(&q, kind);
        check_query(&q, on_both);
    }
    draw_star(&q, 4);
    check_query(&q, on_both);
    close_db();
}

/* One reservation or one question after the other fails; what is left counts as before. */
static void test_failing(void **state) {
    (void)state;
    struct query q;
    open_db("64MB", "vm");
    draw_tables();
    run("set device = cpu; set multiway = on");
    for (int kind = 0; kind < 6; kind++) {
        struct words t = {.used = 0};
        draw_query(&q, kind == 5 ? 4 : 0);
        for (int a = 0; a < q.atoms && kind < 4; a++) { /* turned, both directions, repeated */
            q.atom[a].table = kind;
        }
        put_query(&t, &q, false);
        int64_t asked = 0;
        for (int64_t nth = 1; nth == 1 || asked >= nth - 1; nth += 1 + nth / 40) {
            const char *state_of = kind % 2 ? "57014" : "53200";
            (void)(kind % 2 ? stop_from(nth) : memory_fail_at(nth));
            wf_status status = wf_query(conn, t.text, NULL);
            asked = kind % 2 ? stop_from(0) : memory_fail_at(0);
            if (status != WF_OK) {
                assert_string_equal(wf_connection_error(conn)->sqlstate, state_of);
            }
        }
        check_query(&q, on_cpu);
        run("set multiway = on");
    }
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_failing),
        cmocka_unit_test(test_devices),
    };
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}
