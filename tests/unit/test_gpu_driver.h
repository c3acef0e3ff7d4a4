/* test_gpu_driver.h: which CUDA driver a test runs on: the simt one beside the test's folder,
 * unless WARPFOX_CUDA names another library or WARPFOX_TEST_GPU=1 asks for the machine's own. */
#ifndef WF_TEST_GPU_DRIVER_H
#define WF_TEST_GPU_DRIVER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names it to the library; false: there is none. */
static inline bool gpu_name_driver(void) {
    char self[1024];
    char path[1100];
    if (getenv("WARPFOX_TEST_GPU")) {
        return true;
    }
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len < 0 ? 0 : len] = 0;
    char *slash = strrchr(self, '/');
    snprintf(path, sizeof path, "%.*s/../libcuda-simt.so", slash ? (int)(slash - self) : 0, self);
    setenv("WARPFOX_CUDA", path, 0);
    return access(getenv("WARPFOX_CUDA"), R_OK) == 0;
}

#endif
