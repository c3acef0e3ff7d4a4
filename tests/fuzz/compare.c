/* compare.c: when our answer and PostgreSQL's are the same, and which differences are meant.
 *
 * The rules are listed in README.md, with their reasons; a difference no rule covers is a bug of
 * one of the two. Rules look at what the generator knows of the query, never at its text. */
#include <string.h>

#include "fuzz.h"

static bool fails(const struct answer *a) {
    return strcmp(a->state, "00000") != 0;
}

static bool of_class(const struct answer *a, const char *class) {
    return strncmp(a->state, class, 2) == 0;
}

static bool of_data(const struct answer *a) {
    return of_class(a, "22") || of_class(a, "21");
}

enum verdict compare(const struct gen *g, const struct answer *ours, const struct answer *theirs,
                     const char **out_rule) {
    *out_rule = "";
    if (of_class(ours, "57") || of_class(theirs, "57") || of_class(ours, "53") || ours->huge ||
        theirs->huge) {
        return SKIPPED;
    }
    if (strcmp(theirs->state, "0A000") == 0) {
        *out_rule = "PostgreSQL cannot";
        return EXPLAINED;
    }
    if (of_class(theirs, "XX")) {
        *out_rule = "PostgreSQL's planner fails";
        return of_class(ours, "XX") ? DIFFERENT : EXPLAINED;
    }
    if (strcmp(ours->state, "0A000") == 0) {
        return UNSUPPORTED;
    }
    if (fails(ours) && fails(theirs)) {
        if (strcmp(ours->state, theirs->state) == 0) {
            return SAME;
        }
        *out_rule = "which of several errors comes first";
        return of_data(ours) && of_data(theirs) ? EXPLAINED : DIFFERENT;
    }
    if (fails(ours) || fails(theirs)) {
        *out_rule = "whether an error is met depends on the plan";
        bool data = of_data(fails(ours) ? ours : theirs);
        return data && g->risky && g->risk_inner ? EXPLAINED : DIFFERENT;
    }
    return answer_same(ours, theirs) ? SAME : DIFFERENT;
}
