/* editor.c: other programs on the terminal: an editor for statements (\e), any command (\!).
 *
 * What the editor leaves is taken as if it had been typed: whole statements run, a rest waits for
 * its end. Nothing runs when the text is as it was, or when the editor fails. */
#define _POSIX_C_SOURCE 200809L
#include "shell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *editor(void) {
    static const char *const names[] = {"VISUAL", "EDITOR"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0]) {
            return value;
        }
    }
    return "vi";
}

bool run_program(const char *command) {
    const char *shell = getenv("SHELL");
    fflush(stdout);
    if (system(command[0] ? command : shell && shell[0] ? shell : "sh") == -1) {
        return complain("ERROR 58000: the command cannot be started: %s", strerror(errno));
    }
    return true;
}

static bool run_editor(const char *path) {
    struct strbuf command = {0};
    strbuf_print(&command, "%s '", editor());
    for (const char *at = path; *at; at++) {
        strbuf_append(&command, *at == '\'' ? "'\\''" : at, *at == '\'' ? 4 : 1);
    }
    strbuf_append(&command, "'", 1);
    fflush(stdout);
    int status = system(command.ptr);
    strbuf_free(&command);
    return status == 0 ? true : complain("the editor \"%s\" failed: nothing is run", editor());
}

/* A file that is not there is an empty one. */
static bool read_text(const char *path, struct strbuf *out) {
    FILE *in = fopen(path, "rb");
    strbuf_append(out, "", 0);
    if (!in) {
        return errno == ENOENT;
    }
    char block[4096];
    size_t got;
    while ((got = fread(block, 1, sizeof block, in)) > 0) {
        strbuf_append(out, block, got);
    }
    bool fine = !ferror(in);
    fclose(in);
    return fine;
}

static bool write_text(const char *path, const struct strbuf *text) {
    FILE *out = fopen(path, "wb");
    bool fine = out && fwrite(text->ptr, 1, text->len, out) == text->len;
    return out && fclose(out) == 0 && fine;
}

static bool edit_file(struct shell *shell, const char *path) {
    struct strbuf before = {0};
    struct strbuf after = {0};
    bool fine = read_text(path, &before) && run_editor(path);
    if (fine && !read_text(path, &after)) {
        fine = complain("ERROR 58030: cannot read \"%s\"", path);
    } else if (fine && after.len == before.len && memcmp(after.ptr, before.ptr, after.len) == 0) {
        fprintf(stderr, "nothing was changed: nothing is run\n");
    } else if (fine && shell->interactive) {
        strbuf_append(&shell->typed, after.ptr, after.len);
    } else if (fine) {
        fine = run_script(shell, after.ptr, after.len, (struct origin){path, 1});
    }
    strbuf_free(&before);
    strbuf_free(&after);
    return fine;
}

bool edit_text(struct shell *shell, const char *path) {
    if (path[0]) {
        return edit_file(shell, path);
    }
    char folder[] = "/tmp/warpfox-edit-XXXXXX";
    if (!mkdtemp(folder)) {
        return complain("ERROR 58030: cannot make \"%s\"", folder);
    }
    struct strbuf file = {0};
    struct strbuf text = {0};
    strbuf_print(&file, "%s/statement.sql", folder);
    strbuf_append(&text, shell->recent.ptr ? shell->recent.ptr : "", shell->recent.len);
    strbuf_append(&text, "\n", text.len > 0 && text.ptr[text.len - 1] != '\n');
    bool fine = write_text(file.ptr, &text)
                    ? edit_file(shell, file.ptr)
                    : complain("ERROR 58030: cannot write \"%s\"", file.ptr);
    remove(file.ptr);
    remove(folder);
    strbuf_free(&file);
    strbuf_free(&text);
    return fine;
}
