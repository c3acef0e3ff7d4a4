/* module.c: loads kernel objects, finds kernels in them, queues launches.
 *
 * A function's argument struct size and thread bound come from the `_info` object the KERNEL word
 * leaves beside each kernel, so a launch copies exactly the struct, at the time of the call, as the
 * driver does. Limits that a real launch would refuse are refused here with the same codes. */
#define _GNU_SOURCE
#include "simt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct simt_module *modules;

static void close_module(struct simt_module *module) {
    while (module->functions != NULL) {
        struct simt_function *f = module->functions;
        module->functions = f->next;
        free(f->name);
        free(f);
    }
    if (module->object != NULL) {
        dlclose(module->object);
    }
    free(module->path);
    free(module);
}

void simt_module_reset(void) {
    while (modules != NULL) {
        struct simt_module *m = modules;
        modules = m->next;
        close_module(m);
    }
}

static struct simt_module *find_module(const void *handle) {
    struct simt_module *m = modules;
    while (m != NULL && m != handle) {
        m = m->next;
    }
    return m;
}

static struct simt_function *find_function(const void *handle) {
    for (struct simt_module *m = modules; m != NULL; m = m->next) {
        for (struct simt_function *f = m->functions; f != NULL; f = f->next) {
            if (f == handle) {
                return f;
            }
        }
    }
    return NULL;
}

static int load(const void *image, struct simt_module *module) {
    char path[1024];
    int code = simt_image_file(image, path, sizeof(path));
    if (code != 0) {
        return code;
    }
    void (*bind)(const struct simt_bridge *, struct simt_extent *);
    module->path = strdup(path);
    module->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module->path == NULL || module->object == NULL) {
        const char *why = dlerror();
        simt_report("cannot load %s: %s", path, why == NULL ? "?" : why);
        return SIMT_INVALID_IMAGE;
    }
    void *symbol = dlsym(module->object, "simt_bind");
    if (symbol == NULL) {
        return SIMT_INVALID_IMAGE;
    }
    memcpy(&bind, &symbol, sizeof(bind));
    bind(simt_bridge_get(), &module->extent);
    return 0;
}

int cuModuleLoadData(void **out, const void *image) {
    int code = simt_enter("cuModuleLoadData", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    struct simt_module *module = calloc(1, sizeof(*module));
    code = module == NULL ? SIMT_OUT_OF_MEMORY : load(image, module);
    if (code != 0) {
        if (module != NULL) {
            close_module(module);
        }
        return simt_leave(code);
    }
    module->next = modules;
    modules = module;
    *out = module;
    return simt_leave(0);
}

int cuModuleUnload(void *handle) {
    int code = simt_enter("cuModuleUnload", SIMT_CTX | SIMT_ALWAYS);
    if (code != 0) {
        return code;
    }
    struct simt_module *module = find_module(handle);
    if (module == NULL) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    code = simt_force_all();
    struct simt_module **at = &modules;
    while (*at != module) {
        at = &(*at)->next;
    }
    *at = module->next;
    close_module(module);
    return simt_leave(code);
}

static struct simt_function *make_function(struct simt_module *module, const char *name) {
    char info_name[256];
    int n = snprintf(info_name, sizeof(info_name), "%s_info", name);
    if (n < 0 || (size_t)n >= sizeof(info_name)) {
        return NULL;
    }
    void *run = dlsym(module->object, name);
    void *info = dlsym(module->object, info_name);
    struct simt_function *f = calloc(1, sizeof(*f));
    if (run == NULL || info == NULL || f == NULL || (f->name = strdup(name)) == NULL) {
        free(f);
        return NULL;
    }
    memcpy(&f->run, &run, sizeof(run));
    f->info = info;
    f->module = module;
    /* Without cuFuncSetAttribute 48 KB are for the kernel's own arrays and dynamic memory together:
     * a GPU refuses a launch with exactly 48 KB of the latter. Arrays are known here only once they
     * have been met, so 1 KB is set aside for them. */
    f->shared_max_bytes = SIMT_STATIC_SHARED_BYTES - 1024;
    f->next = module->functions;
    module->functions = f;
    return f;
}

int cuModuleGetFunction(void **out, void *handle, const char *name) {
    int code = simt_enter("cuModuleGetFunction", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    struct simt_module *module = find_module(handle);
    if (module == NULL) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    struct simt_function *f = module->functions;
    while (f != NULL && strcmp(f->name, name) != 0) {
        f = f->next;
    }
    f = f == NULL ? make_function(module, name) : f;
    *out = f;
    return simt_leave(f == NULL ? SIMT_NOT_FOUND : 0);
}

enum {
    ATTRIBUTE_MAX_THREADS = 0,
    ATTRIBUTE_SHARED = 1,
    ATTRIBUTE_REGISTERS = 4,
    ATTRIBUTE_DYNAMIC = 8
};

int cuFuncGetAttribute(int *out, int attribute, void *function) {
    int code = simt_enter("cuFuncGetAttribute", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    const struct simt_function *f = find_function(function);
    if (f == NULL) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    *out = attribute == ATTRIBUTE_MAX_THREADS ? (int)f->info->max_threads
           : attribute == ATTRIBUTE_SHARED    ? (int)f->shared_static_bytes
           : attribute == ATTRIBUTE_REGISTERS ? 32
           : attribute == ATTRIBUTE_DYNAMIC   ? (int)f->shared_max_bytes
                                              : 0;
    return simt_leave(0);
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
    int code = simt_enter("cuFuncSetAttribute", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    struct simt_function *f = find_function(function);
    if (f == NULL) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    if (attribute == ATTRIBUTE_DYNAMIC) {
        if (value < 0 || value > SIMT_SHARED_BYTES) {
            return simt_leave(SIMT_INVALID_VALUE);
        }
        f->shared_max_bytes = (u32)value;
    }
    return simt_leave(0);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void *function, int block_threads,
                                                size_t shared_bytes) {
    int code = simt_enter("cuOccupancyMaxActiveBlocksPerMultiprocessor", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    const struct simt_function *f = find_function(function);
    if (f == NULL) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    if (block_threads <= 0) {
        return simt_leave(SIMT_INVALID_VALUE);
    }
    u64 block_bytes = shared_bytes + f->shared_static_bytes + 1024;
    b8 fits = (u32)block_threads <= f->info->max_threads && shared_bytes <= f->shared_max_bytes;
    *out = !fits ? 0 : block_bytes * SIMT_BLOCKS_PER_SM > 228 * 1024 ? 1 : SIMT_BLOCKS_PER_SM;
    return simt_leave(0);
}

static b8 launch_fits(const struct simt_function *f, u32 gx, u32 bx, u32 shared_bytes) {
    const char *why = gx == 0 || gx > INT32_MAX ? "no blocks, or too many"
                      : bx == 0 || bx > f->info->max_threads || bx > SIMT_MAX_THREADS
                          ? "more threads than the kernel declares"
                      : shared_bytes > f->shared_max_bytes
                          ? "more dynamic shared memory than was asked for by cuFuncSetAttribute"
                          : NULL;
    if (why != NULL) {
        simt_report("launch of %s refused: %s", f->name, why);
    }
    return why == NULL;
}

/* Many because it is CUDA's. */
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared_bytes, void *stream, void **params, void **extra) {
    int code = simt_enter("cuLaunchKernel", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    struct simt_function *f = find_function(function);
    if (f == NULL) {
        return simt_leave(SIMT_INVALID_HANDLE);
    }
    if (gy != 1 || gz != 1 || by != 1 || bz != 1) {
        simt_report("launch of %s refused: the grid and the block must have one dimension", f->name);
        return simt_leave(SIMT_INVALID_VALUE);
    }
    if (params == NULL || extra != NULL || !launch_fits(f, gx, bx, shared_bytes)) {
        return simt_leave(SIMT_INVALID_VALUE);
    }
    struct simt_launch *launch = malloc(sizeof(*launch) + f->info->arg_bytes);
    if (launch == NULL) {
        return simt_leave(SIMT_OUT_OF_MEMORY);
    }
    launch->function = f;
    launch->blocks = gx;
    launch->threads = bx;
    launch->shared_bytes = shared_bytes;
    memcpy(launch->args, params[0], f->info->arg_bytes);
    simt_trace("launch %s: %u blocks of %u threads", f->name, gx, bx);
    return simt_leave(simt_queue_launch(stream, launch));
}
