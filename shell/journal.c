/* journal.c: what was typed at the prompt, from one session to the next.
 *
 * An entry is a whole statement, with its lines and comments, or a command. Each is added to
 * ~/.warpfox_history as soon as it is there, so that sessions side by side do not overwrite each
 * other's and a crash loses nothing. The file is libedit's: a line an entry, bytes that are no
 * visible ones as \ooo. */
#include "shell.h"

#include <histedit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HISTORY_ENTRIES = 2000 };

struct journal {
    History *list;
    HistEvent event;
    char *path; /* NULL: there is no home */
    char *last;
};

struct journal *journal_open(void **out_list) {
    struct journal *h = shell_alloc(sizeof *h);
    const char *home = getenv("HOME");
    h->list = history_init();
    if (!h->list) {
        free(h);
        return NULL;
    }
    history(h->list, &h->event, H_SETSIZE, HISTORY_ENTRIES);
    history(h->list, &h->event, H_SETUNIQUE, 1);
    if (home && home[0]) {
        struct strbuf path = {0};
        strbuf_print(&path, "%s/.warpfox_history", home);
        h->path = path.ptr;
        if (history(h->list, &h->event, H_LOAD, h->path) > 2 * HISTORY_ENTRIES) {
            history(h->list, &h->event, H_SAVE, h->path);
        }
    }
    *out_list = h->list;
    return h;
}

void journal_close(struct journal *h) {
    if (h) {
        history_end(h->list);
        free(h->path);
        free(h->last);
        free(h);
    }
}

static void put_entry(FILE *file, const char *text) {
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c <= ' ' || c == 0x7f || c == '\\') {
            fprintf(file, "\\%03o", c);
        } else {
            fputc(c, file);
        }
    }
    fputc('\n', file);
}

static void append_entry(const struct journal *h, const char *text) {
    FILE *file = h->path ? fopen(h->path, "a") : NULL;
    if (file) {
        struct stat info;
        if (stat(h->path, &info) == 0 && info.st_size == 0) {
            chmod(h->path, S_IRUSR | S_IWUSR);
            fputs("_HiStOrY_V2_\n", file);
        }
        put_entry(file, text);
        fclose(file);
    }
}

void journal_add(struct journal *h, const char *text, size_t len) {
    while (len > 0 && strchr(" \t\r\n", text[len - 1])) {
        len--;
    }
    while (len > 0 && strchr(" \t\r\n", *text)) {
        text++;
        len--;
    }
    if (len == 0 || memchr(text, 0, len)) {
        return;
    }
    struct strbuf entry = {0};
    strbuf_append(&entry, text, len);
    if (!h->last || strcmp(h->last, entry.ptr) != 0) {
        history(h->list, &h->event, H_ENTER, entry.ptr);
        append_entry(h, entry.ptr);
    }
    free(h->last);
    h->last = entry.ptr;
}
