/* progress.c: a bar on stderr for statements that take over a second.
 *
 * The library calls report() on a thread of its own while a statement runs, and never after the
 * statement's call has returned; so drawing and clearing cannot meet. Drawn only on terminals. */
#include "shell.h"

#include <string.h>

enum { BAR_CELLS = 30, INTERVAL_MS = 100 };

static bool drawn;

static void report(void *arg, double fraction, int64_t elapsed_ns) {
    const struct shell *shell = arg;
    double seconds = (double)elapsed_ns / 1e9;
    if (seconds < 1) {
        return;
    }
    drawn = true;
    if (fraction < 0) {
        fprintf(stderr, "\r\033[K%.1f s", seconds);
        fflush(stderr);
        return;
    }
    int full = (int)(fraction * BAR_CELLS);
    char bar[BAR_CELLS * 3 + 1] = "";
    for (int i = 0; i < BAR_CELLS; i++) {
        const char *cell = i < full ? (shell->ascii ? "#" : "█") : (shell->ascii ? "." : "░");
        strcat(bar, cell);
    }
    fprintf(stderr, "\r\033[K%s %3.0f%% %.1f s", bar, fraction * 100, seconds);
    fflush(stderr);
}

void progress_start(struct shell *shell) {
    if (terminal_is_tty(2)) {
        (void)!wf_set_progress(shell->conn, report, shell, INTERVAL_MS);
    }
}

void progress_clear(void) {
    if (drawn) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
        drawn = false;
    }
}
