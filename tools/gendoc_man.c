/* gendoc_man.c: the manual page, from the table of options and the version in the public header. */
#include "gendoc.h"

#include <string.h>

#include "option.def"
#include "warpfox.h"

/* Text of a manual page: a hyphen that is to be copied is \-, a line does not begin with a dot or a
 * quote. */
static void man_text(FILE *out, const char *text) {
    for (; *text; text++) {
        fputs(*text == '-' ? "\\-" : *text == '\\' ? "\\e" : *text == '~' ? "\\(ti" : "", out);
        if (!strchr("-\\~", *text)) {
            fputc(*text, out);
        }
    }
}

static void man_option(FILE *out, const char *name, const char *letters, const char *value,
                       const char *help) {
    size_t letter = strcspn(letters, " ");
    fputs(".TP\n.BR ", out);
    if (letter) {
        char first[16];
        snprintf(first, sizeof first, "%.*s", (int)letter, letters);
        man_text(out, first);
        fputs(" \", \" ", out);
    }
    man_text(out, name);
    if (*value) {
        fprintf(out, " \" \\fI%s\\fR\"", value);
    }
    fputc('\n', out);
    man_text(out, help);
    fputc('\n', out);
}

void write_man(FILE *out) {
    fputs(".\\\" Generated from shell/option.def by `make docs`; do not edit.\n"
          ".TH WARPFOX 1 \"\" \"Warpfox " WF_VERSION_TEXT "\" \"User Commands\"\n"
          ".SH NAME\nwarpfox \\- an analytical database on CPU cores and NVIDIA GPUs\n"
          ".SH SYNOPSIS\n.B warpfox\n.RI [ options ]\n.br\n.B warpfox bench\n.I name\n.RI [ "
          "options ]\n.br\n"
          ".B warpfox devices\n"
          ".SH DESCRIPTION\nRuns statements of SQL in PostgreSQL's dialect and shows their "
          "results. Statements come from\n"
          ".B \\-c\nand\n.BR \\-f ,\nelse from the terminal or from standard input. The database "
          "lives in the memory of the\n"
          "process, or in a file that is named:\n.BR \"warpfox FILE\" .\nAt the prompt,\n.B .help\n"
          "lists the commands of the shell.\n.PP\n.B warpfox "
          "bench\nruns an experiment, with the "
          "ceiling of the machine beside each figure;\n.B warpfox bench \\-\\-help\nlists them and "
          "their options.\n.B warpfox devices\n"
          "says what processors and GPUs were found.\n.SH OPTIONS\n",
          out);
    enum { SHELL = 1, BENCH = 2, BOTH = 3 };
#define X(A, id, name, letters, value, setting, parts, help) \
    if ((parts)&SHELL) {                                     \
        man_option(out, name, letters, value, help);         \
    }
    WF_OPTIONS(X, )
#undef X
    fputs(".SH EXIT STATUS\n0 on success, 1 after an error, 2 for a wrong command line, 130 when "
          "interrupted.\n"
          ".SH ENVIRONMENT\n"
          ".TP\n.B WARPFOX_RC\nfile to read at the prompt instead of \\(ti/.warpfoxrc; empty for "
          "none\n"
          ".TP\n.B WARPFOX_CACHE\nfolder of compiled GPU kernels (\\(ti/.cache/warpfox)\n"
          ".TP\n.B WARPFOX_CUDA\nCUDA driver library to load instead of the machine's\n"
          ".TP\n.B VISUAL, EDITOR\nwhat \\ee runs\n"
          ".SH FILES\n.I \\(ti/.warpfoxrc\nis read when the prompt starts;\n.I "
          "\\(ti/.warpfox_history\nholds statements typed.\n"
          ".SH EXAMPLES\n.nf\nwarpfox \\-c \"select * from 'trips.csv' limit 5\"\nwarpfox "
          "\\-\\-format csv \\-f report.sql >report.csv\n"
          "warpfox bench tpch \\-\\-sf 1 \\-d cpu\n.fi\n"
          ".SH SEE ALSO\nThe guide, the SQL and C references: docs/ of the source.\n",
          out);
}
