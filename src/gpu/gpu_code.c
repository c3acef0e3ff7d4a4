/* gpu_code.c: from kernel text to loaded functions.
 *
 * Fixed modules come from the list compiled ahead of time, else from NVRTC on first use. Woven text
 * is compiled by a background thread while the virtual machine serves, or at once when the caller
 * waits.
 *
 * Every cubin is kept in memory for the life of the device, and on disk. Its key is made of the
 * text, the embedded headers, the options, the chip and NVRTC's version. A file is written whole or
 * not at all, and carries its key and a checksum. One that does not match, or that somebody else
 * may have written, is as good as absent. An image that was found, not made here, and that the
 * driver refuses is compiled after all.
 *
 * Codes have a lock, which is not held while one is compiled: whoever needs a code that another
 * thread compiles waits for it alone. Modules are loaded by workers; the background thread never
 * touches the context. */
#include "gpu/gpu_int.h"

#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "gpu/gpu_text.h"

#define CACHE_MAGIC 0x324e494255434657ULL /* "WFCUBIN2" */

struct cache_head {
    u64 magic;
    u64 key;   /* of the code, which the file's name says too */
    u64 check; /* of the image that follows */
};

static const char *const module_texts[MODULE_COUNT] = {
#define X(A, name, text, options) text,
    WF_KERNEL_MODULES(X, )
#undef X
};
static const char *const module_options[MODULE_COUNT] = {
#define X(A, name, text, options) options,
    WF_KERNEL_MODULES(X, )
#undef X
};
static const struct {
    enum module_no module;
    const char *name;
} kernel_infos[KERNEL_COUNT] = {
#define X(A, name, module, text, threads) {MODULE_##module, text},
    WF_KERNELS(X, )
#undef X
};

/* --- compiling --- */

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

bool gpu_compile(const struct cu_api *api, const char *text, const char *const *options,
                 i32 option_count, char **out_image, i64 *out_bytes, char log[400]) {
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
    if (api->rtc_create(&program, text, "warpfox.cu", gpu_text_count, texts, names)) {
        snprintf(log, 400, "NVRTC could not start");
    } else if (api->rtc_compile(program, option_count, options)) {
        keep_log(api, program, log);
    } else {
        size_t bytes = 0;
        if (!api->rtc_cubin_size(program, &bytes) && bytes > 0) {
            *out_image = malloc(bytes);
        }
        if (*out_image && !api->rtc_cubin(program, *out_image)) {
            *out_bytes = (i64)bytes;
        } else {
            free(*out_image);
            *out_image = NULL;
            snprintf(log, 400, "NVRTC returned no code");
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

static bool cache_read(struct gpu_card *card, struct code *code) {
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
    }
    file_view_close(&view);
    return code->image != NULL;
}

static void cache_write(struct gpu_card *card, const struct code *code) {
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

/* --- code objects --- */

static u64 code_key(const struct gpu_card *card, const char *text, i64 bytes, const char *options) {
    u64 key = XXH3_64bits_withSeed(text, (size_t)bytes, card->codes.base_key);
    return XXH3_64bits_withSeed(options, strlen(options), key);
}

void gpu_codes_init(struct gpu_card *card) {
    struct gpu_codes *codes = &card->codes;
    memset(codes, 0, sizeof *codes);
    mutex_init(&codes->lock);
    cond_init(&codes->ready);
    int version[3] = {card->chip, 0, 0};
    if (card->api->has_rtc) {
        (void)card->api->rtc_version(&version[1], &version[2]);
    }
    u64 key = XXH3_64bits(version, sizeof version);
    key = XXH3_64bits_withSeed(card->chip_name, strlen(card->chip_name), key);
    for (i32 i = 0; i < gpu_text_count; i++) {
        key = XXH3_64bits_withSeed(gpu_texts[i].text, strlen(gpu_texts[i].text), key);
    }
    codes->base_key = key;
}

static void compile_text(struct gpu_card *card, struct code *code) {
    char chip[40];
    snprintf(chip, sizeof chip, "--gpu-architecture=sm_%d", card->chip);
    const char *options[] = {chip, "--std=c++17", "--fmad=false", "--device-int128", code->options};
    code->found = 0;
    if (!card->api->has_rtc) {
        snprintf(code->log, sizeof code->log, "NVRTC (libnvrtc.so) was not found");
        atomic_store(&code->state, CODE_FAILED);
    } else if (gpu_compile(card->api, code->text, options, code->options[0] ? 5 : 4, &code->image,
                           &code->image_bytes, code->log)) {
        card->codes.compile_count++;
        cache_write(card, code);
        atomic_store(&code->state, CODE_COMPILED);
    } else {
        atomic_store(&code->state, CODE_FAILED);
    }
}

static void compile_now(struct gpu_card *card, struct code *code) {
    if (cache_read(card, code)) {
        card->codes.disk_hits++;
        atomic_store(&code->state, CODE_COMPILED);
    } else {
        compile_text(card, code);
    }
}

static void wait_for(struct gpu_card *card, struct code *code) {
    while (atomic_load(&code->state) == CODE_QUEUED) {
        cond_wait(&card->codes.ready, &card->codes.lock);
    }
}

static void compile_thread(void *arg) {
    struct gpu_card *card = arg;
    struct gpu_codes *codes = &card->codes;
    mutex_lock(&codes->lock);
    while (!codes->stop) {
        struct code *code = codes->queue_head;
        if (!code) {
            cond_wait(&codes->ready, &codes->lock);
            continue;
        }
        codes->queue_head = code->queue_next;
        codes->queue_tail = codes->queue_head ? codes->queue_tail : NULL;
        mutex_unlock(&codes->lock);
        compile_now(card, code);
        mutex_lock(&codes->lock);
        cond_broadcast(&codes->ready);
    }
    mutex_unlock(&codes->lock);
}

static struct code *code_new(struct gpu_card *card, const char *text, i64 bytes,
                             const char *options, u64 key) {
    struct code *code = calloc(1, sizeof *code);
    if (!code) {
        return NULL;
    }
    code->key = key;
    code->options = options;
    code->text = malloc((size_t)bytes + 1);
    if (!code->text) {
        free(code);
        return NULL;
    }
    memcpy(code->text, text, (size_t)bytes);
    code->text[bytes] = 0;
    code->next = card->codes.list;
    card->codes.list = code;
    return code;
}

/* With the lock, which is released meanwhile. */
static void compile_here(struct gpu_card *card, struct code *code) {
    mutex_unlock(&card->codes.lock);
    compile_now(card, code);
    mutex_lock(&card->codes.lock);
    cond_broadcast(&card->codes.ready);
}

/* Compiles it in the background, or here where no thread can be started. */
static void enqueue(struct gpu_card *card, struct code *code) {
    struct gpu_codes *codes = &card->codes;
    if (!codes->thread) {
        codes->thread = thread_start(compile_thread, card);
    }
    if (!codes->thread) {
        compile_here(card, code);
        return;
    }
    if (codes->queue_tail) {
        codes->queue_tail->queue_next = code;
    } else {
        codes->queue_head = code;
    }
    codes->queue_tail = code;
    cond_broadcast(&codes->ready);
}

/* The module and, where `kernel` is named, its function, of an image that was found; whether the
 * driver takes it. A context that is lost stays lost: then compiling would not help. */
static bool takes_found(struct gpu_card *card, struct code *code, const char *kernel) {
    void *function = NULL;
    if (card->api->module_load(&code->module, code->image)) {
        code->module = NULL;
        return false;
    }
    if (kernel && card->api->module_function(&function, code->module, kernel)) {
        (void)card->api->module_unload(code->module);
        code->module = NULL;
        return false;
    }
    return true;
}

static FALLIBLE code_load(struct gpu_card *card, struct code *code, const char *kernel,
                          struct error *err) {
    if (atomic_load(&code->state) != CODE_COMPILED) {
        return ERR_OK;
    }
    if (code->found && code->text && !takes_found(card, code, kernel)) {
        free(code->image);
        code->image = NULL;
        compile_text(card, code);
        if (atomic_load(&code->state) == CODE_FAILED) {
            FAIL(err, GPU,
                 "kernel %s: the image found cannot be loaded, and compiling it failed: %s", kernel,
                 code->log);
        }
    }
    if (!code->module) {
        CARD(card->api->module_load(&code->module, code->image));
    }
    atomic_store(&code->state, CODE_LOADED);
    free(code->text);
    code->text = NULL;
    return ERR_OK;
}

const struct gpu_image *gpu_image_find(const struct gpu_card *card, const char *module) {
    const struct gpu_image *found = NULL;
    for (i32 i = 0; i < gpu_image_count && !card->api->is_simt; i++) {
        const struct gpu_image *image = &gpu_images[i];
        bool runs = image->is_ptx ? image->chip <= card->chip : image->chip == card->chip;
        if (runs && !strcmp(image->module, module) && (!found || found->is_ptx)) {
            found = image;
        }
    }
    return found;
}

/* A fixed module, as it was compiled ahead of time. */
static bool take_image(struct code *code, const struct gpu_image *image) {
    code->image = image ? malloc((size_t)image->bytes) : NULL;
    if (code->image) {
        memcpy(code->image, image->data, (size_t)image->bytes);
        code->image_bytes = image->bytes;
        code->found = 1;
        atomic_store(&code->state, CODE_COMPILED);
    }
    return code->image != NULL;
}

/* The lock is held, here and below. */
static FALLIBLE load_module(struct gpu_card *card, enum module_no no, const char *kernel,
                            struct code **out, struct error *err) {
    struct gpu_codes *codes = &card->codes;
    struct code *code = codes->modules[no];
    if (!code) {
        char text[100];
        i32 bytes = snprintf(text, sizeof text, "#include \"%s.h\"\n", module_texts[no]);
        u64 key = code_key(card, text, bytes, module_options[no]);
        code = code_new(card, text, bytes, module_options[no], key);
        if (!code) {
            return memory_refused(card->mem, err, bytes);
        }
        codes->modules[no] = code;
        if (!take_image(code, gpu_image_find(card, module_texts[no]))) {
            compile_here(card, code);
        }
    }
    wait_for(card, code);
    if (atomic_load(&code->state) == CODE_FAILED) {
        codes->modules[no] = codes->modules[no] == code ? NULL : codes->modules[no];
        FAIL(err, GPU, "kernel module %s cannot be compiled: %s", module_texts[no], code->log);
    } /* the next step tries again */
    *out = code;
    return code_load(card, code, kernel, err);
}

static FALLIBLE load_kernel(struct gpu_card *card, enum kernel_no kernel, void **out,
                            struct error *err) {
    struct code *code = NULL;
    const char *name = kernel_infos[kernel].name;
    TRY(load_module(card, kernel_infos[kernel].module, name, &code, err));
    CARD(card->api->module_function(out, code->module, name));
    atomic_store(&card->codes.kernels[kernel], *out);
    return ERR_OK;
}

wf_status gpu_kernel(struct gpu_card *card, enum kernel_no kernel, void **out, struct error *err) {
    *out = atomic_load(&card->codes.kernels[kernel]);
    if (*out) {
        return ERR_OK;
    }
    mutex_lock(&card->codes.lock);
    wf_status status = load_kernel(card, kernel, out, err);
    mutex_unlock(&card->codes.lock);
    return status;
}

/* --- templates --- */

static struct gpu_made *made_find(struct gpu_card *card, u64 key) {
    struct gpu_made *made = card->codes.made;
    while (made && made->key != key) {
        made = made->next;
    }
    return made;
}

static struct code *code_find(struct gpu_card *card, u64 key) {
    struct code *code = card->codes.list;
    while (code && (code->key != key || atomic_load(&code->state) == CODE_FAILED)) {
        code = code->next;
    }
    return code;
}

static FALLIBLE make_template(struct gpu_card *card, const char *module, const char *defines,
                              struct code **out, struct error *err) {
    char text[2000];
    i32 bytes = snprintf(text, sizeof text, "%s#include \"%s.h\"\n", defines, module);
    CHECK(bytes < (i32)sizeof text);
    u64 key = code_key(card, text, bytes, "");
    struct code *code = code_find(card, key);
    if (!code) {
        code = code_new(card, text, bytes, "", key);
        if (!code) {
            return memory_refused(card->mem, err, bytes);
        }
        compile_here(card, code);
    }
    wait_for(card, code);
    if (atomic_load(&code->state) == CODE_FAILED) {
        FAIL(err, GPU, "kernel module %s cannot be compiled: %s", module, code->log);
    }
    *out = code;
    return ERR_OK;
}

/* While one is compiled another worker may make the same. */
static FALLIBLE find_made(struct gpu_card *card, u64 key, const char *module, const char *defines,
                          struct gpu_made **out, struct error *err) {
    struct code *code = NULL;
    *out = made_find(card, key);
    if (*out) {
        return ERR_OK;
    }
    TRY(make_template(card, module, defines, &code, err));
    *out = made_find(card, key);
    if (!*out) {
        *out = calloc(1, sizeof **out);
        if (!*out) {
            return memory_refused(card->mem, err, (i64)sizeof **out);
        }
        **out = (struct gpu_made){key, code, NULL, card->codes.made};
        card->codes.made = *out;
    }
    return ERR_OK;
}

static FALLIBLE load_made(struct gpu_card *card, struct gpu_made *made, const char *kernel,
                          struct error *err) {
    if (!made->function) {
        TRY(code_load(card, made->code, kernel, err));
        CARD(card->api->module_function(&made->function, made->code->module, kernel));
    }
    return ERR_OK;
}

wf_status gpu_template_function(struct gpu_card *card, const char *module, const char *defines,
                                const char *kernel, void **out, struct error *err) {
    u64 key = XXH3_64bits_withSeed(defines, strlen(defines), XXH3_64bits(module, strlen(module)));
    key = XXH3_64bits_withSeed(kernel, strlen(kernel), key);
    struct gpu_made *made = NULL;
    mutex_lock(&card->codes.lock);
    wf_status status = find_made(card, key, module, defines, &made, err);
    status = status ? status : load_made(card, made, kernel, err);
    *out = status ? NULL : made->function;
    mutex_unlock(&card->codes.lock);
    return status;
}

/* --- woven code --- */

static FALLIBLE find_woven(struct gpu_card *card, const struct text *text, bool wait, void **out,
                           struct error *err) {
    u64 key = code_key(card, text->ptr, text->len, "");
    struct code *code = card->codes.list;
    while (code && (code->key != key || (wait && atomic_load(&code->state) == CODE_FAILED))) {
        code = code->next; /* whoever waits gets another attempt */
    }
    if (!code) {
        code = code_new(card, text->ptr, text->len, "", key);
        if (!code) {
            return memory_refused(card->mem, err, text->len);
        }
        enqueue(card, code);
    }
    if (wait) {
        wait_for(card, code);
    }
    i32 state = atomic_load(&code->state);
    if (state == CODE_FAILED && wait) {
        FAIL(err, GPU, "woven kernel cannot be compiled: %s", code->log);
    }
    if (state == CODE_QUEUED || state == CODE_FAILED) {
        return ERR_OK;
    }
    TRY(code_load(card, code, "k_woven", err));
    if (!code->function) {
        CARD(card->api->module_function(&code->function, code->module, "k_woven"));
        CARD(card->api->func_attribute(&code->regs, CU_FUNC_REGS, code->function));
    }
    *out = code->function;
    return ERR_OK;
}

wf_status gpu_woven(struct gpu_card *card, const struct text *text, bool wait, void **out,
                    struct error *err) {
    *out = NULL;
    mutex_lock(&card->codes.lock);
    wf_status status = find_woven(card, text, wait, out, err);
    mutex_unlock(&card->codes.lock);
    return status;
}

void gpu_codes_unload(struct gpu_card *card) {
    struct gpu_codes *codes = &card->codes;
    mutex_lock(&codes->lock);
    for (struct code *code = codes->list; code; code = code->next) {
        if (atomic_load(&code->state) == CODE_LOADED) {
            (void)card->api->module_unload(code->module);
            atomic_store(&code->state, CODE_COMPILED);
        }
        code->module = NULL;
        code->function = NULL;
    }
    for (i32 i = 0; i < KERNEL_COUNT; i++) {
        atomic_store(&codes->kernels[i], NULL);
    }
    for (struct gpu_made *made = codes->made; made; made = made->next) {
        made->function = NULL;
    }
    mutex_unlock(&codes->lock);
}

void gpu_codes_fini(struct gpu_card *card, bool context_alive) {
    struct gpu_codes *codes = &card->codes;
    mutex_lock(&codes->lock);
    codes->stop = true;
    cond_broadcast(&codes->ready);
    mutex_unlock(&codes->lock);
    if (codes->thread) {
        thread_join(codes->thread);
    }
    if (context_alive) {
        gpu_codes_unload(card);
    }
    for (struct gpu_made *made = codes->made, *next; made; made = next) {
        next = made->next;
        free(made);
    }
    for (struct code *code = codes->list, *next; code; code = next) {
        next = code->next;
        free(code->text);
        free(code->image);
        free(code);
    }
    cond_fini(&codes->ready);
    mutex_fini(&codes->lock);
}
