/* fuzz.c: runs random queries and says what came out.
 *
 *   fuzz [--seed S] [--count N] [--seconds T] [--first K] [--only K] [--postgres DSN] [--gpu] [--woven]
 * [--no-reduce] [--trace]
 *   fuzz --mutate [--scripts 'PATTERN…'] [options as above]
 *
 * Without --postgres: the matrix and the identities of identity.c. With it: PostgreSQL answers the
 * same queries over the same tables, in a database that may be scribbled on. Tables change every
 * few hundred queries. With --mutate: rounds of statements of scripts, changed (rounds.c). Query or
 * round K of seed S is always the same: --seed S --only K runs it alone. The
 * last line is `N passed, N failed`. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"
#include "warpfox.h"

enum { QUERIES_PER_SCHEMA = 400, CHANGES = 12, AGAIN = 3, RULES = 8, REASONS = 60 };

char now_running[TEXT_MAX];
static long long now_number;

struct options {
    uint64_t seed;
    long long count;
    long long first;
    long long only;
    double seconds;
    const char *dsn;
    bool reduces;
    bool trace;
    bool gpu;   /* one more cell */
    bool woven; /* and there woven kernels, not the VM */
    bool mutates;
    const char *scripts;
};

struct tally {
    const char *rule;
    long long count;
};

struct totals {
    long long verdicts[DIFFERENT + 1];
    long long answered;
    long long rows;
    long long failed;
    struct tally rules[RULES];
    struct {
        char text[120];
        long long count;
    } reasons[REASONS];
};

struct session {
    struct options options;
    struct gen gen;
    struct cells *cells;
    struct postgres *pg;
    struct answer ours;
    struct answer theirs;
    struct totals totals;
    char kind[2][6];
};

static void crashed(int number) {
    char head[60];
    int len = snprintf(head, sizeof head, "\nquery %lld crashed while running:\n", now_number);
    ssize_t n = write(2, head, (size_t)len);
    n += write(2, now_running, strlen(now_running));
    n += write(2, "\n", 1);
    (void)n;
    signal(number, SIG_DFL);
    raise(number);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void count_rule(struct totals *t, const char *rule) {
    for (int i = 0; i < RULES; i++) {
        if (!t->rules[i].rule || strcmp(t->rules[i].rule, rule) == 0) {
            t->rules[i].rule = rule;
            t->rules[i].count++;
            return;
        }
    }
}

static void count_reason(struct totals *t, const char *text) {
    for (int i = 0; i < REASONS; i++) {
        if (t->reasons[i].count == 0) {
            snprintf(t->reasons[i].text, sizeof t->reasons[i].text, "%.110s", text);
        }
        if (strncmp(t->reasons[i].text, text, 110) == 0) {
            t->reasons[i].count++;
            return;
        }
    }
}

static bool works(void *conn, const char *sql) {
    return wf_query(conn, sql, NULL) == WF_OK;
}

static bool open_schema(struct session *s, uint64_t number) {
    gen_seed(&s->gen, s->options.seed, ((uint64_t)1 << 40) + number);
    schema_make(&s->gen);
    uint64_t rng = s->gen.rng;
    cells_close(s->cells);
    s->cells = cells_open(&s->gen, !s->options.gpu ? NULL : s->options.woven ? "woven" : "vm");
    if (!s->cells) {
        return false;
    }
    int missing = functions_probe(works, cells_first(s->cells), number == 0 && s->options.trace);
    if (number == 0 && missing > 0) {
        printf("%d functions left out\n", missing);
    }
    if (s->pg) {
        s->gen.rng = rng;
        return postgres_run(s->pg, "drop table if exists t0, t1, t2, t3, t4, t5") &&
               schema_statements(&s->gen, postgres_run, s->pg) && postgres_run(s->pg, "analyze");
    }
    return true;
}

/* Changes the tables; all must agree on what they hold afterwards. */
static void change(struct session *s, uint64_t schema) {
    struct gen *g = &s->gen;
    const char *rule = "";
    gen_seed(g, s->options.seed, ((uint64_t)1 << 41) + schema);
    for (int i = 0; i < CHANGES; i++) {
        static char sql[TEXT_MAX];
        char select[40];
        const struct table *t = dml_make(g, i);
        snprintf(sql, sizeof sql, "%s", g->text.buf);
        snprintf(select, sizeof select, "select * from %s", t->name);
        snprintf(s->ours.state, sizeof s->ours.state, "%s", cells_change(s->cells, sql));
        bool good = strncmp(s->ours.state, "XX", 2) != 0;
        text_reset(&g->text);
        text_say(&g->text, "%s", select);
        if (s->pg && good) {
            /* a change that one of two gives up leaves them apart: it may take its time */
            (void)postgres_run(s->pg, "set statement_timeout = 0");
            postgres_ask(s->pg, sql, g, &s->theirs);
            (void)postgres_run(s->pg, "set statement_timeout = 5000");
            good = compare(g, cells_answer(s->cells), &s->theirs, &rule) == SAME;
            ours_ask(cells_first(s->cells), select, g, &s->ours);
            postgres_ask(s->pg, select, g, &s->theirs);
            good = good && compare(g, &s->ours, &s->theirs, &rule) == SAME;
        } else if (good) {
            good = matrix_check(s->cells, g, false) == 0;
            good = good && (i % AGAIN || kept_check(s->cells) == 0);
        }
        if (!good) {
            printf("change %d of schema %llu of seed %llu:\n%s\n", i, (unsigned long long)schema,
                   (unsigned long long)s->options.seed, sql);
            answer_print(cells_answer(s->cells), 6);
            answer_print(&s->theirs, 6);
            s->totals.failed++;
        }
    }
}

static bool still_differs(void *arg, const char *sql) {
    struct session *s = arg;
    const char *rule;
    ours_ask(cells_first(s->cells), sql, &s->gen, &s->ours);
    postgres_ask(s->pg, sql, &s->gen, &s->theirs);
    return strcmp(s->kind[0], s->ours.state) == 0 && strcmp(s->kind[1], s->theirs.state) == 0 &&
           compare(&s->gen, &s->ours, &s->theirs, &rule) == DIFFERENT;
}

static void report(struct session *s, long long number) {
    struct gen *g = &s->gen;
    snprintf(s->kind[0], 6, "%s", s->ours.state);
    snprintf(s->kind[1], 6, "%s", s->theirs.state);
    bool any = false;
    for (int i = 0; i < OUT_MAX; i++) {
        any = any || g->inexact[i];
    }
    for (int i = 0; i < OUT_MAX; i++) {
        g->inexact[i] = any;
    }
    g->ordered = false;
    if (s->options.reduces && still_differs(s, g->text.buf)) {
        reduce(&g->text, still_differs, s);
        (void)still_differs(s, g->text.buf);
    }
    printf("query %lld of seed %llu differs:\n%s\n  ours:\n", number,
           (unsigned long long)s->options.seed, g->text.buf);
    answer_print(&s->ours, 6);
    printf("  PostgreSQL:\n");
    answer_print(&s->theirs, 6);
    fflush(stdout);
}

static void against_postgres(struct session *s, long long number) {
    struct totals *t = &s->totals;
    const char *rule = "";
    ours_ask(cells_first(s->cells), s->gen.text.buf, &s->gen, &s->ours);
    postgres_ask(s->pg, s->gen.text.buf, &s->gen, &s->theirs);
    enum verdict verdict = compare(&s->gen, &s->ours, &s->theirs, &rule);
    t->verdicts[verdict]++;
    t->answered += strcmp(s->ours.state, "00000") == 0;
    t->rows += s->ours.line_count;
    if (verdict == SAME && strcmp(s->ours.state, "00000") != 0) {
        char text[120];
        snprintf(text, sizeof text, "both refused: %s %.80s", s->ours.state, s->theirs.message);
        count_reason(t, text);
    } else if (verdict == EXPLAINED) {
        count_rule(t, rule);
    } else if (verdict == UNSUPPORTED) {
        char text[120];
        snprintf(text, sizeof text, "unsupported: %.100s", s->ours.message);
        count_reason(t, text);
    } else if (verdict == DIFFERENT) {
        report(s, number);
        t->failed++;
    }
}

static void one(struct session *s, long long number) {
    now_number = number;
    gen_seed(&s->gen, s->options.seed, (uint64_t)number);
    statement_make(&s->gen);
    if (s->options.trace) {
        fprintf(stderr, "-- %lld\n%s;\n", number, s->gen.text.buf);
    }
    if (s->pg) {
        against_postgres(s, number);
        return;
    }
    int wrong = number % 2 ? identity_check(s->cells, &s->gen)
                           : matrix_check(s->cells, &s->gen, s->options.reduces);
    if (wrong) {
        printf("query %lld of seed %llu\n", number, (unsigned long long)s->options.seed);
        s->totals.failed++;
    } else if (number % 2 == 0) {
        cells_keep(s->cells, s->gen.text.buf);
    }
    s->totals.verdicts[wrong ? DIFFERENT : SAME]++;
}

static bool parse(int argc, char **argv, struct options *out) {
    *out = (struct options){.seed = 1, .count = 1000, .only = -1, .seconds = 1e9, .reduces = true};
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(arg, "--no-reduce") == 0) {
            out->reduces = false;
            continue;
        }
        if (strcmp(arg, "--gpu") == 0 || strcmp(arg, "--woven") == 0) {
            out->gpu = true;
            out->woven = out->woven || arg[2] == 'w';
            continue;
        }
        if (strcmp(arg, "--mutate") == 0) {
            out->mutates = true;
            continue;
        }
        if (strcmp(arg, "--trace") == 0) {
            out->trace = true;
            continue;
        }
        if (strcmp(arg, "--seed") == 0) {
            out->seed = strtoull(next, NULL, 10);
        } else if (strcmp(arg, "--count") == 0) {
            out->count = atoll(next);
        } else if (strcmp(arg, "--first") == 0) {
            out->first = atoll(next);
        } else if (strcmp(arg, "--only") == 0) {
            out->only = atoll(next);
        } else if (strcmp(arg, "--seconds") == 0) {
            out->seconds = atof(next);
        } else if (strcmp(arg, "--postgres") == 0) {
            out->dsn = next;
        } else if (strcmp(arg, "--scripts") == 0) {
            out->scripts = next;
        } else {
            fprintf(stderr,
                    "usage: fuzz [--seed S] [--count N] [--seconds T] [--first K] [--only K] "
                    "[--postgres DSN] [--gpu] [--woven] [--no-reduce] [--trace] "
                    "[--mutate [--scripts 'PATTERN...']]\n");
            return false;
        }
        i++;
    }
    return true;
}

static void print_totals(const struct totals *t, bool pg) {
    if (pg) {
        printf("same %lld, explained %lld, unsupported %lld, skipped %lld, different %lld; "
               "%lld answered with %lld rows\n",
               t->verdicts[SAME], t->verdicts[EXPLAINED], t->verdicts[UNSUPPORTED],
               t->verdicts[SKIPPED], t->verdicts[DIFFERENT], t->answered, t->rows);
    }
    for (int i = 0; i < RULES && t->rules[i].rule; i++) {
        printf("  explained: %lld %s\n", t->rules[i].count, t->rules[i].rule);
    }
    for (int i = 0; i < REASONS && t->reasons[i].count; i++) {
        printf("  %6lld %s\n", t->reasons[i].count, t->reasons[i].text);
    }
}

int main(int argc, char **argv) {
    static struct session s;
    if (!parse(argc, argv, &s.options)) {
        return 2;
    }
    long long first = s.options.only >= 0 ? s.options.only : s.options.first;
    long long last = s.options.only >= 0 ? first + 1 : first + s.options.count;
    if (s.options.mutates) {
        struct round_options rounds = {
            s.options.seed,    first,         last - first,      s.options.seconds,
            s.options.scripts, s.options.gpu, s.options.reduces, s.options.trace};
        return rounds_run(&rounds);
    }
    signal(SIGSEGV, crashed);
    signal(SIGABRT, crashed);
    signal(SIGFPE, crashed);
    signal(SIGBUS, crashed);
    if (s.options.dsn) {
        s.pg = postgres_open(s.options.dsn);
        if (!s.pg) {
            return 2;
        }
    }
    double end = now_s() + s.options.seconds;
    long long schema = -1;
    bool changed = false;
    for (long long n = first; n < last && now_s() < end; n++) {
        if (n / QUERIES_PER_SCHEMA != schema) {
            schema = n / QUERIES_PER_SCHEMA;
            changed = false;
            if (!open_schema(&s, (uint64_t)schema)) {
                return 2;
            }
        }
        if (!changed && n % QUERIES_PER_SCHEMA >= QUERIES_PER_SCHEMA / 2) {
            changed = true;
            change(&s, (uint64_t)schema);
        }
        one(&s, n);
    }
    long long passed = s.totals.verdicts[SAME] + s.totals.verdicts[EXPLAINED] +
                       s.totals.verdicts[UNSUPPORTED] + s.totals.verdicts[SKIPPED];
    print_totals(&s.totals, s.pg != NULL);
    cells_close(s.cells);
    postgres_close(s.pg);
    answer_free(&s.ours);
    answer_free(&s.theirs);
    printf("%lld passed, %lld failed\n", passed, s.totals.failed);
    return s.totals.failed ? 1 : 0;
}
