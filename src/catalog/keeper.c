/* keeper.c: the state of a moment to the file while commits go on: checkpoints, VACUUM, copies.
 *
 * A checkpoint that no commit waits for, by the statement or by the length of the log, writes the
 * state of a moment while commits go on: the commit lock is held only when it begins and when it
 * switches the header. One state at a time is on its way (`saving`): a commit that has to save makes
 * it give up, since what that commit saves contains it. See decision 0034. */
#include "catalog/catalog_int.h"
#include "store/saved.h"

enum { GAPS_BYTES = 1 << 14 }; /* that are not worth writing anything */

/* Under the commit lock, which is given up while the state is written. */
static FALLIBLE save_beside(struct catalog *catalog, i64 move_from, struct error *err) {
    struct state_out out = {.is_kept = false};
    TRY(save_open(catalog->file, &catalog->save_stops, &out.save, err));
    save_move(out.save, move_from);
    struct edition *edition = edition_retain(catalog->edition);
    catalog->saving = 1;
    atomic_store(&catalog->save_stops, false);
    mutex_unlock(&catalog->commit_lock);
    wf_status status = state_write(&out, catalog, edition, err);
    mutex_lock(&catalog->commit_lock);
    if (!status && !atomic_load(&catalog->save_stops)) {
        status = save_finish(out.save, &out.root, false, err);
        catalog->root = status ? catalog->root : out.root;
        if (!status) {
            rows_saved(catalog, &out);
        }
    }
    save_close(out.save);
    if (atomic_load(&catalog->save_stops) && status == ERR_CANCELLED) {
        error_reset(err); /* who made it stop saves more than this */
        status = ERR_OK;
    }
    catalog->saving = 0;
    cond_broadcast(&catalog->save_done);
    mutex_unlock(&catalog->commit_lock);
    edition_release(edition); /* which may free much */
    rows_list_close(out.rows);
    mutex_lock(&catalog->commit_lock);
    return status;
}

void catalog_lock_idle(struct catalog *catalog) {
    mutex_lock(&catalog->commit_lock);
    while (catalog->saving) {
        cond_wait(&catalog->save_done, &catalog->commit_lock);
    }
}

wf_status catalog_lock_saved(struct catalog *catalog, struct error *err) {
    catalog_lock_idle(catalog);
    bool saves = !db_file_is_read_only(catalog->file);
    wf_status status = saves ? state_save(catalog, catalog->edition, false, err) : ERR_OK;
    if (status) {
        mutex_unlock(&catalog->commit_lock);
    }
    return status;
}

wf_status catalog_checkpoint(struct catalog *catalog, struct error *err) {
    if (!catalog->file) {
        return ERR_OK;
    }
    catalog_lock_idle(catalog);
    wf_status status = save_beside(catalog, I64_MAX, err);
    mutex_unlock(&catalog->commit_lock);
    return status;
}

/* the thread that saves when the log is long */

static void keeper_run(void *arg) {
    struct catalog *catalog = arg;
    catalog_lock_idle(catalog);
    while (!catalog->keeper_ends) {
        struct error ignored; /* what is not saved is in the log */
        error_reset(&ignored);
        if (catalog->keeper_wanted && !catalog->saving) {
            catalog->keeper_wanted = 0;
            bool failed = save_beside(catalog, I64_MAX, &ignored) != ERR_OK;
            catalog->log_next_most = failed ? log_bytes(catalog->file) + catalog->log_most : 0;
        } else {
            cond_wait(catalog->saving ? &catalog->save_done : &catalog->keeper_wakes,
                      &catalog->commit_lock);
        }
    }
    mutex_unlock(&catalog->commit_lock);
}

/* Under the commit lock. Without a thread the log grows until the next try. */
void keeper_wake(struct catalog *catalog) {
    if (log_bytes(catalog->file) <= MAX_OF(catalog->log_most, catalog->log_next_most) ||
        catalog->saving) {
        return;
    }
    catalog->keeper_wanted = 1;
    catalog->keeper = catalog->keeper ? catalog->keeper : thread_start(keeper_run, catalog);
    cond_broadcast(&catalog->keeper_wakes);
}

void keeper_end(struct catalog *catalog) {
    mutex_lock(&catalog->commit_lock);
    struct thread *keeper = catalog->keeper;
    catalog->keeper = NULL;
    catalog->keeper_ends = 1;
    atomic_store(&catalog->save_stops, true);
    cond_broadcast(&catalog->keeper_wakes);
    mutex_unlock(&catalog->commit_lock);
    if (keeper) {
        thread_join(keeper);
    }
}

void catalog_tidy(struct catalog *catalog) {
    db_file_tidy(catalog->file);
}

/* VACUUM */

/* What lies behind the place where the file could end goes into gaps before it. Where that does not
 * help, everything is written anew, and then once more at the start. */
wf_status catalog_shrink(struct catalog *catalog, struct error *err) {
    struct db_file *file = catalog->file;
    if (!file) {
        return ERR_OK;
    }
    catalog_lock_idle(catalog);
    wf_status status = save_beside(catalog, I64_MAX, err);
    for (i32 pass = 0; pass < 3 && !status && !catalog->saving; pass++) {
        i64 least = db_file_least_bytes(file);
        bool fine = db_file_bytes(file) - least <= MAX_OF(least / 16, GAPS_BYTES);
        if (fine) {
            break;
        }
        status = save_beside(catalog, pass ? 0 : least, err);
    }
    mutex_unlock(&catalog->commit_lock);
    return status;
}

/* copies */

/* Under the commit lock, which is given up meanwhile: the state that the file holds. */
static FALLIBLE copy_saved(struct catalog *catalog, const char *path, const _Atomic bool *stop,
                           struct error *err) {
    catalog->saving = 1;
    atomic_store(&catalog->save_stops, false);
    mutex_unlock(&catalog->commit_lock);
    wf_status status = db_file_copy(catalog->file, path, stop, err);
    mutex_lock(&catalog->commit_lock);
    catalog->saving = 0;
    cond_broadcast(&catalog->save_done);
    return status;
}

/* Of a database without a file: its state to a file that nobody has open afterwards. */
static FALLIBLE copy_memory(struct catalog *catalog, const char *path, struct error *err) {
    struct db_file *file;
    struct state_out out = {.is_kept = false};
    struct extent root = {0};
    TRY(db_file_make(catalog->mem, path, &file, err));
    struct edition *edition = edition_retain(catalog->edition);
    catalog->saving = 1;
    mutex_unlock(&catalog->commit_lock);
    wf_status status = save_open(file, NULL, &out.save, err);
    if (!status) {
        status = state_write(&out, catalog, edition, err);
        root = out.root;
        status = status ? status : save_finish(out.save, &root, true, err);
        save_close(out.save);
    }
    rows_list_close(out.rows);
    edition_release(edition);
    db_file_made(file, status == ERR_OK);
    mutex_lock(&catalog->commit_lock);
    catalog->saving = 0;
    cond_broadcast(&catalog->save_done);
    return status;
}

/* A commit that has to save makes it begin anew, twice; then it waits. */
wf_status catalog_copy(struct catalog *catalog, const char *path, struct error *err) {
    wf_status status = ERR_CANCELLED;
    for (i32 tries = 0; tries < 3 && status == ERR_CANCELLED; tries++) {
        error_reset(err);
        catalog_lock_idle(catalog);
        if (!catalog->file) {
            status = copy_memory(catalog, path, err);
            mutex_unlock(&catalog->commit_lock);
            break;
        }
        bool reads = db_file_is_read_only(catalog->file);
        if (reads && !db_file_is_clean(catalog->file)) {
            mutex_unlock(&catalog->commit_lock);
            error_set(err, ERR_READ_ONLY, -1,
                      "cannot copy database \"%.300s\": it was opened read-only, and commits are in its log",
                      db_file_path(catalog->file));
            error_hint(err, "Open it once without --readonly.");
            return err->code;
        }
        status = reads ? ERR_OK : save_beside(catalog, I64_MAX, err);
        while (catalog->saving) {
            cond_wait(&catalog->save_done, &catalog->commit_lock);
        }
        if (!status) {
            status = copy_saved(catalog, path, tries < 2 ? &catalog->save_stops : NULL, err);
        }
        mutex_unlock(&catalog->commit_lock);
    }
    return status;
}
