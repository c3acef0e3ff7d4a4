/* option.h: reading a command line by the table of options, for the shell and for bench. */
#ifndef WF_SHELL_OPTION_H
#define WF_SHELL_OPTION_H

#include <stdbool.h>

#include "option.def"
#include "warpfox.h"

enum option_id {
#define X(A, id, ...) OPTION_##id,
    WF_OPTIONS(X, )
#undef X
    OPTION_COUNT,
    OPTION_WORD,    /* no option: a file, an experiment */
    OPTION_END,     /* nothing is left */
    OPTION_MISTAKE, /* told on stderr */
};

enum option_part { PART_SHELL = 1, PART_BENCH = 2 };

/* A command line of one part, read from `at` on. */
struct option_reader {
    int argc;
    char **argv;
    int at;
    enum option_part part;
    bool only_words; /* `--` was read */
};
/* The next option or word. *out_value is its value, or the word; NULL for options that take none.
 * A mistake is told on stderr. */
enum option_id option_next(struct option_reader *reader, const char **out_value);

/* Tells a mistake and where to find help; `format` has one %s, for `word`. Returns exit status 2. */
int option_complain(enum option_part part, const char *format, const char *word);

const char *option_name(enum option_id id); /* "--rows" */
/* One line of help an option, of those in the set `ids` (bit 1 << id). */
void option_print_help(unsigned long long ids);
unsigned long long option_ids(enum option_part part); /* all that a part takes */

/* Settings for wf_open: ends with a NULL name. A setting given again replaces the first. */
enum { OPTION_SLOTS = 5 };
struct option_settings {
    wf_option list[OPTION_SLOTS];
};
/* True when the option is a setting, which is then in `out`. */
bool option_settle(struct option_settings *out, enum option_id id, const char *value);
const char *option_setting(const struct option_settings *settings, const char *name); /* or NULL */

#endif
