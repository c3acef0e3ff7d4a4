/* log.c: the log: what was committed since the header's state was saved.
 *
 * A commit is one record; it is durable when the log has been synced behind it. Whoever waits for
 * that first does it for all that have written by then (group commit). The checksum of a record is
 * seeded with the database and the generation of its header, so what an older log left behind reads
 * as nothing. A record says up to which number records were durable when it was written. So a
 * reader that meets a torn record can tell a crash, which loses only what nobody was promised, from
 * damage: a whole record anywhere that was written after the torn one had been synced.
 *
 * A state may be saved while commits go on. Records behind those that it contains stay where they
 * are; the next ones go to the start of the log again, where enough of it is free. A jump says so:
 * a record without a number that names the place of the next. It takes no time to speak of, so a
 * commit never waits for a save. The file is kept as long as it was, and grows by many records at
 * once, filled with zeros: a sync of bytes that are there already is cheaper, since the file system
 * has nothing to note. Zeros read as no record.
 *
 * Two slots at the start say whose log it is, written in turn, as the generation is even or odd. */
#include "store/file_int.h"

#include <errno.h>

enum { RECORD_MARK = 0x31524657, JUMP_MARK = 0x314a4657 }; /* "WFR1", "WFJ1" */
#ifdef WF_HARD
enum { REUSE_BYTES = 16 << 10, GROW_BYTES = 4 << 10 }; /* test builds: neither is rare */
#else
enum {
    REUSE_BYTES = 4 << 20, /* the start is written again when so much of it is free */
    GROW_BYTES = 1 << 20,  /* the file grows by so much */
};
#endif
enum {
    KEPT_BYTES = 256 << 20, /* a longer file becomes short again */
};

struct log_slot {
    u8 magic[16];
    u32 format;
    u32 zero;
    u64 id, generation;
    u64 sum;
};
struct record {
    u64 sum; /* of all behind it, payload included */
    u32 mark;
    u32 bytes;
    u64 number; /* of a jump: of the record that follows it */
    u64 synced;
};
enum { JUMP_BYTES = sizeof(struct record) + 8 };

static u64 slot_sum(const struct log_slot *slot) {
    return bytes_sum(slot, (i64)offsetof(struct log_slot, sum), 0);
}

static u64 record_sum(const struct db_file *file, u64 generation, const struct record *record) {
    u64 seed = file->header.id ^ hash_u64(generation);
    return bytes_sum(&record->mark, (i64)sizeof *record - 8 + record->bytes, seed);
}

wf_status log_open(struct db_file *file, struct error *err) {
    file->log = disk_now->open(file->log_path, file->read_only ? DISK_READ : DISK_WRITE);
    return file->log >= 0 || file->log == -ENOENT
               ? ERR_OK
               : disk_failed(err, "open", file->log_path, file->log);
}

wf_status log_look(struct db_file *file, struct error *err) {
    if (file->log < 0 && file->header.flags & HEADER_LOG) {
        error_set(err, ERR_DAMAGED, -1, "the log \"%.300s\" is missing", file->log_path);
        error_hint(err, "Commits since the last checkpoint are in it. Put it back beside the "
                        "database; nothing was written.");
        return err->code;
    }
    return ERR_OK;
}

wf_status log_claim(struct db_file *file, struct error *err) {
    bool is_made = file->log < 0;
    file->log = file->log >= 0 ? file->log : disk_now->open(file->log_path, DISK_CREATE);
    if (file->log < 0) {
        return disk_failed(err, "create", file->log_path, file->log);
    }
    file->log_room = disk_now->size(file->log);
    char holder[HOLDER_BYTES] = "";
    disk_holder(holder, HOLDER_BYTES, 0);
    i64 code = disk_write_all(file->log, holder, HOLDER_BYTES, HOLDER_AT);
    if (code && is_made) {
        (void)disk_now->remove(file->log_path); /* it has nothing */
    }
    return code ? disk_failed(err, "write", file->log_path, code) : ERR_OK;
}

/* The next record goes to the start: nothing in the log is needed. */
static void restart(struct db_file *file) {
    file->log_at = FILE_START;
    file->log_limit = I64_MAX;
    file->log_live = 0;
}

/* Zeros behind the last record, where the file ends with it. Without them all goes on, slowly. */
static void make_room(struct db_file *file) {
    if (file->log_at <= file->log_room) {
        return;
    }
    u8 *zeros = mem_alloc(file->mem, GROW_BYTES);
    file->log_room = file->log_at;
    if (zeros) {
        memset(zeros, 0, GROW_BYTES);
        if (!disk_write_all(file->log, zeros, GROW_BYTES, file->log_at)) {
            file->log_room += GROW_BYTES;
        }
        mem_free(file->mem, zeros, GROW_BYTES);
    }
}

static FALLIBLE put_record(struct db_file *file, u32 mark, const void *payload, i64 bytes,
                           struct error *err) {
    i64 whole = ALIGN_UP((i64)sizeof(struct record) + bytes, 8);
    u8 *block = mem_alloc(file->mem, whole);
    if (!block) {
        return memory_refused(file->mem, err, whole);
    }
    struct record *record = (struct record *)(void *)block;
    memset(block + whole - 8, 0, 8);
    *record = (struct record){.mark = mark, .bytes = (u32)bytes, .number = file->last + 1};
    mutex_lock(&file->lock);
    record->synced = file->synced;
    mutex_unlock(&file->lock);
    memcpy(record + 1, payload, (size_t)bytes);
    record->sum = record_sum(file, file->header.log_generation, record);
    i64 code = disk_write_all(file->log, block, whole, file->log_at);
    mem_free(file->mem, block, whole);
    if (code) {
        return disk_failed(err, "write", file->log_path, code);
    }
    file->log_at += whole;
    file->log_live += whole;
    make_room(file);
    return ERR_OK;
}

static FALLIBLE jump(struct db_file *file, i64 to, struct error *err) {
    TRY(put_record(file, JUMP_MARK, &to, (i64)sizeof to, err));
    file->log_at = to;
    file->log_limit = I64_MAX;
    file->log_jumped = 1;
    return ERR_OK;
}

static FALLIBLE write_slot(struct db_file *file, u64 generation, struct error *err) {
    struct log_slot slot = {.format = FILE_FORMAT, .id = file->header.id, .generation = generation};
    memcpy(slot.magic, LOG_MAGIC, sizeof slot.magic);
    slot.sum = slot_sum(&slot);
    i64 place = slot.generation % 2 ? PAGE_BYTES : 0;
    i64 code = disk_write_all(file->log, &slot, (i64)sizeof slot, place);
    if (code) {
        return disk_failed(err, "write", file->log_path, code);
    }
    return sync_done(file, file->log_path, disk_now->sync(file->log), err);
}

struct log_mark log_mark(struct db_file *file) {
    file->log_jumped = 0;
    return (struct log_mark){.record = file->last,
                             .at = file->log_ready ? file->log_at : FILE_START,
                             .live = file->log_live};
}

void log_header(const struct db_file *file, const struct log_mark *mark, struct header *header) {
    bool logs = header->flags & HEADER_LOG;
    header->log_generation = logs ? header->log_generation : 0;
    header->log_from = !logs                         ? 0
                       : file->last == mark->record ? FILE_START
                                                     : mark->at;
}

void log_saved(struct db_file *file, const struct log_mark *mark) {
    mutex_lock(&file->lock);
    file->synced = MAX_OF(file->synced, mark->record); /* saved is as good */
    cond_broadcast(&file->synced_more);
    mutex_unlock(&file->lock);
    mem_free(file->mem, file->log_read, file->log_read_bytes);
    file->log_read = NULL;
    file->log_replayed = 0;
    if (!(file->header.flags & HEADER_LOG)) {
        file->log_ready = 0;
    } else if (file->last == mark->record) {
        restart(file);
        if (disk_now->size(file->log) > KEPT_BYTES) {
            (void)disk_now->resize(file->log, FILE_START);
            file->log_room = 0;
        }
    } else {
        file->log_live -= mark->live;
        file->log_limit = I64_MAX; /* what lay behind it is in the file */
        if (!file->log_jumped && mark->at - FILE_START >= REUSE_BYTES) {
            struct error ignored; /* it goes on where it is, then */
            error_reset(&ignored);
            i64 behind = file->log_at + JUMP_BYTES;
            if (!jump(file, FILE_START, &ignored)) {
                file->log_limit = mark->at;
                file->log_next = behind;
            }
        }
    }
}

/* The first record since the file was opened, or since it was saved for good: the header says from
 * now on that there is a log, without which the file is not to be opened. The slot comes first: where a
 * header names a log, it was there. */
static FALLIBLE begin(struct db_file *file, struct error *err) {
    struct header header = file->header;
    CHECK(!log_is_replayed(file));
    header.flags |= HEADER_LOG;
    header.log_generation = header.generation + 1; /* its own, then */
    header.log_from = FILE_START;
    TRY(sync_done(file, file->log_path, disk_now->sync_folder(file->log_path), err));
    TRY(write_slot(file, header.log_generation, err));
    TRY(header_write(file, &header, err));
    restart(file); /* it takes records of the header's log from here on */
    file->log_ready = 1;
    return ERR_OK;
}

wf_status log_append(struct db_file *file, const void *payload, i64 bytes, u64 *out_number,
                     struct error *err) {
    CHECK(bytes <= LOG_RECORD_MOST);
    TRY(db_file_check(file, err));
    TRY(file->log_ready ? ERR_OK : begin(file, err));
    i64 whole = ALIGN_UP((i64)sizeof(struct record) + bytes, 8);
    if (file->log_at + whole + JUMP_BYTES > file->log_limit) {
        TRY(jump(file, file->log_next, err));
    }
    TRY(put_record(file, RECORD_MARK, payload, bytes, err));
    mutex_lock(&file->lock);
    *out_number = ++file->last;
    mutex_unlock(&file->lock);
    return ERR_OK;
}

wf_status log_sync(struct db_file *file, u64 number, struct error *err) {
    wf_status status = ERR_OK;
    mutex_lock(&file->lock);
    while (file->synced < number && !file->failed) {
        if (file->syncing) {
            cond_wait(&file->synced_more, &file->lock);
            continue;
        }
        u64 upto = file->last;
        file->syncing = 1;
        mutex_unlock(&file->lock);
        i64 code = disk_now->sync(file->log);
        mutex_lock(&file->lock);
        file->syncing = 0;
        file->failed = file->failed || code != 0;
        file->synced = code ? file->synced : MAX_OF(upto, file->synced);
        status = code ? disk_failed(err, "sync", file->log_path, code) : ERR_OK;
        cond_broadcast(&file->synced_more);
    }
    bool missed = file->synced < number;
    mutex_unlock(&file->lock);
    return status || !missed ? status : db_file_check(file, err);
}

bool log_is_replayed(const struct db_file *file) {
    return file->log_replayed;
}

i64 log_bytes(const struct db_file *file) {
    return file->log_ready ? file->log_live : 0;
}

void log_remove(struct db_file *file) {
    /* After a failure nobody knows what the header on the disk says. */
    bool needed = file->failed || file->header.flags & HEADER_LOG;
    if (file->log >= 0 && !file->read_only && !needed) {
        disk_now->close(file->log);
        file->log = -1;
        (void)disk_now->remove(file->log_path);
    }
}

/* reading */

/* The record of a log at a place of what was read; NULL: there is no whole one. */
static const struct record *record_of(const struct db_file *file, u64 generation, i64 at) {
    const struct record *record = (const struct record *)(const void *)(file->log_read + at);
    i64 left = file->log_read_bytes - at - (i64)sizeof *record;
    bool marked = left >= 0 && (record->mark == RECORD_MARK || record->mark == JUMP_MARK);
    bool fits = marked && (i64)record->bytes <= left && record->bytes <= LOG_RECORD_MOST;
    return fits && record->sum == record_sum(file, generation, record) ? record : NULL;
}

static const struct record *record_at(const struct db_file *file, i64 at) {
    return record_of(file, file->header.log_generation, at);
}

/* Nothing may be anywhere that was written when `number` had been synced. */
static bool is_cut(const struct db_file *file, u64 number) {
    bool cut = false;
    for (i64 at = FILE_START; at + (i64)sizeof(struct record) <= file->log_read_bytes && !cut;
         at += 8) {
        const struct record *later = (const struct record *)(const void *)(file->log_read + at);
        cut = later->synced >= number && record_at(file, at);
    }
    return cut;
}

/* The record of a number: at *io_at, or where a jump from there leads. NULL: there is none. */
static const struct record *follow(const struct db_file *file, i64 *io_at, u64 number) {
    const struct record *record = record_at(file, *io_at);
    for (i32 jumps = 0; record && record->mark == JUMP_MARK && jumps < 2; jumps++) {
        i64 to = 0;
        memcpy(&to, record + 1, record->bytes == sizeof to ? sizeof to : 0);
        bool inside = to >= FILE_START && to % 8 == 0 && to < file->log_read_bytes;
        if (record->number != number || !inside) {
            return NULL;
        }
        *io_at = to;
        record = record_at(file, to);
    }
    return record && record->mark == RECORD_MARK && record->number == number ? record : NULL;
}

static FALLIBLE read_all(struct db_file *file, i64 size, struct error *err) {
    i64 bytes = MAX_OF(ALIGN_UP(size, 8), FILE_START); /* both slots, be they there or not */
    file->log_read = mem_alloc(file->mem, bytes);
    if (!file->log_read) {
        return memory_refused(file->mem, err, bytes);
    }
    i64 zeros = MIN_OF(bytes, FILE_START);
    memset(file->log_read + bytes - zeros, 0, (size_t)zeros);
    file->log_read_bytes = bytes;
    i64 code = disk_read_all(file->log, file->log_read, size, 0);
    return code ? disk_failed(err, "read", file->log_path, code) : ERR_OK;
}

static bool slot_is(const struct db_file *file, i64 at, u64 *out_generation, bool *io_foreign) {
    struct log_slot slot;
    memcpy(&slot, file->log_read + at, sizeof slot);
    *out_generation = slot.generation;
    bool whole = memcmp(slot.magic, LOG_MAGIC, sizeof slot.magic) == 0 && slot.sum == slot_sum(&slot);
    *io_foreign |= whole && slot.id != file->header.id;
    return whole && slot.id == file->header.id;
}

/* Somebody moved or copied one of the two: what is in the log must not be lost. */
static FALLIBLE refuse_log(const struct db_file *file, struct error *err) {
    error_set(err, ERR_DAMAGED, -1, "the log \"%.300s\" belongs to another database", file->log_path);
    error_hint(err, "Nothing was written. Put it back where it was, and the database's own in its place; one that was "
                    "closed has none.");
    return err->code;
}

/* Whether the log is the header's; an older one has nothing that is not in the file. One that was begun,
 * but whose header never came, has no record, and the one before it was not needed any more. */
static FALLIBLE find_slot(struct db_file *file, bool *out_current, struct error *err) {
    u64 even, odd, generation = file->header.log_generation;
    bool foreign = false, has_even = slot_is(file, 0, &even, &foreign),
         has_odd = slot_is(file, PAGE_BYTES, &odd, &foreign);
    u64 newest = MAX_OF(has_even ? even : 0, has_odd ? odd : 0);
    *out_current = (has_even && even == generation) || (has_odd && odd == generation);
    bool newer = newest > file->header.generation;
    bool begun = newest == file->header.generation + 1 && !record_of(file, newest, FILE_START);
    bool gone = file->header.flags & HEADER_LOG && !*out_current;
    if (foreign) {
        return refuse_log(file, err);
    }
    if ((newer || gone) && !begun) {
        return file_damaged(file, err, newer ? "its log is newer than its header"
                                             : "the start of its log cannot be read");
    }
    return ERR_OK;
}

wf_status log_replay(struct db_file *file, log_reader reader, void *arg, i64 *out_count,
                     struct error *err) {
    *out_count = 0;
    i64 size = file->log >= 0 ? disk_now->size(file->log) : 0;
    if (size < 0) {
        return disk_failed(err, "read", file->log_path, size);
    }
    if (size <= FILE_START && !(file->header.flags & HEADER_LOG)) {
        return ERR_OK;
    }
    bool is_current = false;
    TRY(read_all(file, size, err));
    TRY(find_slot(file, &is_current, err));
    i64 at = file->header.log_from;
    const struct record *record = is_current ? follow(file, &at, file->last + 1) : NULL;
    while (record) {
        TRY(reader(arg, (const u8 *)(record + 1), record->bytes, err));
        file->last = file->synced = record->number;
        at += ALIGN_UP((i64)sizeof *record + record->bytes, 8);
        ++*out_count;
        file->log_replayed = 1;
        record = follow(file, &at, file->last + 1);
    }
    if (is_current && is_cut(file, file->last + 1)) {
        return file_damaged(file, err, "a committed record of its log cannot be read");
    }
    return ERR_OK;
}
