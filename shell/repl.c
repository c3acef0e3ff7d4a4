/* repl.c: the interactive loop on libedit: editing, history, completion, statements over several
 * lines.
 *
 * Ctrl-C raises a signal. While a statement runs it cancels the statement; while a line is edited
 * it interrupts the editor's read, and the line and the statement begun are dropped. History keeps
 * whole statements, one entry each. */
#include "shell.h"

#include <histedit.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORY_ENTRIES = 2000 };

struct repl {
    struct shell *shell;
    EditLine *el;
    History *history;
    HistEvent event;
    struct strbuf pending; /* the statement so far */
    char history_path[1024];
};

static char *prompt(EditLine *el) {
    static char first[] = "warpfox> ";
    static char more[] = "    ...> ";
    struct repl *r = NULL;
    el_get(el, EL_CLIENTDATA, &r);
    return r->pending.len ? more : first;
}

static size_t common_prefix(const struct candidates *list) {
    size_t len = strlen(list->items[0]);
    for (int i = 1; i < list->count; i++) {
        size_t same = 0;
        while (same < len && list->items[i][same] == list->items[0][same]) {
            same++;
        }
        len = same;
    }
    return len;
}

static void list_candidates(const struct candidates *list) {
    size_t widest = 0;
    for (int i = 0; i < list->count; i++) {
        widest = strlen(list->items[i]) > widest ? strlen(list->items[i]) : widest;
    }
    int columns = terminal_columns();
    int per_line = (columns ? columns : 80) / (int)(widest + 2);
    per_line = per_line > 0 ? per_line : 1;
    putchar('\n');
    for (int i = 0; i < list->count; i++) {
        bool last = i % per_line == per_line - 1 || i == list->count - 1;
        printf("%-*s%s", (int)widest + (last ? 0 : 2), list->items[i], last ? "\n" : "");
    }
}

static unsigned char complete_word(EditLine *el, int key) {
    struct repl *r = NULL;
    (void)key;
    el_get(el, EL_CLIENTDATA, &r);
    const LineInfo *line = el_line(el);
    struct candidates list = {0};
    size_t word_len;
    complete(r->shell, line->buffer, (size_t)(line->cursor - line->buffer), &list, &word_len);
    unsigned char action = CC_ERROR;
    if (list.count > 0) {
        size_t len = common_prefix(&list);
        struct strbuf insert = {0};
        if (len > word_len) {
            strbuf_append(&insert, list.items[0] + word_len, len - word_len);
        }
        if (list.count == 1) {
            strbuf_append(&insert, " ", 1);
        }
        if (insert.len > 0) {
            el_insertstr(el, insert.ptr);
            action = CC_REFRESH;
        } else {
            list_candidates(&list);
            action = CC_REDISPLAY;
        }
        strbuf_free(&insert);
    }
    candidates_free(&list);
    return action;
}

static bool repl_open(struct repl *r) {
    if (!setlocale(LC_CTYPE, "") || strcmp(setlocale(LC_CTYPE, NULL), "C") == 0) {
        setlocale(LC_CTYPE, "C.UTF-8");
    }
    r->el = el_init("warpfox", stdin, stdout, stderr);
    r->history = history_init();
    if (!r->el || !r->history) {
        fprintf(stderr, "warpfox: the line editor cannot start\n");
        return false;
    }
    history(r->history, &r->event, H_SETSIZE, HISTORY_ENTRIES);
    history(r->history, &r->event, H_SETUNIQUE, 1);
    const char *home = getenv("HOME");
    if (home) {
        snprintf(r->history_path, sizeof r->history_path, "%s/.warpfox_history", home);
        history(r->history, &r->event, H_LOAD, r->history_path);
    }
    el_set(r->el, EL_CLIENTDATA, r);
    el_set(r->el, EL_PROMPT, prompt);
    el_set(r->el, EL_EDITOR, "emacs");
    el_set(r->el, EL_HIST, history, r->history);
    el_set(r->el, EL_ADDFN, "wf-complete", "complete a word", complete_word);
    el_set(r->el, EL_BIND, "^I", "wf-complete", NULL);
    el_set(r->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(r->el, NULL);
    return true;
}

static void repl_close(struct repl *r) {
    if (r->history) {
        if (r->history_path[0]) {
            history(r->history, &r->event, H_SAVE, r->history_path);
        }
        history_end(r->history);
    }
    if (r->el) {
        el_end(r->el);
    }
    strbuf_free(&r->pending);
}

/* One entry a statement: its lines joined by blanks. */
static void remember(struct repl *r, const char *text, size_t len) {
    while (len > 0 && strchr(" \t\r\n", text[len - 1])) {
        len--;
    }
    if (len == 0) {
        return;
    }
    struct strbuf entry = {0};
    strbuf_append(&entry, text, len);
    for (size_t i = 0; i < entry.len; i++) {
        entry.ptr[i] = entry.ptr[i] == '\n' ? ' ' : entry.ptr[i];
    }
    history(r->history, &r->event, H_ENTER, entry.ptr);
    strbuf_free(&entry);
}

/* Runs every whole statement at the front of what is pending. */
static void run_pending(struct repl *r) {
    int blank;
    size_t used;
    while (r->pending.len > 0 &&
           (used = wf_scan_statement(r->pending.ptr, r->pending.len, &blank)) > 0) {
        struct copy_in copy = {.used = used};
        if (!blank && !copy_in_find(r->shell, r->pending.ptr, used, r->pending.len, false, &copy)) {
            return; /* its lines are still to come */
        }
        remember(r, r->pending.ptr, used);
        if (!blank) {
            char *sql = shell_alloc(used + 1);
            memcpy(sql, r->pending.ptr, used);
            (void)(copy.stdin_at ? copy_in_run(r->shell, sql, &copy, (struct origin){0})
                                 : run_statement(r->shell, sql, (struct origin){0}));
            free(sql);
        }
        used = copy.used;
        memmove(r->pending.ptr, r->pending.ptr + used, r->pending.len - used + 1);
        r->pending.len -= used;
    }
    (void)wf_scan_statement(r->pending.ptr ? r->pending.ptr : "", r->pending.len, &blank);
    if (blank) {
        strbuf_clear(&r->pending);
    }
}

static void take_line(struct repl *r, const char *line, size_t len) {
    if (r->pending.len == 0 && is_command(line, len)) {
        remember(r, line, len);
        (void)run_command(r->shell, line, len);
        return;
    }
    strbuf_append(&r->pending, line, len);
    run_pending(r);
}

int repl(struct shell *shell) {
    struct repl r = {.shell = shell};
    if (!repl_open(&r)) {
        repl_close(&r);
        return EXIT_ERROR;
    }
    printf("Warpfox %s, in memory. Statements end with `;`, .help lists the commands.\n",
           wf_version());
    while (!shell->quit) {
        int len = 0;
        fflush(stdout);
        const char *line = el_gets(r.el, &len);
        if (!line && terminal_interrupted()) {
            printf("^C\n");
            strbuf_clear(&r.pending);
            continue;
        }
        if (!line || len <= 0) {
            printf("\n");
            break;
        }
        take_line(&r, line, (size_t)len);
    }
    repl_close(&r);
    return 0;
}
