/* scan_u64.h: sums of 64-bit words, the scan that window functions call: compiled ahead of time. */
#define T u64
#define T_BYTES 8
#define T_WORDS 1
#define FOLD(a, b) ((T)(a + b))
#define FOLD_IDENTITY ((T)0)
#include "scan.h"
