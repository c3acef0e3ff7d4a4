/* terminal.c: terminals and signals.
 *
 * Ctrl-C has two meanings: while a statement runs it cancels that statement; otherwise it
 * interrupts whoever reads input and is remembered for them. The handler touches atomics only. */
#define _POSIX_C_SOURCE 200809L
#include "shell.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

static wf_connection *_Atomic watched;
static atomic_int running;
static atomic_int interrupted;
static atomic_int cancelled;

bool terminal_is_tty(int fd) {
    struct termios state;
    return tcgetattr(fd, &state) == 0;
}

int terminal_columns(void) {
    struct winsize size;
    if (ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    const char *columns = getenv("COLUMNS");
    int wanted = columns ? atoi(columns) : 0;
    return wanted > 0 ? wanted : 0;
}

static void on_interrupt(int signal_no) {
    (void)signal_no;
    if (atomic_load(&running)) {
        atomic_store(&cancelled, 1);
        wf_cancel(atomic_load(&watched));
    } else {
        atomic_store(&interrupted, 1);
    }
}

void terminal_watch_interrupt(wf_connection *conn) {
    atomic_store(&watched, conn);
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL); /* no SA_RESTART: a blocked read must end */
}

void terminal_ignore_pipe(bool on) {
    struct sigaction action = {.sa_handler = on ? SIG_IGN : SIG_DFL};
    sigemptyset(&action.sa_mask);
    sigaction(SIGPIPE, &action, NULL);
}

void terminal_set_running(bool on) {
    if (on) {
        atomic_store(&cancelled, 0);
    }
    atomic_store(&running, on);
}

bool terminal_cancelled(void) {
    return atomic_load(&cancelled) != 0;
}

bool terminal_interrupted(void) {
    return atomic_exchange(&interrupted, 0) != 0;
}
