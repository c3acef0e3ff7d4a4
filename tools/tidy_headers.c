/* tidy_headers.c: every header compiles alone, so that who includes it need not know what it needs.
 *
 * Kernel text is excepted by name, with a reason, in src/layers.def (WF_PARTS): it includes nothing, and is compiled
 * after the words it is written in. Runs ${CC:-cc} once a header: 10 ms each. */
#define _GNU_SOURCE
#include "tidy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers.def"

static const struct part {
    const char *prefix, *before;
} parts[] = {
#define X(A, prefix, before, why) {prefix, before},
    WF_PARTS(X, )
#undef X
};

/* What a header needs before it: "" for nothing, NULL when it is never compiled alone. */
static const char *needs(const char *path) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strncmp(path, parts[i].prefix, strlen(parts[i].prefix)) == 0) {
            return strcmp(parts[i].before, "-") == 0 ? NULL : parts[i].before;
        }
    }
    return "";
}

void header_check(const char *root, const char *path) {
    const char *before = needs(path);
    const char *cc = getenv("CC");
    char *command = NULL, first[LINE_CAP];
    if (!before) {
        return;
    }
    int len = asprintf(&command,
                       "cd '%s' && for h in %s '%s'; do echo \"#include \\\"$PWD/$h\\\"\"; done | %s -std=c11 "
                       "-D_GNU_SOURCE -fsyntax-only -Werror=implicit -Isrc -Iinclude -I'%s' -Ishell -Itests/unit "
                       "-x c - 2>&1 | grep -m 1 error",
                       root, before, path, cc ? cc : "cc", WF_GEN);
    FILE *out = len > 0 ? popen(command, "r") : NULL;
    if (!out) {
        found(path, 0, "cannot be compiled", "");
    } else {
        if (fgets(first, sizeof first, out)) {
            first[strcspn(first, "\n")] = 0;
            found(path, 1, "does not compile alone", first);
        }
        pclose(out);
    }
    free(command);
}
