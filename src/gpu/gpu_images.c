/* gpu_images.c: the list of kernels compiled ahead of time when the build made none.
 *
 * A build that finds nvcc compiles a generated file with the same two names instead of this one, so
 * that a machine with only the driver can run the virtual machine; everywhere else NVRTC compiles
 * on first use. */
#include "gpu/gpu_text.h"

#include <stddef.h>

const struct gpu_image *const gpu_images = NULL;
const int gpu_image_count = 0;
