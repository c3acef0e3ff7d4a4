/* read_file.h: the reader of files that a statement's snapshot is given while it is compiled. */
#ifndef WF_SESSION_READ_FILE_H
#define WF_SESSION_READ_FILE_H

#include "session/session_int.h"

struct file_reading {
    struct file_reader reader; /* first: the binder knows only this */
    struct wf_connection *conn;
};
wf_status file_read(struct file_reader *reader, const struct file_request *request,
                    struct table **out, struct error *err);
/* Whether the table is one that file_read made, which no other statement sees. */
bool is_file_table(const struct table *table);
/* Says of the files that a statement has scanned how many lines were left out. */
void notice_files(struct wf_connection *conn, const struct snapshot *snap);
/* Says how many lines a load has left out; nothing when there were none. */
void notice_ignored(struct wf_connection *conn, const char *path, i64 lines);

#endif
