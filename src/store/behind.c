/* behind.c: columns that a load has packed go to the file while their worker packs the next ones.
 *
 * They go past the system's cache where the disk lets them: copying them there took as much of a core as
 * packing their numbers does, and they are in memory anyway. A thread waits for the disk in the workers' place.
 * When it has enough to do, or memory is short, a worker waits itself. A load goes on with its next
 * tablet meanwhile: all that it put here is done when write_wait returns; what could not be written
 * is nowhere, and the commit tries again. Pages belong to one column, so what stands behind it in the
 * last one is nobody's.
 *
 * See decisions 0063 and 0085. */
#include "store/behind.h"

#include "store/frames_int.h"

enum { WAITING_MOST = 2, SPARE_DESKS = 16 };

struct behind {
    struct memory *mem;
    struct db_file *file;
    struct mutex lock; /* of what follows */
    struct cond more, done;
    struct thread *thread;
    struct column_write waiting[WAITING_MOST];
    i32 count;
    b8 stop;
};

struct behind *behind_open(struct memory *mem, struct db_file *file) {
    struct behind *behind = mem_alloc(mem, (i64)sizeof *behind);
    if (behind) {
        memset(behind, 0, sizeof *behind);
        behind->mem = mem;
        behind->file = file;
        mutex_init(&behind->lock);
        cond_init(&behind->more);
        cond_init(&behind->done);
    }
    return behind;
}

void behind_close(struct behind *behind) {
    if (!behind) {
        return;
    }
    mutex_lock(&behind->lock);
    behind->stop = 1;
    cond_broadcast(&behind->more);
    mutex_unlock(&behind->lock);
    if (behind->thread) {
        thread_join(behind->thread);
    }
    cond_fini(&behind->done);
    cond_fini(&behind->more);
    mutex_fini(&behind->lock);
    mem_free(behind->mem, behind, (i64)sizeof *behind);
}

static void write_column(struct behind *behind, struct column_write *write) {
    struct extent *made = &write->made, none = {0};
    struct db_file *file = behind->file;
    i64 pages = ALIGN_UP(made->bytes, PAGE_BYTES), code = -1;
    if (file->direct >= 0 && (size_t)write->from % PAGE_BYTES == 0) {
        code = disk_write_all(file->direct, write->from, pages, made->at);
    }
    if (code) {
        code = disk_write_all(file->file, write->from, made->bytes, made->at);
        disk_now->hurry(file->file, made->at, made->bytes);
    }
    if (code) {
        frame_place(write->frame, &none);
    } else {
        *write->place = *made;
        frame_saved(write->frame);
    }
    desk_fini(&write->desk);
}

static void write_waiting(void *arg) {
    struct behind *behind = arg;
    mutex_lock(&behind->lock);
    while (behind->count || !behind->stop) {
        if (!behind->count) {
            cond_wait(&behind->more, &behind->lock);
            continue;
        }
        struct column_write write = behind->waiting[0];
        memmove(behind->waiting, behind->waiting + 1, (size_t)--behind->count * sizeof write);
        mutex_unlock(&behind->lock);
        write_column(behind, &write);
        mutex_lock(&behind->lock);
        --*write.left;
        cond_broadcast(&behind->done);
    }
    mutex_unlock(&behind->lock);
}

/* False: there is enough to do already. */
static bool put_behind(struct behind *behind, const struct column_write *write) {
    bool spare = memory_left(behind->mem) / SPARE_DESKS > write->desk.bytes;
    mutex_lock(&behind->lock);
    bool put = behind->file->direct >= 0 && spare && behind->count < WAITING_MOST;
    if (put && !behind->thread) {
        behind->thread = thread_start(write_waiting, behind);
        put = behind->thread != NULL;
    }
    if (put) {
        behind->waiting[behind->count++] = *write;
        ++*write->left;
        cond_broadcast(&behind->more);
    }
    mutex_unlock(&behind->lock);
    return put;
}

void column_put(struct behind *behind, struct column_write *write, struct desk *desk) {
    bool on_desk = write->from == desk->at;
    if (on_desk) {
        memset(desk->at + write->made.bytes, 0, (size_t)(-write->made.bytes & (PAGE_BYTES - 1)));
        write->desk = *desk;
        write->desk.words = NULL;
    }
    write->desk.mem = desk->mem;
    if (put_behind(behind, write)) {
        if (on_desk) {
            desk_lose(desk);
        }
        return;
    }
    write->desk = (struct desk){.mem = desk->mem};
    write_column(behind, write);
}

void write_wait(struct behind *behind, const i32 *left) {
    mutex_lock(&behind->lock);
    while (*left) {
        cond_wait(&behind->done, &behind->lock);
    }
    mutex_unlock(&behind->lock);
}
