/* repl.c: the interactive loop on libedit: editing, completion, pasted text, statements over
 * several lines.
 *
 * Ctrl-C raises a signal. While a statement runs it cancels the statement; while a line is edited
 * it interrupts the editor's read, and the line and the statement begun are dropped. Pasted text
 * goes into the line as it is, tabs and line ends included, and is run by Enter, line by line, as
 * if it had been typed. The prompt tells of an open transaction by `*`, of a failed one by `!`. */
#include "shell.h"

#include <histedit.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

struct repl {
    struct shell *shell;
    EditLine *el;
    struct journal *journal;
    struct strbuf pending; /* the statement so far */
    bool pastes;           /* the terminal says where pasted text begins and ends */
};

/* Whether text that begins now begins a statement: only blanks and whole comments are pending. */
static bool at_start(const struct repl *r) {
    int blank;
    if (r->pending.len == 0) {
        return true;
    }
    struct strbuf text = {0};
    strbuf_append(&text, r->pending.ptr, r->pending.len);
    strbuf_append(&text, r->shell->logiql ? "." : ";", 1); /* ends no open quote or comment */
    bool ends = scan_statement(r->shell, text.ptr, text.len, &blank) == text.len && blank;
    strbuf_free(&text);
    return ends;
}

static char *prompt(EditLine *el) {
    static char *const prompts[3][3] = {{"warpfox> ", "warpfox*> ", "warpfox!> "},
                                        {"    ...> ", "    ...*> ", "    ...!> "},
                                        {" logiql> ", " logiql*> ", " logiql!> "}};
    struct repl *r = NULL;
    el_get(el, EL_CLIENTDATA, &r);
    int which = !at_start(r) ? 1 : r->shell->logiql ? 2 : 0;
    return prompts[which][wf_transaction_state(r->shell->conn)];
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

enum { MOST_CANDIDATES = 200 };

static void list_candidates(const struct candidates *list) {
    int64_t widest = 0;
    int shown = list->count > MOST_CANDIDATES ? MOST_CANDIDATES : list->count;
    for (int i = 0; i < shown; i++) {
        int64_t width = wf_display_width(list->items[i], strlen(list->items[i]));
        widest = width > widest ? width : widest;
    }
    int columns = terminal_columns();
    int per_line = (columns ? columns : 80) / (int)(widest + 2);
    per_line = per_line > 0 ? per_line : 1;
    putchar('\n');
    for (int i = 0; i < shown; i++) {
        bool last = i % per_line == per_line - 1 || i == shown - 1;
        int64_t width = wf_display_width(list->items[i], strlen(list->items[i]));
        printf("%s%*s%s", list->items[i], last ? 0 : (int)(widest + 2 - width), "",
               last ? "\n" : "");
    }
    if (shown < list->count) {
        printf("… and %d more\n", list->count - shown);
    }
}

/* Puts the text in place of the `old` characters before the cursor. */
static void replace_word(EditLine *el, const char *old, size_t old_len, const char *text,
                         size_t len) {
    int characters = 0;
    for (size_t i = 0; i < old_len; i++) {
        characters += ((unsigned char)old[i] & 0xc0) != 0x80;
    }
    el_deletestr(el, characters);
    char *copy = shell_alloc(len + 1);
    memcpy(copy, text, len);
    el_insertstr(el, copy);
    free(copy);
}

static unsigned char complete_word(EditLine *el, int key) {
    struct repl *r = NULL;
    (void)key;
    el_get(el, EL_CLIENTDATA, &r);
    const LineInfo *line = el_line(el);
    struct strbuf text = {0};
    strbuf_append(&text, r->pending.ptr ? r->pending.ptr : "", r->pending.len);
    strbuf_append(&text, line->buffer, (size_t)(line->lastchar - line->buffer));
    size_t cursor = r->pending.len + (size_t)(line->cursor - line->buffer);
    bool fresh = at_start(r);
    struct candidates list = {0};
    size_t start =
        complete(r->shell, text.ptr, text.len, cursor, fresh ? r->pending.len : cursor, &list);
    unsigned char action = CC_ERROR;
    if (list.count > 0) {
        size_t len = common_prefix(&list);
        bool grows = len > cursor - start ||
                     (list.count == 1 &&
                      (len != cursor - start || memcmp(text.ptr + start, list.items[0], len) != 0));
        if (grows) {
            replace_word(el, text.ptr + start, cursor - start, list.items[0], len);
            action = CC_REFRESH;
        } else if (list.count > 1) {
            list_candidates(&list);
            action = CC_REDISPLAY;
        }
    }
    strbuf_free(&text);
    candidates_free(&list);
    return action;
}

/* Reads what stands between the marks of pasted text, and puts it into the line. */
static unsigned char take_paste(EditLine *el, int key) {
    static const wchar_t end_mark[] = L"\033[201~";
    enum { MARK_LEN = 6 };
    (void)key;
    size_t len = 0, cap = 0;
    wchar_t *text = NULL;
    wchar_t c;
    bool ended = false;
    while (!ended && el_wgetc(el, &c) == 1) {
        if (len + 2 > cap) {
            cap = cap ? cap * 2 : 256;
            text = shell_grow(text, sizeof(wchar_t) * cap);
        }
        if (c) {
            text[len++] = c == L'\r' ? L'\n' : c;
        }
        ended = len >= MARK_LEN && wmemcmp(text + len - MARK_LEN, end_mark, MARK_LEN) == 0;
    }
    len -= ended ? MARK_LEN : 0;
    while (len > 0 && text[len - 1] == L'\n') { /* Enter is the person's */
        len--;
    }
    if (len > 0) {
        text[len] = 0;
        el_winsertstr(el, text);
    }
    free(text);
    return CC_REFRESH;
}

static bool repl_open(struct repl *r) {
    void *list = NULL;
    const char *term = getenv("TERM");
    if (!setlocale(LC_CTYPE, "") || strcmp(setlocale(LC_CTYPE, NULL), "C") == 0) {
        setlocale(LC_CTYPE, "C.UTF-8");
    }
    r->el = el_init("warpfox", stdin, stdout, stderr);
    r->journal = r->el ? journal_open(&list) : NULL;
    if (!r->journal) {
        fprintf(stderr, "warpfox: the line editor cannot start\n");
        return false;
    }
    r->pastes = term && strcmp(term, "dumb") != 0 && terminal_is_tty(1);
    el_set(r->el, EL_CLIENTDATA, r);
    el_set(r->el, EL_PROMPT, prompt);
    el_set(r->el, EL_SIGNAL, 1); /* the size of the window, and Ctrl-Z */
    el_set(r->el, EL_EDITOR, "emacs");
    el_set(r->el, EL_HIST, history, list);
    el_set(r->el, EL_ADDFN, "wf-complete", "complete a word", complete_word);
    el_set(r->el, EL_ADDFN, "wf-paste", "take pasted text as it is", take_paste);
    el_set(r->el, EL_BIND, "^I", "wf-complete", NULL);
    el_set(r->el, EL_BIND, "\\e[200~", "wf-paste", NULL);
    el_set(r->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(r->el, NULL);
    return true;
}

static void repl_close(struct repl *r) {
    journal_close(r->journal);
    if (r->el) {
        el_end(r->el);
    }
    strbuf_free(&r->pending);
}

/* Runs every whole statement at the front of what is pending. */
static void run_pending(struct repl *r) {
    int blank;
    size_t used;
    while (r->pending.len > 0 &&
           (used = scan_statement(r->shell, r->pending.ptr, r->pending.len, &blank)) > 0) {
        struct copy_in copy = {.used = used};
        if (!blank && !r->shell->logiql &&
            !copy_in_find(r->shell, r->pending.ptr, used, r->pending.len, false, &copy)) {
            return; /* its lines are still to come */
        }
        journal_add(r->journal, r->pending.ptr, used);
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
    if (r->pending.len > 0 && strspn(r->pending.ptr, " \t\r\n") == r->pending.len) {
        strbuf_clear(&r->pending);
    }
}

static void take_line(struct repl *r, const char *line, size_t len) {
    if (is_command(line, len) && at_start(r)) {
        journal_add(r->journal, r->pending.ptr ? r->pending.ptr : "", r->pending.len);
        strbuf_clear(&r->pending);
        journal_add(r->journal, line, len);
        (void)run_command(r->shell, line, len);
        return;
    }
    strbuf_append(&r->pending, line, len);
    run_pending(r);
}

/* Line by line, whether typed, pasted, or left by an editor. */
static void take_text(struct repl *r, const char *text, size_t len) {
    while (len > 0 && !r->shell->quit) {
        const char *newline = memchr(text, '\n', len);
        size_t line_len = newline ? (size_t)(newline - text) + 1 : len;
        take_line(r, text, line_len);
        text += line_len;
        len -= line_len;
    }
}

/* What \e left behind. */
static void take_typed(struct repl *r) {
    while (r->shell->typed.len > 0) {
        struct strbuf text = r->shell->typed;
        r->shell->typed = (struct strbuf){0};
        if (text.ptr[text.len - 1] != '\n') {
            strbuf_append(&text, "\n", 1);
        }
        fwrite(text.ptr, 1, text.len, stdout);
        take_text(r, text.ptr, text.len);
        strbuf_free(&text);
    }
}

static const char *read_line(struct repl *r, int *out_len) {
    if (r->pastes) {
        fputs("\033[?2004h", stdout);
    }
    fflush(stdout);
    *out_len = 0;
    el_resize(r->el);
    const char *line = el_gets(r->el, out_len);
    if (r->pastes) {
        fputs("\033[?2004l", stdout);
        fflush(stdout);
    }
    return line;
}

int repl(struct shell *shell) {
    struct repl r = {.shell = shell};
    if (!repl_open(&r)) {
        repl_close(&r);
        return EXIT_ERROR;
    }
    printf("Warpfox %s. %s, .help lists the commands.\n", wf_version(),
           shell->logiql ? "Clauses end with a point" : "Statements end with `;`");
    while (!shell->quit) {
        int len;
        const char *line = read_line(&r, &len);
        if (!line && terminal_interrupted()) {
            printf("^C\n");
            strbuf_clear(&r.pending);
            continue;
        }
        if (!line || len <= 0) {
            printf("\n");
            break;
        }
        take_text(&r, line, (size_t)len);
        take_typed(&r);
    }
    repl_close(&r);
    return 0;
}
