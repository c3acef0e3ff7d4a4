/* complete.c: how a word can go on at the prompt.
 *
 * Statements are the library's to complete (wf_complete). Here are the commands of the shell with
 * their arguments, and names of files, which begin in quotes or where a command takes one. */
#include "shell.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

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

void candidates_free(struct candidates *list) {
    for (int i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct candidates){0};
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

/* A blank behind the only way to go on, unless more must follow at once. */
static void finish(struct candidates *list, const char *behind) {
    if (list->count == 1) {
        struct strbuf text = {0};
        strbuf_print(&text, "%s%s", list->items[0], behind);
        free(list->items[0]);
        list->items[0] = text.ptr;
    }
}

/* Files whose path begins so; folders end with a slash. `end` closes the only file. */
static void add_files(struct candidates *list, const char *path, const char *end) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    struct strbuf folder = {0};
    strbuf_append(&folder, slash ? path : "./", slash ? (size_t)(slash - path) + 1 : 2);
    DIR *dir = opendir(folder.ptr);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        bool hidden = entry->d_name[0] == '.' && name[0] != '.';
        if (hidden || strncmp(entry->d_name, name, strlen(name)) != 0) {
            continue;
        }
        struct strbuf full = {0};
        struct strbuf shown = {0};
        struct stat info;
        strbuf_print(&full, "%s%s", folder.ptr, entry->d_name);
        bool is_folder = stat(full.ptr, &info) == 0 && S_ISDIR(info.st_mode);
        strbuf_print(&shown, "%.*s%s%s", slash ? (int)(slash - path) + 1 : 0, path, entry->d_name,
                     is_folder ? "/" : "");
        candidates_add(list, shown.ptr);
        strbuf_free(&full);
        strbuf_free(&shown);
    }
    if (dir) {
        closedir(dir);
    }
    strbuf_free(&folder);
    if (list->count == 1 && list->items[0][strlen(list->items[0]) - 1] != '/') {
        finish(list, end);
    }
}

static int add_table(void *arg, const char *name) {
    candidates_add(arg, name);
    return 0;
}

static void keep_matching(struct candidates *list, const char *word) {
    int kept = 0;
    for (int i = 0; i < list->count; i++) {
        if (strncasecmp(list->items[i], word, strlen(word)) == 0) {
            list->items[kept++] = list->items[i];
        } else {
            free(list->items[i]);
        }
    }
    list->count = kept;
}

/* What a command takes, by the words that its help has for it. */
static void add_arguments(struct shell *shell, const char *args, const char *word,
                          struct candidates *out) {
    static const char *const levels[] = {"on",      "off",  "plan",   "program",
                                         "opcodes", "cuda", "analyze"};
    if (strstr(args, "FILE")) {
        bool quoted = word[0] == '\'' || word[0] == '"';
        add_files(out, word + quoted, quoted ? "'" : "");
        for (int i = 0; quoted && i < out->count; i++) {
            struct strbuf text = {0};
            strbuf_print(&text, "%c%s", word[0], out->items[i]);
            free(out->items[i]);
            out->items[i] = text.ptr;
        }
        return;
    }
    if (strstr(args, "FORMAT")) {
        for (int i = 0; i < FORMAT_COUNT; i++) {
            candidates_add(out, format_names[i]);
        }
    } else if (strstr(args, "on|off")) {
        for (int i = 0; i < (strstr(args, "LEVEL") ? 7 : 2); i++) {
            candidates_add(out, levels[i]);
        }
    } else if (strstr(args, "TABLE") || strstr(args, "NAME")) {
        (void)!wf_tables(shell->conn, add_table, out);
    }
    keep_matching(out, word);
}

static size_t complete_command(struct shell *shell, const char *line, size_t len,
                               struct candidates *out) {
    size_t name_len = 0;
    while (name_len < len && !isspace((unsigned char)line[name_len])) {
        name_len++;
    }
    char *copy = shell_alloc(len + 1);
    memcpy(copy, line, len);
    size_t start = 0;
    if (name_len == len) {
        for (int i = 0; command_name(i); i++) {
            candidates_add(out, command_name(i));
        }
        keep_matching(out, copy);
        finish(out, " ");
    } else {
        const char *args = command_args(line, name_len);
        start = name_len + strspn(copy + name_len, " \t");
        if (args) {
            add_arguments(shell, args, copy + start, out);
        }
    }
    free(copy);
    return start;
}

struct ways {
    struct candidates *list;
    wf_completion kind; /* of the last one */
    char *file;         /* what there is of a file's name */
};

static int add_way(void *arg, const char *text, wf_completion kind) {
    struct ways *ways = arg;
    ways->kind = kind;
    if (kind == WF_COMPLETION_FILE) {
        struct strbuf file = {0};
        strbuf_print(&file, "%s", text);
        ways->file = file.ptr;
    } else {
        candidates_add(ways->list, text);
    }
    return 0;
}

size_t complete(struct shell *shell, const char *text, size_t len, size_t cursor, size_t command,
                struct candidates *out) {
    while (command < cursor && isspace((unsigned char)text[command])) {
        command++;
    }
    size_t start = cursor;
    if (command < cursor && (text[command] == '.' || text[command] == '\\')) {
        start = command + complete_command(shell, text + command, cursor - command, out);
    } else {
        struct ways ways = {.list = out};
        if (wf_complete(shell->conn, text, len, cursor, add_way, &ways, &start)) {
            start = cursor;
        }
        if (ways.file) {
            add_files(out, ways.file, cursor < len && text[cursor] == '\'' ? "" : "'");
            free(ways.file);
        } else {
            sort_unique(out);
            finish(out, ways.kind == WF_COMPLETION_FUNCTION ? "("
                        : ways.kind == WF_COMPLETION_SCHEMA ? "."
                                                            : " ");
        }
    }
    sort_unique(out);
    return start;
}
