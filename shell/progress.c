/* progress.c: a bar on stderr for statements that take over a second, and the time that is left.
 *
 * The library calls report() on a thread of its own while a statement runs, and never after the
 * statement's call has returned; so drawing and clearing cannot meet. Drawn only on terminals. */
#include "shell.h"

#include <math.h>

enum { BAR_CELLS = 30, INTERVAL_MS = 100 };

static bool drawn;

/* ", 12 s left", once enough is done to tell. */
static void put_left(struct strbuf *out, double fraction, double seconds) {
    double left = fraction > 0.02 ? seconds / fraction - seconds : -1;
    if (left >= 3600) {
        strbuf_print(out, ", %.0f h %02.0f min left", floor(left / 3600), fmod(left, 3600) / 60);
    } else if (left >= 60) {
        strbuf_print(out, ", %.0f min %02.0f s left", floor(left / 60), floor(fmod(left, 60)));
    } else if (left >= 0) {
        strbuf_print(out, ", %.0f s left", ceil(left));
    }
}

static void put_bar(struct strbuf *out, bool ascii, double fraction) {
    int full = (int)(fraction * BAR_CELLS);
    for (int i = 0; i < BAR_CELLS; i++) {
        strbuf_print(out, "%s", i < full ? (ascii ? "#" : "█") : (ascii ? "." : "░"));
    }
    strbuf_print(out, " %3.0f%% ", floor(fraction * 100));
}

static void report(void *arg, double fraction, int64_t elapsed_ns) {
    const struct shell *shell = arg;
    double seconds = (double)elapsed_ns / 1e9;
    if (seconds < 1) {
        return;
    }
    struct strbuf line = {0};
    if (fraction >= 0) {
        put_bar(&line, shell->ascii, fraction);
    }
    if (seconds < 60) {
        strbuf_print(&line, "%.1f s", seconds);
    } else {
        strbuf_print(&line, "%.0f min %02.0f s", floor(seconds / 60), floor(fmod(seconds, 60)));
    }
    put_left(&line, fraction, seconds);
    drawn = true;
    fprintf(stderr, "\r\033[K%s", line.ptr);
    fflush(stderr);
    strbuf_free(&line);
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
