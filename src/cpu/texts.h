/* texts.h: texts that lie beside the rows that have views of them, moved with calls (base/mem.h). */
#ifndef WF_CPU_TEXTS_H
#define WF_CPU_TEXTS_H

#include "cpu/cpu_int.h"

/* Whether a column of the chunk is text that lies in temporary space. */
bool texts_lie_aside(const struct memory *mem, const struct chunk *chunk, u32 c);
/* Bytes of n texts; what they hold where they are NULL does not count. */
i64 texts_bytes(const str *text, const b8 *nulls, i64 n);
/* Copies n texts to one place, one behind the other; the views lead there then. Returns the bytes. */
i64 texts_bring(const struct memory *mem, str *text, const b8 *nulls, i64 n, u8 *to);
/* Of n texts that lie one behind the other: brings as many as `cap` bytes have room for, and returns how many: at
 * least one, which stays where it is if it is longer. */
i64 texts_window(const str *text, i64 n, i64 cap);

#endif
