/* kargs.h: what a host launch hands to a kernel; compiles as C11 and as CUDA C.
 *
 * The virtual machine and woven kernels take the same `struct kargs` by value and keep the same
 * sink state, so that a step can change from one to the other between two launches. Pointers are
 * addresses on the device. Everything that varies between executions of one program (literals,
 * bases, row counts, addresses) is reached from here and never written into kernel text.
 *
 * A launch covers `tablet_count` tablets. Rows are handed out in tiles; a tile lies within one
 * tablet: tile t is tile (t mod 2^tile_shift) of tablet (t >> tile_shift). Tiles past a tablet's
 * rows are empty. */
#ifndef WF_DEFS_KARGS_H
#define WF_DEFS_KARGS_H

#include "base/word.h"

/* How a segment's elements lie in memory, and how NULLs are marked. */
enum seg_form {
    SEG_CONST,
    SEG_U8,
    SEG_U16,
    SEG_U32,
    SEG_U64,
    SEG_U128,
    SEG_I32,
    SEG_I64,
    SEG_F32,
    SEG_F64,
    SEG_STR,   /* u32 end offsets; `bytes` are the bytes */
    SEG_VIEW,  /* views whose addresses are the host's */
    SEG_SERIES /* base + base_high * row; no data */
};
enum null_form { NULLS_NONE, NULLS_BITS, NULLS_BYTES }; /* bit 1 = valid; byte 1 = NULL */

struct kseg {
    const u8 *data;
    const u8 *nulls;
    u64 base; /* integers: value = base + element; SEG_CONST floats: the value's bits */
    u64 base_high;
    u32 form;      /* enum seg_form */
    u32 null_form; /* enum null_form */
    /* Text. SEG_STR: the bytes, and in `base` their address on the host. Codes that are loaded as
     * text: the dictionary's views, base_high of them. */
    const u8 *bytes;
};

/* Bytes of strings that lie in both memories. Views in registers hold addresses of the device that
 * executes; those in variables the host's, so that rows can be fetched as they are and what the
 * card holds may come and go between two steps. Kernels translate by tables ordered by `from`. */
struct ktext {
    u64 from, to, bytes;
};
struct ktexts {
    const struct ktext *items;
    u32 count;
    u32 pad;
};

/* One opcode of the virtual machine. Registers are places in shared memory, in units of 16 bytes;
 * the top bit marks a constant, which all threads share, the next one what lies elsewhere: a
 * boolean in a thread's hardware register (its number), or, in an output, a source column that is
 * read when its rows are written. */
#define KOP_CONST 0x8000u
#define KOP_ASIDE 0x4000u
#define KOP_ASIDE_FLAGS 4u /* booleans of sixteen rows in 64 bits */
struct kop {
    u16 code; /* OP_…, KOP_LOAD or KOP_NEXT; with KOP_HOT enum khot */
    u16 rank; /* of faults; hot: where the boolean goes */
    u16 dst, a, b, c;
    u16 imm;
    u8 kind;  /* enum kind of dst; hot: KHOT_… bits */
    u8 flags; /* KOP_… */
};
#define KOP_MASKED 1u  /* inside WHEN: rows that are not active keep their values */
#define KOP_FILTERS 2u /* the boolean result is not kept: it filters */
#define KOP_ALWAYS 4u  /* to be executed by warps without active rows, too */
#define KOP_HOT 8u     /* frequent: found by the short way */
#define KOP_MOVES 16u  /* may change which rows are active */
#define KOP_WIDE_A 32u /* hot: operand a is the four-byte value of an eight-byte operation */
#define KOP_WIDE_B 64u
/* c of a LOAD or LOADV of text: nothing but the output uses it, the view keeps the host's address.
 */
#define KOP_HOST_TEXT 1u
/* LOAD whose form is known: into a register of 4 (class 1) or 8 bytes (class 2). Signed and
 * floating forms of the register's own width are the unsigned one; others stay OP_LOAD. */
#define KOP_LOAD(class_no, form) (0x4000u + (class_no)*16u + (form))
/* Ends one MATCH: takes the next match of every row and goes back to c while any row has one. */
#define KOP_NEXT 0xffffu
/* Fills a constant with the bounds that comparisons with literals amount to: comparison rank with
 * literal imm, and, unless c is 0xffff, comparison c with literal b. */
#define KOP_RANGE 0xfffeu
/* EMIT to a mark sink: row a of output out_count + imm. */
#define KOP_MARK 0xfffdu
/* EXPLAIN ANALYZE: adds the active rows to place imm of REPORT_COUNTS. */
#define KOP_COUNT 0xfffcu
/* kind of PROBE, MATCH, EACH and ANY: PROBE_OUTER and PROBE_SINGLE of program.h, and whether only
 * some rows look anything up: those at b (PROBE), at rank (MATCH, EACH). */
#define KPROBE_OUTER 1u
#define KPROBE_SINGLE 2u
#define KPROBE_WHERE 4u
/* c of LOADV and LOADVN: row -1 may occur. */
#define KOP_OUTER_ROW 2u

/* Hot opcodes, outside WHEN only; none can fail. Those that make a four-byte value may test it at
 * once for bounds; those that make a boolean, by themselves or by such a test, may combine it with
 * another one (b) and filter with it. */
#define WF_KHOT_LOADS(X, A) \
    X(A, LOAD4_ANY)         \
    X(A, LOAD4_U8)          \
    X(A, LOAD4_U16)         \
    X(A, LOAD4_U32)         \
    X(A, LOAD8_U8)          \
    X(A, LOAD8_U16)         \
    X(A, LOAD8_U32)         \
    X(A, LOAD8_I32)         \
    X(A, LOAD8_U64)
#define WF_KHOT_ARITHMETIC(X, A, kind, K) \
    X(A, ADD_##K, kind)                   \
    X(A, SUB_##K, kind)                   \
    X(A, MUL_##K, kind)
#define WF_KHOT_COMPARISONS(X, A, kind, K) \
    X(A, EQ_##K, kind)                     \
    X(A, LT_##K, kind)                     \
    X(A, LE_##K, kind)
#define KHOT_NAME(A, name) KHOT_##name,
#define KHOT_NAME2(A, name, kind) KHOT_##name,
enum khot {
    WF_KHOT_LOADS(KHOT_NAME, ) KHOT_GET, /* the value at a */
    WF_KHOT_ARITHMETIC(KHOT_NAME2, , i32, I32) WF_KHOT_ARITHMETIC(KHOT_NAME2, , f32, F32)
        WF_KHOT_ARITHMETIC(KHOT_NAME2, , i64, I64) WF_KHOT_ARITHMETIC(KHOT_NAME2, , f64, F64)
            WF_KHOT_COMPARISONS(KHOT_NAME2, , i32, I32) WF_KHOT_COMPARISONS(KHOT_NAME2, , f32, F32)
                WF_KHOT_COMPARISONS(KHOT_NAME2, , i64, I64)
                    WF_KHOT_COMPARISONS(KHOT_NAME2, , f64, F64) KHOT_FLAGS, /* the boolean at a */
    KHOT_AND,
    KHOT_OR,
    KHOT_ANDN,
    KHOT_ORN
};
#undef KHOT_NAME
#undef KHOT_NAME2
#define KHOT_STORE 1u     /* the four-byte value is needed later */
#define KHOT_TEST 2u      /* and tested for the bounds at c */
#define KHOT_REAL 4u      /* as reals */
#define KHOT_FLIP 8u      /* the boolean is negated, */
#define KHOT_ANDED 16u    /* combined with the one at b by AND */
#define KHOT_ORED 32u     /* or by OR, */
#define KHOT_FILTER 64u   /* and filters */
#define KHOT_BOOLEAN 128u /* there is one */

struct klit {
    u64 low, high;
};

struct kcol { /* a column of a relation variable or a lookup table */
    const u8 *data;
    const b8 *nulls;
    i64 len;
    /* mask: the column is bits of what an index has in place of row numbers: lo + (number >> shift & mask), and
     * bit null_bit - 1 (null_bit 0: none are NULL) */
    i64 lo;
    u64 mask;
    u32 shift;
    u32 null_bit;
};

/* Which keys may be there: bit ((key >> shift) & mask) - lo, of `count`. A key of several columns may have
 * one for one of them. No bits: not known. */
struct kfilter {
    u32 *bits;
    i64 lo;
    u64 count;
    u64 mask;
    u32 shift;
    u32 pad;
};

/* From a key to rows; struct index of run/variable.h says the same of the host's.
 *   DIRECT  slot = key - key_lo: heads[slot] is row + 1, 0 = none; not unique: the key's run is heads[slot]
 *           .. heads[slot + 1], elements of rows
 *   BITS    a set: bit `slot` of heads; its members are row 0
 *   RANK    a word of slots for 32 keys: bits say which of them are there, and above them is how many are
 *           there before them. That, and the bits below a key's, is its number r among the keys: its row is
 *           heads[r]; not unique: its run is heads[r] .. heads[r + 1]
 *   PAIRS   open addressing, hash_32(key - key_lo), which is below 2^32. A slot is one word: that number,
 *           and above it what heads would hold. A run ends where that of the next slot starts, an empty one
 *           is a free slot: there is one slot more than slot_count
 *   RUNS    open addressing, hash_64(key). A slot is two words: the key, and its run of rows, or, unique,
 *           of row numbers, first and above it the end; 0 = free. As struct hash_slot of the host */
enum kindex_form { KINDEX_DIRECT, KINDEX_BITS, KINDEX_RANK, KINDEX_PAIRS, KINDEX_RUNS };
struct kindex {
    u32 form; /* enum kindex_form */
    u32 unique;
    i64 key_lo;
    u64 slot_count;
    const u64 *slots;
    const u32 *heads;
    const u32 *rows;
    struct kfilter filter;
    /* NEAR_BITS of the keys' lowest bits, or of those of the filter's field: few enough to be copied
     * to every block's shared memory; NULL = none. */
    const u32 *near;
    /* Of rows in the order of their key and column 1 (RUN): no two rows have both the same. Runs of such an
     * index are rows that follow each other; a hash table's begin with the first of them. */
    u32 apart;
    u32 pad;
};
#define NEAR_BITS (1u << 18)

/* Strings or pairs to dense numbers. An entry is its hash and the pair, or the length of the string
 * and where in the heap it is: eight bytes to a word, the first one highest. */
#define INTERN_WORDS 3u
enum { INTERN_ENTRIES, INTERN_BYTES, INTERN_COUNTS };
enum { BEST_MARK, BEST_NUMBER, BEST_LEAD, BEST_BUSY, BEST_WORDS };

struct kintern {
    u32 *slots; /* number + 1; 0 = free */
    u64 *entries;
    u8 *heap;
    u64 *counts;     /* entries and bytes in use; both may run past their limits */
    u64 slot_count;  /* a power of two */
    u64 entry_limit; /* half of it */
    u64 heap_bytes;
};

struct kout {
    u8 *data;
    b8 *nulls; /* 0 = the column has no NULL flags */
    u16 reg;   /* virtual machine: where the value and the flag are */
    u16 null_reg;
    u32 bytes;
    u32 is_text; /* views of this device, to be translated */
    u64 turn;    /* of a set with values, which are `nulls`: see set_better; of a table of keys its
                  * mask: see keys_add */
};

/* One of several sinks of rows: its columns among all outs, the report that counts its variable's rows, and
 * how many of them fit; the first report's variable has args.capacity. */
struct ksink {
    i64 capacity;
    u32 first, count;
    u32 report;
    u32 pad;
};

enum agg_form { AGG_DENSE, AGG_HASH };
/* A group's state: `head` words of its own, then those of the aggregates. HASH: the head is the key
 * (AGG_EMPTY = free); the group whose key is AGG_EMPTY lives in slot slot_count, and its head is
 * AGG_EMPTY once it is in use. DENSE: the key is the slot's number plus key_lo; the head counts
 * touches, unless a word tells which groups there are: the one at `touch` is not 0 then. */
#define AGG_EMPTY 0xa5a5a5a5a5a5a5a5ULL
#define AGG_TRIES 512u
#define AGG_PART_SHIFT 40 /* of a key's hash: bits that no table of a part uses */
#define AGG_PARTS_MOST 32u
#define AGG_MAX_WORDS 1024
#define AGG_BOUNDS(word_count) (3u + 2u * (word_count))

/* Words `word` to word + count - 1 are limbs `first` and on of an exact sum of the double at `reg`,
 * whose limb 0 starts at bit 2^(the constant at lsb). A value touches few of them, so that they
 * have no registers: their word_regs are AGG_NO_REG. */
#define AGG_NO_REG 0xffffu
struct klimbs {
    u16 reg, lsb;
    u16 word, count;
    i32 first;
    u32 square; /* of the double's square */
};

/* Groups whose column (0: the key, 1 + w: word w) is not within the bounds are of no use to anybody. */
#define AGG_KEEPS 4
struct kkeep {
    i64 lo, hi;
    u32 col;
    u32 pad;
};

struct kagg {
    u64 *state;
    u64 slot_count;  /* HASH: a power of two */
    u64 group_limit; /* HASH: ask for a larger table past this */
    i64 key_lo;      /* DENSE: the key of slot 0 */
    u32 form;        /* enum agg_form */
    u32 head;        /* words before those of the aggregates: 0 or 1 */
    u32 touch;       /* DENSE: the word of a slot that is not 0 when the group exists */
    u32 word_count;
    u32 copies;    /* DENSE: private tables per block in shared memory, a power of two; 0 = none */
    u32 shared_at; /* where its tables begin there, behind what else a kernel keeps */
    u16 key;       /* virtual machine: place of the key; KOP_CONST with no key = one group */
    u16 has_key;
    u32 narrow; /* DENSE: words have four bytes, as sums that do not reach 2^32 */
    const u8 *word_ops;   /* enum word_op */
    const u16 *word_regs; /* virtual machine: places */
    const struct klimbs *limbs;
    const struct kkeep *keeps;
    u32 limb_count;
    u32 keep_count;
    /* HASH, of rows in the order of their key: runs that end in a tile are rows of the output, the
     * table has only those at the edges of tiles. AGG_BOUNDS words for every tile, in the order of
     * rows: how many edges it has (0: no rows), the key and words of its first run, of its last. */
    u64 *bounds;
    const u64 *bound_starts; /* by tablet: the number of its first tile */
    /* HASH, where all groups have no room: only keys of this part, by their hash. */
    u32 part, part_mask; /* mask 0 = all keys */
};

#define KAGGS 8u /* aggregations of a pipeline */

#define HEAP_HEAD 256u

/* In place of a fault's word: the host has to run the step. No fault of a row is 0. */
#define ELSEWHERE_WORD 0ULL

/* One report per launch or per step, in device memory. */
enum { REPORT_FAULT, REPORT_RETRY, REPORT_ROWS, REPORT_COUNTS, REPORT_GROUPS, REPORT_WORDS };
#define AGG_REPORT(number) (args.report + (number)*REPORT_WORDS)
/* EXPLAIN ANALYZE: places of a pipeline where rows are counted, at the address in REPORT_COUNTS:
 * [copy * COUNT_PLACES + place]. In copies, so that blocks do not queue. */
#define COUNT_PLACES 64u
#define COUNT_COPIES 64u
enum {
    RETRY_OUTPUT = 1,
    RETRY_TABLE = 2,
    RETRY_DUPLICATE = 4,
    RETRY_INTERN = 8,
    RETRY_ORDER = 16, /* rows did not come in the order of their key */
    RETRY_HEAP = 32   /* strings that are made have no room */
};                    /* bits */

/* Rows that a step of a loop reads, known to the device alone. */
struct krange {
    i64 first, end;
    i64 start; /* -first: rows are numbered from it */
};

struct kargs {
    const struct kseg *segs; /* [column * tablet_count + tablet] */
    const i64 *tablet_rows;
    const i64 *row_starts;
    const u8 *zones; /* 0 = all; [tablet * zone_count + zone]: 0 = no row of these 2^14 can pass */
    const u64 *const *gone; /* 0 = none; [tablet]: 0, or bits of rows that are deleted */
    u32 zone_count;
    u32 tablet_count;
    u32 tile_shift;
    u32 op_count;
    u64 tile_first; /* the launch works on tiles from tile_first up to tile_count */
    u64 tile_count;
    /* 0 = those; else which rows of the only tablet, in memory of the device: the first, and the end, which tablet_rows
     * and row_starts point to as well. Tiles are those that the rows lie in. */
    const struct krange *range;
    const struct kop *ops;
    u32 hoist_count; /* the first opcodes fill constants, once per block */
    u32 slot_bytes;  /* shared memory of registers */
    const struct klit *lits;
    const struct kcol *luts;
    const struct kcol *cols;
    const struct kindex *indexes;
    const struct kintern *interns;
    const struct kout *outs;
    u32 out_count;
    /* Virtual machine: which of several aggregations it makes; it is the first of aggs. Of rows: 1 where they add their
     * keys to a bitmap, which is one more of outs, and are dropped where it has them */
    u32 emit;
    const struct ksink *sinks; /* 0 = one */
    i64 capacity; /* rows that fit */
    i64 limit;    /* stop after that many; -1 = never */
    struct kagg aggs[KAGGS];
    u64 *report; /* one for every aggregation, or variable of rows; the first one's is everybody's */
    /* Bytes of strings that the kernel makes: their number in the first word, which may run past what
     * there is; the bytes behind HEAP_HEAD. */
    u8 *heap;
    u64 heap_bytes;
    u64 *bests; /* per INTERN that has a key: BEST_WORDS for each of best_slots; see intern_best */
    u64 best_slots;
    struct ktexts texts_in;  /* host to device: text read from variables */
    struct ktexts texts_out; /* device to host: text written to variables */
    /* Rows that have heavy_least matches or more are left to a second launch, of which every block takes a
     * share of each one's: how many there are, and HEAVY_ROWS of them, as the lists of blocks name them.
     * 0: none are. */
    u32 *heavy;
    u32 heavy_least;
    u32 heavy_turn; /* 1: that second launch */
};
#define HEAVY_ROWS 256u

/* Fixed kernels that are not pipelines. */
struct kbuild {
    u32 form;        /* enum kindex_form, not BITS */
    u32 set;         /* duplicates do not matter */
    const i64 *key;  /* of the rows to index */
    const b8 *nulls; /* or 0; rows with a NULL key are left out */
    i64 row_count;
    i64 key_lo;
    const u32 *packed; /* or 0; what the index has in place of row numbers */
    u64 slot_count; /* RANK: keys */
    u64 *slots;
    u32 *heads;
    u32 *slot_of; /* not unique: per row; ~0 = none */
    u32 *cursor;  /* counts, then starts */
    u32 *rows;
    const i64 *values; /* or 0; of rows in the order of their key: column 1, in order within a key */
    u64 *report;       /* REPORT_ROWS: the longest run; REPORT_GROUPS: rows that have the value of the one before */
    const i64 *rows_at; /* how many there are, known to the device alone; 0 = row_count */
};

/* Columns of few bits, side by side, for every row. */
#define KPACK_FIELDS 8u
struct kpack_field {
    const u8 *data;
    const b8 *nulls; /* or 0 */
    i64 lo;
    u32 bytes; /* 0 = it has NULL flags only */
    u32 shift, bits;
    u32 null_bit; /* as of kcol */
};
struct kbuild_pack {
    i64 row_count;
    const i64 *rows_at; /* as those of kbuild */
    u32 *out;
    u64 *report; /* REPORT_RETRY: RETRY_TABLE where a value is out of its range */
    u32 count;
    u32 pad;
    struct kpack_field fields[KPACK_FIELDS];
};

#define RANK_WORDS 2048u
struct kbits {
    const i64 *key;
    const b8 *nulls;
    i64 row_count;
    struct kfilter to; /* of zeros */
    u32 *before;       /* RANK: how many are set in RANK_WORDS words, then in those before them */
    u64 *words;        /* RANK: both together */
    u64 *report;       /* REPORT_ROWS: how many are set; REPORT_COUNTS: rows that are not NULL */
    const i64 *rows_at; /* as that of kbuild */
};

/* Few rows to memory of the host that is mapped: all columns and flags by one kernel. */
#define FETCH_PARTS 64
struct kfetch {
    u8 *to;
    u32 count;
    u32 pad;
    struct kfetch_part {
        const u8 *from;
        u64 at; /* behind `to`; a multiple of 8, as `from` is */
        u64 bytes;
    } parts[FETCH_PARTS];
};

/* A loop whose rounds are queued before anybody knows how many there will be: what it reads and makes
 * is known to the device alone. Once a step could not go on, those behind it find no rows. */
#define LOOP_RELS 24u /* a lane of a warp each, as the others */
#define LOOP_PARTS 16u
#define LOOP_STEPS 24u
enum { LOOP_DELTA, LOOP_OLD, LOOP_ALL };
struct kloop_rel {
    u64 rows, taken;               /* that it has, and that a round has taken */
    u64 rows_before, taken_before; /* when the round began */
};
struct kloop_part {
    struct krange rows;
    u64 cut, of; /* rows of all rounds, and those that they were cut from */
    u64 cut_before, of_before;
};
struct kloop_step {
    u64 read, made; /* rows, in all rounds */
    u64 read_before, made_before;
    const u64 *counts; /* EXPLAIN ANALYZE: LOOP_COUNTS words that a pipeline counts in, */
    u64 *counts_before;
    u64 longest; /* of an index that grows: the run of a key that has most rows */
};
#define LOOP_COUNTS (COUNT_COPIES * COUNT_PLACES)
struct kloop {
    u64 stopped; /* the number of the step, + 1; 0 = it goes on */
    u64 rounds;  /* that began */
    u64 over;    /* nothing was new, or enough was there */
    struct krange now; /* what the next pipeline reads */
    struct kloop_rel rels[LOOP_RELS];
    struct kloop_part parts[LOOP_PARTS];
    struct kloop_step steps[LOOP_STEPS];
};
/* Between two steps: what the one before made, what the one behind reads. One that adds to an index reads
 * the rows of relation next_source - 1 that its own, the index, has not; one that reads what the round made for
 * itself all of them. */
struct kturn {
    struct kloop *loop;
    const u64 *took; /* the report of the one before; 0 = none */
    u64 *next;       /* of the one behind; 0 = none */
    i64 capacity;    /* of the relation that the one before added to */
    i64 stop_rows;   /* enough, of relation stop_rel - 1 */
    u32 stop_rel;    /* 0 = never */
    u32 begins;      /* a round does */
    u32 took_rel, took_step, next_rel, next_step, next_part;
    u32 rel_count, part_count;
    u32 step_count; /* of those whose counts are kept; 0 = nobody counts */
    u32 loop_count; /* of the relations, those whose new rows make another round */
    u32 next_source;
    u8 next_all;    /* it reads all rows of that relation instead */
    u8 next_begins; /* its own relation begins anew */
    u8 pad[2];
    u8 part_rels[LOOP_PARTS], part_forms[LOOP_PARTS]; /* LOOP_DELTA, … */
};

/* Rows added to an index, see k_grow_count. */
enum { GROW_USED, GROW_KEYS, GROW_WORDS };
struct kgrow {
    const i64 *key;
    const b8 *nulls; /* or 0 */
    const struct krange *range; /* of the rows that are added */
    u64 slot_count;  /* a power of two */
    u64 key_limit;   /* more keys than these, and those that are being added, it has no slots for */
    u64 *slots;      /* as those of KINDEX_RUNS */
    u32 *owners;     /* per slot: a row that has its key, + 1; 0 = free */
    u32 *more;       /* per slot: rows that its run is to get; 0 between two steps */
    u32 *touched;    /* slots that get some; REPORT_GROUPS of them */
    u32 *rows;
    u64 row_room;
    u64 *words;  /* GROW_USED: places of `rows` that runs got, now or before; GROW_KEYS */
    u64 *report; /* REPORT_ROWS: that the index has; REPORT_COUNTS: the longest run */
};

#define KEYS_APART 2u
#define KEYS_GONE (~0ULL)
struct kkeys { /* keys of one table to another, which is empty */
    const u64 *from;
    u64 *to;
    u64 from_count, to_mask; /* without those apart */
};

/* Steps that are queued before anybody knows what those before them gave. The rows that one made are
 * what the next one reads; once one is not as the host expected, those behind it find no rows. */
#define QUEUE_SLOTS 64u
struct kqueue_slot { /* of a variable; kernels may read the first 16 bytes of what counts their rows */
    i64 rows;
    u64 pad;
    u64 report[REPORT_WORDS]; /* of the step, as far as the host looks at it */
    u64 made;                 /* bytes of strings that the step made */
};
struct kqueue {
    u64 stopped;
    u64 pad[7];
    struct kqueue_slot slots[QUEUE_SLOTS];
};
struct krelay { /* behind a step, for each of its variables */
    struct kqueue *queue;
    const u64 *report;
    const u64 *rows; /* where they are counted; 0 = nobody counts them: there are `known` */
    const u64 *made; /* where bytes of strings are counted; or 0 */
    u64 known;
    u64 most;        /* that those behind it are prepared for */
    u64 skip, limit;
    u64 retry;       /* bits of REPORT_RETRY that may not be set */
    u32 slot;
    u32 faults;      /* there is a REPORT_FAULT, which may not be set */
    u32 distinct;    /* REPORT_ROWS and REPORT_COUNTS may not differ */
    u32 pad;
};

struct kintern_fill { /* puts entries that are there already into empty slots */
    struct kintern intern;
    i64 count;
    u32 is_text;
    u32 pad;
};

struct kintern_show { /* copies entries, and their texts as far as there is room */
    struct kintern intern;
    const u32 *codes;
    i64 count;
    u64 *out;   /* per code: the length, where it lies in the heap */
    u64 *used;  /* bytes of it */
    u8 *heap;
    u64 heap_bytes;
};

struct kprobe { /* reads `count` 16-byte words, one after the other or anywhere */
    const u8 *data;
    i64 count;
    u32 *out;
};

/* Tiles of the virtual machine, of 128 threads: sixteen rows each, or eight where registers would
 * take more shared memory than leaves room for enough blocks. */
#define VM_TILE_LARGE 2048
#define VM_TILE_SMALL 1024
#define BLOCK_THREADS 256

struct kagg_step { /* set up and read out an aggregation */
    struct kagg agg;
    u64 *const *cols; /* 1 + word_count columns: key, words */
    u64 *report;
    u64 capacity; /* rows that fit; 0 = all do */
    u32 one; /* no key: exactly one row */
    u32 pad;
};

/* The edges of tiles: whether they ascend, and their groups to the table. Every block checks a
 * stretch and leaves its own bounds in `parts`; the last one to finish checks those. */
struct kagg_edges {
    struct kagg agg;
    u64 count;  /* tiles */
    u64 *parts; /* three words a block; then the number of blocks that are done */
    u64 *report;
};

/* Groups as columns of `stride` rows, key and words: those of a table (of one part of the keys, where
 * the table names it) behind those that `counter` tells of, or `count` of them back to a table. */
struct kagg_rows {
    struct kagg agg;
    u64 *rows;
    u64 stride;
    u64 count;
    u64 *counter; /* AGG_PACK */
    u64 *report;  /* AGG_MERGE */
};

/* All groups of a table to another, which is larger. */
struct kagg_move {
    struct kagg from, agg;
    u64 *report;
};

#endif
