/* mem.h: all host memory: a budget that may refuse, plain blocks, arenas and counted buffers.
 *
 * Every byte that grows with data is reserved against a `memory` (a budget, nested: query within
 * database). A refusal is a normal event and becomes error 53200. mem_fail_at makes the n-th
 * reservation fail, for tests. */
#ifndef WF_BASE_MEM_H
#define WF_BASE_MEM_H

#include <stdatomic.h>

#include "base/error.h"

struct temp;
/* Memory that somebody keeps for later, outside used_bytes; the owner is asked to give it back when
 * used and idle bytes together would exceed the limit. Blocks for transfers, columns of the
 * database file that nobody reads now, and sorted rows that the next statement may want. */
enum idle_kind { IDLE_TRANSFER, IDLE_COLUMNS, IDLE_TRIES, IDLE_KINDS };
struct idle {
    _Atomic i64 bytes;
    void (*give_back)(void *owner, i64 bytes);
    void *owner;
};

/* What numbers are given to, 1, 2, …, in every database by itself. */
enum identity { IDENTITY_TABLET, IDENTITY_VERSION, IDENTITY_COMMIT, IDENTITY_KINDS };
struct memory {
    struct memory *parent; /* reservations count there too; may be NULL */
    _Atomic i64 used_bytes;
    _Atomic i64 peak_bytes;
    i64 limit_bytes;     /* 0 = no limit of its own */
    i64 program_bytes;   /* of the limit, what the program itself takes: code, stacks, tables */
    const char *setting; /* the setting to raise, for the error text ("memory") */
    struct idle idle[IDLE_KINDS];
    /* Where blocks lie for which the budget has no room; NULL = nowhere. */
    struct temp *temp;
    _Atomic u64 identities[IDENTITY_KINDS]; /* given out, where there is no parent: a database's */
};

void memory_init(struct memory *mem, struct memory *parent, i64 limit_bytes, const char *setting);
/* The next one of the database that a memory is part of. */
u64 memory_identity(struct memory *mem, enum identity kind);
/* False when the budget (or a parent's) refuses; nothing is counted then. */
bool memory_reserve(struct memory *mem, i64 bytes);
void memory_release(struct memory *mem, i64 bytes);
/* Bytes that are there become idle, or used again: nothing is refused. */
void memory_rest(struct memory *mem, enum idle_kind kind, i64 bytes);
void memory_wake(struct memory *mem, enum idle_kind kind, i64 bytes);
/* What large blocks may still take before they go to temporary space: a part of every limit stays
 * free for small ones. I64_MAX without a limit. */
i64 memory_left(const struct memory *mem);
/* Records 53200 with tier, bytes asked, bytes free and the setting to change; where temporary space
 * failed, why it did. */
wf_status memory_refused(struct memory *mem, struct error *err, i64 bytes);
/* Test hook: the n-th reservation from now fails (0 = never). Returns how many were made since. */
i64 memory_fail_at(i64 nth);

/* 64-byte aligned, accounted, not cleared; NULL when refused. Freed with the same size. Large blocks
 * that the budget refuses lie in temporary space, where there is some; mem_try refuses instead, for
 * whoever knows a way that takes less. */
void *mem_alloc(struct memory *mem, i64 bytes);
void *mem_try(struct memory *mem, i64 bytes);
/* The same for rows that wait for later steps: they take at most half of what the statement may have,
 * then lie in temporary space, so that steps have memory to work in. */
void *mem_alloc_rest(struct memory *mem, i64 bytes);
/* In temporary space, where there is some: a page at least. */
void *mem_alloc_aside(struct memory *mem, i64 bytes);
/* Where a block may lie: as mem_alloc and mem_alloc_aside have it, or in memory alone, as long as the statement
 * has taken no more than half of what it may have: steps beside need some. */
enum mem_place { MEM_ANY, MEM_HALF, MEM_ASIDE };
void *mem_alloc_at(struct memory *mem, i64 bytes, enum mem_place place);
void mem_free(struct memory *mem, void *ptr, i64 bytes);
/* Pages that the system's allocator keeps between blocks of others leave memory, where it can be asked to. */
void mem_trim(void);
/* What a budget counts for such a block. */
i64 mem_size(i64 bytes);
/* So many bytes for a block that a disk writes to past the system's cache: whole huge pages, unless
 * there are few bytes or memory is short. It does so in one piece, where it would take each small page
 * by itself. */
i64 mem_huge(const struct memory *mem, i64 bytes);
/* So much of what a budget counts is from now on counted by the one that is nobody's part alone: whose block it is
 * frees it there. */
void memory_lift(struct memory *mem, i64 size);
/* Copies to a block or from one, wherever it lies: pages of temporary space stay out of memory. */
void mem_copy(const struct memory *mem, void *to, const void *from, i64 bytes);
/* Bytes that were read and are not soon again: pages of temporary space leave memory. */
void mem_pass(const struct memory *mem, const void *at, i64 bytes);
bool mem_in_temp(const struct memory *mem,
                 const void *ptr); /* whether it lies in temporary space */

/* Addresses without memory, at page bounds, that memory comes to and goes from. Not accounted.
 * Touching an empty room is a fault of the program. */
void *room_open(i64 bytes);           /* NULL: there is none */
bool room_fill(void *at, i64 bytes);  /* what is in it is not known */
void room_empty(void *at, i64 bytes);
bool room_renew(void *at, i64 bytes); /* empty, whatever was mapped in its place */
void room_close(void *at, i64 bytes);

/* An arena hands out memory that is freed all at once. Allocation never returns NULL: when the
 * budget refuses, the bytes come from outside the budget, `refused_bytes` is set, and the owner
 * finds out at its next arena_check, which every stage of a statement calls when it ends. Size
 * arguments are bytes; memory is zeroed and 16-byte aligned. */
struct arena_block;
struct arena_hook;
struct arena {
    struct memory *mem;
    struct arena_block *head;
    struct arena_hook *hooks;
    u8 *next;
    u8 *end;
    i64 refused_bytes;
};

void arena_init(struct arena *arena, struct memory *mem);
void arena_fini(struct arena *arena);  /* runs the hooks, newest first, then frees */
void arena_reset(struct arena *arena); /* the same, and the arena can be used again */
void *arena_alloc(struct arena *arena, i64 bytes);
/* The same for what may be left undone: NULL when the budget refuses. */
void *arena_try(struct arena *arena, i64 bytes);
void arena_on_reset(struct arena *arena, void (*run)(void *), void *arg);
FALLIBLE arena_check(struct arena *arena, struct error *err);
struct sv arena_sv(struct arena *arena, struct sv s); /* a NUL-terminated copy */
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define NEW(arena, type) ((type *)arena_alloc((arena), (i64)sizeof(type)))
#define NEW_ARRAY(arena, type, count) \
    ((type *)arena_alloc((arena), (i64)sizeof(type) * (i64)(count)))

/* Growing array in an arena: `struct { T *items; i64 count, cap; }` or any struct with these
 * members. */
#define VEC(type)    \
    struct {         \
        type *items; \
        i64 count;   \
        i64 cap;     \
    }
void *vec_grow(struct arena *arena, const void *items, i64 *cap, i64 count, i64 item_bytes);
#define VEC_PUSH(arena, vec, item)                                                    \
    do {                                                                              \
        if ((vec)->count == (vec)->cap) {                                             \
            (vec)->items = vec_grow((arena), (vec)->items, &(vec)->cap, (vec)->count, \
                                    (i64)sizeof(*(vec)->items));                      \
        }                                                                             \
        (vec)->items[(vec)->count++] = (item);                                        \
    } while (0)

/* A counted block of column data: 64-byte aligned, padded by BUFFER_PAD readable bytes. */
enum { BUFFER_PAD = 64 };
struct buffer {
    _Atomic i32 refs;
    _Atomic i32 pinned; /* set by the GPU device while registered for direct transfer */
    u64 device_addr;    /* where the card finds `data` while pinned */
    struct memory *mem;
    i64 bytes;
    u8 *data;
    void (*free_data)(struct buffer *buf); /* NULL: data came from mem_alloc */
    void *owner;                           /* for free_data */
};
struct buffer *buffer_new(struct memory *mem, i64 bytes); /* NULL when refused; refs = 1 */
/* The same at a place. REST, as buffer_new does it: mem_alloc_rest. WORK: mem_alloc. ASIDE: in
 * temporary space, where there is some. STORED, for what stays with the database: never there, and
 * not a byte longer than asked, where other blocks are rounded so that they serve again. */
enum buffer_place { BUFFER_REST, BUFFER_WORK, BUFFER_ASIDE, BUFFER_STORED };
struct buffer *buffer_new_at(struct memory *mem, i64 bytes, enum buffer_place place);
/* A buffer over memory of somebody else, who accounts for it in `mem` and takes it back in
 * free_data. NULL when refused: the caller then still has the memory. */
struct buffer *buffer_wrap(struct memory *mem, u8 *data, i64 bytes,
                           void (*free_data)(struct buffer *buf), void *owner);
/* Rows that are complete and wait: to temporary space, where rows at rest have taken their part of memory
 * (mem_alloc_rest). Nobody may have addresses in it. */
void buffer_rest(struct buffer *buf);
struct buffer *buffer_retain(struct buffer *buf);
void buffer_release(struct buffer *buf); /* NULL is fine */
/* Called just before a buffer's memory is freed, so that the GPU device can unpin it. */
extern void (*buffer_unpin)(struct buffer *buf);

/* Text that grows; its memory comes from an arena. */
struct text {
    struct arena *arena;
    char *ptr; /* always NUL-terminated */
    i64 len;
    i64 cap;
};
void text_init(struct text *out, struct arena *arena);
void text_append(struct text *out, struct sv s);
void text_print(struct text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
