/* identity.c: what must hold of any answers, without another system to ask.
 *
 * The matrix: a query gives the same rows, or the same SQLSTATE, with and without optimiser and
 * fusion, at any vector, morsel and tablet size and number of threads. Ternary logic partitioning
 * (TLP): the rows of a query are those where a condition holds, those where its negation holds and
 * those where it is NULL; with DISTINCT and aggregates likewise. NoREC: as many rows pass a
 * condition as a sum over it counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "warpfox.h"

enum { CELLS = 7, CELL_GPU = 5, CELL_MIXED = 6, KEPT = 12 };
static const char *const settings[CELLS] = {
    "",
    "set optimizer = off",
    "set fusion = off; set vector_rows = 3; set morsel_rows = 5",
    "",
    "set optimizer = off; set fusion = off; set vector_rows = 7; set morsel_rows = 16",
    /* with --gpu or --woven; small steps go to the card, too */
    "set device = gpu; set host_rows = 0",
    "set device = auto; set host_rows = 0", /* mix_devices: a number of the schema's */
};
/* From the third time on a GPU runs a query in the steps that it expects. */
enum { TIMES = 3 };
/* What each cell's database is opened with. */
static const struct {
    const char *device, *threads, *tablet_rows;
    int first, end; /* its cells */
} bases[] = {{"cpu", "1", "1048576", 0, 3},
             {"cpu", "4", "16", 3, CELL_GPU},
             {"auto", "3", "64", CELL_GPU, CELLS}};
enum { BASES = sizeof bases / sizeof *bases };

struct cells {
    wf_database *dbs[BASES];
    wf_connection *conns[CELLS];
    int count; /* of the cells, with or without a GPU */
    struct answer first;
    struct answer other;
    char *kept[KEPT]; /* queries that are asked again when the tables have changed */
    int keep_next;
};

static bool run_ours(void *conn, const char *sql) {
    if (wf_query(conn, sql, NULL)) {
        fprintf(stderr, "%.300s\n%s\n", sql, wf_connection_error(conn)->message);
        return false;
    }
    return true;
}

struct cells *cells_open(struct gen *g, const char *gpu_code) {
    struct cells *c = calloc(1, sizeof *c);
    bool good = c != NULL;
    uint64_t rng = g->rng;
    for (int d = 0; good && d < (gpu_code ? BASES : BASES - 1); d++) {
        wf_option options[] = {{"device", bases[d].device},
                               {"threads", bases[d].threads},
                               {"tablet_rows", bases[d].tablet_rows},
                               {"memory", "2GB"},
                               {"gpu_memory", rng % 3 ? "0" : "200kB"}, /* in a third hardly anything fits */
                               {NULL, NULL}};
        wf_error error;
        good = wf_open(NULL, options, &c->dbs[d], &error) == WF_OK;
        for (int k = bases[d].first; good && k < bases[d].end; k++) {
            good = wf_connect(c->dbs[d], &c->conns[k]) == WF_OK &&
                   run_ours(c->conns[k], "set statement_timeout = 5000");
        }
        g->rng = rng;
        good = good && schema_statements(g, run_ours, c->conns[bases[d].first]);
        for (int k = bases[d].first; good && k < bases[d].end; k++) {
            good = run_ours(c->conns[k], settings[k]);
        }
        c->count = bases[d].end;
    }
    for (int k = CELL_GPU; good && k < c->count; k++) {
        good = wf_set(c->conns[k], "gpu_code", gpu_code) == WF_OK;
    }
    if (good && c->count > CELL_MIXED) {
        char drawn[20];
        snprintf(drawn, sizeof drawn, "%d", 1 + (int)(rng % 1000));
        good = wf_set(c->conns[CELL_MIXED], "mix_devices", drawn) == WF_OK;
    }
    if (!good) {
        cells_close(c);
        return NULL;
    }
    return c;
}

void cells_close(struct cells *c) {
    if (!c) {
        return;
    }
    for (int k = 0; k < CELLS; k++) {
        wf_disconnect(c->conns[k]);
    }
    for (int d = 0; d < BASES; d++) {
        wf_close(c->dbs[d]);
    }
    for (int i = 0; i < KEPT; i++) {
        free(c->kept[i]);
    }
    answer_free(&c->first);
    answer_free(&c->other);
    free(c);
}

/* A change that is given up leaves the databases apart, so it has no time limit. */
static void change_one(wf_connection *conn, const char *sql, struct answer *out) {
    (void)run_ours(conn, "set statement_timeout = 0");
    ours_ask(conn, sql, NULL, out);
    (void)run_ours(conn, "set statement_timeout = 5000");
}

const char *cells_change(struct cells *c, const char *sql) {
    bool same = true;
    change_one(c->conns[0], sql, &c->first);
    for (int d = 1; d < BASES && c->dbs[d]; d++) {
        wf_connection *conn = c->conns[bases[d].first];
        bool gpu = d == BASES - 1; /* what it cannot change it changes on the CPU */
        (void)(gpu && run_ours(conn, "set device = cpu"));
        change_one(conn, sql, &c->other);
        (void)(gpu && run_ours(conn, "set device = gpu"));
        same = same && answer_same(&c->first, &c->other);
    }
    return same ? c->first.state : "XX000";
}

const struct answer *cells_answer(const struct cells *c) {
    return &c->first;
}

wf_connection *cells_first(struct cells *c) {
    return c->conns[0];
}

static bool open_end(const struct answer *a) { /* timed out, out of memory, too large */
    return strncmp(a->state, "57", 2) == 0 || strncmp(a->state, "53", 2) == 0 || a->huge;
}

struct showing {
    struct cells *cells;
    int cell;
    char first[6];
    char other[6];
};

static bool breaks(void *arg, const char *sql) {
    struct cells *c = arg;
    ours_ask(c->conns[0], sql, NULL, &c->first);
    return strcmp(c->first.state, "XX000") == 0;
}

static bool is_data(const struct answer *a) {
    return strncmp(a->state, "22", 2) == 0 || strncmp(a->state, "21", 2) == 0;
}

/* The optimiser may do without what would raise or meet another error first, but never raise where
 * the plan as written does not. */
static bool agree(const struct cells *c, int cell) {
    if (cell == CELL_GPU && strcmp(c->other.state, "0A000") == 0) {
        return true; /* it says what it cannot do */
    }
    bool data = is_data(&c->other) && (is_data(&c->first) || strcmp(c->first.state, "00000") == 0);
    bool plain = strstr(settings[cell], "optimizer = off") != NULL;
    return open_end(&c->first) || open_end(&c->other) || answer_same(&c->first, &c->other) ||
           (data && plain);
}

/* Asks a cell for what the first one answered, on a GPU several times; `other` is the answer that
 * differs, or the last. */
static bool cell_agrees(struct cells *c, int cell, const char *sql) {
    bool good = true;
    for (int i = 0; good && i < (cell >= CELL_GPU ? TIMES : 1); i++) {
        ours_ask(c->conns[cell], sql, NULL, &c->other);
        good = agree(c, cell);
        if (open_end(&c->other)) {
            break;
        }
    }
    return good;
}

static bool differs(void *arg, const char *sql) {
    struct showing *s = arg;
    ours_ask(s->cells->conns[0], sql, NULL, &s->cells->first);
    bool good = cell_agrees(s->cells, s->cell, sql);
    return !good && strcmp(s->first, s->cells->first.state) == 0 &&
           strcmp(s->other, s->cells->other.state) == 0;
}

static const char *cell_name(int cell) {
    return cell == CELL_MIXED ? "devices at random"
           : cell == CELL_GPU ? "the GPU"
           : cell >= 3        ? "4 threads, tiny tablets"
                              : "1 thread";
}

void cells_keep(struct cells *c, const char *sql) {
    if (c->count > CELL_GPU) {
        char **place = &c->kept[c->keep_next++ % KEPT];
        free(*place);
        *place = malloc(strlen(sql) + 1);
        if (*place) {
            strcpy(*place, sql);
        }
    }
}

int kept_check(struct cells *c) {
    for (int i = 0; i < KEPT; i++) {
        if (!c->kept[i]) {
            continue;
        }
        ours_ask(c->conns[0], c->kept[i], NULL, &c->first);
        for (int k = CELL_GPU; k < c->count; k++) {
            if (!cell_agrees(c, k, c->kept[i])) {
                printf("cell \"%s\" (%s) differs when the tables have changed:\n%s\n", settings[k],
                       cell_name(k), c->kept[i]);
                answer_print(&c->first, 5);
                answer_print(&c->other, 5);
                return 1;
            }
        }
    }
    return 0;
}

int matrix_check(struct cells *c, struct gen *g, bool reduces) {
    bool ordered = g->ordered;
    ours_ask(c->conns[0], g->text.buf, NULL, &c->first);
    if (strcmp(c->first.state, "XX000") == 0) {
        if (reduces) {
            reduce(&g->text, breaks, c);
            (void)breaks(c, g->text.buf);
        }
        printf("internal error: %s\n%s\n", c->first.message, g->text.buf);
        return 1;
    }
    for (int k = 1; k < c->count; k++) {
        if (cell_agrees(c, k, g->text.buf)) {
            continue;
        }
        struct showing s = {.cells = c, .cell = k};
        snprintf(s.first, sizeof s.first, "%s", c->first.state);
        snprintf(s.other, sizeof s.other, "%s", c->other.state);
        if (reduces && differs(&s, g->text.buf)) {
            reduce(&g->text, differs, &s);
            (void)differs(&s, g->text.buf);
        }
        printf("cell \"%s\" (%s) differs:\n%s\n", settings[k], cell_name(k), g->text.buf);
        answer_print(&c->first, 5);
        answer_print(&c->other, 5);
        g->ordered = ordered;
        return 1;
    }
    return 0;
}

/* ---- identities ---- */

enum { PART_MAX = 12000 };
struct parts {
    char from[PART_MAX];
    char items[PART_MAX];
    char totals[PART_MAX];
    char merged[400];
    char cond[PART_MAX];
};

static void take(struct gen *g, char *out) {
    snprintf(out, PART_MAX, "%.*s", PART_MAX - 1, g->text.buf);
    text_reset(&g->text);
}

static void make_parts(struct gen *g, struct parts *p) {
    static const enum sort sorts[] = {INT, DEC, TXT, DAY, BOOL, BIG, DBL};
    struct scope s = {.outer = NULL};
    struct place at = {&s, NULL, false, false};
    g->risky = false;
    g->ordered = false;
    g->cte_count = 0;
    g->alias_count = 0;
    text_reset(&g->text);
    from_make(g, &s, 1 + below(g, 3));
    take(g, p->from);
    int count = 1 + below(g, 3);
    for (int i = 0; i < count; i++) {
        enum sort sort = sorts[below(g, 7)];
        text_say(&g->text, i ? ", " : "");
        expr_make(g, &at, sort, below(g, 3), sort_max(sort));
    }
    take(g, p->items);
    text_say(&g->text, "count(*) as a0, sum(");
    expr_make(g, &at, INT, 1, 1000);
    text_say(&g->text, ") as a1, min(");
    expr_make(g, &at, TXT, 1, 100);
    text_say(&g->text, ") as a2, max(");
    expr_make(g, &at, DEC, 1, 1000);
    text_say(&g->text, ") as a3, sum(");
    expr_make(g, &at, DBL, 1, 1000);
    text_say(&g->text, ") as a4, bool_or(");
    expr_make(g, &at, BOOL, 1, 1);
    text_say(&g->text, ") as a5");
    take(g, p->totals);
    snprintf(p->merged, sizeof p->merged,
             "sum(a0), sum(a1), min(a2), max(a3), sum(a4), bool_or(a5)");
    cond_make(g, &at, 1 + below(g, 3));
    take(g, p->cond);
}

/* Asks both; reports when they differ. */
static int must_agree(struct cells *c, const char *name, const char *one, const char *two) {
    ours_ask(c->conns[0], one, NULL, &c->first);
    ours_ask(c->conns[0], two, NULL, &c->other);
    if (open_end(&c->first) || open_end(&c->other) || answer_same(&c->first, &c->other) ||
        strcmp(c->first.state, "0A000") == 0 || strcmp(c->other.state, "0A000") == 0) {
        return 0;
    }
    printf("%s:\n%s\n", name, one);
    answer_print(&c->first, 5);
    printf("%s\n", two);
    answer_print(&c->other, 5);
    return 1;
}

int identity_check(struct cells *c, struct gen *g) {
    static struct parts p;
    static char one[TEXT_MAX];
    static char two[TEXT_MAX * 2];
    make_parts(g, &p);
    int form = below(g, 4);
    bool distinct = form == 1;
    const char *list = form == 2 ? p.totals : p.items;
    const char *all = distinct ? "union" : "union all";
    if (form == 3) {
        snprintf(one, sizeof one, "select count(*)%s where %s", p.from, p.cond);
        snprintf(two, sizeof two, "select coalesce(sum(case when %s then 1 else 0 end), 0)%s",
                 p.cond, p.from);
        return must_agree(c, "NoREC", one, two);
    }
    snprintf(one, sizeof one, "select %s%s%s", distinct ? "distinct " : "", list, p.from);
    snprintf(two, sizeof two,
             "%s%s(select %s%s where %s) %s (select %s%s where not %s) %s (select %s%s where (%s) "
             "is null)%s",
             form == 2 ? "select " : "", form == 2 ? p.merged : "", list, p.from, p.cond, all, list,
             p.from, p.cond, all, list, p.from, p.cond, form == 2 ? ") v" : "");
    if (form == 2) { /* the parts as a derived table */
        snprintf(two, sizeof two,
                 "select %s from ((select %s%s where %s) union all (select %s%s where not %s) "
                 "union all (select %s%s where (%s) is null)) v",
                 p.merged, list, p.from, p.cond, list, p.from, p.cond, list, p.from, p.cond);
    }
    return must_agree(c, distinct ? "TLP distinct" : form == 2 ? "TLP aggregate" : "TLP", one, two);
}
