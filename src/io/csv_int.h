/* csv_int.h: what the files of the delimited-text reader share.
 *
 * A load has two passes. The first counts, block by block and in parallel, line ends inside and
 * outside of quotes; from that every block learns whether it begins inside quotes, where its first
 * record begins and that record's number. The second parses blocks in parallel, straight into the
 * column buffers of the tablets their rows belong to; whoever completes a tablet seals it. */
#ifndef WF_IO_CSV_INT_H
#define WF_IO_CSV_INT_H

#include "base/thread.h"
#include "io/input.h"

/* --- csv_scan.c: bytes, 64 at a time --------------------------------------------------------- */

/* out[k] has bit i set where byte 64 * k + i is a, b or c. */
void csv_masks(const char *bytes, i64 word_count, char a, char b, char c, u64 *out);

/* The bytes that mean something; 0 = none such. */
struct csv_marks {
    char delimiter, quote, escape, comment;
    char newline; /* '\n', which a '\r' may precede, or '\r' alone */
};
/* What ends the first line: '\r' only where no '\n' follows. */
char csv_line_end(const char *bytes, i64 len, char quote);

enum quote_state { QUOTE_OUT, QUOTE_IN, QUOTE_IN_ESCAPED, QUOTE_COMMENT, QUOTE_STATES };
struct csv_count {              /* of a block, for each state it may begin in */
    i64 newlines[QUOTE_STATES]; /* outside of quotes */
    i64 ends[QUOTE_STATES];     /* behind the last of these; 0 = there is none */
    u8 after[QUOTE_STATES];     /* the state it ends in */
    i64 lines;                  /* line ends, wherever they stand */
    b8 plain;                   /* all bytes are ASCII and none is NUL */
};
void csv_count(const char *bytes, i64 len, const struct csv_marks *marks, struct csv_count *out);
i64 csv_newlines(const char *bytes, i64 len, char newline);
/* The position after the next line end outside of quotes, or the end. */
const char *csv_next_record(const char *at, const char *end, const struct csv_marks *marks,
                            u8 state);

enum { WINDOW_WORDS = 64 };
/* Hands out the positions of delimiters, line ends and quotes, in order. */
struct csv_cursor {
    const char *window, *next, *end; /* what the masks cover, what they do not cover yet */
    char delimiter, quote, newline;
    i32 word, word_count;
    struct csv_job *job; /* asked now and then whether to go on; may be NULL */
    i32 refills;
    u64 mask;
    u64 masks[WINDOW_WORDS];
};
void cursor_init(struct csv_cursor *cursor, const char *begin, const char *end,
                 const struct csv_marks *marks, struct csv_job *job);
bool cursor_refill(struct csv_cursor *cursor); /* false at the end */

/* The next one, or the end. */
static inline const char *cursor_next(struct csv_cursor *cursor) {
    while (!cursor->mask) {
        if (++cursor->word < cursor->word_count) {
            cursor->mask = cursor->masks[cursor->word];
        } else if (!cursor_refill(cursor)) {
            return cursor->end;
        }
    }
    i32 bit = __builtin_ctzll(cursor->mask);
    cursor->mask &= cursor->mask - 1;
    return cursor->window + cursor->word * 64 + bit;
}

/* --- the load -------------------------------------------------------------------------------- */

struct csv_field { /* what column i of the file is */
    u32 col;       /* of the table */
    struct type type;
    u8 kind;
    b8 not_null;
    b8 never_null, quoted_null; /* FORCE_NOT_NULL, FORCE_NULL */
    b8 guessed;                 /* a value must be one that csv_guess_holds */
    b8 unread;                  /* nobody wants its values: they are not looked at */
    const char *name;
    i64 lo, hi;     /* smallint, integer, bigint */
    i128 dec_limit; /* decimal: |value| is below */
};

struct csv_block {
    const char
        *begin; /* of the first record that begins in the block; where it ends: next block's */
    i64 first_row;
    struct csv_count count;
};

struct heap; /* bytes of unescaped fields */

struct csv_tablet { /* one being filled: plain columns for its rows */
    i64 first_row, rows;
    _Atomic i64 rows_left; /* to be parsed */
    u8 *block;             /* data and NULL flags of every column; NULL until first used */
    _Atomic i64 gap_rows;  /* lines that are no rows, flagged behind the columns */
    struct heap *heaps;
};

struct csv_job {
    i64 *seq_first, *seq_step; /* of columns that a sequence fills */
    struct table *table;
    const struct csv_options *options;
    struct memory *mem;
    struct load_progress *progress; /* may be NULL */
    struct csv_field *fields;
    u32 field_count;
    i64 null_len;

    const char *path;
    const struct input *in;         /* a load's */
    const char *data, *start, *end; /* the file, or a piece of it; its records */
    i64 lines_before;               /* of the file, before `data` */
    struct csv_marks marks;
    bool gaps; /* lines may turn out to be no rows: blank ones, comments, wrong ones */
    i64 block_bytes, block_count;
    struct csv_block *blocks; /* one more than block_count */

    i64 tablet_count, tablet_rows, total_rows;
    struct csv_tablet *tablets;
    i64 *data_at, *nulls_at; /* per table column: offsets in a tablet's block */
    i64 gaps_at;             /* likewise, a flag for each row */
    i64 tablet_bytes;
    _Atomic i64 gap_rows, ignored_rows; /* of all tablets; those of them with errors */
    struct load *load;                  /* NULL: rows go to the table's tail */

    struct mutex narrow;  /* held while a block is parsed, where memory is short */
    struct mutex lock;    /* below, and tablets' blocks and heaps */
    u8 *spare;            /* a tablet block to be used again */
    struct error stopped; /* memory, cancellation: ends everything */
    _Atomic i32 stop;
    /* The bad record nearest to the start of the file, wherever it was met. */
    _Atomic i64 bad_record;
    i64 bad_at; /* the line to name is the one of this offset */
    i64 bad_field;
    u8 bad_why; /* enum bad_why */
    struct error bad;
};

enum bad_why {
    BAD_VALUE,
    BAD_FEW,
    BAD_ONE,
    BAD_MANY,
    BAD_QUOTE,
    BAD_ENCODING
}; /* decides on the hint */

/* csv_load with blocks of any size, for tests. */
FALLIBLE csv_load_blocks(struct table *table, const struct input *in,
                         const struct csv_options *options, const struct load_means *means,
                         i64 block_bytes, i64 *out_rows, struct error *err);

/* csv_guess.c: what values of a column have read as so far. */
enum guess {
    GUESS_NONE,
    GUESS_BOOL,
    GUESS_INT, /* of two numbers the later one holds both */
    GUESS_BIGINT,
    GUESS_HUGE,
    GUESS_DOUBLE,
    GUESS_DATE,
    GUESS_TIMESTAMP,
    GUESS_TIMESTAMPTZ,
    GUESS_TIME,
    GUESS_INFINITY, /* a number or a time */
    GUESS_TEXT,
    GUESS_COUNT
};
u8 csv_guess(struct sv field);
u8 csv_guess_both(u8 a, u8 b);
struct type csv_guess_type(u8 guess);
bool csv_guess_holds(struct type type, struct sv field);

/* csv_load.c, for csv_parse.c and csv_stream.c */
FALLIBLE csv_plan_fields(struct csv_job *job, const b8 *wanted, struct error *err);
/* Where records begin in job->data, which may be the first part of a file only: behind a byte order
 * mark, what is to be skipped, and the header. */
FALLIBLE csv_find_start(struct csv_job *job, i64 bytes, struct error *err);
/* Where columns of so many rows lie in a block of tablet_bytes; those that are unread lie nowhere
 * (-1). */
void csv_lay_out(struct csv_job *job, i64 rows);
/* Moves the rows together over the lines that are none; returns how many rows that leaves. */
i64 csv_close_gaps(struct csv_job *job, const struct csv_tablet *tablet);
/* The bad record as an error that names file, line and column. */
FALLIBLE csv_report_bad(struct csv_job *job, struct error *err);
bool csv_stopped(struct csv_job *job); /* also notices cancellation and the deadline */
void csv_stop(struct csv_job *job, const struct error *err);
void csv_refused(struct csv_job *job, i64 bytes); /* stops the job for want of memory */
void csv_changed(struct csv_job *job);            /* stops it: the file is not what it was */
/* The columns of a tablet; NULL when memory was refused and the job stopped. */
u8 *csv_tablet_block(struct csv_job *job, struct csv_tablet *tablet);
void csv_tablet_parsed(struct csv_job *job, i64 tablet_no, i64 rows);

/* csv_parse.c */
void csv_parse_block(struct csv_job *job, i64 block_no);
/* The `rows` records from *io_at on, into the tablet from its row `first` on; job->data and job->end
 * bound what is read. Returns how many were parsed: fewer when one is bad or the job was stopped. */
i64 csv_parse_rows(struct csv_job *job, struct csv_tablet *tablet, i64 first, i64 rows, bool plain,
                   const char **io_at);
void heap_free_all(struct memory *mem, struct heap *heap);

#endif
