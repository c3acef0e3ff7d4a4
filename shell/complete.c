/* complete.c: how a word can go on: keywords, tables, columns, commands.
 *
 * The word is what stands before the cursor back to the last character that cannot be in a name.
 * After a dot it is a column of the table named before the dot; at the start of a line that begins
 * with a dot it is a command. Keywords follow the case the person types. */
#include "shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct search {
    struct shell *shell;
    const char *word;
    size_t word_len;
    struct candidates *out;
};

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void candidates_add(struct candidates *list, const char *text) {
    if (list->count == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 16;
        list->items = shell_grow(list->items, sizeof(char *) * (size_t)list->cap);
    }
    char *copy = shell_alloc(strlen(text) + 1);
    list->items[list->count++] = strcpy(copy, text);
}

static void add(struct search *s, const char *name) {
    if (strncasecmp(name, s->word, s->word_len) != 0) {
        return;
    }
    candidates_add(s->out, name);
}

static int add_column(void *arg, const char *name, const char *type_text, int not_null) {
    (void)type_text;
    (void)not_null;
    add(arg, name);
    return 0;
}

static int collect_table(void *arg, const char *name) {
    struct search *s = arg;
    s->word = "";
    s->word_len = 0;
    add(s, name);
    return 0;
}

static void add_names(struct search *s) {
    struct candidates tables = {0};
    struct search all = {.shell = s->shell, .out = &tables};
    if (wf_tables(s->shell->conn, collect_table, &all) == WF_OK) {
        for (int i = 0; i < tables.count; i++) {
            add(s, tables.items[i]);
            (void)!wf_columns(s->shell->conn, tables.items[i], add_column, s);
        }
    }
    candidates_free(&tables);
}

static void add_keywords(struct search *s) {
    bool upper = s->word_len > 0 && isupper((unsigned char)s->word[0]);
    for (int32_t i = 0; s->word_len > 0 && wf_keyword(i); i++) {
        char word[64];
        size_t len = 0;
        for (const char *p = wf_keyword(i); *p && len + 1 < sizeof word; p++) {
            word[len++] = (char)(upper ? toupper((unsigned char)*p) : tolower((unsigned char)*p));
        }
        word[len] = 0;
        add(s, word);
    }
}

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || ((unsigned char)c & 0x80);
}

static void sort_unique(struct candidates *list) {
    if (list->count == 0) {
        return;
    }
    qsort(list->items, (size_t)list->count, sizeof(char *), by_text);
    int kept = 1;
    for (int i = 1; i < list->count; i++) {
        if (strcmp(list->items[i], list->items[kept - 1]) == 0) {
            free(list->items[i]);
        } else {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
}

void complete(struct shell *shell, const char *line, size_t cursor, struct candidates *out,
              size_t *out_word_len) {
    size_t start = cursor;
    while (start > 0 && in_word(line[start - 1])) {
        start--;
    }
    struct search s = {shell, line + start, cursor - start, out};
    if (start == 1 && line[0] == '.') {
        s = (struct search){shell, line, cursor, out};
        for (int i = 0; command_name(i); i++) {
            add(&s, command_name(i));
        }
    } else if (start > 0 && line[start - 1] == '.') {
        size_t table = start - 1;
        while (table > 0 && in_word(line[table - 1])) {
            table--;
        }
        struct strbuf name = {0};
        strbuf_append(&name, line + table, start - 1 - table);
        (void)!wf_columns(shell->conn, name.ptr, add_column, &s);
        strbuf_free(&name);
    } else {
        add_names(&s);
        add_keywords(&s);
    }
    *out_word_len = s.word_len;
    sort_unique(out);
}

void candidates_free(struct candidates *list) {
    for (int i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct candidates){0};
}
