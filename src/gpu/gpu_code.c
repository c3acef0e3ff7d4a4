/* gpu_code.c: from kernel text to loaded functions.
 *
 * Fixed modules come from the list compiled ahead of time, else from NVRTC on first use. Woven text
 * is compiled in the background (gpu_compile.c) while the virtual machine serves, or while the
 * caller waits. Where no machine was compiled ahead for the chip nobody compiles it: it takes NVRTC
 * half a minute. There all that a program is known to ask for is compiled from its first step on
 * (foresee of gpu_device.c, decision 0092), and a text is compiled twice, quickly while its first
 * step waits, and well in the background; steps change over between two launches.
 *
 * Every cubin is kept in memory for the life of the device, and on disk. Its key is made of the
 * text, the embedded headers, the options, the chip and NVRTC's version. An image that was found,
 * not made here, and that the driver refuses is compiled after all.
 *
 * Codes have a lock, which is not held while one is compiled: whoever needs a code that another
 * thread compiles waits for it alone. Modules are loaded by workers. */
#include "gpu/gpu_int.h"

#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/moment.h"
#include "gpu/gpu_text.h"

static const char *const module_texts[MODULE_COUNT] = {
#define X(A, name, text, options) text,
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

/* --- code objects --- */

static u64 code_key(const struct gpu_card *card, const char *text, i64 bytes, const char *options) {
    u64 key = XXH3_64bits_withSeed(text, (size_t)bytes, card->codes.base_key);
    return XXH3_64bits_withSeed(options, strlen(options), key);
}

static struct code *code_new(struct gpu_card *card, const char *text, i64 bytes, u64 key) {
    struct code *code = calloc(1, sizeof *code);
    if (!code) {
        return NULL;
    }
    code->key = key;
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
    i64 start = clock_ns();
    if (code->found && code->text && !takes_found(card, code, kernel)) {
        free(code->image);
        code->image = NULL;
        gpu_code_compile(card, code);
        if (atomic_load(&code->state) == CODE_FAILED) {
            FAIL(err, GPU,
                 "kernel %s: the image found cannot be loaded, and compiling it failed: %s", kernel,
                 code->log);
        }
    }
    if (!code->module) {
        CARD(card->api->module_load(&code->module, code->image));
    }
    moment("loaded %s %04x, %lld bytes, in %.1f ms", kernel, (u32)(code->key & 0xffff),
           (long long)code->image_bytes, (f64)(clock_ns() - start) / 1e6);
    atomic_store(&code->state, CODE_LOADED);
    free(code->text);
    code->text = NULL;
    return ERR_OK;
}

/* Machine code runs on later chips of its generation, PTX on all later ones. */
static bool image_runs(const struct gpu_card *card, const struct gpu_image *image) {
    return image->chip <= card->chip && (image->is_ptx || image->chip / 10 == card->chip / 10);
}

static bool image_is_better(const struct gpu_image *image, const struct gpu_image *than) {
    return !than || (image->is_ptx != than->is_ptx ? !image->is_ptx : image->chip > than->chip);
}

const struct gpu_image *gpu_image_find(const struct gpu_card *card, const char *module) {
    const struct gpu_image *found = NULL;
    for (i32 i = 0; i < gpu_image_count && !card->api->is_simt; i++) {
        const struct gpu_image *image = &gpu_images[i];
        if (!strcmp(image->module, module) && image_runs(card, image) &&
            image_is_better(image, found)) {
            found = image;
        }
    }
    return found;
}

/* Whether the virtual machine is there without compiling it. The driver needs as long for its PTX
 * as NVRTC for half of its text: only where nothing else can be had. The simt driver's sm_90 stands
 * for a chip with a machine. */
static bool has_machine(const struct gpu_card *card) {
    const struct gpu_image *image = gpu_image_find(card, "vm_rows");
    bool made = card->api->is_simt ? card->chip == 90 : image && !image->is_ptx;
    return made || !card->api->has_rtc;
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

/* The lock is held, here and below. NULL: memory is short. */
static struct code *module_code(struct gpu_card *card, enum module_no no) {
    struct code *code = card->codes.modules[no];
    if (!code) {
        char text[100];
        i32 bytes = snprintf(text, sizeof text, "#include \"%s.h\"\n", module_texts[no]);
        code = code_new(card, text, bytes, code_key(card, text, bytes, ""));
        card->codes.modules[no] = code;
        if (code && !take_image(code, gpu_image_find(card, module_texts[no]))) {
            gpu_code_enqueue(card, code);
        }
    }
    return code;
}

static FALLIBLE load_module(struct gpu_card *card, enum module_no no, const char *kernel,
                            struct exec *x, struct code **out, struct error *err) {
    struct gpu_codes *codes = &card->codes;
    struct code *code = module_code(card, no);
    if (!code) {
        return memory_refused(card->mem, err, (i64)sizeof *code);
    }
    TRY(gpu_code_wait(card, code, x));
    if (atomic_load(&code->state) == CODE_FAILED) {
        codes->modules[no] = codes->modules[no] == code ? NULL : codes->modules[no];
        FAIL(err, GPU, "kernel module %s cannot be compiled: %s", module_texts[no], code->log);
    } /* the next step tries again */
    *out = code;
    return code_load(card, code, kernel, err);
}

static FALLIBLE load_kernel(struct gpu_card *card, enum kernel_no kernel, struct exec *x,
                            void **out, struct error *err) {
    struct code *code = NULL;
    const char *name = kernel_infos[kernel].name;
    TRY(load_module(card, kernel_infos[kernel].module, name, x, &code, err));
    CARD(card->api->module_function(out, code->module, name));
    atomic_store(&card->codes.kernels[kernel], *out);
    return ERR_OK;
}

wf_status gpu_kernel(struct gpu_card *card, enum kernel_no kernel, struct exec *x, void **out,
                     struct error *err) {
    *out = atomic_load(&card->codes.kernels[kernel]);
    if (*out) {
        return ERR_OK;
    }
    mutex_lock(&card->codes.lock);
    wf_status status = load_kernel(card, kernel, x, out, err);
    mutex_unlock(&card->codes.lock);
    return status;
}

void gpu_module_begin(struct gpu_card *card, enum module_no no) {
    mutex_lock(&card->codes.lock);
    (void)module_code(card, no); /* whoever needs it finds out that memory is short */
    mutex_unlock(&card->codes.lock);
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
    codes->has_machine = has_machine(card);
    if (!codes->has_machine) { /* while the context is made: nearly every statement asks for these */
        gpu_module_begin(card, MODULE_AGG_STATE);
        gpu_module_begin(card, MODULE_BUILD_BITS);
        gpu_module_begin(card, MODULE_FETCH);
    }
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

static FALLIBLE make_template(struct gpu_card *card, struct exec *x, const char *module,
                              const char *defines, struct code **out) {
    struct error *err = x->err;
    char text[2000];
    i32 bytes = snprintf(text, sizeof text, "%s#include \"%s.h\"\n", defines, module);
    CHECK(bytes < (i32)sizeof text);
    u64 key = code_key(card, text, bytes, "");
    struct code *code = code_find(card, key);
    if (!code) {
        code = code_new(card, text, bytes, key);
        if (!code) {
            return memory_refused(card->mem, err, bytes);
        }
        gpu_code_enqueue(card, code);
    }
    TRY(gpu_code_wait(card, code, x));
    if (atomic_load(&code->state) == CODE_FAILED) {
        FAIL(err, GPU, "kernel module %s cannot be compiled: %s", module, code->log);
    }
    *out = code;
    return ERR_OK;
}

/* While one is compiled another worker may make the same. */
static FALLIBLE find_made(struct gpu_card *card, struct exec *x, u64 key, const char *module,
                          const char *defines, struct gpu_made **out) {
    struct code *code = NULL;
    *out = made_find(card, key);
    if (*out) {
        return ERR_OK;
    }
    TRY(make_template(card, x, module, defines, &code));
    *out = made_find(card, key);
    if (!*out) {
        *out = calloc(1, sizeof **out);
        if (!*out) {
            return memory_refused(card->mem, x->err, (i64)sizeof **out);
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

wf_status gpu_template_function(struct gpu_card *card, struct exec *x, const char *module,
                                const char *defines, const char *kernel, void **out) {
    u64 key = XXH3_64bits_withSeed(defines, strlen(defines), XXH3_64bits(module, strlen(module)));
    key = XXH3_64bits_withSeed(kernel, strlen(kernel), key);
    struct gpu_made *made = NULL;
    mutex_lock(&card->codes.lock);
    wf_status status = find_made(card, x, key, module, defines, &made);
    status = status ? status : load_made(card, made, kernel, x->err);
    *out = status ? NULL : made->function;
    mutex_unlock(&card->codes.lock);
    return status;
}

/* --- woven code --- */

/* The code of a text, made when missing. One that failed stays so, unless somebody waits: who waits
 * gets another attempt. */
static FALLIBLE woven_code(struct gpu_card *card, const struct text *text, bool quick, bool waits,
                           struct code **out, struct error *err) {
    u64 key = code_key(card, text->ptr, text->len, quick ? "quick" : "");
    struct code *code = card->codes.list;
    while (code && (code->key != key || (waits && atomic_load(&code->state) == CODE_FAILED))) {
        code = code->next;
    }
    if (!code) {
        code = code_new(card, text->ptr, text->len, key);
        if (!code) {
            return memory_refused(card->mem, err, text->len);
        }
        code->quick = quick;
    }
    *out = code;
    return ERR_OK;
}

static FALLIBLE woven_wait(struct gpu_card *card, struct code *code, struct exec *x,
                           struct error *err) {
    if (!code->queued && atomic_load(&code->state) == CODE_QUEUED) {
        gpu_code_enqueue(card, code);
    }
    TRY(gpu_code_wait(card, code, x));
    if (atomic_load(&code->state) == CODE_FAILED) {
        FAIL(err, GPU, "woven kernel cannot be compiled: %s", code->log);
    }
    return ERR_OK;
}

static FALLIBLE woven_load(struct gpu_card *card, struct code *code, void **out,
                           struct error *err) {
    TRY(code_load(card, code, "k_woven", err));
    if (!code->function) {
        CARD(card->api->module_function(&code->function, code->module, "k_woven"));
        CARD(card->api->func_attribute(&code->regs, CU_FUNC_REGS, code->function));
    }
    *out = code->function;
    return ERR_OK;
}

static bool is_compiled(const struct code *code) {
    i32 state = atomic_load(&code->state);
    return state == CODE_COMPILED || state == CODE_LOADED;
}

static FALLIBLE find_woven(struct gpu_card *card, struct woven_ask *ask, void **out,
                           struct error *err) {
    struct code *code = NULL;
    bool hurry = ask->how == WOVEN_QUICKLY && !atomic_load(&card->codes.slow_only);
    bool waits = ask->how == WOVEN_WAIT || (ask->how == WOVEN_QUICKLY && !hurry);
    TRY(woven_code(card, ask->text, false, waits, &code, err));
    code->gain += ask->gain;
    bool fresh = atomic_load(&code->state) == CODE_QUEUED && !code->queued;
    if (fresh && hurry && !code->looked) {
        code->looked = 1; /* what an earlier process compiled is there sooner than anything */
        fresh = !gpu_code_read(card, code);
    }
    if (waits) {
        TRY(woven_wait(card, code, ask->x, err));
    } else if (fresh && !hurry) {
        gpu_code_enqueue(card, code);
    }
    if (is_compiled(code)) {
        return woven_load(card, code, out, err);
    }
    ask->is_coming = ask->gain && atomic_load(&code->state) != CODE_FAILED;
    if (!hurry) {
        return ERR_OK;
    }
    struct code *quick = NULL;
    TRY(woven_code(card, ask->text, true, true, &quick, err));
    TRY(woven_wait(card, quick, ask->x, err));
    if (ask->gain && quick->quick && !code->queued) {
        gpu_code_enqueue(card, code);
    }
    ask->is_quick = quick->quick;
    return woven_load(card, quick, out, err);
}

wf_status gpu_woven(struct gpu_card *card, struct woven_ask *ask, void **out, struct error *err) {
    *out = NULL;
    ask->is_quick = ask->is_coming = 0;
    mutex_lock(&card->codes.lock);
    wf_status status = find_woven(card, ask, out, err);
    mutex_unlock(&card->codes.lock);
    return status;
}

void gpu_woven_begin(struct gpu_card *card, const struct text *text) {
    struct code *well = NULL;
    struct code *code = NULL;
    struct error err;
    error_reset(&err);
    mutex_lock(&card->codes.lock);
    wf_status status = woven_code(card, text, false, false, &well, &err);
    status = status
                 ? status
                 : woven_code(card, text, !atomic_load(&card->codes.slow_only), false, &code, &err);
    bool fresh = !status && !well->looked && !well->queued && !is_compiled(well);
    if (fresh) {
        well->looked = 1;
        fresh = !gpu_code_read(card, well);
    }
    if (fresh && !code->queued && atomic_load(&code->state) == CODE_QUEUED) {
        moment("foresees %04x", (u32)(code->key & 0xffff));
        gpu_code_enqueue(card, code);
    }
    mutex_unlock(&card->codes.lock);
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
    gpu_compilers_stop(card);
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
