/* hooks.h: how kernel text is compiled, checked or not.
 *
 * In strict mode the text has the compiler's thread-race and undefined-behaviour instrumentation,
 * whose calls land in watch.h instead of in a sanitizer's runtime. Thread instrumentation is used
 * rather than address instrumentation because the latter drops the check of a store that follows a
 * load of the same place, which hides races of `x[i] += y`. */
#ifndef SIMT_HOOKS_H
#define SIMT_HOOKS_H

#include "bridge.h"

/* Words that say where they were called from, so that they must be calls. A compiler that does not
 * optimise inlines nothing, and leaves out what nobody calls of inline functions only. */
#if !SIMT_STRICT
#define SIMT_RAW static inline __attribute__((unused))
#elif defined(__OPTIMIZE__)
#define SIMT_RAW static __attribute__((unused, noinline, no_sanitize("thread", "undefined")))
#else
#define SIMT_RAW static inline __attribute__((unused, no_sanitize("thread", "undefined")))
#endif

#define SIMT_ENTRY __attribute__((no_sanitize("thread", "undefined")))
#ifdef __cplusplus
#define SIMT_EXPORT extern "C" __attribute__((visibility("default")))
#define SIMT_EXPORT_DATA(type, name) \
    extern "C" __attribute__((visibility("default"))) const type name
#define SIMT_ALIGN(type) alignof(type)
#else
#define SIMT_EXPORT __attribute__((visibility("default")))
#define SIMT_EXPORT_DATA(type, name)                               \
    __attribute__((visibility("default"))) extern const type name; \
    const type name
#define SIMT_ALIGN(type) _Alignof(type)
#endif

/* Everything a kernel object knows of the library; watch.h has it. */
extern const struct simt_bridge *simt_table __attribute__((visibility("hidden")));

#endif
