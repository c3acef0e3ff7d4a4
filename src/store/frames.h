/* frames.h: columns of the database file in memory, while they are needed.
 *
 * The buffer of a column that was read from a catalog is a frame: its address is fixed when the file
 * is opened, its bytes come when somebody holds it, and may go when nobody does and others need the
 * room. Whoever reads a segment of such a tablet (tablet.framed) holds it before and until it is
 * done; text that was seen is held as long as views of it exist. Other tablets are always there. See
 * decision 0038. */
#ifndef WF_STORE_FRAMES_H
#define WF_STORE_FRAMES_H

#include "store/tablet.h"

/* Makes sure that the column's data, validity and bytes can be read until column_drop. Thread-safe. Where memory has no
 * room: 53200, for who may ask again, or in temporary space; who holds many columns until a statement ends leaves
 * more of little memory to others. Also XX001 or 58030. */
enum column_hold { HOLD_IN_MEMORY, HOLD_SHORT, HOLD_LONG };
FALLIBLE column_hold(const struct tablet *tablet, u32 col, enum column_hold how, struct error *err);
void column_drop(const struct tablet *tablet, u32 col);
/* 58030: the disk did not give back what lay aside. */
struct table_version;
FALLIBLE columns_check(const struct table_version *version, struct error *err);
/* It will be held soon: where there is room, somebody reads it meanwhile. packed: by pins_hold_packed. */
void column_ahead(const struct tablet *tablet, u32 col, bool packed);
/* The same, but the disk alone begins: it lies in the system's cache when it is read. */
void column_expect(const struct tablet *tablet, u32 col, bool packed);
/* The caller is about to hold this column and others: reads it now unless somebody does, or memory is short. Several
 * who wait for the same columns share them out in this way. */
void column_help(const struct tablet *tablet, u32 col, bool packed);
/* Bytes that would have to be read. */
i64 column_missing_bytes(const struct tablet *tablet, u32 col);

/* Columns that one owner holds, each once, until he drops them all. Not thread-safe. */
struct pins {
    struct memory *mem;
    struct buffer **items; /* open addressing; NULL = free */
    i64 count, cap;
    i64 bytes;        /* held */
    wf_status status; /* of a pins_need that failed */
    struct error err;
};
void pins_init(struct pins *pins, struct memory *mem);
void pins_fini(struct pins *pins);
FALLIBLE pins_hold(struct pins *pins, const struct tablet *tablet, u32 col, struct error *err);
FALLIBLE pins_hold_all(struct pins *pins, const struct tablet *tablet, struct error *err);
/* Takes over a hold that the caller has. */
FALLIBLE pins_keep(struct pins *pins, const struct tablet *tablet, u32 col, struct error *err);
/* A column's numbers as they lie on the disk, for who unpacks them elsewhere (defs/kpack.h). */
struct column_packed {
    struct buffer *buf; /* from its first byte on; NULL: the column is not packed, or is text, or lies
                         * unpacked in memory, where pins_hold finds it */
    i64 bytes;          /* of all that the rest of this is about */
    i64 starts_at;      /* u32 for every block */
    i64 valid_at;       /* words of validity */
    i64 block_count, valid_words;
    i64 code_count; /* numbers are below; 0: they may be any */
    u32 rows;
    u8 width;
};
FALLIBLE pins_hold_packed(struct pins *pins, const struct tablet *tablet, u32 col,
                          struct column_packed *out, struct error *err);
/* The same for those who cannot pass on an error where they read: false, and pins_check has it. */
bool pins_need_slowly(struct pins *pins, const struct tablet *tablet, u32 col);
static inline bool pins_need(struct pins *pins, const struct tablet *tablet, u32 col) {
    return !tablet->framed || pins_need_slowly(pins, tablet, col);
}
FALLIBLE pins_check(struct pins *pins, struct error *err);

#endif
