/* error.c: the error slot and the error table's text. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *what) {
    fprintf(stderr, "warpfox: internal check failed: %s (%s:%d)\n", what, file, line);
    abort();
}

static const struct {
    const char *sqlstate;
    const char *title;
} errors[ERR_COUNT] = {
#define X(A, name, sqlstate, title) {sqlstate, title},
    WF_ERRORS(X, )
#undef X
};

static bool known(wf_status code) {
    return code >= 0 && code < ERR_COUNT;
}

const char *error_sqlstate(wf_status code) {
    return known(code) ? errors[code].sqlstate : "XX000";
}

const char *error_title(wf_status code) {
    return known(code) ? errors[code].title : "unknown error";
}

void error_reset(struct error *err) {
    err->code = ERR_OK;
    err->position = -1;
    err->message[0] = 0;
    err->hint[0] = 0;
}

/* Cuts at a character boundary, so that a long name never leaves half a character. */
static void cut_utf8(char *text, size_t cap, int written) {
    if (written < 0 || (size_t)written < cap) {
        return;
    }
    size_t len = cap - 1;
    while (len > 0 && ((u8)text[len - 1] & 0xc0) == 0x80) {
        len--;
    }
    if (len > 0 && ((u8)text[len - 1] & 0x80)) {
        len--;
    }
    text[len] = 0;
}

wf_status error_set(struct error *err, wf_status code, i32 position, const char *format, ...) {
    ASSERT(code != ERR_OK);
    if (err->code != ERR_OK) {
        return err->code;
    }
    err->code = code;
    err->position = position;
    err->hint[0] = 0;
    va_list args;
    va_start(args, format);
    int written = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    cut_utf8(err->message, sizeof err->message, written);
    return code;
}

void error_hint(struct error *err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int written = vsnprintf(err->hint, sizeof err->hint, format, args);
    va_end(args);
    cut_utf8(err->hint, sizeof err->hint, written);
}
