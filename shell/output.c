/* output.c: results that go to a file or into another program: .output, .once, \o.
 *
 * While a statement or a command shows something, descriptor 1 is the file: so COPY TO STDOUT,
 * which the library writes, goes there too, and prompts and errors do not. A program that stops
 * reading ends the output, not the shell. */
#define _POSIX_C_SOURCE 200809L
#include "shell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct output {
    FILE *file;
    bool is_program;
    bool once; /* closed after the next result */
    int saved; /* descriptor of stdout while results go to the file; -1 = they do not */
};

void output_close(struct shell *shell) {
    struct output *output = shell->output;
    if (output) {
        shell->output = NULL;
        int status = output->is_program ? pclose(output->file) : fclose(output->file);
        if (!output->is_program && status != 0) {
            fprintf(stderr, "ERROR 58030: the output could not be written: %s\n", strerror(errno));
        }
        terminal_ignore_pipe(false);
        free(output);
    }
}

bool output_to(struct shell *shell, const char *target, bool once) {
    output_close(shell);
    if (!target[0] || strcmp(target, "stdout") == 0) {
        return true;
    }
    bool is_program = target[0] == '|';
    fflush(stdout);
    FILE *file = is_program ? popen(target + 1, "w") : fopen(target, "w");
    if (!file) {
        fprintf(stderr, "ERROR 58P01: cannot write to \"%s\": %s\n", target, strerror(errno));
        return false;
    }
    shell->output = shell_alloc(sizeof *shell->output);
    *shell->output = (struct output){file, is_program, once, -1};
    terminal_ignore_pipe(is_program);
    return true;
}

void output_begin(struct shell *shell) {
    struct output *output = shell->output;
    fflush(stdout);
    if (output && output->saved < 0) {
        output->saved = dup(1);
        if (output->saved >= 0) {
            dup2(fileno(output->file), 1);
        }
    }
}

void output_end(struct shell *shell) {
    struct output *output = shell->output;
    if (output && output->saved >= 0) {
        bool failed = fflush(stdout) != 0 || ferror(stdout);
        int reason = errno;
        dup2(output->saved, 1);
        close(output->saved);
        output->saved = -1;
        clearerr(stdout);
        if (failed && !output->is_program) {
            fprintf(stderr, "ERROR 58030: cannot write the output: %s\n", strerror(reason));
        }
        if (output->once) {
            output_close(shell);
        }
    }
}
