/* split_words.h: the radix sort of 64-bit words with row numbers, which sorts of variables call:
 * compiled ahead of time. */
#define KEY_BYTES 8
#define RADIX_BITS 8
#define SPLIT_THREADS 384
#define SPLIT_ITEMS 12
#define PAYLOAD1 4
#define PAYLOAD2 0
#define WF_MIN_BLOCKS 2
#include "split.h"
