/* variable.h: what a program's variables hold while it runs. */
#ifndef WF_RUN_VARIABLE_H
#define WF_RUN_VARIABLE_H

#include "base/thread.h"
#include "defs/program.h"
#include "store/tablet.h"

/* One column of a chunk: `kind` elements, one b8 per row for NULL. Text is either str views, whose
 * bytes live in tablets, dictionaries or the chunk's heap, or i32 codes of `dict`. */
struct column {
    u8 kind; /* enum kind */
    void *data;
    b8 *nulls; /* NULL pointer = no NULLs */
};

/* A run of rows. A variable is a list of chunks; `order` sorts them into the order of their source
 * rows. */
struct chunk {
    i64 rows;
    i64 order;
    struct column *cols;
    struct buffer *
        *buffers; /* 2 per column: data, nulls; counted, and shared by slices of one block */
    u32 col_count;
    struct memory *mem;
};

enum index_form { INDEX_DIRECT, INDEX_HASH, INDEX_BITS };
/* From a key to rows of a flat variable. Row numbers are 32-bit.
 *   DIRECT  slot = key - key_lo, in [0, slot_count)
 *   BITS    the same, of a set: bit `slot` of heads says whether the key is there; no rows
 *   HASH    open addressing, linear, slot_count a power of two, start at hash_u64(key) &
 * (slot_count - 1) unique: heads[slot] = row + 1, 0 = free. Otherwise heads[slot] .. heads[slot +
 * 1] (DIRECT) or heads[2 * slot] .. heads[2 * slot + 1] (HASH) is a run of `rows`. HASH slots hold
 * keys[slot]; a slot whose head (unique) or run (otherwise) is empty is free. Arrays come from
 * mem_alloc: keys (HASH) has slot_count elements, heads slot_count + 1 (HASH with runs: 2 *
 * slot_count), rows (not unique) row_count. */
struct index {
    u8 form;
    b8 unique; /* also of a set, which keeps one row a key */
    i64 key_lo;
    i64 slot_count;
    i64 row_count;
    i64 *keys;
    u32 *heads;
    u32 *rows;
    i64 head_count; /* elements of heads */
    u32 *filter;    /* or NULL: bit key - filter_lo says whether the key is there at all */
    i64 filter_lo;
    i64 filter_bits;
    i64 bytes;
};

/* Strings or pairs to dense numbers, shared by all threads. dict serves the strings; pairs have
 * their own table (INTERN2). Numbers count from 0; a number's pair never changes. Thread-safe. */
struct pair_map;
struct pair_map *pair_map_open(struct memory *mem); /* NULL when refused */
void pair_map_close(struct pair_map *map);
i64 pair_map_add(struct pair_map *map, i64 a, i64 b);        /* -1 when memory is refused */
i64 pair_map_find(const struct pair_map *map, i64 a, i64 b); /* -1 when absent */
i64 pair_map_len(const struct pair_map *map);
void pair_map_get(const struct pair_map *map, i64 number, i64 *out_a, i64 *out_b);

struct variable {
    u8 kind; /* enum var_kind */
    VEC(struct chunk *) chunks;
    i64 rows;
    VEC(struct buffer *) heaps; /* bytes of strings that the rows made or took from variables */
    struct index *index;
    void *lut; /* LUT: lut_len elements of lut_kind, from mem_alloc(mem, lut_bytes) */
    i64 lut_len;
    i64 lut_bytes;
    struct memory *mem;
    struct dict *dict;      /* INTERN of strings */
    struct pair_map *pairs; /* INTERN of pairs */
    void *gpu;              /* the GPU device's copy, or NULL; host side may then be empty */
    void (*gpu_release)(void *gpu);
    b8 on_host; /* chunks hold all rows */
};

#endif
