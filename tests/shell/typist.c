/* typist.c: types at a program's prompt, on a terminal of its own.
 *
 *     typist PROGRAM [ARGUMENT…] <script >what was seen
 *
 * Lines of the script:
 *     type TEXT    keys: \n \t \e \\ and \xHH stand for themselves
 *     wait TEXT    until the text has come since the last wait (20 seconds; else status 1)
 *     running      until a statement has the terminal
 *     size R C     the window's rows and columns, as 24 and 80 before the first
 *     end          until the program has ended
 * What the program writes comes out without escape sequences and carriage returns. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 600
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 20000, REST_MS = 60, SEEN_MAX = 1 << 22 };

static char seen[SEEN_MAX]; /* all of it */
static size_t seen_len;
static size_t waited; /* what earlier waits have read */
static int escape;    /* 1: ESC came, 2: ESC [ … */
static int terminal;
static int ended;

static void take(const char *bytes, ssize_t count) {
    for (ssize_t i = 0; i < count; i++) {
        char c = bytes[i];
        if (escape == 1) {
            escape = c == '[' || c == ']' ? 2 : 0;
        } else if (escape == 2) {
            escape = (c >= '@' && c <= '~') || c == 7 ? 0 : 2;
        } else if (c == 27) {
            escape = 1;
        } else if (c != '\r' && c != 7 && seen_len + 1 < SEEN_MAX) {
            seen[seen_len++] = c;
        }
    }
    seen[seen_len] = 0;
}

static long now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Reads what comes within the time; 0 when nothing did. */
static int read_some(int ms) {
    char block[4096];
    struct pollfd at = {.fd = terminal, .events = POLLIN};
    if (ended || poll(&at, 1, ms) <= 0) {
        return 0;
    }
    ssize_t got = read(terminal, block, sizeof block);
    if (got <= 0) {
        ended = 1;
        return 0;
    }
    take(block, got);
    return 1;
}

static int wait_for(const char *text) {
    long until = now_ms() + WAIT_MS;
    for (;;) {
        char *found = strstr(seen + waited, text);
        if (found) {
            waited = (size_t)(found - seen) + strlen(text);
            return 1;
        }
        long left = until - now_ms();
        if (left <= 0 || (!read_some((int)left) && ended)) {
            return 0;
        }
    }
}

/* Keys mean something else until the editor has the terminal; where it has not, a statement runs.
 */
static int is_cooked(void) {
    struct termios state;
    return tcgetattr(terminal, &state) == 0 && (state.c_lflag & ICANON);
}

/* A pause, so that the program has dealt with what it was told, as people make. */
static void rest(void) {
    long until = now_ms() + REST_MS;
    while (!ended && now_ms() < until) {
        read_some(20);
    }
}

static void type_text(const char *text) {
    for (int i = 0; i < 100 && !ended && is_cooked(); i++) {
        read_some(10);
    }
    for (const char *at = text; *at; at++) {
        char c = *at;
        if (c == '\\' && at[1]) {
            at++;
            c = *at == 'n' ? '\r' : *at == 't' ? '\t' : *at == 'e' ? 27 : *at;
            if (*at == 'x' && at[1] && at[2]) {
                char hex[3] = {at[1], at[2], 0};
                c = (char)strtol(hex, NULL, 16);
                at += 2;
            }
        }
        while (write(terminal, &c, 1) < 0 && errno == EAGAIN) {
            read_some(10);
        }
        read_some(0);
    }
    rest();
}

/* Until a statement has the terminal: then Ctrl-C is meant for it. */
static int wait_running(void) {
    long until = now_ms() + WAIT_MS;
    while (!ended && !is_cooked() && now_ms() < until) {
        read_some(10);
    }
    rest();
    return is_cooked();
}

static int run_line(const char *line) {
    int rows, cols;
    if (strncmp(line, "type ", 5) == 0) {
        type_text(line + 5);
    } else if (strncmp(line, "wait ", 5) == 0) {
        if (!wait_for(line + 5)) {
            fprintf(stderr, "typist: \"%s\" did not come\n", line + 5);
            return 0;
        }
    } else if (strcmp(line, "running") == 0) {
        if (!wait_running()) {
            fprintf(stderr, "typist: no statement runs\n");
            return 0;
        }
    } else if (sscanf(line, "size %d %d", &rows, &cols) == 2) {
        struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
        ioctl(terminal, TIOCSWINSZ, &size);
        rest();
    } else if (strcmp(line, "end") == 0) {
        long until = now_ms() + WAIT_MS;
        while (!ended && now_ms() < until) {
            read_some(100);
        }
        if (!ended) {
            fprintf(stderr, "typist: the program does not end\n");
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv) {
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    if (argc < 2) {
        return 2;
    }
    pid_t child = forkpty(&terminal, NULL, NULL, &size);
    if (child == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    int fine = child > 0;
    while (fine && (len = getline(&line, &cap, stdin)) > 0) {
        line[len - (line[len - 1] == '\n')] = 0;
        fine = run_line(line);
    }
    free(line);
    fwrite(seen, 1, seen_len, stdout);
    close(terminal);
    int status = 0;
    if (!ended) {
        kill(child, SIGKILL);
    }
    waitpid(child, &status, 0);
    return fine ? WIFEXITED(status) ? WEXITSTATUS(status) : 0 : 1;
}
