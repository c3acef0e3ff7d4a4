/* describe.c: an object's definition as the statement that would make it, by its name: wf_describe. */
#include "api/api_int.h"

#include <stdlib.h>

/* A name that people type: as it is, else after its schema, else in lower case. */
static const struct edition_entry *find_object(struct snapshot *snap, const char *name) {
    char *lower = arena_printf(snap->arena, "%s", name);
    for (char *at = lower; *at; at++) {
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at + 32) : *at;
    }
    const char *const forms[] = {name, lower};
    const struct edition_entry *entry = NULL;
    for (i32 i = 0; i < 2 && !entry; i++) {
        const char *dot = strchr(forms[i], '.');
        entry = snapshot_lookup(snap, (struct sv){NULL, 0}, sv_from(forms[i]));
        if (!entry && dot) {
            entry = snapshot_lookup(snap, (struct sv){forms[i], dot - forms[i]}, sv_from(dot + 1));
        }
    }
    return entry;
}

static FALLIBLE describe(struct wf_connection *conn, const char *name, char **out_text) {
    struct arena arena;
    struct snapshot snap;
    struct text out;
    arena_init(&arena, &conn->db->mem);
    snapshot_init(&snap, conn->db->catalog, &arena);
    connection_snapshot(conn, &snap);
    text_init(&out, &arena);
    const char *dot = strchr(name, '.');
    struct sv schema = {name, dot ? dot - name : 0}, rest = sv_from(dot ? dot + 1 : name);
    wf_status status = snapshot_open(&snap, &conn->err);
    const struct edition_entry *entry = status ? NULL : find_object(&snap, name);
    if (!status && !entry) {
        status = snapshot_missing(&snap, schema, rest, -1, &conn->err);
    }
    if (!status) {
        define_object(&out, &snap, entry->object);
        status = arena_check(&arena, &conn->err);
    }
    if (!status) {
        *out_text = malloc((size_t)out.len + 1);
        if (*out_text) {
            memcpy(*out_text, out.ptr, (size_t)out.len + 1);
        } else {
            status = error_set(&conn->err, ERR_OUT_OF_MEMORY, -1, "out of memory");
        }
    }
    snapshot_fini(&snap);
    arena_fini(&arena);
    return status;
}

wf_status wf_describe(wf_connection *conn, const char *name, char **out_text) {
    if (!name || !out_text || connection_enter(conn)) {
        return WF_MISUSE;
    }
    *out_text = NULL;
    return connection_leave(conn, describe(conn, name, out_text), (struct sv){NULL, 0});
}
