/* test_simt.c: the simt driver runs right kernels right, and catches each kind of wrong one.
 *
 * Every test compiles its own text through the driver's NVRTC, so the whole way is covered. The
 * rules (shared-memory races, divergence, bounds, order of streams, text in both languages) each
 * have a kernel that breaks them and must be reported, with the line where one is due. All of it
 * runs with three seeds. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/word.h"
#include "defs/cu_api.def"

#define FIELD(A, field, symbol, params) int(*field) params;
static struct {
    WF_CU_DRIVER(FIELD, _)
    WF_CU_NVRTC(FIELD, _)
} cu;
#undef FIELD

static const char *(*report)(void);
static void (*clear_report)(void);
static u64 (*call_count)(void);
static void *library;
static void *context;
static void *stream;
static char *word_text;

enum { NOT_READY = 600, ILLEGAL_ADDRESS = 700, MISALIGNED = 716, LAUNCH_FAILED = 719 };

static void *symbol_of(const char *name) {
    void *p = dlsym(library, name);
    assert_non_null(p);
    return p;
}

static void open_library(void) {
    char candidates[4][1200] = {"", "", "", ""};
    char self[1024] = "";
    const char *given = getenv("WARPFOX_CUDA");
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n < 0 ? 0 : n] = 0;
    char *slash = strrchr(self, '/');
    if (slash != NULL) {
        *slash = 0;
    }
    snprintf(candidates[0], sizeof(candidates[0]), "%s", given == NULL ? "" : given);
    snprintf(candidates[1], sizeof(candidates[1]), "%s/../libcuda-simt.so", self);
    snprintf(candidates[2], sizeof(candidates[2]), "%s/libcuda-simt.so", self);
    snprintf(candidates[3], sizeof(candidates[3]), "%s/build-simt/libcuda-simt.so", SOURCE_DIR);
    for (int i = 0; i < 4 && library == NULL; i++) {
        library = candidates[i][0] == 0 ? NULL : dlopen(candidates[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) {
        fprintf(stderr, "no libcuda-simt.so: %s\n", dlerror());
        exit(1);
    }
}

static char *read_source(const char *name) {
    char path[1200];
    snprintf(path, sizeof(path), "%s/%s", SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return text;
}

static void load_driver(void) {
    open_library();
#define LOAD(A, field, symbol, params)    \
    do {                                  \
        void *p = symbol_of(#symbol);     \
        memcpy(&cu.field, &p, sizeof(p)); \
    } while (0);
    WF_CU_DRIVER(LOAD, _)
    WF_CU_NVRTC(LOAD, _)
#undef LOAD
    void *p = symbol_of("simtReport");
    memcpy(&report, &p, sizeof(p));
    p = symbol_of("simtClearReport");
    memcpy(&clear_report, &p, sizeof(p));
    p = symbol_of("simtCallCount");
    memcpy(&call_count, &p, sizeof(p));
    word_text = read_source("src/base/word.h");
}

/* Compiles; 0 or the error, with the log. */
static int compile(const char *text, char **image, char *log, size_t log_bytes) {
    const char *options[] = {"--gpu-architecture=sm_90", "--device-int128", "-fmad=false"};
    const char *names[] = {"base/word.h", "prelude.h"};
    const char *headers[] = {word_text, "replaced"};
    void *program;
    size_t bytes;
    *image = NULL;
    assert_int_equal(cu.rtc_create(&program, text, "test.cu", 2, headers, names), 0);
    int code = cu.rtc_compile(program, 3, options);
    assert_int_equal(cu.rtc_log_size(program, &bytes), 0);
    char *whole = malloc(bytes);
    assert_non_null(whole);
    assert_int_equal(cu.rtc_log(program, whole), 0);
    snprintf(log, log_bytes, "%s", whole);
    free(whole);
    if (code == 0) {
        assert_int_equal(cu.rtc_cubin_size(program, &bytes), 0);
        *image = malloc(bytes);
        assert_non_null(*image);
        assert_int_equal(cu.rtc_cubin(program, *image), 0);
    }
    assert_int_equal(cu.rtc_destroy(&program), 0);
    return code;
}

static void *kernel(const char *text) {
    char log[4096];
    char *image;
    void *module;
    void *function;
    if (compile(text, &image, log, sizeof(log)) != 0) {
        fail_msg("%s", log);
    }
    assert_int_equal(cu.module_load(&module, image), 0);
    free(image);
    assert_int_equal(cu.module_function(&function, module, "k"), 0);
    return function;
}

static void launch(void *function, u32 blocks, u32 threads, u32 shared_bytes, void *args) {
    void *params[] = {args};
    assert_int_equal(
        cu.launch(function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, params, NULL), 0);
}

static u64 device(size_t bytes) {
    u64 p;
    assert_int_equal(cu.mem_alloc(&p, bytes), 0);
    assert_int_equal(cu.set_bytes(p, 0, bytes, stream), 0);
    return p;
}

static void fetch(void *to, u64 from, size_t bytes) {
    assert_int_equal(cu.copy_to_host(to, from, bytes, stream), 0);
    assert_int_equal(cu.stream_synchronize(stream), 0);
}

static int fresh(void **state) {
    (void)state;
    assert_int_equal(cu.init(0), 0);
    assert_int_equal(cu.ctx_retain(&context, 0), 0);
    assert_int_equal(cu.ctx_set(context), 0);
    assert_int_equal(cu.stream_create(&stream, 1), 0);
    clear_report();
    return 0;
}

static int gone(void **state) {
    (void)state;
    assert_int_equal(cu.ctx_release(0), 0);
    return 0;
}

/* Arguments of most kernels below: two inputs, an output, a count. */
struct args {
    u64 a;
    u64 b;
    u64 out;
    u32 n;
};
#define HEAD                                              \
    "#include \"prelude.h\"\n"                            \
    "struct args { u32 *a; u32 *b; u32 *out; u32 n; };\n" \
    "KERNEL(k, struct args, 1024) {\n"

static void vector_add(void **state) {
    (void)state;
    enum { N = 5000 };
    static u32 a[N];
    static u32 b[N];
    static u32 sums[N];
    for (u32 i = 0; i < N; i++) {
        a[i] = i;
        b[i] = i * 7;
    }
    void *k = kernel(HEAD "    for (u32 i = t_block() * t_count() + t_id(); i < args.n;\n"
                          "         i += t_blocks() * t_count()) {\n"
                          "        args.out[i] = args.a[i] + args.b[i];\n    }\n}\n");
    struct args args = {device(sizeof(a)), device(sizeof(b)), device(sizeof(sums)), N};
    assert_int_equal(cu.copy_to_device(args.a, a, sizeof(a), stream), 0);
    assert_int_equal(cu.copy_to_device(args.b, b, sizeof(b), stream), 0);
    launch(k, 7, 96, 0, &args);
    fetch(sums, args.out, sizeof(sums));
    for (u32 i = 0; i < N; i++) {
        assert_int_equal(sums[i], i * 8);
    }
    assert_int_equal(cu.mem_free(args.a), 0);
    assert_int_equal(cu.mem_free(args.a), 1);
}

static void block_reduce(void **state) {
    (void)state;
    void *k =
        kernel(HEAD "    SHARED(u32, part, 256);\n"
                    "    u32 half;\n"
                    "    part[t_id()] = t_id() + t_block();\n"
                    "    b_sync();\n"
                    "    for (half = t_count() / 2; half > 0; half /= 2) {\n"
                    "        if (t_id() < half) {\n"
                    "            part[t_id()] += part[t_id() + half];\n        }\n"
                    "        b_sync();\n    }\n"
                    "    if (t_id() == 0) {\n        args.out[t_block()] = part[0];\n    }\n}\n");
    struct args args = {0, 0, device(9 * 4), 0};
    u32 got[9];
    launch(k, 9, 256, 0, &args);
    fetch(got, args.out, sizeof(got));
    for (u32 i = 0; i < 9; i++) {
        assert_int_equal(got[i], 255 * 128 + 256 * i);
    }
}

static void block_scan(void **state) {
    (void)state;
    void *k = kernel("#include \"prelude.h\"\n"
                     "struct args { u32 *a; u32 *b; u32 *out; u32 n; };\n"
                     "FN u32 b_scan(u32 x) {\n"
                     "    SHARED(u32, warps, 32);\n"
                     "    u32 sum = x, by, before = 0, i;\n"
                     "    UNROLL for (by = 1; by < 32; by *= 2) {\n"
                     "        u32 y = w_up_u32(sum, by);\n"
                     "        sum += t_lane() >= by ? y : 0;\n    }\n"
                     "    if (t_lane() == 31) {\n        warps[t_id() / 32] = sum;\n    }\n"
                     "    b_sync();\n"
                     "    for (i = 0; i < t_id() / 32; i++) {\n        before += warps[i];\n    }\n"
                     "    b_sync();\n"
                     "    return before + sum;\n}\n"
                     "KERNEL(k, struct args, 256) {\n"
                     "    u32 once = b_scan(t_id());\n"
                     "    u32 twice = b_scan(once);\n"
                     "    i32 any = b_any(t_id() == 200);\n"
                     "    u32 odd = b_count((t_id() & 1) != 0);\n"
                     "    args.out[t_id()] = twice + (any ? 1000000 : 0) + odd * 10000000;\n}\n");
    struct args args = {0, 0, device(256 * 4), 0};
    u32 got[256];
    u32 once = 0;
    u32 twice = 0;
    launch(k, 1, 256, 0, &args);
    fetch(got, args.out, sizeof(got));
    for (u32 i = 0; i < 256; i++) {
        once += i;
        twice += once;
        assert_int_equal(got[i], twice + 1000000u + 128u * 10000000u);
    }
}

static void warp_words(void **state) {
    (void)state;
    void *k = kernel(HEAD "    u64 big = ((u64)t_id() << 40) + 5;\n"
                          "    u32 ballot = w_ballot(t_lane() % 3 == 0);\n"
                          "    u32 next = w_from_u32(t_id() * 2, (t_lane() + 1) & 31);\n"
                          "    u32 flip = w_xor_u32(t_id(), 16);\n"
                          "    u64 first = w_from_u64(big, 0);\n"
                          "    u64 swap = w_xor_u64(big, 1);\n"
                          "    u64 up = w_up_u64(big, 3);\n"
                          "    w_sync();\n"
                          "    args.out[t_id() * 6] = ballot;\n"
                          "    args.out[t_id() * 6 + 1] = next;\n"
                          "    args.out[t_id() * 6 + 2] = flip;\n"
                          "    args.out[t_id() * 6 + 3] = (u32)(first >> 40);\n"
                          "    args.out[t_id() * 6 + 4] = (u32)(swap >> 40);\n"
                          "    args.out[t_id() * 6 + 5] = (u32)(up >> 40);\n}\n");
    struct args args = {0, 0, device(64 * 6 * 4), 0};
    u32 got[64][6];
    launch(k, 1, 64, 0, &args);
    fetch(got, args.out, sizeof(got));
    for (u32 i = 0; i < 64; i++) {
        u32 lane = i % 32;
        assert_int_equal(got[i][0], 0x49249249);
        assert_int_equal(got[i][1], (i - lane + (lane + 1) % 32) * 2);
        assert_int_equal(got[i][2], i ^ 16);
        assert_int_equal(got[i][3], i - lane);
        assert_int_equal(got[i][4], i ^ 1);
        assert_int_equal(got[i][5], lane < 3 ? i : i - 3);
    }
}

static void atomics(void **state) {
    (void)state;
    void *k = kernel(
        HEAD "    SHARED(u32, count, 1);\n"
             "    u32 x = t_block() * t_count() + t_id();\n"
             "    if (t_id() == 0) {\n        count[0] = 0;\n    }\n"
             "    b_sync();\n"
             "    atom_add_u32(&count[0], 2);\n"
             "    atom_add_u64((u64 *)(void *)args.out, x);\n"
             "    atom_max_u32(args.out + 2, x);\n"
             "    atom_or_u32(args.out + 3, 1u << (x % 32));\n"
             "    atom_min_i64((i64 *)(void *)(args.out + 4), -(i64)x);\n"
             "    while (atom_cas_u32(args.out + 6, 0, 1) != 0) {\n"
             "        spin_wait();\n    }\n"
             "    args.out[7] += 1;\n"
             "    mem_fence();\n"
             "    atom_exch_u32(args.out + 6, 0);\n"
             "    b_sync();\n"
             "    if (t_id() == 0) {\n        atom_add_u32(args.out + 8, count[0]);\n    }\n}\n");
    struct args args = {0, 0, device(64), 0};
    u32 got[9];
    u64 sum;
    i64 low;
    launch(k, 10, 100, 0, &args);
    fetch(got, args.out, sizeof(got));
    memcpy(&sum, got, 8);
    memcpy(&low, got + 4, 8);
    assert_int_equal(sum, 999 * 500);
    assert_int_equal(got[2], 999);
    assert_int_equal(got[3], 0xffffffffu);
    assert_true(low == -999);
    assert_int_equal(got[7], 1000);
    assert_int_equal(got[8], 2000);
}

/* A scan over blocks: each takes a ticket and waits for the ones before it. */
static void look_back(void **state) {
    (void)state;
    enum { N = 64 * 50 };
    static u32 got[N];
    void *k = kernel(HEAD "    SHARED(u32, box, 2);\n"
                          "    u32 ticket, i, at;\n"
                          "    if (t_id() == 0) {\n"
                          "        ticket = atom_add_u32(&args.b[0], 1);\n"
                          "        box[0] = ticket;\n"
                          "        u32 before = 0;\n"
                          "        if (ticket > 0) {\n"
                          "            u32 seen = read_u32(&args.b[ticket]);\n"
                          "            while (seen == 0) {\n"
                          "                spin_wait();\n"
                          "                seen = read_u32(&args.b[ticket]);\n            }\n"
                          "            before = seen - 1;\n        }\n"
                          "        box[1] = before;\n"
                          "        mem_fence();\n"
                          "        for (i = 0, at = before; i < t_count(); i++) {\n"
                          "            at += args.a[ticket * t_count() + i];\n        }\n"
                          "        atom_exch_u32(&args.b[ticket + 1], at + 1);\n    }\n"
                          "    b_sync();\n"
                          "    ticket = box[0];\n"
                          "    at = box[1];\n"
                          "    for (i = 0; i <= t_id(); i++) {\n"
                          "        at += args.a[ticket * t_count() + i];\n    }\n"
                          "    args.out[ticket * t_count() + t_id()] = at;\n}\n");
    struct args args = {device(N * 4), device(52 * 4), device(N * 4), N};
    assert_int_equal(cu.set_words(args.a, 3, N, stream), 0);
    launch(k, 50, 64, 0, &args);
    fetch(got, args.out, sizeof(got));
    for (u32 i = 0; i < N; i++) {
        assert_int_equal(got[i], 3 * (i + 1));
    }
}

static void dynamic_shared(void **state) {
    (void)state;
    void *k = kernel(HEAD "    SHARED_BYTES(bytes);\n"
                          "    u32 *words = (u32 *)(void *)bytes;\n"
                          "    u32 i;\n"
                          "    for (i = t_id(); i < args.n; i += t_count()) {\n"
                          "        words[i] = i;\n    }\n"
                          "    b_sync();\n"
                          "    for (i = t_id(); i < args.n; i += t_count()) {\n"
                          "        atom_add_u32(args.out, words[args.n - 1 - i]);\n    }\n}\n");
    struct args args = {0, 0, device(4), 25000};
    u32 got;
    int value;
    void *params[] = {&args};
    assert_int_equal(cu.launch(k, 1, 1, 1, 64, 1, 1, 100000, stream, params, NULL), 1);
    assert_int_equal(cu.func_set_attribute(k, 8, 100000), 0);
    assert_int_equal(cu.func_attribute(&value, 0, k), 0);
    assert_int_equal(value, 1024);
    assert_int_equal(cu.occupancy(&value, k, 64, 100000), 0);
    assert_int_equal(value, 2);
    launch(k, 3, 64, 100000, &args);
    fetch(&got, args.out, 4);
    assert_int_equal(got, 3u * (24999u * 12500u));
    args.n = 25001;
    launch(k, 1, 64, 100000, &args);
    assert_int_equal(cu.stream_synchronize(stream), ILLEGAL_ADDRESS);
    assert_non_null(strstr(report(), "out of bounds of every shared array"));
    assert_non_null(strstr(report(), "test.cu:8"));
}

static void mapped_memory(void **state) {
    (void)state;
    const char *text = HEAD "    args.out[t_id()] = args.a[t_id()] + 1;\n}\n";
    void *k = kernel(text);
    u32 *pinned;
    static u32 own[64];
    struct args args = {0, 0, 0, 0};
    assert_int_equal(cu.host_alloc((void **)&pinned, 256, 0), 0);
    assert_int_equal(cu.host_register(own, sizeof(own), 0), 0);
    assert_int_equal(cu.host_register(own, sizeof(own), 0), 712);
    assert_int_equal(cu.host_device_ptr(&args.a, own, 0), 0);
    assert_int_equal(cu.host_device_ptr(&args.out, pinned, 0), 0);
    for (u32 i = 0; i < 64; i++) {
        own[i] = i;
    }
    launch(k, 1, 64, 0, &args);
    assert_int_equal(cu.stream_synchronize(stream), 0);
    for (u32 i = 0; i < 64; i++) {
        assert_int_equal(pinned[i], i + 1);
    }
    assert_int_equal(cu.host_unregister(own), 0);
    launch(k, 1, 64, 0, &args);
    assert_int_equal(cu.stream_synchronize(stream), ILLEGAL_ADDRESS);
    assert_non_null(strstr(report(), "neither device nor mapped host memory"));
}

/* Runs a kernel that breaks a rule: the launch must fail with `code` and the report contain all of
 * `words`, separated by '|'. Afterwards the context is lost, and usable again once it is reset. */
static void breaks(const char *text, u32 blocks, u32 threads, int code, const char *words) {
    void *k = kernel(text);
    char each[256];
    struct args args = {device(400), device(400), device(400), 100};
    void *other;
    launch(k, blocks, threads, 0, &args);
    int got = cu.stream_synchronize(stream);
    if (got != code) {
        fail_msg("answered %d, not %d; said %s", got, code, report());
    }
    for (const char *at = words; *at != 0;) {
        size_t n = strcspn(at, "|");
        snprintf(each, sizeof(each), "%.*s", (int)n, at);
        if (strstr(report(), each) == NULL) {
            fail_msg("no '%s' in %s", each, report());
        }
        at += n + (at[n] == '|');
    }
    assert_int_equal(cu.stream_synchronize(stream), code);
    assert_int_equal(cu.stream_create(&other, 1), code);
    assert_int_equal(cu.ctx_reset(0), 0);
    assert_int_equal(cu.stream_create(&other, 1), 709);
    assert_int_equal(cu.ctx_set(context), 0);
    assert_int_equal(cu.stream_create(&stream, 1), 0);
}

static void race_is_reported(void **state) {
    (void)state;
    breaks(HEAD "    SHARED(u32, x, 64);\n"
                "    x[t_id()] = t_id();\n"
                "    args.out[t_id()] = x[63 - t_id()];\n}\n",
           1, 64, LAUNCH_FAILED, "test.cu:");
    /* Every thread has written before the missing barrier's place: only the order is wrong. */
    breaks(HEAD "    SHARED(u32, x, 64);\n"
                "    x[t_id()] = t_id();\n"
                "    w_ballot(1);\n"
                "    args.out[t_id()] = x[t_id() ^ 1];\n}\n",
           1, 64, LAUNCH_FAILED, "shared memory race: read|test.cu:7|write by|test.cu:5");
    breaks(HEAD "    SHARED(u32, x, 1);\n"
                "    if (t_id() == 0) {\n        x[0] = 0;\n    }\n"
                "    b_sync();\n"
                "    x[0] += 1;\n"
                "    args.out[0] = 1;\n}\n",
           1, 32, LAUNCH_FAILED, "shared memory race|test.cu:9");
    breaks(HEAD "    SHARED(u32, x, 1);\n"
                "    x[0] = 0;\n}\n",
           1, 32, LAUNCH_FAILED, "shared memory race: write|test.cu:5");
    breaks(HEAD "    SHARED(u8, x, 64);\n"
                "    x[t_id()] = 1;\n"
                "    b_sync();\n"
                "    x[t_id()] = 2;\n"
                "    args.out[t_id()] = x[(t_id() + 1) & 63];\n"
                "    b_sync();\n}\n",
           1, 64, LAUNCH_FAILED, "shared memory race|test.cu:8|test.cu:7");
}

/* The same places, properly ordered, are no race. */
static void ordered_is_no_race(void **state) {
    (void)state;
    void *k = kernel(HEAD "    SHARED(u8, x, 64);\n"
                          "    SHARED(u32, y, 64);\n"
                          "    x[t_id()] = (u8)t_id();\n"
                          "    y[t_id()] = t_id();\n"
                          "    w_sync();\n"
                          "    args.out[t_id()] = x[t_id() ^ 1] + y[t_id() ^ 3];\n"
                          "    w_sync();\n"
                          "    y[t_id() ^ 1] = 5;\n"
                          "    b_sync();\n"
                          "    args.out[t_id()] += x[63 - t_id()] + y[63 - t_id()];\n}\n");
    struct args args = {0, 0, device(256), 0};
    u32 got[64];
    launch(k, 5, 64, 0, &args);
    fetch(got, args.out, sizeof(got));
    for (u32 i = 0; i < 64; i++) {
        assert_int_equal(got[i], (i ^ 1) + (i ^ 3) + 63 - i + 5);
    }
}

static void unwritten_is_reported(void **state) {
    (void)state;
    breaks(HEAD "    SHARED(u32, x, 64);\n"
                "    args.out[t_id()] = x[t_id()];\n}\n",
           1, 32, LAUNCH_FAILED, "nobody has written|test.cu:5");
}

static void divergence_is_reported(void **state) {
    (void)state;
    breaks(HEAD "    if (t_id() == 3) {\n"
                "        b_sync();\n"
                "    } else {\n"
                "        b_sync();\n    }\n}\n",
           1, 64, LAUNCH_FAILED,
           "divergent collective: thread |test.cu:5 (b_sync)|test.cu:7 (b_sync)");
    breaks(HEAD "    if (t_id() == 3) {\n"
                "        args.out[0] = w_ballot(1);\n"
                "    } else {\n"
                "        b_sync();\n    }\n}\n",
           1, 64, LAUNCH_FAILED, "divergent collective|test.cu:5 (w_ballot)|test.cu:7 (b_sync)");
    breaks(HEAD "    if (t_id() < 16) {\n"
                "        args.out[0] = w_ballot(1);\n    }\n"
                "    b_sync();\n}\n",
           1, 64, LAUNCH_FAILED, "divergent collective|test.cu:5 (w_ballot)|test.cu:7 (b_sync)");
}

static void early_exit_is_reported(void **state) {
    (void)state;
    breaks(HEAD "    if (t_id() == 5) {\n        return;\n    }\n"
                "    b_sync();\n}\n",
           2, 64, LAUNCH_FAILED,
           "missing barrier: thread 5 left the kernel while|test.cu:7 (b_sync)");
    breaks(HEAD "    if (t_id() == 5) {\n        return;\n    }\n"
                "    w_sync();\n}\n",
           1, 32, LAUNCH_FAILED,
           "missing barrier: thread 5 left the kernel while|test.cu:7 (w_sync)");
}

static void bounds_are_checked(void **state) {
    (void)state;
    breaks(HEAD "    args.out[t_id()] = 1;\n}\n", 1, 101, ILLEGAL_ADDRESS,
           "thread 100: out of bounds (byte 400 of an allocation of 400): write|test.cu:4");
    breaks(HEAD "    args.out[0] = args.a[(i64)t_id() - 1];\n}\n", 1, 1, ILLEGAL_ADDRESS,
           "no allocation here: read|test.cu:4");
    breaks(HEAD "    args.out[0] = *(u32 *)((u8 *)args.a + 2);\n}\n", 1, 1, MISALIGNED,
           "misaligned: read|test.cu:4");
    breaks(HEAD "    u32 local[4] = {1, 2, 3, 4};\n"
                "    args.out[0] = local[args.n & 7];\n}\n",
           1, 1, LAUNCH_FAILED, "array index out of bounds|test.cu:5");
    breaks(HEAD "    args.out[0] = 1u << args.n;\n}\n", 1, 1, LAUNCH_FAILED,
           "shift out of range|test.cu:4");
    breaks(HEAD "    args.out[0] = args.n / args.a[0];\n}\n", 1, 1, LAUNCH_FAILED,
           "division by zero|test.cu:4");
    breaks(HEAD "    load16((u8 *)args.a + 4);\n}\n", 1, 1, MISALIGNED,
           "misaligned: read of 16|test.cu:4");
}

static void freed_memory_is_reported(void **state) {
    (void)state;
    void *k = kernel(HEAD "    args.out[0] = 1;\n}\n");
    struct args args = {0, 0, device(400), 0};
    assert_int_equal(cu.mem_free(args.out), 0);
    launch(k, 1, 1, 0, &args);
    assert_int_equal(cu.ctx_synchronize(), ILLEGAL_ADDRESS);
    assert_non_null(strstr(report(), "freed memory"));
}

/* Without instrumentation the page behind an allocation and a runaway stack are still noticed. */
static void faults_fail_the_launch(void **state) {
    (void)state;
    setenv("SIMT_STRICT", "0", 1);
    assert_int_equal(cu.init(0), 0);
    breaks(HEAD "    args.out[t_id() + 1030] = 1;\n}\n", 2, 64, ILLEGAL_ADDRESS,
           "fault at|test.cu:4");
    breaks("#include \"prelude.h\"\n"
           "struct args { u32 *a; u32 *b; u32 *out; u32 n; };\n"
           "FN_SLOW u32 deep(u32 *p, u32 n) {\n"
           "    u32 room[1024];\n"
           "    u32 i;\n"
           "    for (i = 0; i < 1024; i++) {\n        room[i] = p[i % 64] + n;\n    }\n"
           "    return n == 0 ? room[5] : deep(p, n - 1) + room[n % 1024];\n}\n"
           "KERNEL(k, struct args, 1024) {\n"
           "    args.out[t_id()] = deep(args.a, args.n);\n}\n",
           1, 32, ILLEGAL_ADDRESS, "stack overflow");
    struct args args = {0, 0, device(256), 0};
    u32 got[64];
    void *k = kernel(HEAD "    SHARED(u32, x, 64);\n"
                          "    x[t_id()] = t_id();\n"
                          "    b_sync();\n"
                          "    atom_add_u32(&args.out[63 - t_id()], x[63 - t_id()]);\n}\n");
    launch(k, 5, 64, 0, &args);
    fetch(got, args.out, sizeof(got));
    for (u32 i = 0; i < 64; i++) {
        assert_int_equal(got[i], i * 5);
    }
    unsetenv("SIMT_STRICT");
    assert_int_equal(cu.init(0), 0);
}

static void waiting_forever_is_reported(void **state) {
    (void)state;
    breaks(HEAD "    while (read_u32(args.out) == 0) {\n        spin_wait();\n    }\n}\n", 3, 32,
           LAUNCH_FAILED, "deadlock|test.cu:5");
    breaks(HEAD "    while (read_u32(args.out) == 0) {\n    }\n}\n", 1, 1, LAUNCH_FAILED,
           "waits without spin_wait");
}

static void host_dereference_faults(void **state) {
    (void)state;
    u64 p = device(64);
    int ends[2];
    char text[4096] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        volatile u32 *bad;
        memcpy(&bad, &p, sizeof(p));
        dup2(ends[1], STDERR_FILENO);
        signal(SIGSEGV, SIG_DFL); /* the test framework's handler would carry on */
        cu.init(0);
        _exit(*bad == 12345 ? 0 : 1);
    }
    close(ends[1]);
    size_t at = 0;
    ssize_t n;
    while ((n = read(ends[0], text + at, sizeof(text) - 1 - at)) > 0) {
        at += (size_t)n;
    }
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(!WIFEXITED(status) || WEXITSTATUS(status) > 1);
    assert_non_null(strstr(text, "simt: host dereference of device memory at 0x"));
}

static void nothing_happens_unasked(void **state) {
    (void)state;
    void *k = kernel(HEAD "    args.out[t_id()] = args.a[t_id()];\n}\n");
    static u32 in[64];
    static u32 got[64];
    void *event;
    void *second;
    float ms;
    memset(in, 1, sizeof(in));
    memset(got, 0, sizeof(got));
    struct args args = {device(256), 0, device(256), 0};
    assert_int_equal(cu.event_create(&event, 0), 0);
    assert_int_equal(cu.stream_create(&second, 1), 0);
    assert_int_equal(cu.copy_to_device(args.a, in, sizeof(in), stream), 0);
    launch(k, 1, 64, 0, &args);
    assert_int_equal(cu.event_record(event, stream), 0);
    assert_int_equal(cu.stream_wait_event(second, event, 0), 0);
    assert_int_equal(cu.copy_to_host(got, args.out, sizeof(got), second), 0);
    assert_int_equal(got[0], 0);
    in[5] = 99; /* a buffer changed too early is copied as changed */
    assert_int_equal(cu.event_query(event), NOT_READY);
    assert_int_equal(cu.event_elapsed(&ms, event, event), NOT_READY);
    assert_int_equal(cu.stream_synchronize(second), 0);
    assert_int_equal(cu.event_query(event), 0);
    assert_int_equal(got[0], 0x01010101);
    assert_int_equal(got[5], 99);
    assert_int_equal(cu.event_elapsed(&ms, event, event), 0);
    assert_true(ms >= 0.0f && ms < 1000.0f);
    assert_int_equal(cu.event_record(event, stream), 0);
    assert_int_equal(cu.event_query(event), NOT_READY);
    assert_int_equal(cu.event_query(event), NOT_READY);
    assert_int_equal(cu.event_query(event), 0);
    assert_int_equal(cu.stream_destroy(second), 0);
    assert_int_equal(cu.event_destroy(event), 0);
    assert_int_equal(cu.event_destroy(event), 400);
}

/* A stream brings what another copies for a third to take away, in two places each. */
static void streams_wait_for_each_other(void **state) {
    (void)state;
    enum { ROUNDS = 100 };
    static u32 in[ROUNDS][16], got[ROUNDS][16];
    void *up, *down, *came[2], *left[2], *made[2], *gone[2];
    u64 from[2], to[2];
    assert_int_equal(cu.stream_create(&up, 1), 0);
    assert_int_equal(cu.stream_create(&down, 1), 0);
    for (u32 k = 0; k < 2; k++) {
        void **events[] = {&came[k], &left[k], &made[k], &gone[k]};
        for (u32 e = 0; e < 4; e++) {
            assert_int_equal(cu.event_create(events[e], 0), 0);
        }
        from[k] = device(64);
        to[k] = device(64);
    }
    assert_int_equal(cu.stream_synchronize(stream), 0); /* they are empty */
    for (u32 i = 0; i < ROUNDS; i++) {
        u32 k = i & 1;
        memset(in[i], (int)i + 1, sizeof(in[i]));
        assert_int_equal(cu.stream_wait_event(up, left[k], 0), 0);
        assert_int_equal(cu.copy_to_device(from[k], in[i], sizeof(in[i]), up), 0);
        assert_int_equal(cu.event_record(came[k], up), 0);
        assert_int_equal(cu.stream_wait_event(stream, came[k], 0), 0);
        assert_int_equal(cu.stream_wait_event(stream, gone[k], 0), 0);
        assert_int_equal(cu.copy_device(to[k], from[k], sizeof(in[i]), stream), 0);
        assert_int_equal(cu.event_record(left[k], stream), 0);
        assert_int_equal(cu.event_record(made[k], stream), 0);
        assert_int_equal(cu.stream_wait_event(down, made[k], 0), 0);
        assert_int_equal(cu.copy_to_host(got[i], to[k], sizeof(got[i]), down), 0);
        assert_int_equal(cu.event_record(gone[k], down), 0);
    }
    assert_int_equal(cu.stream_synchronize(down), 0);
    assert_memory_equal(got, in, sizeof(in));
    for (u32 k = 0; k < 2; k++) {
        void *events[] = {came[k], left[k], made[k], gone[k]};
        for (u32 e = 0; e < 4; e++) {
            assert_int_equal(cu.event_destroy(events[e]), 0);
        }
    }
    assert_int_equal(cu.stream_destroy(up), 0);
    assert_int_equal(cu.stream_destroy(down), 0);
}

static void refused(const char *text, const char *word) {
    char log[4096];
    char *image;
    assert_int_equal(compile(text, &image, log, sizeof(log)), 6);
    assert_null(image);
    if (strstr(log, word) == NULL) {
        fail_msg("no '%s' in %s", word, log);
    }
}

static void text_is_both_languages(void **state) {
    (void)state;
    if (strcmp(getenv("SIMT_SEED"), "0") != 0) {
        return; /* no seed has a say in this */
    }
    refused(HEAD "    u32 *p = (void *)args.a;\n    args.out[0] = p[0];\n}\n", "test.cu:4");
    refused(HEAD "    u32 new = 1;\n    args.out[0] = new;\n}\n", "as C++17");
    refused(HEAD "    struct args x = {.n = 1};\n    args.out[0] = x.n;\n}\n", "as C++17");
    refused(HEAD "    args.out[0] = ((struct args){0, 0, 0, 1}).n;\n}\n", "as C++17");
    refused(HEAD "    _Static_assert(1, \"\");\n    args.out[0] = 1;\n}\n", "as C++17");
    refused(HEAD "    u32 &x = args.out[0];\n    x = 1;\n}\n", "as C11");
    refused(HEAD "    auto x = args.n;\n    args.out[0] = x;\n}\n", "as C11");
    refused(HEAD "    args.out[0] = (u32)__builtin_popcount(args.n);\n}\n",
            "test.cu:4: error: kernel text must not use __builtin_popcount");
    refused("#include <stdint.h>\n#include \"missing.h\"\n" HEAD "}\n", "missing.h");
    refused(HEAD "    args.out[0] = unknown(1);\n}\n", "unknown");
}

static b8 is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static b8 has_word(const char *text, const char *word, size_t length) {
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += length) {
        if (!is_name(at[length]) && !is_name(at[-1])) {
            return 1;
        }
    }
    return 0;
}

/* Every macro and function of the CUDA prelude has a namesake here. */
static void preludes_have_the_same_words(void **state) {
    (void)state;
    char *cuda = read_source("src/gpu/kernels/prelude.h");
    char *simt = read_source("tests/simt/prelude.h");
    u32 words = 0;
    for (char *line = strtok(cuda, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char word[64];
        size_t n = 0;
        const char *at = NULL;
        if (strncmp(line, "#define ", 8) == 0) {
            at = line + 8;
        } else if (strncmp(line, "FN", 2) == 0 && strchr(line, '(') != NULL) {
            for (at = strchr(line, '('); is_name(at[-1]);) {
                at--;
            }
        }
        while (at != NULL && is_name(at[n]) && n < sizeof(word) - 1) {
            word[n] = at[n];
            n++;
        }
        word[n] = 0;
        words += n != 0;
        if (n != 0 && !has_word(simt, word, n)) {
            fail_msg("tests/simt/prelude.h has no %s", word);
        }
    }
    assert_true(words > 40);
    free(cuda);
    free(simt);
}

static void memory_is_limited(void **state) {
    (void)state;
    size_t free_bytes;
    size_t total;
    u64 p;
    assert_int_equal(cu.mem_info(&free_bytes, &total), 0);
    assert_int_equal(total, 256 << 20);
    assert_int_equal(free_bytes, total);
    assert_int_equal(cu.mem_alloc(&p, total + 1), 2);
    assert_int_equal(cu.mem_alloc(&p, total), 0);
    assert_int_equal(cu.mem_info(&free_bytes, &total), 0);
    assert_int_equal(free_bytes, 0);
    assert_int_equal(cu.copy_to_device(p + total - 2, &total, 4, stream), 1);
}

static void a_call_can_fail(void **state) {
    (void)state;
    u64 p;
    size_t bytes;
    char text[32];
    u64 first = 4;
    snprintf(text, sizeof(text), "%llu", first);
    setenv("SIMT_FAIL_AT", text, 1);
    assert_int_equal(cu.init(0), 0);
    assert_int_equal(cu.mem_info(&bytes, &bytes), 0);
    assert_int_equal(cu.mem_info(&bytes, &bytes), 0);
    assert_int_equal(cu.mem_alloc(&p, 64), 2);
    assert_int_equal(cu.mem_alloc(&p, 64), 0);
    assert_int_equal(call_count(), first + 1);
    setenv("SIMT_FAIL_AT", "3", 1);
    assert_int_equal(cu.init(0), 0);
    assert_int_equal(cu.mem_info(&bytes, &bytes), 0);
    assert_int_equal(cu.mem_free(p), 999); /* it is freed all the same */
    assert_int_equal(cu.mem_free(p), 1);
    setenv("SIMT_FAIL_AT", "2", 1);
    setenv("SIMT_FAIL_CODE", "719", 1);
    assert_int_equal(cu.init(0), 0);
    assert_int_equal(cu.mem_info(&bytes, &bytes), LAUNCH_FAILED);
    assert_int_equal(cu.mem_info(&bytes, &bytes), LAUNCH_FAILED);
    assert_int_equal(cu.ctx_reset(0), 0);
    unsetenv("SIMT_FAIL_AT");
    unsetenv("SIMT_FAIL_CODE");
    assert_int_equal(cu.init(0), 0);
}

static void device_is_described(void **state) {
    (void)state;
    static const struct {
        int attribute;
        int value;
    } expected[] = {{16, 2},          {75, 9},        {76, 0},  {10, 32},
                    {97, 227 * 1024}, {8, 48 * 1024}, {1, 1024}};
    char name[16];
    int value;
    const char *text;
    assert_int_equal(cu.device_name(name, sizeof(name), 0), 0);
    assert_string_equal(name, "simt");
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_int_equal(cu.device_attribute(&value, expected[i].attribute, 0), 0);
        assert_int_equal(value, expected[i].value);
    }
    assert_int_equal(cu.error_name(719, &text), 0);
    assert_string_equal(text, "CUDA_ERROR_LAUNCH_FAILED");
    assert_int_equal(cu.ctx_set(NULL), 0);
    assert_int_equal(cu.ctx_synchronize(), 201);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, gone)
    const struct CMUnitTest tests[] = {
        TEST(vector_add),
        TEST(block_reduce),
        TEST(block_scan),
        TEST(warp_words),
        TEST(atomics),
        TEST(look_back),
        TEST(dynamic_shared),
        TEST(mapped_memory),
        TEST(race_is_reported),
        TEST(ordered_is_no_race),
        TEST(unwritten_is_reported),
        TEST(divergence_is_reported),
        TEST(early_exit_is_reported),
        TEST(bounds_are_checked),
        TEST(freed_memory_is_reported),
        TEST(faults_fail_the_launch),
        TEST(waiting_forever_is_reported),
        TEST(host_dereference_faults),
        TEST(nothing_happens_unasked),
        TEST(streams_wait_for_each_other),
        TEST(text_is_both_languages),
        TEST(preludes_have_the_same_words),
        TEST(memory_is_limited),
        TEST(a_call_can_fail),
        TEST(device_is_described),
    };
#undef TEST
    static const char *const seeds[] = {"0", "1", "20260101"};
    int failed = 0;
    load_driver();
    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        setenv("SIMT_SEED", seeds[i], 1);
        failed += cmocka_run_group_tests_name(seeds[i], tests, NULL, NULL);
    }
    free(word_text);
    return failed;
}
