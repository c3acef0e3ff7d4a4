/* prim_int.h: what the files behind include/warpfox_prim.h share: the library's handle, and the
 * frame every operation runs in.
 *
 * An operation is a `call`. call_open names it and its device. call_in, call_out and call_inout
 * check an array and give the form the device works on; host arrays given to the GPU get a copy
 * there. call_run measures the body, finds workspace and runs it. call_close brings outputs to the
 * host, frees, and publishes the error. Every step does nothing once one has failed, so a public
 * function is a straight line. */
#ifndef WF_API_PRIM_INT_H
#define WF_API_PRIM_INT_H

#include "api/api_int.h"
#include "prim/prim.h"
#include "warpfox_prim.h"

struct prim_owned { /* memory handed out by wf_prim_alloc */
    struct prim_block block;
    struct device *dev;
    struct prim_owned *next;
};

struct wf_prim {
    struct wf_database *db;
    struct settings settings;
    struct arena arena;
    struct program program; /* of no steps */
    struct exec x;
    struct error err;
    wf_error last;
    _Atomic i32 cancel;
    _Atomic i32 busy;
    struct prim_owned *owned;
    i64 ns, device_ns, launches, bytes_moved, cub;
    i64 stages[PRIM_STAGES];
    struct kernel_use kernel;
};

enum { CALL_ARRAYS = 24 };

struct placed {              /* bytes of the caller */
    void *host;              /* NULL: they lie on the device */
    struct prim_block block; /* their copy there */
    void *at;                /* where the body finds them */
};
struct call_array {
    const char *name;
    struct placed data;
    struct placed text;
    i64 bytes;  /* of data */
    i64 filled; /* of an output: bytes that go back to the host */
    b8 is_in, is_out;
};

struct call {
    struct wf_prim *prim;
    struct device *dev;
    const char *what;
    wf_work *work;
    wf_status status; /* internal */
    b8 entered;
    b8 only_size; /* workspace was asked for: nothing runs */
    b8 own_work;
    i64 started_ns;
    struct prim_block work_block;
    struct prim_job job;
    struct call_array arrays[CALL_ARRAYS];
    i32 array_count;
};

/* False: nothing more to do but `return call_close(&call)`. */
bool call_open(struct call *call, wf_prim *prim, wf_place place, const char *what, wf_work *work);
/* `types`: letters of elem.def's kinds that are allowed. */
struct prim_array call_in(struct call *call, const char *name, wf_array array, const char *types);
struct prim_array call_out(struct call *call, const char *name, wf_array array, const char *types);
struct prim_array call_inout(struct call *call, const char *name, wf_array array,
                             const char *types);
/* The operation fills no more than the first `count` elements of this output: the rest is not
 * brought back to the host. Before call_run when it is known, else after. */
void call_filled(struct call *call, struct prim_array array, i64 count);
/* Records the error unless one is there already. */
void call_fail(struct call *call, wf_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails unless `ok`. */
#define CALL_NEED(call, ok, code, ...)                  \
    do {                                                \
        if (!(ok)) {                                    \
            call_fail((call), ERR_##code, __VA_ARGS__); \
        }                                               \
    } while (0)
/* Fails when arrays overlap of which one is written; `same_ok` may name two arrays (as given to
 * call_in and call_out) that are allowed to be the same. */
void call_apart(struct call *call, const char *same_a, const char *same_b);
/* Runs the body, measured first. `body` gets `arg`. Outputs of host arrays hold garbage unless it
 * succeeds. */
typedef wf_status (*call_body)(struct prim_job *job, void *arg);
void call_run(struct call *call, call_body body, void *arg);
wf_status call_close(struct call *call); /* the public status */
/* Leaves arrays and workspace as they are, for later calls that work on them; call_drop frees them
 * at last. */
wf_status call_rest(struct call *call);
void call_drop(struct call *call);

#endif
