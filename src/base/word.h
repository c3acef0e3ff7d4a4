/* word.h: the machine words everything is made of.
 *
 * Compiles as C11, as CUDA C (nvcc, NVRTC) and as kernel text under the simt driver; it includes
 * nothing. i64 is `long long` everywhere so that host and device agree on every signature. */
#ifndef WF_BASE_WORD_H
#define WF_BASE_WORD_H

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef unsigned char b8; /* 0 or 1 */
#ifdef __CUDACC_RTC__ /* NVRTC does not know __extension__; it wants --device-int128 */
typedef __int128 i128;
typedef unsigned __int128 u128;
#else
__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;
#endif

#define I32_MIN (-2147483647 - 1)
#define I32_MAX 2147483647
#define I64_MIN (-9223372036854775807LL - 1)
#define I64_MAX 9223372036854775807LL
#define I128_MAX ((i128)(((u128)1 << 127) - 1))
#define I128_MIN (-I128_MAX - 1)

/* A string value: bytes at addr, valid on the device that executes. The prefix holds the first four
 * bytes (zero padded) with the first byte in the highest position, so comparing prefixes as
 * unsigned integers orders strings by their first four bytes. */
typedef struct str {
    u32 len;
    u32 prefix;
    u64 addr;
} str;

#endif
