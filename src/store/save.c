/* save.c: a state of the database to the file, beside the one that is there.
 *
 * Pages come from space.c. Small extents share pages with others of the same save, never with older
 * ones, so no page that matters is written twice. The order is: extents, sync, header, sync. Until
 * the second sync returns the old state is in force, and a save that gives up has changed nothing. */
#include "store/frames_int.h"

#include <errno.h>

enum { AREA_BYTES = 1 << 18 }; /* small extents are written together */

struct save {
    struct db_file *file;
    const _Atomic bool *stop;
    struct log_mark mark;
    bool is_synced; /* all that was put */
    i64 move_from;  /* what lies from there on is put again */
    u64 number;
    u8 *area;
    i64 area_at, area_cap, area_used; /* in the file; cap 0 = none */
    struct extent **kept;             /* all extents of the new state */
    i64 kept_count, kept_cap;
    struct column_move *moves; /* columns in memory whose place this state changes */
    i64 move_count, move_cap;
};

struct column_move {
    struct buffer *frame;        /* retained */
    const struct extent *extent; /* a kept one */
};

static _Atomic u64 last_number;
static atomic_flag extents_busy = ATOMIC_FLAG_INIT;

void extents_lock(void) {
    while (atomic_flag_test_and_set_explicit(&extents_busy, memory_order_acquire)) {
    }
}

void extents_unlock(void) {
    atomic_flag_clear_explicit(&extents_busy, memory_order_release);
}

u64 save_number(const struct save *save) {
    return save->number;
}

wf_status save_open(struct db_file *file, const _Atomic bool *stop, struct save **out,
                    struct error *err) {
    TRY(db_file_check(file, err));
    struct save *save = mem_alloc(file->mem, (i64)sizeof *save);
    if (!save) {
        return memory_refused(file->mem, err, (i64)sizeof *save);
    }
    *save = (struct save){.file = file,
                          .stop = stop,
                          .mark = log_mark(file),
                          .move_from = I64_MAX,
                          .number = atomic_fetch_add(&last_number, 1) + 1};
    save->area = mem_alloc(file->mem, AREA_BYTES);
    if (!save->area || !space_map(file)) {
        save_close(save);
        return memory_refused(file->mem, err, AREA_BYTES);
    }
    *out = save;
    return ERR_OK;
}

void save_move(struct save *save, i64 from) {
    save->move_from = from;
}

i64 db_file_least_bytes(const struct db_file *file) {
    i64 sum = FILE_START, end = FILE_START;
    for (i64 i = 0; i < file->used.count; i++) {
        i64 from = file->used.items[i].at / PAGE_BYTES * PAGE_BYTES;
        i64 to = ALIGN_UP(file->used.items[i].at + file->used.items[i].bytes, PAGE_BYTES);
        sum += MAX_OF(to - MAX_OF(from, end), 0);
        end = MAX_OF(end, to);
    }
    return sum;
}

void save_close(struct save *save) {
    if (!save) {
        return;
    }
    struct memory *mem = save->file->mem;
    space_settle(save->file);
    mem_free(mem, save->kept, save->kept_cap * (i64)sizeof *save->kept);
    mem_free(mem, save->area, AREA_BYTES);
    for (i64 i = 0; i < save->move_count; i++) {
        buffer_release(save->moves[i].frame);
    }
    mem_free(mem, save->moves, save->move_cap * (i64)sizeof *save->moves);
    mem_free(mem, save, (i64)sizeof *save);
}

static FALLIBLE write_at(struct save *save, const void *from, i64 bytes, i64 at,
                         struct error *err) {
    i64 code = disk_write_all(save->file->file, from, bytes, at);
    return code ? disk_failed(err, "write", save->file->path, code) : ERR_OK;
}

/* What has gathered goes out; pages that were not needed are free again. */
static FALLIBLE flush_area(struct save *save, struct error *err) {
    i64 used = save->area_used, pages = ALIGN_UP(used, PAGE_BYTES);
    if (save->area_cap == 0) {
        return ERR_OK;
    }
    i64 at = save->area_at, left = save->area_cap - pages;
    save->area_cap = save->area_used = 0;
    if (!space_give(save->file, at + pages, left)) {
        return memory_refused(save->file->mem, err, PAGE_BYTES);
    }
    memset(save->area + used, 0, (size_t)(pages - used));
    return used ? write_at(save, save->area, pages, at, err) : ERR_OK;
}

static FALLIBLE keep(struct save *save, struct extent *extent, struct error *err) {
    if (save->kept_count == save->kept_cap) {
        struct memory *mem = save->file->mem;
        i64 cap = MAX_OF(save->kept_cap * 2, 256), item = (i64)sizeof *save->kept;
        struct extent **grown = mem_alloc(mem, cap * item);
        if (!grown) {
            return memory_refused(mem, err, cap * item);
        }
        if (save->kept_count) {
            memcpy(grown, save->kept, (size_t)(save->kept_count * item));
        }
        mem_free(mem, save->kept, save->kept_cap * item);
        save->kept = grown;
        save->kept_cap = cap;
    }
    save->kept[save->kept_count++] = extent;
    return ERR_OK;
}

bool save_knows(const struct save *save, const struct extent *extent) {
    bool is_there = extent->stamp == save->file->stamp || extent->stamp == save->file->frame_stamp;
    return is_there && extent->at < save->move_from;
}

bool save_has(struct save *save, struct extent *extent) {
    struct error ignored;
    error_reset(&ignored);
    return save_knows(save, extent) && !keep(save, extent, &ignored);
}

static FALLIBLE put_bytes(struct save *save, const void *from, struct extent *out,
                          struct error *err) {
    i64 bytes = out->bytes;
    if (bytes > AREA_BYTES / 2) {
        i64 pages = ALIGN_UP(bytes, PAGE_BYTES), got;
        out->at = space_take(save->file, pages, pages, &got);
        return write_at(save, from, bytes, out->at, err);
    }
    if (save->area_used + bytes > save->area_cap) {
        TRY(flush_area(save, err));
        save->area_at =
            space_take(save->file, ALIGN_UP(bytes, PAGE_BYTES), AREA_BYTES, &save->area_cap);
    }
    out->at = save->area_at + save->area_used;
    memcpy(save->area + save->area_used, from, (size_t)bytes);
    i64 next = MIN_OF(ALIGN_UP(save->area_used + bytes, 64), save->area_cap);
    memset(save->area + save->area_used + bytes, 0, (size_t)(next - save->area_used - bytes));
    save->area_used = next;
    return ERR_OK;
}

wf_status save_put(struct save *save, const void *from, i64 bytes, struct extent *out,
                   struct error *err) {
    struct extent made = {0, bytes, bytes_sum(from, bytes, 0), 0, out->packed};
    TRY(keep(save, out, err));
    if (save->stop && atomic_load(save->stop)) {
        FAIL(err, CANCELLED, "saving the database was given up");
    }
    save->is_synced = false;
    wf_status status = bytes ? put_bytes(save, from, &made, err) : ERR_OK;
    extents_lock();
    *out = made;
    extents_unlock();
    return status;
}

wf_status save_move_frame(struct save *save, struct buffer *frame, const struct extent *to,
                          struct error *err) {
    if (!frame_of_file(frame, save->file)) {
        return ERR_OK;
    }
    if (save->move_count == save->move_cap) {
        struct memory *mem = save->file->mem;
        i64 cap = MAX_OF(save->move_cap * 2, 64), item = (i64)sizeof *save->moves;
        struct column_move *grown = mem_alloc(mem, cap * item);
        if (!grown) {
            return memory_refused(mem, err, cap * item);
        }
        if (save->move_count) {
            memcpy(grown, save->moves, (size_t)(save->move_count * item));
        }
        mem_free(mem, save->moves, save->move_cap * item);
        save->moves = grown;
        save->move_cap = cap;
    }
    save->moves[save->move_count++] = (struct column_move){buffer_retain(frame), to};
    return ERR_OK;
}

/* The list that the next save finds free pages by. */
static FALLIBLE list_used(struct save *save, struct spans *out, struct error *err) {
    for (i64 i = 0; i < save->kept_count; i++) {
        const struct extent *extent = save->kept[i];
        if (extent->bytes && !spans_push(out, extent->at, extent->bytes)) {
            return memory_refused(out->mem, err, out->cap * 32);
        }
    }
    spans_sort(out);
    return ERR_OK;
}

static FALLIBLE switch_to(struct save *save, const struct extent *root, i64 end, bool is_last,
                          struct error *err) {
    struct db_file *file = save->file;
    struct header header = file->header;
    header.root_at = root->at;
    header.root_bytes = root->bytes;
    header.root_sum = root->sum;
    header.end = end;
    header.last_record = save->mark.record;
    header.flags = is_last || !file->log_ready ? 0 : HEADER_LOG;
    log_header(file, &save->mark, &header);
    return header_write(file, &header, err);
}

wf_status save_sync(struct save *save, struct error *err) {
    struct db_file *file = save->file;
    if (save->is_synced) {
        return ERR_OK;
    }
    TRY(flush_area(save, err));
    TRY(file_sync(file, err));
    save->is_synced = true;
    return ERR_OK;
}

wf_status save_finish(struct save *save, struct extent *root, bool is_last, struct error *err) {
    struct db_file *file = save->file;
    struct spans used = {.mem = file->mem};
    TRY(save_sync(save, err));
    wf_status status = list_used(save, &used, err);
    const struct span *last = used.count ? &used.items[used.count - 1] : NULL;
    i64 end = last ? last->at + last->bytes : FILE_START;
    status = status ? status : switch_to(save, root, end, is_last, err);
    if (status) {
        spans_fini(&used);
        return status;
    }
    spans_fini(&file->used);
    file->used = used;
    file->stamp = file_stamp_new();
    extents_lock();
    for (i64 i = 0; i < save->kept_count; i++) {
        save->kept[i]->stamp = file->stamp;
    }
    extents_unlock();
    for (i64 i = 0; i < save->move_count; i++) {
        frame_place(save->moves[i].frame, save->moves[i].extent);
        frame_saved(save->moves[i].frame);
    }
    space_trim(file, end);
    log_saved(file, &save->mark);
    return ERR_OK;
}

/* copies */

enum { COPY_BYTES = 1 << 20 };

static FALLIBLE copy_span(struct db_file *file, const struct span *span, i64 to, const char *path,
                          u8 *block, struct error *err) {
    for (i64 done = 0; done < span->bytes;) {
        i64 n = MIN_OF(span->bytes - done, COPY_BYTES);
        i64 code = disk_read_all(file->file, block, n, span->at + done);
        if (code) {
            return disk_failed(err, "read", file->path, code);
        }
        code = disk_write_all(to, block, n, span->at + done);
        if (code) {
            return disk_failed(err, "write", path, code);
        }
        done += n;
    }
    return ERR_OK;
}

static FALLIBLE copy_all(struct db_file *file, i64 to, const char *path, const _Atomic bool *stop,
                         struct error *err) {
    u8 *block = mem_alloc(file->mem, COPY_BYTES);
    wf_status status = block ? ERR_OK : memory_refused(file->mem, err, COPY_BYTES);
    for (i64 i = 0; i < file->used.count && !status; i++) {
        if (stop && atomic_load(stop)) {
            status = error_set(err, ERR_CANCELLED, -1, "copying the database was given up");
        } else {
            status = copy_span(file, &file->used.items[i], to, path, block, err);
        }
    }
    mem_free(file->mem, block, COPY_BYTES);
    TRY(status);
    i64 code = disk_now->resize(to, MAX_OF(file->header.end, FILE_START));
    code = code ? code : disk_now->sync(to);
    return code ? disk_failed(err, "write", path, code) : ERR_OK;
}

/* The header comes last: what was interrupted is no database. */
wf_status db_file_copy(struct db_file *file, const char *path, const _Atomic bool *stop,
                       struct error *err) {
    i64 to = disk_now->open(path, DISK_CREATE);
    if (to < 0) {
        return disk_failed(err, "create", path, to);
    }
    wf_status status = copy_all(file, to, path, stop, err);
    if (!status) {
        i64 code = headers_put(&file->header, to);
        code = code ? code : disk_now->sync_folder(path);
        status = code ? disk_failed(err, "write", path, code) : ERR_OK;
    }
    disk_now->close(to);
    if (status) {
        (void)disk_now->remove(path);
    }
    return status;
}

wf_status db_file_make(struct memory *mem, const char *path, struct db_file **out,
                       struct error *err) {
    i64 there = disk_now->open(path, DISK_READ);
    if (there >= 0) {
        disk_now->close(there);
        return disk_failed(err, "create", path, -EEXIST);
    }
    return db_file_open(mem, path, false, out, err);
}

void db_file_made(struct db_file *file, bool fine) {
    log_remove(file);
    if (!fine) {
        (void)disk_now->remove(file->path);
    }
    db_file_close(file);
}
