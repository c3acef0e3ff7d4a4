/* gpu_compile.c: NVRTC: one text, the folder of what was compiled before, and the threads that
 * compile while statements run.
 *
 * Codes wait in one queue. Whoever is waited for comes first, then whatever has cost most so far:
 * what steps took longer without it. In the background at most half the cores compile; while a
 * statement waits, all of them may. NVRTC's programs know nothing of each other. A thread touches
 * no context, and holds the codes' lock only to take a code and to hand it back. Closing the card
 * stops what is being compiled where NVRTC can be stopped.
 *
 * A file on disk is written whole or not at all, and carries its key and a checksum. One that does
 * not match, or that somebody else may have written, is as good as absent. */
#include "gpu/gpu_int.h"

#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "base/moment.h"
#include "gpu/gpu_text.h"

#define CACHE_MAGIC 0x324e494255434657ULL /* "WFCUBIN2" */

struct cache_head {
    u64 magic;
    u64 key;   /* of the code, which the file's name says too */
    u64 check; /* of the image that follows */
};

#define LOOK_NS 20000000   /* between looks at whether the statement is cancelled */
#define WRITTEN_NS 1000000 /* between looks at whether a file is written */
#define TELL_NS 1000000000 /* a statement that waits longer says so */
#define RTC_INVALID_OPTION 5

/* --- one text --- */

static void keep_log(const struct cu_api *api, void *program, char log[400]) {
    size_t bytes = 0;
    if (api->rtc_log_size(program, &bytes) || bytes == 0) {
        snprintf(log, 400, "NVRTC gave no message");
        return;
    }
    char *text = malloc(bytes + 1);
    if (text && !api->rtc_log(program, text)) {
        text[bytes] = 0;
        const char *error = strstr(text, "error");
        snprintf(log, 400, "%s", error && error - text > 100 ? error - 100 : text);
    }
    free(text);
}

/* NVRTC asks this now and then; 1 ends the compilation. */
static int is_stopped(void *stop, void *unused) {
    UNUSED(unused);
    return atomic_load((_Atomic b8 *)stop);
}

static bool take_cubin(const struct cu_api *api, void *program, char **out_image, i64 *out_bytes,
                       char log[400]) {
    size_t bytes = 0;
    if (!api->rtc_cubin_size(program, &bytes) && bytes > 0) {
        *out_image = malloc(bytes);
    }
    if (*out_image && !api->rtc_cubin(program, *out_image)) {
        *out_bytes = (i64)bytes;
        return true;
    }
    free(*out_image);
    *out_image = NULL;
    snprintf(log, 400, "NVRTC returned no code");
    return false;
}

bool gpu_compile(const struct cu_api *api, struct compile_job *job, char **out_image,
                 i64 *out_bytes, char log[400]) {
    *out_image = NULL;
    *out_bytes = 0;
    log[0] = 0;
    const char **names = malloc(sizeof(char *) * 2 * (size_t)MAX_OF(gpu_text_count, 1));
    if (!names) {
        snprintf(log, 400, "out of memory");
        return false;
    }
    const char **texts = names + gpu_text_count;
    for (i32 i = 0; i < gpu_text_count; i++) {
        names[i] = gpu_texts[i].name;
        texts[i] = gpu_texts[i].text;
    }
    void *program = NULL;
    if (api->rtc_create(&program, job->text, "warpfox.cu", gpu_text_count, texts, names)) {
        snprintf(log, 400, "NVRTC could not start");
    } else {
        if (job->stop && api->rtc_set_flow) {
            (void)api->rtc_set_flow(program, is_stopped, job->stop);
        }
        int code = api->rtc_compile(program, job->sure_count + job->more_count, job->options);
        if (code == RTC_INVALID_OPTION && job->more_count) { /* an older NVRTC */
            job->refused = 1;
            code = api->rtc_compile(program, job->sure_count, job->options);
        }
        if (code) {
            keep_log(api, program, log);
        } else {
            (void)take_cubin(api, program, out_image, out_bytes, log);
        }
    }
    if (program) {
        (void)api->rtc_destroy(&program);
    }
    free(names);
    return *out_image != NULL;
}

/* --- the cache on disk --- */

static bool cache_path(const struct gpu_card *card, u64 key, char *out, size_t bytes, char *dir) {
    const char *own = getenv("WARPFOX_CACHE");
    const char *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (own && own[0]) {
        snprintf(dir, bytes, "%s", own);
    } else if (card->api->is_simt) {
        return false; /* its objects depend on how it was built, which no key knows */
    } else if (xdg && xdg[0]) {
        snprintf(dir, bytes, "%s/warpfox", xdg);
    } else if (home && home[0]) {
        snprintf(dir, bytes, "%s/.cache/warpfox", home);
    } else {
        return false;
    }
    return (size_t)snprintf(out, bytes, "%s/%016llx.cubin", dir, key) < bytes;
}

bool gpu_code_read(struct gpu_card *card, struct code *code) {
    char path[2048];
    char dir[2048];
    struct error err;
    struct file_view view;
    error_reset(&err);
    if (!cache_path(card, code->key, path, sizeof path, dir) || !file_exists(path) ||
        file_view_open(&view, path, &err)) {
        return false;
    }
    struct cache_head head;
    i64 bytes = view.bytes - (i64)sizeof head;
    const char *data = view.data + sizeof head;
    if (view.own && bytes > 0) {
        memcpy(&head, view.data, sizeof head);
        bool fits = head.magic == CACHE_MAGIC && head.key == code->key &&
                    head.check == XXH3_64bits(data, (size_t)bytes);
        code->image = fits ? malloc((size_t)bytes) : NULL;
    }
    if (code->image) {
        memcpy(code->image, data, (size_t)bytes);
        code->image_bytes = bytes;
        code->found = 1;
        card->codes.disk_hits++;
        atomic_store(&code->state, CODE_COMPILED);
    }
    file_view_close(&view);
    return code->image != NULL;
}

static void write_code(struct gpu_card *card, const struct code *code) {
    char path[2048];
    char dir[2048];
    struct error err;
    error_reset(&err);
    if (!cache_path(card, code->key, path, sizeof path, dir) || file_make_dirs(dir, &err)) {
        return;
    }
    struct cache_head head = {CACHE_MAGIC, code->key,
                              XXH3_64bits(code->image, (size_t)code->image_bytes)};
    size_t bytes = sizeof head + (size_t)code->image_bytes;
    char *file = malloc(bytes);
    if (file) {
        memcpy(file, &head, sizeof head);
        memcpy(file + sizeof head, code->image, (size_t)code->image_bytes);
        wf_status ignored = file_write_all(path, file, (i64)bytes, &err);
        UNUSED(ignored); /* a cache that cannot be written is only a slower start */
        free(file);
    }
}

/* A process that ends waits for a file that was begun, and for nothing else. */
static void cache_write(struct gpu_card *card, const struct code *code) {
    atomic_fetch_add(&card->codes.writing, 1);
    if (!atomic_load(&card->codes.ending)) {
        write_code(card, code);
    }
    atomic_fetch_sub(&card->codes.writing, 1);
}

/* --- codes --- */

/* What whoever looks at moments calls it: a module's line, or the kernel. */
static const char *moment_name(const struct code *code) {
    return strstr(code->text, "k_woven") ? "woven" : code->text;
}

static f64 ms_since(i64 start) {
    return (f64)(clock_ns() - start) / 1e6;
}

void gpu_code_compile(struct gpu_card *card, struct code *code) {
    char chip[40];
    snprintf(chip, sizeof chip, "--gpu-architecture=sm_%d", card->chip);
    const char *options[] = {chip,        "--std=c++17",        "--fmad=false", "--device-int128",
                             "--minimal", "--Ofast-compile=mid"};
    struct compile_job job = {.text = code->text,
                              .options = options,
                              .sure_count = 4,
                              .more_count = code->quick ? 2 : 1,
                              .stop = &card->codes.stop};
    code->found = 0;
    bool made = false;
    const char *name = moment_name(code);
    i64 start = clock_ns();
    if (card->api->has_rtc) {
        made = gpu_compile(card->api, &job, &code->image, &code->image_bytes, code->log);
    } else {
        snprintf(code->log, sizeof code->log, "NVRTC (libnvrtc.so) was not found");
    }
    if (job.refused && code->quick) { /* it was compiled well after all */
        atomic_store(&card->codes.slow_only, 1);
        code->quick = 0;
    }
    moment("%s %.*s %04x %s in %.1f ms", made ? "compiled" : "did not compile", (int)strcspn(name, "\n"),
           name, (u32)(code->key & 0xffff), code->quick ? "quickly" : "well", ms_since(start));
    if (made) {
        card->codes.compile_count++;
        cache_write(card, code);
    }
    atomic_store(&code->state,
                 made ? CODE_COMPILED : CODE_FAILED); /* from here on others read it */
}

static void compile_now(struct gpu_card *card, struct code *code) {
    if (!gpu_code_read(card, code)) {
        gpu_code_compile(card, code);
    }
}

/* --- the queue; the lock is held, but for compiling --- */

static bool is_before(const struct code *a, const struct code *b) {
    return (a->waiters > 0) != (b->waiters > 0) ? a->waiters > 0 : a->gain > b->gain;
}

static struct code *take_first(struct gpu_codes *codes) {
    struct code **best = &codes->queue;
    for (struct code **at = best; *at; at = &(*at)->queue_next) {
        best = is_before(*at, *best) ? at : best;
    }
    struct code *code = *best;
    if (code) {
        *best = code->queue_next;
        codes->queue_count--;
    }
    return code;
}

static void compile_taken(struct gpu_card *card, struct code *code) {
    card->codes.busy++;
    mutex_unlock(&card->codes.lock);
    compile_now(card, code);
    mutex_lock(&card->codes.lock);
    card->codes.busy--;
    cond_broadcast(&card->codes.ready);
}

static void compile_thread(void *arg) {
    struct gpu_card *card = arg;
    struct gpu_codes *codes = &card->codes;
    mutex_lock(&codes->lock);
    while (!atomic_load(&codes->stop)) {
        struct code *code = take_first(codes);
        if (code) {
            compile_taken(card, code);
        } else {
            cond_wait(&codes->ready, &codes->lock);
        }
    }
    mutex_unlock(&codes->lock);
}

/* As many threads as there is work for; `all`: on every core. */
static void start_threads(struct gpu_card *card, bool all) {
    struct gpu_codes *codes = &card->codes;
    i32 cores = cpu_count();
    i32 most = MIN_OF(all ? cores : MAX_OF(cores / 2, 1), COMPILERS_MOST);
    while (codes->thread_count < MIN_OF(most, codes->busy + codes->queue_count)) {
        struct thread *thread = thread_start(compile_thread, card);
        if (!thread) {
            return;
        }
        codes->threads[codes->thread_count++] = thread;
    }
}

void gpu_code_enqueue(struct gpu_card *card, struct code *code) {
    struct gpu_codes *codes = &card->codes;
    struct code **last = &codes->queue;
    while (*last) {
        last = &(*last)->queue_next;
    }
    *last = code;
    code->queued = 1;
    codes->queue_count++;
    start_threads(card, false);
    if (codes->thread_count) {
        cond_broadcast(&codes->ready);
    } else { /* no thread can be started: here, then */
        compile_taken(card, take_first(codes));
    }
}

static void tell(struct gpu_card *card, struct exec *x) {
    char text[300];
    snprintf(
        text, sizeof text,
        "compiling kernels for %.100s (sm_%d), for which this build has none; they are kept for "
        "later statements",
        card->chip_name, card->chip);
    x->compiling_told = 1;
    mutex_unlock(&card->codes.lock);
    x->tell(x->tell_arg, text);
    mutex_lock(&card->codes.lock);
}

/* Whoever asks for woven kernels knows what takes so long, whoever has no others may not. */
static bool is_long(const struct gpu_card *card, const struct exec *x, i64 waited_ns) {
    return x->tell && !x->compiling_told && !card->codes.has_machine &&
           x->compiling_ns + waited_ns > TELL_NS;
}

wf_status gpu_code_wait(struct gpu_card *card, struct code *code, struct exec *x) {
    wf_status status = ERR_OK;
    i64 start = clock_ns();
    code->waiters++;
    start_threads(card, true);
    while (!status && atomic_load(&code->state) == CODE_QUEUED) {
        (void)cond_wait_ns(&card->codes.ready, &card->codes.lock, LOOK_NS);
        status = x ? exec_check(x) : ERR_OK;
        if (x && is_long(card, x, clock_ns() - start)) {
            tell(card, x);
        }
    }
    code->waiters--;
    if (x) {
        x->compiling_ns += clock_ns() - start;
    }
    if (ms_since(start) > 1) {
        moment("waited %.1f ms for %04x", ms_since(start), (u32)(code->key & 0xffff));
    }
    return status;
}

void gpu_compilers_stop(struct gpu_card *card) {
    struct gpu_codes *codes = &card->codes;
    mutex_lock(&codes->lock);
    atomic_store(&codes->stop, 1);
    cond_broadcast(&codes->ready);
    mutex_unlock(&codes->lock);
    for (i32 i = 0; i < codes->thread_count; i++) { /* nobody starts another: the card is closed */
        thread_join(codes->threads[i]);
    }
}

void gpu_compilers_end(struct gpu_card *card) {
    struct gpu_codes *codes = &card->codes;
    mutex_lock(&codes->lock);
    atomic_store(&codes->stop, 1);
    atomic_store(&codes->ending, 1);
    while (atomic_load(&codes->writing)) {
        (void)cond_wait_ns(&codes->ready, &codes->lock, WRITTEN_NS);
    }
    mutex_unlock(&codes->lock);
}
