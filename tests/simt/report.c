/* report.c: what the simt driver says, and which line of kernel text it says it about.
 *
 * Reports go to stderr at once, so that they survive a crash, and are kept for simtReport, so that
 * a test can look at them. Lines come from the debug information of the cached kernel object
 * through addr2line, which is only started when there is something to report. */
#define _GNU_SOURCE
#include "simt.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char kept[16384];
static size_t kept_bytes;

const char *simtReport(void) {
    return kept;
}

void simtClearReport(void) {
    kept_bytes = 0;
    kept[0] = 0;
}

/* One write per line: several processes may share stderr. */
static void say(const char *text, size_t bytes) {
    while (bytes != 0) {
        ssize_t n = write(STDERR_FILENO, text, bytes);
        if (n <= 0) {
            return;
        }
        text += n;
        bytes -= (size_t)n;
    }
}

static size_t compose(char *out, size_t out_bytes, const char *format, va_list list) {
    static const char head[] = "simt: ";
    size_t at = sizeof(head) - 1;
    memcpy(out, head, at);
    int n = vsnprintf(out + at, out_bytes - at - 1, format, list);
    at += n < 0 ? 0 : (size_t)n;
    at = at > out_bytes - 2 ? out_bytes - 2 : at;
    out[at] = '\n';
    out[at + 1] = 0;
    return at + 1;
}

void simt_report(const char *format, ...) {
    char line[2048];
    va_list list;
    va_start(list, format);
    size_t bytes = compose(line, sizeof(line), format, list);
    va_end(list);
    say(line, bytes);
    if (kept_bytes + bytes < sizeof(kept)) {
        memcpy(kept + kept_bytes, line, bytes + 1);
        kept_bytes += bytes;
    }
}

void simt_trace(const char *format, ...) {
    if (!simt_settings.trace) {
        return;
    }
    char line[1024];
    va_list list;
    va_start(list, format);
    size_t bytes = compose(line, sizeof(line), format, list);
    va_end(list);
    say(line, bytes);
}

/* Runs addr2line and reads its answer; false when it is not there. */
static b8 ask(char *out, size_t out_bytes, const char *object, const char *offset) {
    char *const argv[] = {"addr2line", "-e", (char *)(size_t)object, (char *)(size_t)offset, NULL};
    int ends[2];
    if (pipe(ends) != 0) {
        return 0;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child;
    int failed = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    size_t at = 0;
    if (failed == 0) {
        ssize_t n;
        while (at < out_bytes - 1 && (n = read(ends[0], out + at, out_bytes - 1 - at)) > 0) {
            at += (size_t)n;
        }
        int status;
        waitpid(child, &status, 0);
    }
    close(ends[0]);
    out[at] = 0;
    return at != 0;
}

const char *simt_short_name(const char *file) {
    const char *folder = strstr(file, SIMT_BUILD_FOLDER);
    const char *end = folder == NULL ? NULL : strchr(folder + 1, '/');
    return end == NULL ? file : end + 1;
}

const char *simt_line_of(char *out, size_t out_bytes, const char *object, u64 offset) {
    char text[32];
    /* A return address lies behind the call: one byte earlier is inside it. */
    snprintf(text, sizeof(text), "0x%llx", offset - 1);
    if (!ask(out, out_bytes, object, text) || out[0] == '?') {
        snprintf(out, out_bytes, "%s+%s", object, text);
        return out;
    }
    out[strcspn(out, "\n")] = 0;
    char *note = strstr(out, " (discriminator");
    if (note != NULL) {
        *note = 0;
    }
    const char *start = simt_short_name(out);
    memmove(out, start, strlen(start) + 1);
    return out;
}
