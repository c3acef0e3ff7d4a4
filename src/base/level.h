/* level.h: names in sources that are compiled once per processor level; WF_LEVEL says which. */
#ifndef WF_BASE_LEVEL_H
#define WF_BASE_LEVEL_H

#include "base/thread.h"

#define LEVEL_NAME_(what, level) what##_##level
#define LEVEL_NAME__(what, level) LEVEL_NAME_(what, level)
#define LEVEL_NAME(what) LEVEL_NAME__(what, WF_LEVEL)

/* Of what each level has one of, as the processor is. */
#if defined(__x86_64__)
#define LEVEL_BEST(what)                                                                           \
    (cpu_level() == CPU_AVX512 ? &what##_avx512                                                    \
     : cpu_level() == CPU_AVX2 ? &what##_avx2                                                      \
                               : &what##_baseline)
#else
#define LEVEL_BEST(what) (&what##_baseline)
#endif

#endif
