/* database.c: opening and closing a database, and finding its GPU when one is needed.
 *
 * A database is a memory budget, a pool of workers, a catalog and the devices. Opening it does no
 * more than that. The pool starts its threads with the first statement. The GPU driver takes
 * hundreds of milliseconds to start, so it is loaded only when a session asks for the GPU, or when,
 * under `auto`, a statement reads so many rows that the card can win back its own start. Smaller
 * ones go on without it; once they have taken longer than a start, the card is opened in the
 * background.
 *
 * Invariant: nothing here is freed while a connection, statement or rowset still counts on it. */
#include "session/session_int.h"

#include "run/tries.h"

#include <stdlib.h>

#include "base/moment.h"
#include "cpu/cpu.h"
#include "gpu/gpu.h"

enum { AUTO_GPU_ROWS = 32 << 20 }; /* under auto, fewer source rows do not pay for opening a GPU */
enum { AUTO_LEAST_ROWS = 1 << 16 };  /* fewer are not worth a card, however often they are read */
enum { PROGRAM_SHARE = 8, PROGRAM_BYTES = 8 << 20 }; /* of a budget: what the program itself takes, at most */
#define GPU_START_NS 300000000       /* what opening one takes, about */

static FALLIBLE path_refused(const char *path, struct error *err) {
    error_set(err, ERR_NOT_SUPPORTED, -1,
              "Parquet files are not supported yet: \"%.300s\" was not opened", path);
    error_hint(err, "Start without a file and load CSV or TBL text: COPY table FROM 'file.csv'.");
    return err->code;
}

static bool is_parquet(const char *path) {
    i64 len = (i64)strlen(path);
    return len >= 8 && sv_eq_nocase((struct sv){path + len - 8, 8}, SV(".parquet"));
}

static FALLIBLE apply_options(struct settings *settings, const wf_option *options,
                              struct error *err) {
    for (const wf_option *o = options; o && o->name; o++) {
        if (!o->value) {
            FAIL(err, INVALID_PARAMETER, "option \"%s\" has no value", o->name);
        }
        TRY(setting_set(settings, sv_from(o->name), sv_from(o->value), true, err));
    }
    return ERR_OK;
}

static FALLIBLE database_init(struct wf_database *db, const char *path, const wf_option *options,
                              struct error *err) {
    settings_init(&db->defaults);
    if (path && is_parquet(path)) {
        return path_refused(path, err);
    }
    TRY(apply_options(&db->defaults, options, err));
    i64 budget = db->defaults.memory;
    if (!budget) {
        budget = machine_memory_bytes() / 5 * 4;
    }
    memory_init(&db->mem, NULL, budget, "memory");
    db->mem.program_bytes = MIN_OF(budget / PROGRAM_SHARE, (i64)PROGRAM_BYTES);
    i32 threads = db->defaults.threads ? (i32)db->defaults.threads : cpu_count();
    db->pool = pool_open(threads);
    db->tries = db->pool ? tries_open(&db->mem) : NULL;
    db->catalog = db->tries ? catalog_open(&db->mem) : NULL;
    db->cpu = db->catalog ? cpu_device_open() : NULL;
    if (!db->cpu) {
        return memory_refused(&db->mem, err, 1 << 16);
    }
    if (!path) {
        return ERR_OK;
    }
    struct db_file *file;
    TRY(db_file_open(&db->mem, path, db->defaults.readonly, &file, err));
    db_file_set_aside(file, setting_folder(&db->defaults), db->defaults.temp_size);
    catalog_set_rows(db->catalog, kept_collect, db);
    return catalog_attach(db->catalog, file, db->defaults.checkpoint_size, err);
}

FALLIBLE database_open(const char *path, const wf_option *options, struct wf_database **out,
                       struct error *err) {
    *out = NULL;
    moment("opens %s", path ? path : "a database in memory");
    struct wf_database *db = calloc(1, sizeof *db);
    if (!db) {
        FAIL(err, OUT_OF_MEMORY, "out of host memory");
    }
    atomic_init(&db->refs, 1);
    mutex_init(&db->lock);
    temp_exit_init(&db->temp_exit);
    cond_init(&db->gpu_opened);
    wf_status status = database_init(db, path, options, err);
    if (status) {
        database_release(db);
    } else {
        *out = db;
    }
    moment("the database is open");
    return status;
}

struct wf_database *database_retain(struct wf_database *db) {
    atomic_fetch_add(&db->refs, 1);
    return db;
}

void database_release(struct wf_database *db) {
    if (atomic_fetch_sub(&db->refs, 1) != 1) {
        return;
    }
    if (db->opener) {
        thread_join(db->opener);
    }
    if (db->catalog) {
        struct error ignored; /* what is not saved is in the log */
        error_reset(&ignored);
        (void)!catalog_detach(db->catalog, &ignored);
    }
    keep_sweep(db, true); /* what is kept went to the file */
    catalog_close(db->catalog);
    tries_close(db->tries);
    /* After the tables: their pinned buffers are unpinned through a card. */
    for (u32 i = 0; i < db->gpu_count; i++) {
        db->gpus[i]->close(db->gpus[i]);
    }
    if (db->cpu) {
        db->cpu->close(db->cpu);
    }
    if (db->pool) {
        pool_close(db->pool);
    }
    cond_fini(&db->gpu_opened);
    temp_exit_fini(&db->temp_exit);
    mutex_fini(&db->lock);
    free(db);
}

void database_leave(struct wf_database *db) {
    moment("the process leaves");
    if (db->catalog) {
        struct error ignored; /* as above */
        error_reset(&ignored);
        (void)!catalog_detach(db->catalog, &ignored);
    }
    mutex_lock(&db->lock);
    for (u32 i = 0; i < db->gpu_count; i++) {
        db->gpus[i]->end(db->gpus[i]);
    }
    mutex_unlock(&db->lock);
    moment("everything is written");
}

/* All cards that can be used, each as often as it has workers. */
static u32 find_gpus(struct wf_database *db, struct device **out, char why[300]) {
    enum { MOST = COUNT_OF(((struct wf_database *)0)->gpus) };
    u32 found = 0;
    i32 count = gpu_count(why);
    for (i32 i = 0; i < count && found < MOST; i++) {
        struct device *gpu = gpu_device_open(&db->mem, db->defaults.gpu_memory, i, why);
        for (i64 w = 1; gpu; w++) {
            out[found++] = gpu;
            bool more = w < db->defaults.gpu_workers && found < MOST;
            gpu = more ? gpu_device_share(gpu, why) : NULL;
        }
    }
    return found;
}

/* The lock is held, and let go while they are opened. Who comes meanwhile waits. */
static void open_gpus(struct wf_database *db, bool measures) {
    while (db->gpu_opening) {
        cond_wait(&db->gpu_opened, &db->lock);
    }
    if (db->gpu_tried) {
        return;
    }
    struct device *gpus[COUNT_OF(db->gpus)];
    char why[300] = "";
    db->gpu_opening = 1;
    mutex_unlock(&db->lock);
    u32 count = find_gpus(db, gpus, why);
    for (u32 i = 0; measures && i < count; i++) {
        struct device_rates rates;
        gpus[i]->rates(gpus[i], NULL, &rates);
    }
    mutex_lock(&db->lock);
    memcpy(db->gpus, gpus, sizeof *gpus * count);
    memcpy(db->no_gpu, why, sizeof why);
    db->gpu_count = count;
    db->gpu_opening = 0;
    db->gpu_tried = 1;
    cond_broadcast(&db->gpu_opened);
}

static void open_behind(void *arg) {
    struct wf_database *db = arg;
    mutex_lock(&db->lock);
    open_gpus(db, true);
    mutex_unlock(&db->lock);
}

static void open_soon(void *arg) {
    struct wf_database *db = arg;
    mutex_lock(&db->lock);
    open_gpus(db, false);
    mutex_unlock(&db->lock);
}

void database_begin_gpu(struct wf_database *db, const struct settings *settings) {
    if (settings->device != DEVICE_GPU) {
        return;
    }
    mutex_lock(&db->lock);
    if (!db->gpu_tried && !db->gpu_opening && !db->opener) {
        db->opener = thread_start(open_soon, db);
    }
    mutex_unlock(&db->lock);
}

void database_spent(struct wf_database *db, const struct settings *settings, i64 rows, i64 ns) {
    if (settings->device == DEVICE_CPU || rows < AUTO_LEAST_ROWS) {
        return;
    }
    mutex_lock(&db->lock);
    db->spent_ns += db->gpu_tried ? 0 : ns;
    if (!db->gpu_tried && !db->gpu_opening && !db->opener && db->spent_ns > GPU_START_NS) {
        db->opener = thread_start(open_behind, db);
    }
    mutex_unlock(&db->lock);
}

struct device *database_gpu(struct wf_database *db) {
    mutex_lock(&db->lock);
    open_gpus(db, false);
    struct device *gpu = db->gpus[0];
    mutex_unlock(&db->lock);
    return gpu;
}

bool database_without_gpu(struct wf_database *db) {
    mutex_lock(&db->lock);
    bool none = db->gpu_tried && !db->gpu_count;
    mutex_unlock(&db->lock);
    return none;
}

bool database_has_gpu(struct wf_database *db) {
    mutex_lock(&db->lock);
    bool some = db->gpu_count > 0;
    mutex_unlock(&db->lock);
    return some;
}

i64 database_near_bytes(struct wf_database *db) {
    const i64 usual = 50LL << 20; /* of cards that have not been asked yet */
    mutex_lock(&db->lock);
    i64 bytes = db->gpu_count > 0 ? db->gpus[0]->near_bytes : usual;
    mutex_unlock(&db->lock);
    return bytes;
}

i64 database_room_bytes(struct wf_database *db) {
    mutex_lock(&db->lock);
    i64 bytes = db->gpu_count > 0 ? db->gpus[0]->room_bytes : db->defaults.gpu_memory;
    mutex_unlock(&db->lock);
    return bytes;
}

/* Those that are open. */
static void list_devices(struct wf_database *db, struct run_devices *out) {
    *out = (struct run_devices){.count = 1, .list = {db->cpu}};
    for (u32 i = 0; i < db->gpu_count; i++) {
        out->list[out->count++] = db->gpus[i];
    }
    out->alone = db->no_gpu;
}

void database_open_devices(struct wf_database *db, struct run_devices *out) {
    mutex_lock(&db->lock);
    list_devices(db, out);
    mutex_unlock(&db->lock);
}

/* A machine without a card says so; only one that has a card is told why it rests. */
static bool gpu_rests(struct wf_database *db) {
    mutex_lock(&db->lock);
    if (!db->gpu_tried && !db->gpu_opening && !gpu_count(db->no_gpu)) {
        db->gpu_tried = 1;
    }
    bool rests = !db->gpu_tried;
    mutex_unlock(&db->lock);
    return rests;
}

/* Under auto: whether a statement reads too few rows to open a card for. */
static bool has_few(const struct settings *settings, i64 rows) {
    bool given = settings->mix_devices || (setting_shares(settings) && settings->hybrid_share);
    return settings->device != DEVICE_GPU && rows < AUTO_GPU_ROWS && !given;
}

bool database_starts_gpu(struct wf_database *db, const struct settings *settings, i64 rows) {
    mutex_lock(&db->lock);
    bool tried = db->gpu_tried;
    mutex_unlock(&db->lock);
    return settings->device != DEVICE_CPU && !tried && !has_few(settings, rows);
}

void database_devices(struct wf_database *db, const struct settings *settings, i64 rows,
                      bool explains, struct run_devices *out) {
    *out = (struct run_devices){
        .count = 1, .list = {db->cpu}, .alone = "the session asks for the CPU"};
    if (settings->device == DEVICE_CPU) {
        return;
    }
    mutex_lock(&db->lock);
    bool tried = db->gpu_tried;
    bool opening = db->gpu_opening;
    mutex_unlock(&db->lock);
    if (!tried && has_few(settings, rows)) {
        out->alone = opening ? "the GPU is being started" : "too few rows to start the GPU for";
        if (!explains || gpu_rests(db)) {
            return;
        }
    }
    mutex_lock(&db->lock);
    open_gpus(db, false);
    list_devices(db, out);
    mutex_unlock(&db->lock);
}
