/* scan_u32.h: sums of 32-bit words, the scan that index builds call: compiled ahead of time. */
#define T u32
#define T_BYTES 4
#define T_WORDS 1
#define FOLD(a, b) ((T)(a + b))
#define FOLD_IDENTITY ((T)0)
#include "scan.h"
