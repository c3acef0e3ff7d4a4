/* gpu_text.h: kernel text and, when the build made them, compiled kernels, embedded in the library.
 */
#ifndef WF_GPU_GPU_TEXT_H
#define WF_GPU_GPU_TEXT_H

struct gpu_text {
    const char *name; /* as kernels include it */
    const char *text;
};
extern const struct gpu_text gpu_texts[];
extern const int gpu_text_count;

/* Modules of kernel.def compiled ahead of time. Looked up before NVRTC; the list may be empty. */
struct gpu_image {
    const char *module; /* "vm_rows" */
    int chip;           /* 90 for sm_90 */
    int is_ptx;         /* for this chip and later ones; else a cubin for this one only */
    const void *data;
    long long bytes;
};
extern const struct gpu_image *const gpu_images;
extern const int gpu_image_count;

#endif
