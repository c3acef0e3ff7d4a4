/* test_gpu_code.c: kernels kept on disk: files under each other's names, torn, written by others or
 * refused by the driver are compiled anew, and the answers stay. Needs the simt driver, as
 * test_gpu.c does. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <dirent.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/base.h"

enum { FILES_MAX = 32, PATH_BYTES = 512 };
static char folder[64];

struct kernel_file { /* as gpu_code.c writes it: magic, key, checksum, image */
    char path[PATH_BYTES];
    char *data;
    size_t bytes;
};
static struct kernel_file files[FILES_MAX];
static int file_count;

static void read_files(void) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    file_count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct kernel_file *file = &files[file_count];
        if (!strstr(entry->d_name, ".cubin")) {
            continue;
        }
        snprintf(file->path, sizeof file->path, "%s/%s", folder, entry->d_name);
        FILE *in = fopen(file->path, "rb");
        assert_non_null(in);
        fseek(in, 0, SEEK_END);
        file->bytes = (size_t)ftell(in);
        rewind(in);
        file->data = malloc(file->bytes + 1);
        assert_int_equal(fread(file->data, 1, file->bytes, in), file->bytes);
        fclose(in);
        file_count++;
        assert_true(file_count < FILES_MAX);
    }
    closedir(dir);
}

static void forget_files(void) {
    for (int i = 0; i < file_count; i++) {
        free(files[i].data);
    }
}

static void write_file(const char *path, const char *data, size_t bytes) {
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, bytes, out), bytes);
    fclose(out);
}

/* Every file names its own key again, and the image is the one its checksum is of. */
static void check_files(int count) {
    read_files();
    assert_int_equal(file_count, count);
    for (int i = 0; i < file_count; i++) {
        u64 head[3];
        memcpy(head, files[i].data, sizeof head);
        char name[40];
        snprintf(name, sizeof name, "/%016llx.cubin", head[1]);
        assert_non_null(strstr(files[i].path, name));
        assert_true(head[2] ==
                    XXH3_64bits(files[i].data + sizeof head, files[i].bytes - sizeof head));
    }
    forget_files();
}

/* Two woven kernels of different shapes, in a database of its own. */
static void ask(void) {
    open_db("0", "woven");
    run("set device = cpu");
    run("create table t as select i from (values (1), (2), (3), (40)) v(i)");
    run("set device = gpu");
    assert_int_equal(number("select sum(i) from t where i > 1"), 45);
    assert_int_equal(number("select count(*) from t where i * i < 10"), 3);
    close_db();
}

static void start_afresh(void) {
    read_files();
    for (int i = 0; i < file_count; i++) {
        unlink(files[i].path);
    }
    forget_files();
    ask();
}

static void test_swapped(void **state) {
    (void)state;
    start_afresh();
    read_files();
    int count = file_count;
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) {
        const struct kernel_file *from = &files[(i + 1) % count];
        write_file(files[i].path, from->data, from->bytes);
    }
    forget_files();
    ask();
    check_files(count);
}

static void test_torn(void **state) {
    (void)state;
    start_afresh();
    read_files();
    int count = file_count;
    for (int i = 0; i < count; i++) {
        files[i].data[files[i].bytes - 1] ^= 1;
        write_file(files[i].path, files[i].data, i % 2 ? files[i].bytes : 10);
    }
    forget_files();
    ask();
    check_files(count);
}

/* What anybody could have written is not loaded but written anew. */
static void test_foreign(void **state) {
    (void)state;
    start_afresh();
    read_files();
    int count = file_count;
    for (int i = 0; i < count; i++) {
        assert_int_equal(chmod(files[i].path, i % 2 ? 0666 : 0664), 0);
    }
    ask();
    for (int i = 0; i < count; i++) {
        struct stat info;
        assert_int_equal(stat(files[i].path, &info), 0);
        assert_int_equal(info.st_mode & 022, 0);
    }
    forget_files();
    check_files(count);
}

/* A whole file under its own key that the driver will not load. */
static void test_refused(void **state) {
    (void)state;
    start_afresh();
    read_files();
    int count = file_count;
    for (int i = 0; i < count; i++) {
        u64 head[3];
        memcpy(head, files[i].data, sizeof head);
        memset(files[i].data + sizeof head, 'x', files[i].bytes - sizeof head);
        head[2] = XXH3_64bits(files[i].data + sizeof head, files[i].bytes - sizeof head);
        memcpy(files[i].data, head, sizeof head);
        write_file(files[i].path, files[i].data, files[i].bytes);
    }
    forget_files();
    ask();
    read_files();
    for (int i = 0; i < file_count; i++) {
        assert_true(files[i].data[files[i].bytes - 1] != 'x' ||
                    files[i].data[files[i].bytes - 2] != 'x');
    }
    forget_files();
    check_files(count);
}

static int open_folder(void **state) {
    snprintf(folder, sizeof folder, "/tmp/warpfox-code-XXXXXX");
    umask(022);
    assert_non_null(mkdtemp(folder));
    setenv("WARPFOX_CACHE", folder, 1);
    return find_gpu(state);
}

static int close_folder(void **state) {
    (void)state;
    read_files();
    for (int i = 0; i < file_count; i++) {
        unlink(files[i].path);
    }
    forget_files();
    rmdir(folder);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_swapped),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
