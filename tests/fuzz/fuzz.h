/* fuzz.h: random queries and what is done with them.
 *
 * A query is a text with spans: ranges of it that the reducer may drop or replace. Everything
 * random comes from a generator seeded by (seed, number of the query), so one query of a run can be
 * made again alone. Expressions are made within a bound on their magnitude, so that a query which
 * is not meant to raise cannot: sums halve the bound, products take its root. */
#ifndef WF_TESTS_FUZZ_H
#define WF_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an expression can be. */
enum sort { INT, BIG, DEC, DBL, TXT, DAY, BOOL, MOM, SORTS }; /* MOM: a moment, a timestamp */

/* ---- text.c: text with spans ---- */
enum { TEXT_MAX = 1 << 16, SPAN_MAX = 8192 };
enum span_kind {
    SPAN_QUERY = SORTS, /* replaced by a query within it; below: expressions of a sort */
    SPAN_OPTIONAL       /* may go */
};
struct span {
    int start;
    int end;
    int kind;
};
struct text {
    char buf[TEXT_MAX];
    int len;
    struct span spans[SPAN_MAX];
    int span_count;
};
void text_reset(struct text *t);
void text_say(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
int text_open(struct text *t, int kind); /* the span ends with text_close(its number) */
void text_close(struct text *t, int span);
/* [start, mid) [mid, end of text) change places, spans with them. */
void text_rotate(struct text *t, int start, int mid);
/* Puts `with` in place of [start, end); spans within go unless they lie in [keep, keep_end). */
bool text_splice(struct text *t, int start, int end, const char *with);
bool text_shrink(struct text *t, int start, int end, int keep, int keep_end);

/* ---- schema.c: tables ---- */
enum { TABLES = 6, COLS_MAX = 15, ROWS_SMALL = 50 };
struct column {
    const char *name;
    const char *type;
    enum sort sort;
    double max; /* bound on the magnitude of its values */
};
struct table {
    char name[16];
    struct column cols[COLS_MAX];
    int col_count;
    char id[16]; /* its unique column, one of cols */
    int rows;
};

/* ---- the generator ---- */
enum { SCOPE_MAX = 64, OUT_MAX = 6 };
struct col { /* a column an expression can name */
    char text[48];
    enum sort sort;
    double max;
    bool plain; /* a column, not an expression: subqueries may name it */
};
struct scope {
    struct col cols[SCOPE_MAX];
    int col_count;
    char order[200]; /* columns that order the rows totally; empty: none known */
    double rows;     /* bound on their number */
    const struct scope *outer;
};
struct cte {
    char name[16];
    struct col cols[OUT_MAX];
    int col_count;
    double rows;
};
struct gen {
    uint64_t rng;
    struct text text;
    struct table tables[TABLES];
    struct cte ctes[4];
    int cte_count;
    int alias_count;
    bool risky;            /* expressions may raise */
    bool risk_inner;       /* one that may raise lies where plans decide whether it is computed */
    bool ordered;          /* rows come in a total order */
    bool order_begun;      /* by an expression of the select, before all columns */
    bool inexact[OUT_MAX]; /* output columns that PostgreSQL rounds elsewhere */
    int out_count;
};

/* Where an expression stands. */
struct place {
    struct scope *scope;
    const struct scope *rows; /* grouped: what aggregates see; else NULL */
    bool no_outer;
    bool shown; /* computed once for each row of the answer */
};

void gen_seed(struct gen *g, uint64_t seed, uint64_t number);
int below(struct gen *g, int bound);
bool one_in(struct gen *g, int n);
enum sort any_sort(struct gen *g);
double sort_max(enum sort sort);

void schema_make(struct gen *g);
/* Calls `run` with each statement that creates and fills the tables; false stops. */
bool schema_statements(struct gen *g, bool (*run)(void *arg, const char *sql), void *arg);

void expr_make(struct gen *g, const struct place *p, enum sort sort, int depth, double max);
void cond_make(struct gen *g, const struct place *p, int depth);
void aggregate_make(struct gen *g, const struct place *p, enum sort sort, double max);
/* An aggregate whose digits differ between systems; for output only. */
void inexact_make(struct gen *g, const struct place *p);
void window_make(struct gen *g, const struct place *p, enum sort sort, double max);

void from_make(struct gen *g, struct scope *s, int depth);
/* A query with columns of these sorts within these bounds. */
void query_make(struct gen *g, const struct scope *outer, const struct col *out, int count,
                int depth);
/* VALUES with as many rows, of expressions that see `outer`. */
void values_make(struct gen *g, const struct scope *outer, const struct col *out, int count,
                 int rows, int depth);
void statement_make(struct gen *g); /* the whole of a test */

/* ---- dml.c: the statement of a number that changes a table, which is returned ---- */
const struct table *dml_make(struct gen *g, int number);

/* ---- function.c: functions as a table; those the engine lacks are left out ---- */
struct function {
    enum sort sort;
    const char *form; /* a letter per argument: i b d f t y o m */
    double max;       /* of the result; 0: that of its first argument */
};
/* Asks `works` about every form; returns how many are left out. */
int functions_probe(bool (*works)(void *arg, const char *sql), void *arg, bool say);
const struct function *function_pick(struct gen *g, enum sort sort, double max);

/* ---- answer.c: answers as texts that can be compared ---- */
struct answer {
    char state[6]; /* SQLSTATE; 00000 for rows */
    char message[300];
    char **lines; /* sorted unless `ordered` */
    int line_count;
    int line_room;
    char *bytes;
    size_t byte_count;
    size_t byte_room;
    bool huge; /* more than fits: not compared */
};
void answer_reset(struct answer *a);
void answer_free(struct answer *a);
/* One value at the end of the row under way; NULL for NULL. `number`: canonical digits. */
void answer_value(struct answer *a, const char *text, bool number, bool inexact, bool first);
void answer_end_row(struct answer *a);
void answer_sort(struct answer *a);
bool answer_same(const struct answer *a, const struct answer *b);
void answer_print(const struct answer *a, int most);

struct wf_connection;
void ours_ask(struct wf_connection *conn, const char *sql, const struct gen *g, struct answer *out);

/* ---- postgres.c, or postgres_none.c where libpq is not there ---- */
struct postgres;
struct postgres *postgres_open(const char *dsn);
void postgres_close(struct postgres *pg);
bool postgres_run(void *pg, const char *sql);
void postgres_ask(struct postgres *pg, const char *sql, const struct gen *g, struct answer *out);

/* ---- identity.c: what must hold without another system; returns the number of failures ---- */
struct cells;
/* gpu_code: "vm" or "woven" for two more cells, on the GPU and on devices drawn at random; NULL = none. */
struct cells *cells_open(struct gen *g, const char *gpu_code);
void cells_close(struct cells *c);
struct wf_connection *cells_first(struct cells *c);
/* Runs it in all databases; their SQLSTATE, or XX000 when they differ. */
const char *cells_change(struct cells *c, const char *sql);
const struct answer *cells_answer(const struct cells *c); /* what it returned */
int matrix_check(struct cells *c, struct gen *g, bool reduce);
/* With a GPU: a query to ask again; asks those kept last, whose answers changed tables may have changed. */
void cells_keep(struct cells *c, const char *sql);
int kept_check(struct cells *c);
int identity_check(struct cells *c, struct gen *g);

/* ---- compare.c: the rules ---- */
enum verdict { SAME, EXPLAINED, UNSUPPORTED, SKIPPED, DIFFERENT };
enum verdict compare(const struct gen *g, const struct answer *ours, const struct answer *theirs,
                     const char **out_rule);

/* ---- reduce.c: the smallest text for which `still` holds ---- */
void reduce(struct text *t, bool (*still)(void *arg, const char *sql), void *arg);

/* ---- corpus.c: the statements of scripts ---- */
struct script {
    char path[300];
    char **pieces;
    int count;
};
struct corpus {
    struct script *scripts;
    int count;
};
/* The files of all patterns; false when there are none. */
bool corpus_open(struct corpus *c, const char *const *patterns, int count);
void corpus_close(struct corpus *c);
const char *corpus_piece(const struct corpus *c, struct gen *g);

/* ---- change.c: a statement changed at random ---- */
enum { WORDS_MAX = 4000 };
struct words {
    const char *at[WORDS_MAX];
    int len[WORDS_MAX];
    int count;
};
struct sentence {
    char text[TEXT_MAX];
    int len;
};
enum word_class { WORD_NUMBER, WORD_STRING, WORD_NAME, WORD_MARK };
void words_cut(const char *text, struct words *out);
void words_put(struct sentence *out, const char *text, int count);
enum word_class word_class(const char *word);
bool word_in(const char *word, int len, const char *list); /* a list: " one two " */
void sentence_change(struct gen *g, const struct corpus *corpus, const char *text,
                     struct sentence *out);

/* ---- play.c: what must hold while statements run, whatever they are ---- */
enum { STEPS_MAX = 1200, FOUND_MAX = 2000 };
struct step {
    char *text;
    uint64_t seed; /* of what happens on the way: parameters, refused memory, comparing */
    bool verbatim; /* as the script has it */
};
struct round {
    const char *script;
    const char *threads;
    const char *device;
    char settings[300];
    struct step steps[STEPS_MAX];
    int count;
};
struct progress { /* of a round, seen by the process that watches it */
    volatile int step;
    volatile int64_t since_ns;
    long long answered;
    long long refused;
    long long compared;
    char found[FOUND_MAX];
};
int64_t now_ns(void);
/* Returns false when something is wrong, and says what in progress->found. */
bool round_play(const struct round *round, struct progress *progress);
void refuse_memory_at(int n); /* refuse.c: the n-th reservation from now on fails; 0: none */

/* ---- rounds.c: rounds in processes of their own, and what is left of one that fails ---- */
struct round_options {
    uint64_t seed;
    long long first;
    long long count;
    double seconds;
    const char *patterns; /* of scripts, apart by blanks; NULL: those of tests/sql */
    bool gpu;
    bool reduces;
    bool trace;
};
int rounds_run(const struct round_options *options); /* exit status */

extern char now_running[TEXT_MAX]; /* for the report of a crash */

#endif
