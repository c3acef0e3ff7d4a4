/* database.c: wf_open, wf_close, wf_leave. */
#include "api/api_int.h"

wf_status wf_open(const char *path, const wf_option *options, wf_database **out_db,
                  wf_error *out_error) {
    struct error err;
    error_reset(&err);
    wf_status status = out_db ? database_open(path, options, out_db, &err)
                              : error_set(&err, ERR_MISUSE, -1,
                                          "wf_open needs a place for the database");
    if (out_error) {
        public_error(out_error, &err, (struct sv){NULL, 0});
    }
    return public_status(status);
}

void wf_close(wf_database *db) {
    if (db) {
        database_release(db);
    }
}

void wf_leave(wf_database *db) {
    if (db) {
        database_leave(db);
    }
}

int64_t wf_memory_used(const wf_database *db) {
    return db ? (int64_t)atomic_load(&db->mem.used_bytes) : 0;
}
