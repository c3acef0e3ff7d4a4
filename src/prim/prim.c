/* prim.c: the entry points of the primitives: each goes to the device's own body.
 *
 * A device without one says so: nothing runs elsewhere in silence. */
#include "prim/prim.h"

const char *const elem_names[ELEM_COUNT] = {
#define X(A, name, type, bytes, kind) #name,
    WF_ELEMS(X, )
#undef X
};
const i8 elem_bytes[ELEM_COUNT] = {
#define X(A, name, type, bytes, kind) bytes,
    WF_ELEMS(X, )
#undef X
};
const char elem_kinds[ELEM_COUNT] = {
#define X(A, name, type, bytes, kind) kind,
    WF_ELEMS(X, )
#undef X
};
#define X(A, name, type, bytes, kind) \
    _Static_assert(sizeof(type) == (bytes), "bytes of an element");
WF_ELEMS(X, )
#undef X

const char *const fold_names[FOLD_COUNT] = {
#define X(A, name, identity, expr) #name,
    WF_FOLDS(X, )
#undef X
};

bool fold_has(enum fold fold, enum elem type) {
    char kind = elem_kinds[type];
    return kind == 'U' || kind == 'I' || (kind == 'F' && (fold == FOLD_MIN || fold == FOLD_MAX));
}

void *prim_take(struct prim_job *job, i64 bytes) {
    i64 at = job->work_used;
    job->work_used += ALIGN_UP(MAX_OF(bytes, 1), PRIM_ALIGN);
    job->work_peak = MAX_OF(job->work_peak, job->work_used);
    if (job->measuring) {
        return NULL;
    }
    CHECK(job->work_used <= job->work_bytes);
    return job->work + at;
}

wf_status prim_refuse(const struct prim_job *job, const char *what) {
    FAIL(job->x->err, NOT_SUPPORTED, "%s on device %s", what, job->dev->name);
}
