/* trie_file.h: a TrieArray as a file: what lies where in it, its writer, its reader.
 *
 * Rows are in the order of all their columns, none is there twice, and none holds a NULL. Column k is level k: the
 * values that follow each other under one node of the level before stand behind each other, and `starts` says where
 * those of every node begin in the next level. The last level has a value for every row. Values are distances from
 * the level's base, in 4 or 8 bytes. All numbers are little endian.
 *
 *     head, a struct trie_level for every column, their names
 *     values and starts, level by level, each from a multiple of 64 bytes on
 *     a checksum for every slice_bytes from body_at on, and one of these
 *
 * Nothing in it is an address, so it is used as it is mapped. See docs/trie.md and decision 0060. */
#ifndef WF_IO_TRIE_FILE_H
#define WF_IO_TRIE_FILE_H

#include "store/scan.h"

#define TRIE_MAGIC "WFXTRIE\n"
enum {
    TRIE_VERSION = 1,
    TRIE_ORDER = 0x01020304,
    TRIE_SLICE = 1 << 16,
    TRIE_ALIGN = 64,
    TRIE_PAGE = 4096,
    TRIE_COLUMNS = 1600,
    TRIE_NAME = 1 << 10 /* bytes of a column's name */
};
/* Of two columns of one type. */
enum trie_fact {
    TRIE_UP = 1,   /* the first is less in every row */
    TRIE_DOWN = 2, /* the second is */
    TRIE_BOTH = 4  /* every row has its opposite, and no row's columns are equal */
};

struct trie_head {
    char magic[8];
    u32 version, order; /* TRIE_ORDER, as whoever wrote it has it in memory */
    u64 file_bytes, head_bytes; /* the head ends behind the names */
    u64 rows, body_at, sums_at;
    u64 pairs;   /* of two columns: rows that agree in the first, by twos */
    u64 longest; /* the most rows that agree in all but the last column */
    u32 columns, slice_bytes, facts, spare;
    u64 head_sum; /* of all before body_at, with 0 here */
};
struct trie_level {
    u32 oid; /* its type, by PostgreSQL's number, */
    u8 precision, scale; /* and as struct type has it */
    u8 value_bytes, start_bytes; /* 4 or 8; the last level has no starts */
    u32 length, name_bytes;
    i64 base, lo, hi;
    u64 count, values_at, starts_at; /* starts: one more than values */
};

u64 trie_sum(const void *data, i64 bytes);
/* Whether values of this type have a place: those that are numbers of at most 64 bits. */
bool trie_takes(struct type type);

/* --- writing --- */

struct trie_writer;
/* Where numbers go until their widths are known: `mem`, or temporary space. Columns are copied. */
FALLIBLE trie_writer_open(struct memory *mem, u32 col_count, const struct column_def *cols, struct trie_writer **out,
                          struct error *err);
/* Rows that follow those before in the order of all columns. A NULL is 23502. */
FALLIBLE trie_writer_add(struct trie_writer *w, i64 rows, const struct input_col *cols, struct error *err);
struct file_out;
FALLIBLE trie_writer_finish(struct trie_writer *w, struct file_out *file, struct error *err);
void trie_writer_close(struct trie_writer *w); /* NULL is fine */

/* --- reading --- */

struct trie_file;
/* Maps it, and looks at its head and at the checksums; slices are compared with them when they are read.
 * ERR_DAMAGED for what is no such file, is cut off, or was written by a later version. */
FALLIBLE trie_file_open(struct memory *mem, const char *path, struct trie_file **out, struct error *err);
void trie_file_close(struct trie_file *file);
u32 trie_file_columns(const struct trie_file *file, const struct column_def **out);
/* Becomes the provider of a table with these columns, which closes it. */
void trie_file_attach(struct trie_file *file, struct table *table);

#endif
