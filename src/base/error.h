/* error.h: status codes and the error slot.
 *
 * A fallible function returns wf_status (0 = OK). The text is written once, where the error
 * happens, into the slot of the context that was passed in; everybody above only passes the status
 * on. */
#ifndef WF_BASE_ERROR_H
#define WF_BASE_ERROR_H

#include "base/base.h"
#include "defs/error.def"

typedef int wf_status;

#define X(A, name, sqlstate, title) ERR_##name,
enum { WF_ERRORS(X, ) ERR_COUNT };
#undef X

struct error {
    wf_status code;
    i32 position; /* byte offset in the statement's text, -1 when unknown */
    char message[600];
    char hint[300]; /* what to do about it; may be empty */
};

#define FALLIBLE __attribute__((warn_unused_result)) wf_status

const char *error_sqlstate(wf_status code); /* "00000" for OK */
const char *error_title(wf_status code);    /* the table's short text */
void error_reset(struct error *err);

/* Records the error and returns code, so that callers can `return error_set(…)`. The first error of
 * a slot stands: a slot that already holds one is left alone. */
wf_status error_set(struct error *err, wf_status code, i32 position, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void error_hint(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define TRY(expr)                       \
    do {                                \
        wf_status try_status_ = (expr); \
        if (try_status_) {              \
            return try_status_;         \
        }                               \
    } while (0)
#define FAIL(err, code, ...) return error_set((err), ERR_##code, -1, __VA_ARGS__)
#define FAIL_AT(err, code, position, ...) \
    return error_set((err), ERR_##code, (position), __VA_ARGS__)

#endif
