/* option.c: reads a command line by option.def.
 *
 * The shell and bench are two parts of one program, and an option that both take means the same in both.
 * A long option takes its value as the next word or after `=`. What a part does not take is a mistake:
 * it is told on stderr, with exit status 2. Values of settings are not looked at here: the library checks
 * them when the database is opened. */
#include "option.h"

#include <stdio.h>
#include <string.h>

enum { SHELL = PART_SHELL, BENCH = PART_BENCH, BOTH = PART_SHELL | PART_BENCH };
static const struct option_def {
    const char *name, *letters, *value, *setting;
    int parts;
    const char *help;
} defs[] = {
#define X(A, id, ...) {__VA_ARGS__},
    WF_OPTIONS(X, )
#undef X
};
_Static_assert(OPTION_COUNT <= 64, "sets of options are 64 bits");

static bool has_letters(const char *list, const char *word) {
    size_t len = strlen(word);
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, word, n) == 0) {
            return true;
        }
        at += n + (at[n] == ' ');
    }
    return false;
}

/* The option of this part that a word names, or NULL; *out_value is what stands after `=`, or NULL. */
static const struct option_def *find_option(enum option_part part, const char *word, const char **out_value) {
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    *out_value = equals ? equals + 1 : NULL;
    for (int i = 0; i < OPTION_COUNT; i++) {
        bool named = strlen(defs[i].name) == len && memcmp(defs[i].name, word, len) == 0;
        if ((defs[i].parts & (int)part) && (named || has_letters(defs[i].letters, word))) {
            return &defs[i];
        }
    }
    return NULL;
}

int option_complain(enum option_part part, const char *format, const char *word) {
    fprintf(stderr, part == PART_BENCH ? "bench: " : "warpfox: ");
    fprintf(stderr, format, word);
    fprintf(stderr, "\nTry `warpfox %s--help`.\n", part == PART_BENCH ? "bench " : "");
    return 2;
}

static enum option_id mistake(const struct option_reader *reader, const char *format, const char *word) {
    (void)option_complain(reader->part, format, word);
    return OPTION_MISTAKE;
}

enum option_id option_next(struct option_reader *reader, const char **out_value) {
    *out_value = NULL;
    if (reader->at < reader->argc && !reader->only_words && strcmp(reader->argv[reader->at], "--") == 0) {
        reader->only_words = true;
        reader->at++;
    }
    if (reader->at >= reader->argc) {
        return OPTION_END;
    }
    const char *word = reader->argv[reader->at++];
    if (reader->only_words || word[0] != '-' || word[1] == 0) {
        *out_value = word;
        return OPTION_WORD;
    }
    const struct option_def *def = find_option(reader->part, word, out_value);
    if (!def) {
        return mistake(reader, "unknown option \"%s\"", word);
    }
    if (!*def->value && *out_value) {
        return mistake(reader, "option \"%s\" takes no value", def->name);
    }
    if (*def->value && !*out_value) {
        if (reader->at >= reader->argc) {
            return mistake(reader, "option \"%s\" needs a value", word);
        }
        *out_value = reader->argv[reader->at++];
    }
    return (enum option_id)(def - defs);
}

const char *option_name(enum option_id id) {
    return defs[id].name;
}

unsigned long long option_ids(enum option_part part) {
    unsigned long long ids = 0;
    for (int i = 0; i < OPTION_COUNT; i++) {
        ids |= (defs[i].parts & (int)part) ? 1ULL << i : 0;
    }
    return ids;
}

void option_print_help(unsigned long long ids) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        char left[64];
        const struct option_def *def = &defs[i];
        int letter = (int)strcspn(def->letters, " ");
        snprintf(left, sizeof left, "%.*s%s%s%s%s", letter, def->letters, letter ? ", " : "", def->name,
                 *def->value ? " " : "", def->value);
        if (ids >> i & 1) {
            printf("  %-22s %s\n", left, def->help);
        }
    }
}

bool option_settle(struct option_settings *out, enum option_id id, const char *value) {
    const char *name = defs[id].setting;
    for (int i = 0; *name && i < OPTION_SLOTS - 1; i++) {
        if (!out->list[i].name || strcmp(out->list[i].name, name) == 0) {
            out->list[i] = (wf_option){name, value};
            return true;
        }
    }
    return false;
}

const char *option_setting(const struct option_settings *settings, const char *name) {
    for (const wf_option *option = settings->list; option->name; option++) {
        if (strcmp(option->name, name) == 0) {
            return option->value;
        }
    }
    return NULL;
}
