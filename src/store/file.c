/* file.c: the database file: opening, locking, headers, reading extents.
 *
 * Two slots at the start hold the header; both hold the same one when the file is at rest. A new
 * header goes to the first slot, is synced, and then goes to the second: whatever is torn, one of
 * them is whole and names a state whose extents nobody has overwritten. A flipped bit in one slot
 * is harmless for the same reason. Where both are whole, the greater generation counts. */
#include "store/file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/behind.h"
#include "store/frames_int.h"

#include <errno.h>
#include <stdio.h>

u64 bytes_sum(const void *from, i64 bytes, u64 seed) {
    return XXH3_64bits_withSeed(from, (size_t)bytes, seed);
}

wf_status disk_failed(struct error *err, const char *what, const char *path, i64 code) {
    int number = (int)-code;
    wf_status kind = number == ENOSPC || number == EDQUOT || number == EFBIG ? ERR_DISK_FULL
                     : number == EACCES || number == EPERM || number == EROFS ? ERR_PRIVILEGE
                     : number == ENOENT || number == ENOTDIR                  ? ERR_NO_DATA_FILE
                     : number == EISDIR || number == EMEDIUMTYPE              ? ERR_WRONG_OBJECT
                     : number == EEXIST                                       ? ERR_DUPLICATE_OBJECT
                                                                              : ERR_IO;
    bool first = err->code == ERR_OK;
    error_set(err, kind, -1, "could not %s \"%.300s\": %s", what, path,
              number == EMEDIUMTYPE ? "it is a pipe, a device or the like, not a file"
                                    : strerror(number));
    if (first && kind == ERR_DISK_FULL) {
        error_hint(err, "Nothing that was committed is lost. Make room on that disk and try again; "
                        "--readonly reads a database without writing anything.");
    }
    return kind;
}

bool spans_reserve(struct spans *spans, i64 more) {
    i64 item = (i64)sizeof *spans->items, cap = MAX_OF(spans->cap, 64);
    while (cap - spans->count < more) {
        cap *= 2;
    }
    if (cap == spans->cap) {
        return true;
    }
    struct span *grown = mem_alloc(spans->mem, cap * item);
    if (!grown) {
        return false;
    }
    if (spans->count) {
        memcpy(grown, spans->items, (size_t)(spans->count * item));
    }
    mem_free(spans->mem, spans->items, spans->cap * item);
    spans->items = grown;
    spans->cap = cap;
    return true;
}

bool spans_push(struct spans *spans, i64 at, i64 bytes) {
    if (!spans_reserve(spans, 1)) {
        return false;
    }
    spans->items[spans->count++] = (struct span){at, bytes};
    return true;
}

void spans_fini(struct spans *spans) {
    mem_free(spans->mem, spans->items, spans->cap * (i64)sizeof *spans->items);
    *spans = (struct spans){.mem = spans->mem};
}

/* Heap sort, by place. */
void spans_sort(struct spans *spans) {
    struct span *items = spans->items;
    for (i64 start = spans->count / 2 - 1, end = spans->count; end > 1;) {
        i64 root;
        if (start >= 0) {
            root = start--;
        } else {
            struct span top = items[0];
            items[0] = items[--end];
            items[end] = top;
            root = 0;
        }
        for (i64 child; (child = 2 * root + 1) < end; root = child) {
            child += child + 1 < end && items[child].at < items[child + 1].at;
            if (items[root].at >= items[child].at) {
                break;
            }
            struct span swap = items[root];
            items[root] = items[child];
            items[child] = swap;
        }
    }
}

wf_status file_damaged(const struct db_file *file, struct error *err, const char *what) {
    error_set(err, ERR_DAMAGED, -1, "database \"%.300s\" is damaged: %s", file->path, what);
    error_hint(err, "Nothing was written. Copy the file and its log before anything else; `warpfox "
                    "check FILE` lists what is damaged.");
    return err->code;
}

wf_status sync_done(struct db_file *file, const char *path, i64 code, struct error *err) {
    if (!code) {
        return ERR_OK;
    }
    mutex_lock(&file->lock);
    file->failed = 1;
    mutex_unlock(&file->lock);
    return disk_failed(err, "sync", path, code);
}

wf_status db_file_check(const struct db_file *file, struct error *err) {
    if (file->read_only) {
        FAIL(err, READ_ONLY, "cannot change database \"%.300s\": it was opened read-only",
             file->path);
    }
    if (file->failed) {
        error_set(err, ERR_IO, -1, "database \"%.300s\" takes no more changes: writing it failed",
                  file->path);
        error_hint(err, "What was committed before is safe. Close the database and open it again "
                        "when the disk is well.");
        return err->code;
    }
    return ERR_OK;
}

static u64 header_sum(const struct header *header) {
    return bytes_sum(header, HEADER_BYTES - (i64)sizeof header->sum, 0);
}

u64 file_stamp_new(void) {
    static _Atomic u64 last;
    return atomic_fetch_add(&last, 1) + 1;
}

static u64 new_id(void) {
    return hash_u64((u64)clock_real_us() ^ hash_u64((u64)clock_ns())) | 1;
}

i64 headers_put(const struct header *like, i64 to) {
    u8 pages[2 * PAGE_BYTES] = {0};
    struct header header = *like;
    header.format = FILE_FORMAT;
    header.id = new_id();
    header.flags = 0;
    header.log_generation = 0;
    header.log_from = 0;
    header.sum = header_sum(&header);
    memcpy(pages, &header, sizeof header);
    memcpy(pages + PAGE_BYTES, &header, sizeof header);
    i64 code = disk_write_all(to, pages, (i64)sizeof pages, 0);
    return code ? code : disk_now->sync(to);
}

/* The second slot, which is in force already in the first. Where that fails nothing may be written
 * any more: the slot could name a state of which nothing is left. */
static void write_second(struct db_file *file) {
    u8 page[PAGE_BYTES] = {0};
    memcpy(page, &file->header, sizeof file->header);
    i64 code = disk_write_all(file->file, page, PAGE_BYTES, PAGE_BYTES);
    atomic_fetch_add(&file->second_written, 1);
    mutex_lock(&file->lock);
    file->failed = file->failed || code != 0;
    mutex_unlock(&file->lock);
}

wf_status file_sync(struct db_file *file, struct error *err) {
    u64 written = atomic_load(&file->second_written); /* others may write it meanwhile */
    TRY(sync_done(file, file->path, disk_now->sync(file->file), err));
    atomic_store(&file->second_synced, written);
    return ERR_OK;
}

wf_status header_write(struct db_file *file, struct header *header, struct error *err) {
    u8 page[PAGE_BYTES] = {0};
    if (atomic_load(&file->second_synced) != atomic_load(&file->second_written)) {
        TRY(file_sync(file, err));
    }
    header->generation++;
    header->format = FILE_FORMAT;
    header->sum = header_sum(header);
    memcpy(page, header, sizeof *header);
    i64 code = disk_write_all(file->file, page, PAGE_BYTES, 0);
    code = code ? code : disk_now->sync(file->file);
    TRY(sync_done(file, file->path, code, err)); /* the slot may be torn: the other is in force */
    file->header = *header;
    write_second(file);
    return ERR_OK;
}

/* A new database: both slots at once. Nothing can be lost yet. */
static FALLIBLE create(struct db_file *file, struct error *err) {
    u8 pages[2 * PAGE_BYTES] = {0};
    struct header *header = &file->header;
    memset(header, 0, sizeof *header);
    memcpy(header->magic, FILE_MAGIC, sizeof header->magic);
    header->format = FILE_FORMAT;
    header->page_bytes = PAGE_BYTES;
    header->id = new_id();
    header->generation = 1;
    header->end = FILE_START;
    header->sum = header_sum(header);
    memcpy(pages, header, sizeof *header);
    memcpy(pages + PAGE_BYTES, header, sizeof *header);
    i64 code = disk_write_all(file->file, pages, (i64)sizeof pages, 0);
    if (code) {
        return disk_failed(err, "write", file->path, code);
    }
    TRY(sync_done(file, file->path, disk_now->sync(file->file), err));
    return sync_done(file, file->path, disk_now->sync_folder(file->path), err);
}

static bool is_ours(const struct header *header) {
    return memcmp(header->magic, FILE_MAGIC, sizeof header->magic) == 0;
}

static bool is_whole(const struct header *header) {
    return is_ours(header) && header->sum == header_sum(header);
}

/* A file whose creation was interrupted: it never had anything. */
static bool is_unborn(const struct db_file *file, const u8 *start, i64 size) {
    bool zero = true;
    for (i64 i = 0; i < MIN_OF(size, 2 * PAGE_BYTES) && zero; i++) {
        zero = start[i] == 0;
    }
    i64 log_size = file->log >= 0 ? disk_now->size(file->log) : 0;
    const struct header *first = (const struct header *)(const void *)start;
    bool begun = is_ours(first) && first->format >= FORMAT_LEAST && first->format <= FILE_FORMAT &&
                 first->generation == 1;
    return size <= FILE_START && log_size <= FILE_START && (zero || begun);
}

static FALLIBLE refuse_foreign(const struct db_file *file, struct error *err) {
    error_set(err, ERR_WRONG_OBJECT, -1, "\"%.300s\" is not a Warpfox database", file->path);
    error_hint(err, "The file was not touched. To read rows of a text file: SELECT * FROM '%.100s' "
                    "in a database of its own.",
               file->path);
    return err->code;
}

/* The header in force: a format that this program knows, in the form of the present one. */
static FALLIBLE check_format(struct db_file *file, struct error *err) {
    struct header *header = &file->header;
    if (header->format < FORMAT_LEAST || header->format > FILE_FORMAT ||
        header->page_bytes != PAGE_BYTES) {
        error_set(err, ERR_NOT_SUPPORTED, -1,
                  "database \"%.200s\" has format %u; this program knows formats %d to %d",
                  file->path, header->format, FORMAT_LEAST, FILE_FORMAT);
        error_hint(err, "The file was not touched. Open it with a newer Warpfox.");
        return err->code;
    }
    if (header->format == 1 && header->flags & HEADER_LOG) {
        header->log_generation = header->generation;
        header->log_from = FILE_START;
    }
    return ERR_OK;
}

static FALLIBLE read_headers(struct db_file *file, struct error *err) {
    struct { /* aligned as a header is */
        struct header first;
        u8 rest[2 * PAGE_BYTES - HEADER_BYTES];
    } start;
    memset(&start, 0, sizeof start);
    i64 size = disk_now->size(file->file);
    i64 code = size < 0 ? size
                        : disk_read_all(file->file, &start, MIN_OF(size, (i64)sizeof start), 0);
    if (code < 0) {
        return disk_failed(err, "read", file->path, code);
    }
    struct header second;
    memcpy(&second, (u8 *)&start + PAGE_BYTES, sizeof second);
    bool one = is_whole(&start.first), two = is_whole(&second);
    if (!one && !two) {
        if (is_unborn(file, (const u8 *)&start, size)) {
            if (file->read_only) {
                return file_damaged(file, err, "it is empty");
            }
            return create(file, err);
        }
        return is_ours(&start.first) || is_ours(&second)
                   ? file_damaged(file, err, "no header is whole")
               : size == 0 ? file_damaged(file, err, "it is empty, and its log is not")
                           : refuse_foreign(file, err);
    }
    bool takes_first = !two || (one && start.first.generation >= second.generation);
    file->header = takes_first ? start.first : second;
    TRY(check_format(file, err));
    if (size < file->header.end) { /* the first header: its creation was interrupted */
        return file->header.generation == 1 && !file->read_only
                   ? create(file, err)
                   : file_damaged(file, err, "it is shorter than its header says");
    }
    file->second_differs = takes_first && memcmp(&start.first, &second, sizeof second) != 0;
    file->first = start.first;
    return ERR_OK;
}

wf_status db_file_claim(struct db_file *file, struct error *err) {
    if (file->read_only) {
        return ERR_OK;
    }
    if (file->second_differs) {
        struct header read = file->header;
        file->header = file->first; /* as it is there */
        write_second(file);
        file->header = read;
    }
    space_trim(file, file->header.end); /* what a load before a crash left may fill the disk */
    return log_claim(file, err);
}

static FALLIBLE refuse_second(struct db_file *file, struct error *err) {
    i64 reader = disk_now->reader(file->file);
    char holder[HOLDER_BYTES + 1] = "another process";
    i64 log = disk_now->open(file->log_path, DISK_READ);
    if (log >= 0 && disk_read_all(log, holder, HOLDER_BYTES, HOLDER_AT)) {
        memcpy(holder, "another process", sizeof "another process");
    }
    if (log >= 0) {
        disk_now->close(log);
    }
    holder[HOLDER_BYTES] = 0;
    if (reader) {
        disk_holder(holder, HOLDER_BYTES, reader);
    }
    error_set(err, ERR_IN_USE, -1, "database \"%.200s\" is %s by %s", file->path,
              reader ? "being read" : "in use", holder[0] ? holder : "another process");
    error_hint(err, "One process at a time may change a database; any number may read one that "
                    "nobody changes: --readonly.");
    return err->code;
}

static FALLIBLE refuse_open(const struct db_file *file, struct error *err) {
    bool leads_nowhere = file->file == -EEXIST; /* it is not there, and yet cannot be made */
    wf_status status =
        disk_failed(err, "open database", file->path, leads_nowhere ? -ENOENT : file->file);
    if (status == ERR_PRIVILEGE && !file->read_only) {
        error_hint(err, "To read it only: --readonly.");
    } else if (status == ERR_WRONG_OBJECT) {
        error_hint(err, "It was not touched. Name a file; a new one is made where there is none.");
    } else if (status == ERR_NO_DATA_FILE) {
        error_hint(err, leads_nowhere      ? "The name is a link to something that is not there."
                        : file->read_only ? "A database that is read only has to be there."
                                          : "The file is made where there is none, its folder is not.");
    }
    return status;
}

static FALLIBLE open_parts(struct db_file *file, struct error *err) {
    file->file = disk_now->open(file->path, file->read_only ? DISK_READ : DISK_WRITE);
    if (file->file == -ENOENT && !file->read_only) {
        file->file = disk_now->open(file->path, DISK_CREATE);
    }
    if (file->file < 0) {
        return refuse_open(file, err);
    }
    i64 code = disk_now->lock(file->file, !file->read_only);
    if (code == -EAGAIN) {
        return refuse_second(file, err);
    }
    if (code) {
        return disk_failed(err, "lock", file->path, code);
    }
    file->direct = disk_now->direct(file->file);
    file->behind = file->read_only ? NULL : behind_open(file->mem, file);
    if (!file->behind && !file->read_only) {
        return memory_refused(file->mem, err, PAGE_BYTES);
    }
    TRY(log_open(file, err));
    TRY(read_headers(file, err));
    TRY(log_look(file, err));
    file->last = file->synced = file->header.last_record;
    return ERR_OK;
}

wf_status db_file_open(struct memory *mem, const char *path, bool read_only, struct db_file **out,
                       struct error *err) {
    char end[DISK_PATH_MOST]; /* the log lies beside the file, not beside a link to it */
    const char *beside = disk_link_end(path, end) ? end : path;
    i64 len = (i64)strlen(path), log_len = (i64)strlen(beside) + 5;
    i64 bytes = (i64)sizeof(struct db_file) + len + log_len + 2;
    struct db_file *file = mem_alloc(mem, bytes);
    if (!file) {
        return memory_refused(mem, err, bytes);
    }
    memset(file, 0, (size_t)bytes);
    file->mem = file->used.mem = mem;
    file->path_bytes = bytes;
    file->path = (char *)(file + 1);
    file->log_path = file->path + len + 1;
    memcpy(file->path, path, (size_t)len + 1);
    (void)snprintf(file->log_path, (size_t)log_len, "%s.log", beside);
    file->file = file->log = file->direct = -1;
    file->read_only = read_only;
    file->stamp = file_stamp_new();
    file->frame_stamp = file_stamp_new();
    file->gaps.mem = mem;
    mutex_init(&file->space);
    mutex_init(&file->lock);
    cond_init(&file->synced_more);
    file->frames = frames_open(mem, file);
    wf_status status = file->frames ? open_parts(file, err) : memory_refused(mem, err, 4096);
    if (status) {
        db_file_close(file);
        return status;
    }
    *out = file;
    return ERR_OK;
}

void db_file_set_aside(struct db_file *file, const char *folder, i64 limit_bytes) {
    frames_set_aside(file->frames, folder, limit_bytes);
}

void db_file_close(struct db_file *file) {
    if (!file) {
        return;
    }
    behind_close(file->behind);
    db_file_tidy(file);
    frames_close(file->frames);
    mem_free(file->mem, file->log_read, file->log_read_bytes);
    if (file->log >= 0) {
        disk_now->close(file->log);
    }
    if (file->direct >= 0) {
        disk_now->close(file->direct);
    }
    if (file->file >= 0) {
        disk_now->close(file->file);
    }
    spans_fini(&file->used);
    spans_fini(&file->gaps);
    mutex_fini(&file->space);
    cond_fini(&file->synced_more);
    mutex_fini(&file->lock);
    mem_free(file->mem, file, file->path_bytes);
}

const char *db_file_path(const struct db_file *file) {
    return file->path;
}

struct extent db_file_root(const struct db_file *file) {
    return (struct extent){.at = file->header.root_at,
                           .bytes = file->header.root_bytes,
                           .sum = file->header.root_sum,
                           .stamp = file->stamp};
}

u64 db_file_stamp(const struct db_file *file) {
    return file->stamp;
}

bool db_file_is_read_only(const struct db_file *file) {
    return file->read_only;
}

bool db_file_is_clean(const struct db_file *file) {
    return !(file->header.flags & HEADER_LOG);
}

i64 db_file_bytes(const struct db_file *file) {
    return file->header.end;
}

wf_status db_file_read(const struct db_file *file, const struct extent *extent, void *to,
                       struct error *err) {
    if (extent->at < FILE_START || extent->bytes < 0 ||
        extent->bytes > file->header.end - extent->at) {
        return file_damaged(file, err, "an extent lies outside of the file");
    }
    i64 code = disk_read_all(file->file, to, extent->bytes, extent->at);
    if (code) {
        return disk_failed(err, "read", file->path, code);
    }
    if (bytes_sum(to, extent->bytes, 0) != extent->sum) {
        char what[100];
        (void)snprintf(what, sizeof what, "the checksum of %lld bytes at %lld is wrong",
                       (long long)extent->bytes, (long long)extent->at);
        return file_damaged(file, err, what);
    }
    return ERR_OK;
}

/* Columns come past the system's cache, which would copy each page, and take memory for what a frame
 * holds anyway. Not so what is in that cache, or what comes again: there is more than frames may hold,
 * and the cache may hold it. Nor anything of a slow disk: the next process finds it there, then. See
 * decision 0085. */
bool column_goes_past(struct db_file *file, const struct extent *extent, bool again) {
    enum {
#ifdef WF_HARD
        LEAST = 1, /* bytes of a column */
#else
        LEAST = 1 << 17,
#endif
        KNOWN = 32 << 20, /* bytes that were read, to say what the disk is like */
        SLOW = 4,         /* ns a byte: while some reads wait for others */
    };
    i64 bytes = atomic_load(&file->direct_bytes);
    bool slow = bytes >= KNOWN && atomic_load(&file->direct_ns) > bytes * SLOW;
    return file->direct >= 0 && !again && !slow && extent->at % PAGE_BYTES == 0 &&
           extent->bytes >= LEAST && disk_now->cached(file->file, extent->at, extent->bytes) == 0;
}

/* Up to the end of the last page, or of the file. */
static i64 read_pages(i64 file, u8 *to, i64 bytes, i64 at) {
    i64 pages = ALIGN_UP(bytes, PAGE_BYTES);
    for (i64 done = 0; done < bytes;) {
        i64 got = disk_now->read(file, to + done, pages - done, at + done);
        bool ends = got > 0 && done + got < bytes && got % PAGE_BYTES; /* it cannot go on there */
        if (ends || (got <= 0 && got != -EINTR)) {
            return got < 0 ? got : -EIO;
        }
        done += MAX_OF(got, 0);
    }
    return 0;
}

i64 column_read(struct db_file *file, const struct extent *extent, bool again, u8 *to, i64 room) {
    i64 code = -EINVAL;
    bool pages = (size_t)to % PAGE_BYTES == 0 && room >= ALIGN_UP(extent->bytes, PAGE_BYTES);
    if (pages && column_goes_past(file, extent, again)) {
        i64 start = clock_ns();
        code = read_pages(file->direct, to, extent->bytes, extent->at);
        atomic_fetch_add(&file->direct_ns, clock_ns() - start);
        atomic_fetch_add(&file->direct_bytes, extent->bytes);
    }
    return code ? disk_read_all(file->file, to, extent->bytes, extent->at) : 0;
}

bool db_file_note(struct db_file *file, const struct extent *extent) {
    return extent->bytes == 0 || spans_push(&file->used, extent->at, extent->bytes);
}

wf_status db_file_noted(struct db_file *file, struct error *err) {
    spans_sort(&file->used);
    for (i64 i = 0; i < file->used.count; i++) {
        struct span *s = &file->used.items[i];
        bool inside = s->at >= FILE_START && s->at + s->bytes <= file->header.end;
        if (!inside || (i > 0 && s[-1].at + s[-1].bytes > s->at && s[-1].at != s->at)) {
            return file_damaged(file, err, "extents overlap");
        }
    }
    return ERR_OK;
}
