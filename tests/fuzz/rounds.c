/* rounds.c: rounds of changed statements, each in a process of its own.
 *
 * A round takes one script: its statements that make tables as they are, the others changed
 * (change.c), in their order. The steps are made here, from seed and number alone; a child plays
 * them (play.c) in a scratch folder. A child that dies, hangs, prints a sanitizer's report or finds
 * something wrong is played again with fewer steps and fewer words until nothing can go. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

enum { HANG_S = 30, PIECES_MOST = 150, REDUCE_S = 120, KEY_MAX = 200 };

struct rounds {
    const struct round_options *options;
    struct corpus corpus;
    struct gen g;
    struct progress *progress;     /* shared with the child */
    char *texts[STEPS_MAX + 4000]; /* of the round at hand: those that were dropped, too */
    int text_count;
    char folder[60];
    char report[20000]; /* what the child printed */
    char kind[FOUND_MAX];
    long long answered, refused, compared;
};

/* Sanitizers look for these; a report ends the process. */
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) {
    return "halt_on_error=1:print_stacktrace=1";
}

static const char *const choices[] = {
    "set vector_rows = 1",  "set vector_rows = 3", "set morsel_rows = 7",   "set tablet_rows = 4",
    "set tablet_rows = 64", "set fusion = off",    "set optimizer = off",   "set narrow = off",
    "set fusion = off",     "set morsel_rows = 1", "set result_bytes = 64",
};

static bool makes_tables(const char *sql) {
    return strncasecmp(sql, "create", 6) == 0 || strncasecmp(sql, "insert", 6) == 0 ||
           strncasecmp(sql, "copy", 4) == 0;
}

static char *keep_text(struct rounds *r, const char *text) {
    char *copy = strdup(text);
    if (!copy || r->text_count >= (int)(sizeof r->texts / sizeof *r->texts)) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return r->texts[r->text_count++] = copy;
}

static void add_step(struct rounds *r, struct round *out, const char *text, bool verbatim) {
    if (out->count < STEPS_MAX) {
        out->steps[out->count++] =
            (struct step){keep_text(r, text), r->g.rng ^ (uint64_t)below(&r->g, 1 << 30), verbatim};
    }
}

static void round_make(struct rounds *r, long long number, struct round *out) {
    static struct sentence changed;
    struct gen *g = &r->g;
    gen_seed(g, r->options->seed, ((uint64_t)1 << 42) + (uint64_t)number);
    const struct script *script = &r->corpus.scripts[below(g, r->corpus.count)];
    out->count = 0;
    out->script = script->path;
    out->threads = below(g, 2) ? "1" : "3";
    out->device = r->options->gpu && below(g, 2) ? "gpu" : "cpu";
    snprintf(out->settings, sizeof out->settings, "set statement_timeout = 2000");
    for (int i = below(g, 4); i > 0; i--) {
        size_t len = strlen(out->settings);
        const char *choice = choices[below(g, (int)(sizeof choices / sizeof *choices))];
        snprintf(out->settings + len, sizeof out->settings - len, "; %s", choice);
    }
    for (int i = 0; i < script->count; i++) {
        const char *sql = script->pieces[i];
        bool setup = makes_tables(sql);
        if (setup) {
            add_step(r, out, sql, true);
        } else if (script->count > PIECES_MOST && below(g, script->count) >= PIECES_MOST) {
            continue;
        }
        for (int again = setup ? below(g, 2) : 1 + below(g, 3); again > 0; again--) {
            sentence_change(g, &r->corpus, sql, &changed);
            add_step(r, out, changed.text, false);
        }
    }
}

static void free_texts(struct rounds *r) {
    while (r->text_count > 0) {
        free(r->texts[--r->text_count]);
    }
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *place) {
    (void)s;
    (void)kind;
    return place->level > 0 ? remove(path) : 0;
}

static void empty_folder(const char *folder) {
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void child(struct rounds *r, const struct round *round) {
    int log = open("report", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(log, 2);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    signal(SIGFPE, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    exit(round_play(round, r->progress) ? 0 : 3);
}

static void read_report(struct rounds *r) {
    FILE *file = fopen("report", "r");
    size_t n = file ? fread(r->report, 1, sizeof r->report - 1, file) : 0;
    r->report[n] = 0;
    if (file) {
        fclose(file);
    }
}

/* What ended the child, as one line; empty: nothing. */
static void name_kind(struct rounds *r, int status, bool hung) {
    static const char *const marks[] = {"SUMMARY: ", "runtime error: ", "check failed", "CHECK"};
    r->kind[0] = 0;
    if (hung) {
        snprintf(r->kind, sizeof r->kind, "hangs");
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
        snprintf(r->kind, sizeof r->kind, "%s", r->progress->found);
    } else if (status != 0) {
        read_report(r);
        const char *at = NULL;
        for (size_t i = 0; !at && i < sizeof marks / sizeof *marks; i++) {
            at = strstr(r->report, marks[i]);
        }
        if (at) {
            snprintf(r->kind, sizeof r->kind, "%.*s", (int)strcspn(at, "\n"), at);
        } else {
            snprintf(r->kind, sizeof r->kind, "ends with status %d, signal %d",
                     WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                     WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        }
    }
}

/* Plays it in a child; false: it hangs, or r->kind says what was wrong. */
static bool play_once(struct rounds *r, const struct round *round, bool *out_hung) {
    memset(r->progress, 0, sizeof *r->progress);
    r->progress->since_ns = now_ns();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        child(r, round);
    }
    int status = 0;
    bool hung = false;
    for (int waited = 0; waitpid(pid, &status, WNOHANG) == 0; waited++) {
        usleep(waited < 100 ? 2000 : 20000);
        if (!hung && now_ns() - r->progress->since_ns > (int64_t)HANG_S * 1000000000) {
            hung = true;
            kill(pid, SIGKILL);
        }
    }
    name_kind(r, status, hung);
    *out_hung = hung;
    return !r->kind[0];
}

/* A busy machine may keep a child waiting: what hangs, hangs twice. */
static bool round_holds(struct rounds *r, const struct round *round) {
    bool hung;
    bool holds = play_once(r, round, &hung);
    return hung ? play_once(r, round, &hung) : holds;
}

/* Two findings are the same when they begin alike: numbers and texts in messages may differ. */
static bool same_kind(const char *a, const char *b) {
    size_t n = strcspn(a, ":");
    return strncmp(a, "SUMMARY", 7) == 0 ? strcmp(a, b) == 0
                                         : strncmp(a, b, n < KEY_MAX ? n : KEY_MAX) == 0;
}

/* Drops runs of steps, then runs of words of the step that fails, while the kind stays the same. */
static void round_reduce(struct rounds *r, struct round *round) {
    static struct round less;
    char kind[FOUND_MAX];
    int64_t end = now_ns() + (int64_t)REDUCE_S * 1000000000;
    snprintf(kind, sizeof kind, "%s", r->kind);
    if (r->progress->step + 1 < round->count) {
        round->count = r->progress->step + 1;
    }
    for (int run = round->count / 2; run > 0; run /= 2) {
        for (int from = 0; from + run < round->count && now_ns() < end;) {
            less = *round;
            memmove(less.steps + from, less.steps + from + run,
                    (size_t)(less.count - from - run) * sizeof *less.steps);
            less.count -= run;
            if (!round_holds(r, &less) && same_kind(kind, r->kind)) {
                *round = less;
            } else {
                from += run;
            }
        }
    }
    static struct words words;
    static struct sentence text;
    struct step *last = &round->steps[round->count - 1];
    int count = TEXT_MAX;
    for (int run = 64; run > 0 && round->count > 0; run /= 2) {
        for (int from = 0; from < count && now_ns() < end;) {
            char *was = last->text;
            words_cut(was, &words);
            count = words.count;
            text.len = 0;
            text.text[0] = 0;
            for (int i = 0; i < words.count; i++) {
                if (i < from || i >= from + run) {
                    words_put(&text, words.at[i], words.len[i]);
                }
            }
            last->text = text.text;
            bool fewer = from < count && !round_holds(r, round) && same_kind(kind, r->kind);
            last->text = fewer ? keep_text(r, text.text) : was;
            from += fewer ? 0 : run;
        }
    }
    if (round_holds(r, round)) { /* seen now and then only */
        snprintf(r->kind, sizeof r->kind, "%s", kind);
    }
}

static void print_round(struct rounds *r, const struct round *round, long long number) {
    printf("round %lld of seed %llu (%s, %s threads, device %s) %s\n%s;\n", number,
           (unsigned long long)r->options->seed, round->script, round->threads, round->device,
           r->kind, round->settings);
    int last = r->options->reduces ? round->count : r->progress->step + 1;
    for (int i = 0; i < last && i < round->count; i++) {
        printf("%s%s\n;\n", round->steps[i].verbatim ? "" : "-- changed\n", round->steps[i].text);
    }
    read_report(r);
    printf("%.3000s\n", r->report);
    fflush(stdout);
}

static bool rounds_open(struct rounds *r) {
    static char given[2000];
    const char *patterns[20];
    int count = 0;
    snprintf(given, sizeof given, "%s",
             r->options->patterns ? r->options->patterns
                                  : "tests/sql/*/*.test ../shared/corpus/slt/*.test");
    char *rest = given;
    for (char *one = strtok_r(given, " ", &rest); one && count < 20;
         one = strtok_r(NULL, " ", &rest)) {
        patterns[count++] = one;
    }
    if (!corpus_open(&r->corpus, patterns, count)) {
        fprintf(stderr, "no scripts: run this in the folder of the repository\n");
        return false;
    }
    r->progress =
        mmap(NULL, sizeof *r->progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(r->folder, sizeof r->folder, "/tmp/warpfox-fuzz-XXXXXX");
    return r->progress != MAP_FAILED && mkdtemp(r->folder) && chdir(r->folder) == 0;
}

int rounds_run(const struct round_options *options) {
    static struct rounds r;
    static struct round round;
    long long passed = 0, failed = 0;
    r.options = options;
    if (!rounds_open(&r)) {
        return 2;
    }
    int64_t end = now_ns() + (int64_t)(options->seconds * 1e9);
    for (long long n = options->first; n < options->first + options->count && now_ns() < end; n++) {
        round_make(&r, n, &round);
        if (options->trace) {
            fprintf(stderr, "-- round %lld: %s, %d steps\n", n, round.script, round.count);
        }
        bool good = round_holds(&r, &round);
        r.answered += r.progress->answered;
        r.refused += r.progress->refused;
        r.compared += r.progress->compared;
        passed += good;
        failed += !good;
        if (!good) {
            if (options->reduces) {
                round_reduce(&r, &round);
            }
            print_round(&r, &round, n);
        }
        free_texts(&r);
        empty_folder(r.folder);
    }
    if (chdir("/") == 0) {
        rmdir(r.folder);
    }
    corpus_close(&r.corpus);
    munmap(r.progress, sizeof *r.progress);
    printf("%lld statements answered, %lld refused, %lld compared\n", r.answered, r.refused,
           r.compared);
    printf("%lld passed, %lld failed\n", passed, failed);
    return failed ? 1 : 0;
}
