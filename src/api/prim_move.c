/* prim_move.c: the public primitives that compute or move elements: checks, then the device. */
#include "api/prim_int.h"
#include "prim/move.h"

struct scan_args {
    enum fold fold;
    bool inclusive;
    struct prim_array out, in;
};

static wf_status scan_body(struct prim_job *job, void *arg) {
    struct scan_args *a = arg;
    return prim_scan_array(job, a->fold, a->inclusive, a->out, a->in);
}

wf_status wf_prim_scan(wf_prim *prim, wf_place place, wf_fold fold, int inclusive, wf_array out,
                       wf_array in, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "scan", work)) {
        struct scan_args a = {(enum fold)fold, inclusive != 0, call_out(&c, "out", out, "UIF"),
                              call_in(&c, "in", in, "UIF")};
        CALL_NEED(&c, fold >= 0 && (i32)fold < FOLD_COUNT, INVALID_PARAMETER,
                  "there is no operator number %d", (int)fold);
        CALL_NEED(&c, out.type == in.type, DATATYPE_MISMATCH, "out is of another type than in");
        CALL_NEED(&c, c.status || fold_has(a.fold, a.in.type), NOT_SUPPORTED,
                  "%s does not exist for %s", fold_names[a.fold], elem_names[a.in.type]);
        CALL_NEED(&c, out.count >= in.count, INVALID_PARAMETER, "out has room for %lld of %lld",
                  (i64)out.count, (i64)in.count);
        call_apart(&c, "out", "in");
        call_filled(&c, a.out, in.count);
        call_run(&c, scan_body, &a);
    }
    return call_close(&c);
}
