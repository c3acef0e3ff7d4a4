/* api_int.h: what the files behind include/warpfox.h share. */
#ifndef WF_API_API_INT_H
#define WF_API_API_INT_H

#include "warpfox.h"

#include "session/session.h"

void type_info(struct type type, wf_type_info *out);

struct wf_result *result_take(struct rowset *rows); /* the rowset's handle, which owns it now */

struct wf_statement {
    struct wf_connection *conn;
    struct script *script;
    struct compiled *compiled;
    i32 param_count;
    struct type *param_types; /* in the script's arena */
    struct param *params;     /* likewise */
    i64 compile_count;
};

#endif
