/* compile.c: NVRTC by the host C compiler.
 *
 * A program's text and headers are written to a folder, `prelude.h` among them replaced by the simt
 * one, and compiled into a shared object, as C11 with warnings as errors; the same text must also
 * pass a C++17 compiler, since the real NVRTC is one. Objects are kept in a folder under a key made
 * of everything that went in, so each text is compiled once per machine. The image handed back
 * carries the object itself, so that it can be stored, moved and loaded by another process.
 * Compiling holds no lock: background compilation stays in the background. */
#define _GNU_SOURCE
#include "simt.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SIMT_SOURCE_DIR
#define SIMT_SOURCE_DIR "."
#endif

extern char **environ;

enum rtc_code {
    RTC_OUT_OF_MEMORY = 1,
    RTC_INVALID_INPUT = 3,
    RTC_INVALID_PROGRAM = 4,
    RTC_INVALID_OPTION = 5,
    RTC_COMPILATION = 6,
    RTC_INTERNAL = 11,
    RTC_CANCELLED = 16
};

struct file {
    char *name;
    char *text;
};

struct program {
    u32 magic;
    struct file main;
    struct file *headers;
    int header_count;
    char *log;
    size_t log_bytes;
    char *image;
    size_t image_bytes;
    int (*stopped)(void *arg, void *unused); /* NULL: nobody asks it to stop */
    void *stopped_arg;
};
#define PROGRAM_MAGIC 0x53494d54u

/* What an image starts with; the object's bytes follow. */
struct image {
    char magic[8];
    char key[40];
    char arch[16];
    u64 object_bytes;
};
static const char image_magic[8] = "SIMTIMG";

__attribute__((format(printf, 2, 3))) static void say(struct program *p, const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    size_t bytes = strlen(text);
    char *log = realloc(p->log, p->log_bytes + bytes + 1);
    if (log != NULL) {
        memcpy(log + p->log_bytes, text, bytes + 1);
        p->log = log;
        p->log_bytes += bytes;
    }
}

static char *read_whole(const char *path, size_t *out_bytes) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return NULL;
    }
    char *text = NULL;
    size_t bytes = 0;
    size_t cap = 0;
    size_t n = 0;
    do {
        bytes += n;
        if (bytes + 65537 > cap) {
            cap = bytes * 2 + 65537;
            char *more = realloc(text, cap);
            if (more == NULL) {
                free(text);
                fclose(f);
                return NULL;
            }
            text = more;
        }
    } while ((n = fread(text + bytes, 1, cap - bytes - 1, f)) != 0);
    fclose(f);
    text[bytes] = 0;
    *out_bytes = bytes;
    return text;
}

static b8 write_whole(const char *path, const char *text, size_t bytes) {
    FILE *f = fopen(path, "wb");
    if (f == NULL) {
        return 0;
    }
    b8 ok = fwrite(text, 1, bytes, f) == bytes;
    return fclose(f) == 0 && ok;
}

/* Writes `folder/name`, making the folders in between; names that leave the folder are refused. */
static b8 write_under(const char *folder, const char *name, const char *text) {
    char path[1024];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof(path) || name[0] == '/' || strstr(name, "..") != NULL) {
        return 0;
    }
    for (char *p = path + strlen(folder) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    return write_whole(path, text, strlen(text));
}

static const char *cache_folder(char *out, size_t out_bytes) {
    const char *given = getenv("SIMT_CACHE");
    if (given != NULL && given[0] != 0) {
        snprintf(out, out_bytes, "%s", given);
    } else {
        snprintf(out, out_bytes, "/tmp/warpfox-simt-%u", (unsigned)getuid());
    }
    mkdir(out, 0700);
    return out;
}

/* The folder that holds prelude.h: SIMT_HOME, or where the library was built from. */
static char *read_own(const char *name) {
    const char *home = getenv("SIMT_HOME");
    char path[1024];
    size_t bytes;
    snprintf(path, sizeof(path), "%s/%s", home == NULL ? SIMT_SOURCE_DIR "/tests/simt" : home,
             name);
    return read_whole(path, &bytes);
}

/* Two independent 64-bit hashes, 32 hex digits. */
struct key {
    u64 a;
    u64 b;
};

static void mix(struct key *key, const char *text) {
    for (const char *p = text;; p++) {
        key->a = (key->a ^ (u8)*p) * 0x100000001b3u;
        key->b = (key->b + (u8)*p) * 0x9E3779B97F4A7C15u;
        key->b ^= key->b >> 29;
        if (*p == 0) {
            return;
        }
    }
}

static const char *base_name(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash == NULL ? name : slash + 1;
}

/* Words no kernel text may contain: they have a meaning to one of the compilers only. */
static void check_words(struct program *p, const struct file *file) {
    static const char *const words[] = {"__builtin_", "__activemask", "asm", "__asm__", "__asm"};
    u32 line = 1;
    for (const char *s = file->text; *s != 0;) {
        if (s[0] == '/' && s[1] == '*') {
            const char *end = strstr(s + 2, "*/");
            for (; *s != 0 && s != end; s++) {
                line += *s == '\n';
            }
            s += *s == 0 ? 0 : 2;
        } else if (s[0] == '/' && s[1] == '/') {
            s += strcspn(s, "\n");
        } else if (*s == '"') {
            for (s++; *s != 0 && *s != '"' && *s != '\n'; s++) {
                s += s[0] == '\\' && s[1] != 0;
            }
            s += *s == '"';
        } else if (isalpha((u8)*s) || *s == '_') {
            size_t n = 1;
            while (isalnum((u8)s[n]) || s[n] == '_') {
                n++;
            }
            for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
                size_t length = strlen(words[i]);
                b8 prefix = words[i][length - 1] == '_' && words[i][0] == '_' && words[i][2] == 'b';
                if ((prefix ? n >= length : n == length) && memcmp(s, words[i], length) == 0) {
                    say(p,
                        "%s:%u: error: kernel text must not use %.*s: make it a word of "
                        "prelude.h\n",
                        file->name, line, (int)n, s);
                }
            }
            s += n;
        } else {
            line += *s == '\n';
            s++;
        }
    }
}

struct options {
    const char *defines[32];
    int define_count;
    char arch[16];
    b8 int128;
};

static b8 starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* The options the real NVRTC knows and we use; others are refused, as it refuses unknown ones. */
static int read_options(struct program *p, int count, const char *const *given,
                        struct options *out) {
    static const char *const ignored[] = {"-fmad=",
                                          "--fmad=",
                                          "-std=",
                                          "--std=",
                                          "-lineinfo",
                                          "--generate-line-info",
                                          "-G",
                                          "--device-debug",
                                          "-default-device",
                                          "--default-device",
                                          "-maxrregcount=",
                                          "--maxrregcount=",
                                          "--ptxas-options=",
                                          "-Xptxas",
                                          "-w",
                                          "--extra-device-vectorization",
                                          "-ftz=",
                                          "--ftz=",
                                          "-prec-",
                                          "--prec-",
                                          "--use_fast_math",
                                          "-diag-",
                                          "--diag-",
                                          "--time=",
                                          "-dopt",
                                          "--dopt",
                                          "-split-compile=",
                                          "--split-compile=",
                                          "-no-cache",
                                          "--no-cache",
                                          "--restrict"};
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < count; i++) {
        const char *o = given[i];
        const char *equals = strchr(o, '=');
        if (starts(o, "-D") && out->define_count < 32) {
            out->defines[out->define_count++] = o;
        } else if (starts(o, "--gpu-architecture=") || starts(o, "-arch=")) {
            snprintf(out->arch, sizeof(out->arch), "%s", equals + 1);
        } else if (strcmp(o, "--device-int128") == 0 || strcmp(o, "-device-int128") == 0) {
            out->int128 = 1;
        } else {
            b8 known = simt_settings.rtc >= 124 && strcmp(o, "--minimal") == 0;
            known |= simt_settings.rtc >= 129 && starts(o, "--Ofast-compile=");
            for (size_t j = 0; j < sizeof(ignored) / sizeof(ignored[0]); j++) {
                known |= starts(o, ignored[j]);
            }
            if (!known) {
                say(p, "nvrtc: error: invalid value for option: %s\n", o);
                return RTC_INVALID_OPTION;
            }
        }
    }
    return 0;
}

struct command {
    const char *argv[96];
    int count;
};

static void add(struct command *command, const char *text) {
    if (command->count < 95) {
        command->argv[command->count++] = text;
    }
}

static void add_all(struct command *command, const char *const *list) {
    while (*list != NULL) {
        add(command, *list++);
    }
}

/* Kernels that ASan instruments need the compiler whose ASan is in the process; to all others, and
 * so to every build of this library, the same objects do. */
static const char *c_compiler(b8 strict) {
    const char *given = getenv("SIMT_CC");
    if (given != NULL && given[0] != 0) {
        return given;
    }
    if (strict || !SIMT_ASAN) {
        return "cc";
    }
#if defined(__clang__)
    return "clang";
#else
    return "gcc";
#endif
}

static const char *c_level(void) {
    const char *given = getenv("SIMT_OPT");
    return given != NULL && strcmp(given, "0") == 0 ? "-O0" : "-O1";
}

/* Instrumentation that hooks.h receives; see there why it is the thread sanitizer's. */
static void add_mode(struct command *command, b8 strict, b8 clang) {
    static const char *const checks[] = {"-DSIMT_STRICT=1", "-fsanitize=thread",
                                         "-fsanitize=shift,integer-divide-by-zero,signed-integer-"
                                         "overflow,bounds,float-cast-overflow",
                                         NULL};
    static const char *const gcc_checks[] = {
        "--param",
        "tsan-instrument-func-entry-exit=0",
#if defined(__x86_64__)
        "-mstringop-strategy=libcall",
#endif
        "-Wno-tsan",
        NULL
    };
    static const char *const clang_checks[] = {"-mllvm", "-tsan-instrument-func-entry-exit=0",
                                               NULL};
    if (!strict) {
        add(command, "-DSIMT_STRICT=0");
        if (SIMT_ASAN) {
            add(command, "-fsanitize=address");
            add(command, clang ? "-shared-libasan" : "-fno-omit-frame-pointer");
        }
        return;
    }
    add_all(command, checks);
    add_all(command, clang ? clang_checks : gcc_checks);
}

static void c_command(struct command *command, b8 strict, const struct options *options) {
    static const char *const common[] = {"-std=c11",
                                         "-g1",
                                         "-fPIC",
                                         "-c",
                                         "-fvisibility=hidden",
                                         "-ffp-contract=off",
                                         "-fno-strict-aliasing",
                                         "-fno-math-errno",
                                         "-Werror",
                                         "-Wall",
                                         "-Wextra",
                                         "-pedantic-errors",
                                         "-Wvla",
                                         "-Wc++-compat",
                                         "-Wno-unused",
                                         "-Wno-unused-parameter",
                                         "-Wno-type-limits",
                                         "-Wno-sign-compare",
                                         "-Wno-maybe-uninitialized",
                                         "-Wno-empty-body",
                                         NULL};
    const char *compiler = c_compiler(strict);
    b8 clang = strstr(base_name(compiler), "clang") != NULL;
    add(command, compiler);
    add(command, c_level());
    add_all(command, common);
    if (clang) {
        add(command, "-Wno-unknown-warning-option");
        add(command, "-Wno-constant-logical-operand");
        add(command, "-Wno-tautological-compare");
    }
    add_mode(command, strict, clang);
    for (int i = 0; i < options->define_count; i++) {
        add(command, options->defines[i]);
    }
}

static void cxx_command(struct command *command, const struct options *options) {
    static const char *const common[] = {
        "g++",     "-std=c++17",  "-fsyntax-only",   "-pedantic-errors",
        "-Werror", "-Wno-unused", "-DSIMT_STRICT=0", NULL};
    add_all(command, common);
    for (int i = 0; i < options->define_count; i++) {
        add(command, options->defines[i]);
    }
}

/* Starts a command with its output in a file; 0 when it cannot be started. */
static pid_t start(struct command *command, const char *log) {
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    command->argv[command->count] = NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    char *const *argv = (char *const *)(size_t)command->argv;
    int failed = posix_spawnp(&child, command->argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed == 0 ? child : 0;
}

static b8 succeeded(pid_t child) {
    int status = 1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Appends a compiler's output, without the folder the text happened to lie in. */
static void take_log(struct program *p, const char *path, const char *folder) {
    size_t bytes;
    char *text = read_whole(path, &bytes);
    if (text == NULL) {
        return;
    }
    size_t length = strlen(folder);
    for (char *at = text; *at != 0;) {
        char *hit = strstr(at, folder);
        char *end = hit == NULL ? at + strlen(at) : hit;
        for (; at<end; at += end - at> 1000 ? 1000 : end - at) {
            say(p, "%.*s", (int)(end - at > 1000 ? 1000 : end - at), at);
        }
        at = hit == NULL ? end : hit + length + (hit[length] == '/');
    }
    free(text);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where) {
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

/* Files of the driver's own that every text is compiled with. */
enum { OWN_COUNT = 4 };
static const char *const own_names[OWN_COUNT] = {"bridge.h", "hooks.h", "watch.h", "prelude.h"};

static void mix_own(struct key *key) {
    for (int i = 0; i < OWN_COUNT; i++) {
        char *text = read_own(own_names[i]);
        mix(key, text == NULL ? "" : text);
        free(text);
    }
}

static b8 write_sources(const struct program *p, const char *folder) {
    char *prelude = NULL;
    b8 ok = write_under(folder, p->main.name, p->main.text);
    for (int i = 0; i < OWN_COUNT && ok; i++) {
        free(prelude);
        prelude = read_own(own_names[i]);
        ok = prelude != NULL && write_under(folder, own_names[i], prelude);
    }
    for (int i = 0; i < p->header_count && ok; i++) {
        b8 replaced = strcmp(base_name(p->headers[i].name), "prelude.h") == 0;
        ok = write_under(folder, p->headers[i].name, replaced ? prelude : p->headers[i].text);
    }
    free(prelude);
    return ok;
}

/* The part that all texts compiled by these words share, in the cache: made where it is missing. */
static b8 watch_object(struct program *p, const struct command *c, const char *cache,
                       const char *folder, char *path, size_t path_bytes) {
    struct command command = *c;
    struct key key = {0xcbf29ce484222325u, 1};
    char source[600], object[600], log[600];
    command.argv[1] = "-O1"; /* it runs more often than any text */
    for (int i = 0; i < command.count; i++) {
        mix(&key, command.argv[i]);
    }
    mix_own(&key);
    for (int i = 0; i < p->header_count; i++) { /* the only other file that it includes */
        if (strcmp(base_name(p->headers[i].name), "word.h") == 0) {
            mix(&key, p->headers[i].text);
        }
    }
    snprintf(path, path_bytes, "%s/watch-%016llx%016llx.o", cache, key.a, key.b);
    if (access(path, R_OK) == 0) {
        return 1;
    }
    snprintf(source, sizeof(source), "%s/watch.h", folder);
    snprintf(object, sizeof(object), "%s/watch.o", folder);
    snprintf(log, sizeof(log), "%s/watch.log", folder);
    const char *const rest[] = {"-iquote", folder, "-o", object, "-x", "c", source, NULL};
    add_all(&command, rest);
    pid_t child = start(&command, log);
    b8 ok = child != 0 && succeeded(child) && rename(object, path) == 0;
    if (!ok) {
        take_log(p, log, folder);
    }
    return ok;
}

/* The compiler's own functions (division of 128 bits), where it has any: a linker that is not started by the
 * compiler has to be told. */
static char helpers[512];
static void find_helpers(void) {
    char command[256];
    snprintf(command, sizeof(command), "%s -print-libgcc-file-name", c_compiler(1));
    FILE *f = popen(command, "re");
    if (f != NULL) {
        if (fgets(helpers, sizeof(helpers), f) != NULL) {
            helpers[strcspn(helpers, "\n")] = 0;
        }
        pclose(f);
    }
    if (access(helpers, R_OK) != 0) {
        helpers[0] = 0;
    }
}

/* A text that ASan instruments is linked by the compiler, which knows its library; all others by the linker itself,
 * which takes a third of the time. */
static void link_command(struct command *link, const char *compiler, const char *out,
                         const char *object, const char *watch) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *const files[] = {"-shared", "-o", out, object, watch, NULL};
    if (SIMT_ASAN && !simt_settings.strict) {
        add(link, compiler);
        add_all(link, files);
        add(link, "-Wl,-Bsymbolic");
        add(link, "-fsanitize=address");
        return;
    }
    pthread_once(&once, find_helpers);
    add(link, "ld");
    add(link, "-Bsymbolic");
    add_all(link, files);
    if (helpers[0] != 0) {
        add(link, helpers);
    }
}

/* C and C++ side by side; the linked object stands in `folder/out.so` when both agree. */
static b8 build(struct program *p, struct command *c, const struct options *options,
                const char *cache, const char *folder) {
    char source[600], object[600], out[600], log[600], cxx_log[600], map[700], watch[600];
    const char *cxx = getenv("SIMT_CXX");
    struct command plus = {{0}, 0};
    struct command link = {{0}, 0};
    if (!watch_object(p, c, cache, folder, watch, sizeof(watch))) {
        return 0;
    }
    snprintf(source, sizeof(source), "%s/%s", folder, p->main.name);
    snprintf(object, sizeof(object), "%s/out.o", folder);
    snprintf(out, sizeof(out), "%s/out.so", folder);
    snprintf(log, sizeof(log), "%s/c.log", folder);
    snprintf(cxx_log, sizeof(cxx_log), "%s/cxx.log", folder);
    /* Only __FILE__ is shortened here: debug information keeps whole names, see simt_short_name. */
    snprintf(map, sizeof(map), "-fmacro-prefix-map=%s/=", folder);
    const char *const rest[] = {map, "-iquote", folder, "-o", object, "-x", "c", source, NULL};
    add_all(c, rest);
    cxx_command(&plus, options);
    const char *const plus_rest[] = {"-iquote", folder, "-x", "c++", source, NULL};
    add_all(&plus, plus_rest);
    pid_t c_child = start(c, log);
    pid_t cxx_child = cxx != NULL && strcmp(cxx, "0") == 0 ? 0 : start(&plus, cxx_log);
    if (c_child == 0) {
        say(p, "cannot start the C compiler %s\n", c->argv[0]);
    }
    b8 c_ok = c_child != 0 && succeeded(c_child);
    b8 cxx_ok = cxx_child == 0 || succeeded(cxx_child);
    if (!c_ok) {
        say(p, "as C11:\n");
        take_log(p, log, folder);
    }
    if (!cxx_ok) {
        say(p, "as C++17:\n");
        take_log(p, cxx_log, folder);
    }
    if (!c_ok || !cxx_ok) {
        return 0;
    }
    link_command(&link, c->argv[0], out, object, watch);
    pid_t child = start(&link, log);
    b8 ok = child != 0 && succeeded(child);
    if (!ok) {
        take_log(p, log, folder);
    }
    return ok;
}

static void make_key(const struct program *p, const struct command *c, char *out,
                     size_t out_bytes) {
    struct key key = {0xcbf29ce484222325u, 1};
    const char *cxx = getenv("SIMT_CXX");
    mix(&key, "4"); /* counts changes of how objects are built below */
    mix(&key, cxx == NULL ? "1" : cxx);
    for (int i = 0; i < c->count; i++) {
        mix(&key, c->argv[i]);
    }
    mix_own(&key);
    mix(&key, p->main.name);
    mix(&key, p->main.text);
    for (int i = 0; i < p->header_count; i++) {
        mix(&key, p->headers[i].name);
        mix(&key, p->headers[i].text);
    }
    snprintf(out, out_bytes, "%016llx%016llx", key.a, key.b);
}

static int make_image(struct program *p, const char *path, const char *key, const char *arch) {
    size_t bytes;
    char *object = read_whole(path, &bytes);
    struct image *image = object == NULL ? NULL : malloc(sizeof(*image) + bytes);
    if (image == NULL) {
        free(object);
        return RTC_OUT_OF_MEMORY;
    }
    memset(image, 0, sizeof(*image));
    memcpy(image->magic, image_magic, sizeof(image_magic));
    snprintf(image->key, sizeof(image->key), "%s", key);
    snprintf(image->arch, sizeof(image->arch), "%s", arch);
    image->object_bytes = bytes;
    memcpy(image + 1, object, bytes);
    free(object);
    free(p->image);
    p->image = (char *)image;
    p->image_bytes = sizeof(*image) + bytes;
    return 0;
}

static int compile_text(struct program *p, const struct options *options, struct command *c,
                        const char *cache, const char *path) {
    char folder[512];
    char out[600];
    const char *home = SIMT_SOURCE_DIR;
    snprintf(folder, sizeof(folder), "%s" SIMT_BUILD_FOLDER "XXXXXX", cache);
    if (mkdtemp(folder) == NULL) {
        say(p, "cannot make a folder in %s: %s\n", cache, strerror(errno));
        return RTC_INTERNAL;
    }
    b8 written = write_sources(p, folder);
    if (!written) {
        say(p, "cannot write the sources to %s, or read the simt prelude in %s/tests/simt\n",
            folder, home);
    }
    b8 ok = written && build(p, c, options, cache, folder);
    snprintf(out, sizeof(out), "%s/out.so", folder);
    if (ok && rename(out, path) != 0) {
        say(p, "cannot make %s: %s\n", path, strerror(errno));
        ok = 0;
    }
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return ok ? 0 : written ? RTC_COMPILATION : RTC_INTERNAL;
}

/* Marks the headers that `text` includes, and those that they include. */
static void mark_used(const struct program *p, const char *text, b8 *used) {
    for (const char *at = strstr(text, "#include \""); at != NULL; at = strstr(at, "#include \"")) {
        at += strlen("#include \"");
        const char *end = strchr(at, '"');
        char name[200];
        snprintf(name, sizeof(name), "%.*s", end == NULL ? 0 : (int)(end - at), at);
        for (int i = 0; i < p->header_count; i++) {
            if (!used[i] && strcmp(base_name(p->headers[i].name), base_name(name)) == 0) {
                used[i] = 1;
                mark_used(p, p->headers[i].text, used);
            }
        }
    }
}

/* Callers hand over every header there is; one that is not included must not change the key. The names of the
 * others are added to the file SIMT_NAMES. */
static b8 drop_unused(struct program *p) {
    b8 *used = calloc((size_t)p->header_count + 1, sizeof(*used));
    if (used == NULL) {
        return 0;
    }
    const char *names = getenv("SIMT_NAMES");
    FILE *out = names == NULL ? NULL : fopen(names, "ae");
    int kept = 0;
    mark_used(p, p->main.text, used);
    for (int i = 0; i < OWN_COUNT; i++) { /* these stand beside them, or in their place */
        char *text = read_own(own_names[i]);
        mark_used(p, text == NULL ? "" : text, used);
        free(text);
    }
    for (int i = 0; i < p->header_count; i++) {
        if (used[i]) {
            if (out != NULL) {
                fprintf(out, "%s\n", p->headers[i].name);
            }
            p->headers[kept++] = p->headers[i];
        } else {
            free(p->headers[i].name);
            free(p->headers[i].text);
        }
    }
    p->header_count = kept;
    if (out != NULL) {
        fclose(out);
    }
    free(used);
    return 1;
}

/* Under SIMT_KEEP every text that is asked for is left in that folder, and the headers it uses. */
static void keep_text(const struct program *p, const char *key) {
    const char *folder = getenv("SIMT_KEEP");
    char name[64];
    if (folder == NULL || folder[0] == 0) {
        return;
    }
    mkdir(folder, 0700);
    snprintf(name, sizeof(name), "%s.cu", key);
    b8 ok = write_under(folder, name, p->main.text);
    for (int i = 0; i < p->header_count && ok; i++) {
        ok = write_under(folder, p->headers[i].name, p->headers[i].text);
    }
    if (!ok) {
        simt_trace("cannot keep %s in %s", name, folder);
    }
}

/* Whoever asks for a text that another process or thread is compiling waits for it. */
static int compile_once(struct program *p, const struct options *options, struct command *c,
                        const char *cache, const char *path) {
    char lock[600];
    u64 start_ns = simt_now_ns();
    snprintf(lock, sizeof(lock), "%s.lock", path);
    int file = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    while (file >= 0 && flock(file, LOCK_EX) != 0 && errno == EINTR) {
    }
    int code = access(path, R_OK) == 0 ? 0 : compile_text(p, options, c, cache, path);
    if (file >= 0) {
        unlink(lock); /* who waits for it finds the object */
        close(file);
    }
    simt_trace("compiled %s in %.0f ms", p->main.name, (double)(simt_now_ns() - start_ns) / 1e6);
    return code;
}

static int compile(struct program *p, int option_count, const char *const *given) {
    struct options options;
    struct command c = {{0}, 0};
    char cache[400];
    char key[40];
    char path[512];
    b8 uses_int128 = strstr(p->main.text, "__int128") != NULL;
    int code = read_options(p, option_count, given, &options);
    if (code != 0) {
        return code;
    }
    if (!drop_unused(p)) {
        return RTC_OUT_OF_MEMORY;
    }
    check_words(p, &p->main);
    for (int i = 0; i < p->header_count; i++) {
        if (strcmp(base_name(p->headers[i].name), "prelude.h") != 0) {
            check_words(p, &p->headers[i]);
        }
        uses_int128 |= strstr(p->headers[i].text, "__int128") != NULL;
    }
    if (uses_int128 && !options.int128) {
        say(p, "error: __int128 needs the option --device-int128\n");
    }
    if (p->log_bytes != 0) {
        return RTC_COMPILATION;
    }
    c_command(&c, simt_settings.strict, &options);
    make_key(p, &c, key, sizeof(key));
    keep_text(p, key);
    cache_folder(cache, sizeof(cache));
    snprintf(path, sizeof(path), "%s/%s.so", cache, key);
    if (access(path, R_OK) != 0) {
        code = compile_once(p, &options, &c, cache, path);
    }
    /* As the real one: a virtual architecture gives no machine code. */
    return code != 0 || !starts(options.arch, "sm_") ? code
                                                     : make_image(p, path, key, options.arch);
}

int simt_image_file(const void *data, char *path, size_t path_bytes) {
    struct image image;
    char cache[400];
    char temporary[512];
    memcpy(&image, data, sizeof(image.magic));
    if (memcmp(image.magic, image_magic, sizeof(image_magic)) != 0) {
        return SIMT_INVALID_IMAGE;
    }
    memcpy(&image, data, sizeof(image));
    char arch[16];
    snprintf(arch, sizeof(arch), "sm_%u", (unsigned)simt_settings.chip);
    if (!starts(image.arch, arch)) {
        return SIMT_NO_BINARY;
    }
    cache_folder(cache, sizeof(cache));
    snprintf(path, path_bytes, "%s/%s.so", cache, image.key);
    if (access(path, R_OK) == 0) {
        return 0;
    }
    snprintf(temporary, sizeof(temporary), "%s/load-XXXXXX", cache);
    int file = mkstemp(temporary);
    if (file < 0) {
        return SIMT_INVALID_IMAGE;
    }
    close(file);
    b8 ok = write_whole(temporary, (const char *)data + sizeof(image), image.object_bytes) &&
            rename(temporary, path) == 0;
    return ok ? 0 : SIMT_INVALID_IMAGE;
}

/* Counts the call like every other, without keeping the lock. */
static int enter(const char *name) {
    int code = simt_enter(name, SIMT_ANY);
    return code != 0 ? code : simt_leave(0);
}

static struct program *program_of(void *handle) {
    struct program *p = handle;
    return p != NULL && p->magic == PROGRAM_MAGIC ? p : NULL;
}

static void free_program(struct program *p) {
    for (int i = 0; i < p->header_count; i++) {
        free(p->headers[i].name);
        free(p->headers[i].text);
    }
    free(p->headers);
    free(p->main.name);
    free(p->main.text);
    free(p->log);
    free(p->image);
    p->magic = 0;
    free(p);
}

int nvrtcVersion(int *major, int *minor) {
    int code = enter("nvrtcVersion");
    if (code != 0) {
        return code;
    }
    *major = (int)simt_settings.rtc / 10;
    *minor = (int)simt_settings.rtc % 10;
    return 0;
}

int nvrtcSetFlowCallback(void *program, int (*stopped)(void *arg, void *unused), void *arg) {
    int code = enter("nvrtcSetFlowCallback");
    struct program *p = program_of(program);
    if (code != 0 || p == NULL) {
        return code != 0 ? code : RTC_INVALID_PROGRAM;
    }
    p->stopped = stopped;
    p->stopped_arg = arg;
    return 0;
}

int nvrtcCreateProgram(void **out, const char *text, const char *name, int header_count,
                       const char *const *headers, const char *const *header_names) {
    int code = enter("nvrtcCreateProgram");
    if (code != 0) {
        return code;
    }
    if (text == NULL || header_count < 0) {
        return RTC_INVALID_INPUT;
    }
    struct program *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return RTC_OUT_OF_MEMORY;
    }
    p->magic = PROGRAM_MAGIC;
    p->main.name = strdup(name == NULL || name[0] == 0 ? "default_program" : name);
    p->main.text = strdup(text);
    p->headers = calloc((size_t)header_count + 1, sizeof(*p->headers));
    b8 ok = p->main.name != NULL && p->main.text != NULL && p->headers != NULL;
    for (int i = 0; ok && i < header_count; i++) {
        p->header_count = i + 1;
        p->headers[i].name = strdup(header_names[i]);
        p->headers[i].text = strdup(headers[i]);
        ok = p->headers[i].name != NULL && p->headers[i].text != NULL;
    }
    if (!ok) {
        free_program(p);
        return RTC_OUT_OF_MEMORY;
    }
    *out = p;
    return 0;
}

int nvrtcDestroyProgram(void **program) {
    struct program *p = program == NULL ? NULL : program_of(*program);
    int code = enter("nvrtcDestroyProgram");
    if (p == NULL) {
        return RTC_INVALID_PROGRAM;
    }
    free_program(p);
    *program = NULL;
    return code;
}

/* As long as SIMT_SLOW says, asking now and then whether to stop; false: stopped. */
static b8 take_time(struct program *p) {
    u64 end = simt_now_ns() + simt_settings.slow_ms * 1000000u;
    for (;;) {
        if (p->stopped != NULL && p->stopped(p->stopped_arg, NULL)) {
            return 0;
        }
        if (simt_now_ns() >= end) {
            return 1;
        }
        usleep(1000);
    }
}

int nvrtcCompileProgram(void *program, int option_count, const char *const *options) {
    int code = enter("nvrtcCompileProgram");
    if (code != 0) {
        return code;
    }
    struct program *p = program_of(program);
    if (p == NULL) {
        return RTC_INVALID_PROGRAM;
    }
    free(p->log);
    p->log = NULL;
    p->log_bytes = 0;
    code = take_time(p) ? compile(p, option_count, options) : RTC_CANCELLED;
    if (code != 0) {
        simt_trace("%s does not compile:\n%s", p->main.name, p->log == NULL ? "" : p->log);
    }
    return code;
}

int nvrtcGetCUBINSize(void *program, size_t *out) {
    int code = enter("nvrtcGetCUBINSize");
    struct program *p = program_of(program);
    if (code != 0 || p == NULL) {
        return code != 0 ? code : RTC_INVALID_PROGRAM;
    }
    *out = p->image_bytes;
    return 0;
}

int nvrtcGetCUBIN(void *program, char *out) {
    int code = enter("nvrtcGetCUBIN");
    struct program *p = program_of(program);
    if (code != 0 || p == NULL || p->image == NULL) {
        return code != 0 ? code : RTC_INVALID_PROGRAM;
    }
    memcpy(out, p->image, p->image_bytes);
    return 0;
}

int nvrtcGetProgramLogSize(void *program, size_t *out) {
    int code = enter("nvrtcGetProgramLogSize");
    struct program *p = program_of(program);
    if (code != 0 || p == NULL) {
        return code != 0 ? code : RTC_INVALID_PROGRAM;
    }
    *out = p->log_bytes + 1;
    return 0;
}

int nvrtcGetProgramLog(void *program, char *out) {
    int code = enter("nvrtcGetProgramLog");
    struct program *p = program_of(program);
    if (code != 0 || p == NULL) {
        return code != 0 ? code : RTC_INVALID_PROGRAM;
    }
    memcpy(out, p->log == NULL ? "" : p->log, p->log_bytes + 1);
    return 0;
}
