/* space.c: which pages of the database file are free.
 *
 * Free is what neither the header in force nor a frame names: there is no list of free pages on the
 * disk, and the one here is made anew from those two whenever a save begins or has ended. In between
 * two kinds of writers take pages from it, side by side: the save on its way (one at a time), whose
 * pages nobody else names until its header is in force, and bulk loads, which write columns before
 * their commit. A load's column is a frame that names its pages from the moment it takes them, under
 * the lock here; it is free again when the frame goes, as that of a statement that failed does. After
 * a crash nothing names them either. See decision 0041 and decision 0079. */
#include "store/frames_int.h"

/* Under the lock. */
static bool map_pages(struct db_file *file) {
    struct spans used = {.mem = file->mem};
    i64 at = FILE_START;
    spans_fini(&file->gaps);
    bool fine = frames_spans(file->frames, &used);
    for (i64 i = 0; i < file->used.count && fine; i++) {
        fine = spans_push(&used, file->used.items[i].at, file->used.items[i].bytes);
    }
    spans_sort(&used);
    for (i64 i = 0; i < used.count && fine; i++) {
        i64 from = used.items[i].at / PAGE_BYTES * PAGE_BYTES;
        i64 to = ALIGN_UP(used.items[i].at + used.items[i].bytes, PAGE_BYTES);
        fine = from <= at || spans_push(&file->gaps, at, from - at);
        at = MAX_OF(at, to);
    }
    file->end = at;
    file->is_mapped = fine;
    spans_fini(&used);
    return fine;
}

bool space_map(struct db_file *file) {
    mutex_lock(&file->space);
    bool fine = map_pages(file);
    file->is_saving = fine;
    mutex_unlock(&file->space);
    return fine;
}

void space_settle(struct db_file *file) {
    mutex_lock(&file->space);
    file->is_saving = 0;
    mutex_unlock(&file->space);
}

static i64 take_pages(struct db_file *file, i64 bytes, i64 most, i64 *out_bytes) {
    for (i64 i = 0; i < file->gaps.count; i++) {
        struct span *gap = &file->gaps.items[i];
        if (gap->bytes >= bytes) {
            i64 at = gap->at;
            *out_bytes = MIN_OF(gap->bytes, most);
            gap->at += *out_bytes;
            gap->bytes -= *out_bytes;
            return at;
        }
    }
    i64 at = file->end;
    *out_bytes = most;
    file->end += most;
    atomic_store(&file->has_more, true);
    return at;
}

i64 space_take(struct db_file *file, i64 bytes, i64 most, i64 *out_bytes) {
    mutex_lock(&file->space);
    i64 at = take_pages(file, bytes, most, out_bytes);
    mutex_unlock(&file->space);
    return at;
}

bool space_give(struct db_file *file, i64 at, i64 bytes) {
    bool fine = true;
    mutex_lock(&file->space);
    if (at + bytes == file->end) {
        file->end = at;
    } else {
        fine = bytes == 0 || spans_push(&file->gaps, at, bytes);
    }
    mutex_unlock(&file->space);
    return fine;
}

bool space_take_frame(struct db_file *file, struct buffer *frame, struct extent *io) {
    mutex_lock(&file->space);
    bool fine = file->is_mapped || map_pages(file);
    if (fine) {
        i64 pages = ALIGN_UP(io->bytes, PAGE_BYTES), got;
        io->at = take_pages(file, pages, pages, &got);
        frame_place(frame, io);
    }
    mutex_unlock(&file->space);
    return fine;
}

/* Under the lock. */
static void trim(struct db_file *file) {
    if (!map_pages(file)) {
        return;
    }
    i64 least = MAX_OF(file->end, file->least_end);
    if (disk_now->size(file->file) > least) {
        (void)disk_now->resize(file->file, least); /* no matter where it does not work */
    }
    atomic_store(&file->has_more, file->end > ALIGN_UP(file->least_end, PAGE_BYTES));
}

void space_trim(struct db_file *file, i64 least) {
    mutex_lock(&file->space);
    file->least_end = least;
    trim(file);
    mutex_unlock(&file->space);
}

/* What a load or a save wrote that did not come to its end has to go at once: it may be what fills the disk. */
void db_file_tidy(struct db_file *file) {
    if (!file || file->read_only || !atomic_load(&file->has_more) || atomic_load(&file->failed)) {
        return;
    }
    mutex_lock(&file->space);
    if (!file->is_saving) { /* else the save sees to it */
        trim(file);
    }
    mutex_unlock(&file->space);
}
