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
    i64 room; /* rows that its buffers have room for, where it is a variable's last one; 0 = no more */
    i64 order;
    struct column *cols;
    struct buffer *
        *buffers; /* 2 per column: data, nulls; counted, and shared by slices of one block */
    u32 col_count;
    struct memory *mem;
};

struct kept_trie;       /* run/tries.h */
struct scan_provider;   /* store/scan.h */
struct trie_chain;

enum index_apart { APART_UNKNOWN, APART_YES, APART_NO };
enum index_form { INDEX_DIRECT, INDEX_HASH, INDEX_BITS, INDEX_RANK, INDEX_CHAIN };
#ifndef INDEX_ROWS_MOST
#define INDEX_ROWS_MOST 0xfffffffeLL /* 32 bits hold their numbers plus one */
#endif
/* Rows of an index that is no chain, or of a part of a chain, the first being number `base` of all. */
i64 index_rows_most(i64 base);
void index_rows_limit(i64 rows); /* so many from now on, for tests; 0 = as before */
struct rank_block { /* 64 keys: which are there, and how many keys are there before them */
    u64 bits;
    u64 before;
};
struct hash_slot { /* hi == 0: free */
    i64 key;
    u32 lo, hi;
};
/* From a key to rows of a flat variable. Row numbers are 32-bit, and count from `base`.
 *   DIRECT  slot = key - key_lo, in [0, slot_count). unique: heads[slot] = row + 1, 0 = none;
 *           otherwise the key's run is heads[slot] .. heads[slot + 1]
 *   RANK    the same slots; blocks say whether the key is there and which number r among the
 *           keys it has. unique: the row is rows[r], or r without rows; otherwise the run is
 * heads[r]
 *           .. heads[r + 1]
 *   BITS    the same, of a set: bit `slot` of heads says whether the key is there; no rows
 *   HASH    slots: open addressing, linear, slot_count a power of two, from hash_u64(key) &
 *           (slot_count - 1). unique: lo is the row; otherwise lo .. hi is the run
 *   CHAIN   more rows than 32 bits number: an index for each of `parts`, which follow each other in the
 *           variable. No arrays of its own, no set (sets have no row numbers), never unique: nobody has
 *           looked whether a key is in several parts. No card has one.
 * A run is of elements of `rows`, or of rows themselves when an index that is not unique has none.
 * index_plain turns RANK, which kernels do not know, into DIRECT.
 * Arrays come from mem_alloc: heads has head_count elements, rows row_count. */
struct index {
    u8 form;
    b8 unique; /* also of a set, which keeps one row a key */
    i64 key_lo;
    i64 slot_count;
    i64 row_count;
    struct hash_slot *slots;
    struct rank_block *blocks;
    i64 block_count;
    u32 *heads;
    u32 *rows;
    i64 head_count; /* elements of heads */
    i64 base;            /* the row that is number 0 here; 0 but in a part */
    struct index *parts; /* CHAIN: none is a chain; from mem_alloc */
    i64 part_count;
    u32 *filter; /* or NULL: bit key - filter_lo says whether the key is there at all, or, hashed,
                    the highest bits of hash_u64(key), of which filter_bits, a power of two, are
                    told apart, say that it may be */
    b8 filter_hashed;
    i64 filter_lo;
    i64 filter_bits;
    u8 apart; /* enum index_apart: of sorted runs, no row has the key and the value of another */
    i64 bytes;
    i64 grown_rows;   /* of its rows, those that an index or a set that grows has */
    i64 key_count;    /* ... different keys of theirs */
    i64 rows_used;    /* ... elements of `rows` that are given to runs, now or before */
    i64 rows_live;    /* ... now: a run has room for the next power of two */
    /* Memory has no room for all of it: keys are told apart by class_bits bits of their hash, and it
     * holds those of class_no alone, while a pipeline's pass needs them (cpu/index_classes.c). */
    u8 class_bits; /* 0 = it is whole */
    b8 class_set;
    u32 class_col, class_no;
    i64 *class_starts;       /* rows of a class lie side by side */
    struct chunk *class_all; /* all rows, while the variable has those of the class; or NULL */
    struct class_texts *class_texts; /* by column of the rows; NULL = no text goes with its class */
    struct kept_trie *kept;       /* whose arrays these are (run/tries.h); NULL = its own */
};
static inline u64 index_class_of(const struct index *index, i64 key) {
    return hash_u64((u64)key) >> 32 & ((1ULL << index->class_bits) - 1);
}
void index_measure(struct index *index); /* sets bytes; of a chain row_count, too */
static inline i64 index_filter_bytes(const struct index *index) {
    return index->filter_bits / 32 * (i64)sizeof(u32) + (i64)sizeof(u32);
}

/* Strings or pairs to dense numbers, shared by all threads. dict serves the strings; pairs have
 * their own table (INTERN2). Numbers count from 0; a number's pair never changes. Thread-safe. */
struct pair_map;
struct pair_map *pair_map_open(struct memory *mem); /* NULL when refused */
void pair_map_close(struct pair_map *map);
i64 pair_map_add(struct pair_map *map, i64 a, i64 b);        /* -1 when memory is refused */
i64 pair_map_find(const struct pair_map *map, i64 a, i64 b); /* -1 when absent */
i64 pair_map_len(const struct pair_map *map);
void pair_map_get(const struct pair_map *map, i64 number, i64 *out_a, i64 *out_b);
u64 pair_hash(i64 a, i64 b);
/* As those of a dictionary (dict_place, dict_absorb, dict_recall). */
void pair_map_place(struct pair_map *map, enum mem_place place);
bool pair_map_absorb(struct pair_map *into, const struct pair_map *from);
struct pair_map *pair_map_recall(const struct pair_map *map, i64 first, i64 end);

/* An interner that memory had no room for is made partition by partition of the hash of its texts or pairs:
 * the numbers of a partition follow each other, and only its own hash table is in memory while a
 * pipeline numbers or finds what belongs to it (cpu/cut.h). */
struct leaf {
    u64 prefix; /* the bits of the hash that its texts or pairs share, */
    i32 level;  /* ... CUT_BITS times level + 1 of them */
    i64 first, end;
};
struct leaves {
    VEC(struct leaf) items;
};
struct open_leaf { /* the partition at hand; numbers count from `first` */
    struct dict *dict;
    struct pair_map *pairs;
    i64 first;
    i32 bits;   /* rows whose hash does not begin with these bits of `prefix` are another pass's; 0 = none are */
    u64 prefix;
};

/* Keys of rows that count once. Thread-safe, but for what is said. */
struct key_set;
enum key_best { KEY_ONLY, KEY_LEAST, KEY_GREATEST }; /* the value that a set keeps of every key */
struct key_set *key_set_open(struct memory *mem, i32 bits,
                             enum key_best best); /* NULL when refused */
void key_set_close(struct key_set *set);
struct key_rows {
    const i64 *keys;
    const i64 *values; /* NULL: KEY_ONLY */
};
/* The rows at sel (NULL: all n) whose keys were not there, each once, or came with a better value;
 * out may be sel. -1 when memory is refused. */
i64 key_set_add(struct key_set *set, const struct key_rows *rows, const u32 *sel, i64 n, u32 *out);
/* As a bitmap, which it is from then on: bit `key % 32` of word `key / 32`; behind it, where values
 * are kept, a word of 64 bits for every key: the least unsigned one is the best. NULL when
 * refused. */
void *key_set_bits(struct key_set *set);
/* What a sink asks of its set. */
static inline enum key_best sink_best(const struct sink *sink) {
    return sink->word_count == 0 ? KEY_ONLY : sink->words[0] == WORD_MIN ? KEY_LEAST : KEY_GREATEST;
}
static inline i64 key_set_bytes(i32 bits, bool values) {
    i64 bytes = ((1LL << bits) / 64 + 1) * 8;
    return bytes + (values ? 8LL << bits : 0);
}
/* One that is a bitmap, to be filled. */
struct key_set *key_set_of_bits(struct memory *mem, i32 bits, enum key_best best);
/* Its keys one by one, in no order; while nobody adds some. Of a set without values. */
struct key_walk {
    const struct key_set *set;
    i32 shard; /* the next, where it is tables */
    i64 slot;
    u32 bits; /* of the word before slot that are left, where it is a bitmap */
};
struct key_walk key_set_walk(const struct key_set *set);
bool key_set_next(struct key_walk *walk, i64 *out);
i64 key_set_count(const struct key_set *set);
/* Between steps: takes the form that suits it now; false when memory is refused. */
bool key_set_settle(struct key_set *set);

/* A heap that is not full: a round of a recursion goes on where one before it ended. */
struct heap_room {
    struct buffer *heap;
    i64 used;
};

struct variable {
    u8 kind; /* enum var_kind */
    VEC(struct chunk *) chunks;
    i64 rows;
    VEC(struct buffer *) heaps; /* bytes of strings that the rows made or took from variables */
    VEC(struct heap_room) heap_rooms; /* of those heaps, what the next rows may write to */
    u32 view_of; /* the variable + 1 that holds those of its rows; 0 = itself */
    struct index *index;
    struct index *spare_index; /* the memory of one that there was, for the next */
    void *lut; /* LUT: lut_len elements of lut_kind, from mem_alloc(mem, lut_bytes) */
    i64 lut_len;
    i64 lut_bytes;
    struct memory *mem;
    struct dict *dict;      /* INTERN of strings */
    struct pair_map *pairs; /* INTERN of pairs */
    struct leaves *leaves;  /* ... its partitions; NULL = it is whole */
    struct open_leaf *leaf; /* ... the one at hand; NULL = none */
    b8 bounded;             /* ... it takes memory alone: who is refused may start anew */
    struct key_set *keys;   /* SET */
    void *copy;             /* what a device with memory of its own holds of it; host side may then be empty */
    void (*copy_release)(void *copy);
    u32 copy_space; /* whose it is: struct device */
    b8 on_host;     /* chunks hold all rows, or what is kept of them stands for them */
    struct kept_trie *kept;              /* whose rows these are, or a graph of them; NULL = its own */
    struct scan_provider *levels;   /* whose levels stand for the rows (run/levels.h); NULL = nobody's */
    const struct trie_chain *chain; /* how a graph of them would be kept; NULL = it would not */
};

#endif
