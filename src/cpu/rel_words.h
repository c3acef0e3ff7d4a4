/* rel_words.h: the loops of rel_word.h for every type of word, by name: loop_u32, loop_u64,
 * loop_u128. Where one of them is not used the compiler leaves it out. */
#ifndef WF_CPU_REL_WORDS_H
#define WF_CPU_REL_WORDS_H

#include "cpu/rel_int.h"

#define W u32
#define WORD(name) name##_u32
#include "cpu/rel_word.h"
#define W u64
#define WORD(name) name##_u64
#include "cpu/rel_word.h"
#define W w128
#define WORD(name) name##_u128
#include "cpu/rel_word.h"

#endif
