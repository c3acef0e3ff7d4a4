/* seek.h: which rows may have some bytes in their text, found by reading the text of neighbouring
 * rows as one piece of memory.
 *
 * The texts of a column's rows lie behind each other. A thread that walked its own would read
 * scattered words and wait for the longest of its warp; here a warp reads the bytes from its first
 * active row to its last in whole lines, sixteen a thread (a grain), and notes by a bit for every
 * grain whether what is looked for begins in it. Rows look at the bits of their grains then. A grain
 * that two rows share counts for both: what is found may be in the text, what is not found is not,
 * and only rows where it may be are walked, from the grain on where it may begin. Reads stay within
 * grains that have a byte of the text. */
#ifndef WF_SEEK_H
#define WF_SEEK_H

#include "text.h"

#include "defs/fn_like.h"

#define SEEK_WORDS 32u                 /* bits of a warp at a time, for each of two leads */
#define SEEK_BYTES (SEEK_WORDS * 512u) /* of text that they are for */
#define SEEK_SHARED (2u * SEEK_WORDS)  /* words of shared memory a warp */
#define SEEK_AT_ONCE 2u                /* grains a thread loads before it looks at them */

/* A row of a column of texts, without the bytes that a view begins with. */
FN str seek_text(const struct kseg *seg, i64 row) {
    const u32 *ends = (const u32 *)seg->data;
    const u32 first = row ? ends[row - 1] : 0u;
    str s;
    s.len = ends[row] - first;
    s.prefix = 0;
    s.addr = (u64)seg->bytes + first;
    return s;
}

/* Whether a lead begins in a grain; `next` is what follows it. */
FN u32 grain_has(vec16 grain, u32 next, u32 bytes, u32 up) {
    u32 found = 0;
    UNROLL for (u32 k = 0; k < 4; k++) {
        const u64 two = (u64)(k < 3 ? grain.w[k < 3 ? k + 1 : 3] : next) << 32 | grain.w[k];
        UNROLL for (u32 j = 0; j < 4; j++) {
            found |= (u32)((u32)(two >> 8 * j) * up == bytes);
        }
    }
    return found;
}

/* Bits of the grains of a part of the text, 32 to a word; `more`: it goes on behind the part. */
FN void w_seek_grains(const u8 *part, u32 bytes, u32 more, const struct leads *leads, u32 *s_bits) {
    const u32 bytes0 = leads->bytes[0];
    const u32 bytes1 = leads->bytes[1];
    const u32 up0 = leads->up[0];
    const u32 up1 = leads->up[1];
    const u32 fold = leads->fold;
    const u32 two = (u32)(leads->count > 1u);
    NO_UNROLL for (u32 from = 0; from < bytes; from += SEEK_AT_ONCE * 512u) {
        vec16 grains[SEEK_AT_ONCE];
        u32 next[SEEK_AT_ONCE];
        UNROLL for (u32 n = 0; n < SEEK_AT_ONCE; n++) {
            const u32 at = from + n * 512u + t_lane() * 16u;
            grains[n] = at < bytes ? load_once16(part + at) : vec_of(0, 0);
            next[n] = at + 16u < bytes + 16u * more ? *(const u32 *)(part + at + 16u) : 0u;
        }
        UNROLL for (u32 n = 0; n < SEEK_AT_ONCE; n++) {
            UNROLL for (u32 k = 0; k < 4; k++) {
                grains[n].w[k] |= fold;
            }
            const u32 first = w_ballot((i32)grain_has(grains[n], next[n] | fold, bytes0, up0));
            u32 second = 0;
            if (two) {
                second = w_ballot((i32)grain_has(grains[n], next[n] | fold, bytes1, up1));
            }
            if (t_lane() == 0) {
                s_bits[from / 256u + 2u * n] = first;
                s_bits[from / 256u + 2u * n + 1u] = second;
            }
        }
    }
    w_sync();
}

/* A row whose bytes in this part of the text are [from, upto), counted from its first grain: whether
 * it may have what is looked for. *seen: the first lead was met before, or is; *hint: the grain of
 * the row where it may be first, as far as that is known. */
FN u32 seek_row(u32 from, u32 upto, u32 two, const u32 *s_bits, u32 *seen, u32 *hint) {
    const u32 first = from / 16u;
    const u32 last = (upto - 1u) / 16u;
    u32 may = 0;
    NO_UNROLL for (u32 word = first / 32u; word <= last / 32u; word++) {
        u32 mask = word == first / 32u ? ~0u << (first & 31u) : ~0u;
        mask &= word == last / 32u ? ~0u >> (31u - (last & 31u)) : ~0u;
        const u32 lead = s_bits[2u * word] & mask;
        const u32 behind = two ? s_bits[2u * word + 1u] & mask : lead;
        may |= (u32)(behind && (*seen || (lead && behind >= (lead & (0u - lead)))));
        *hint = lead && !*seen ? word * 32u + first_set_u32(lead) - first : *hint;
        *seen |= (u32)(lead != 0);
    }
    return may;
}

/* Which of the group of four rows from `row` on may have the leads in their texts, of those that are
 * active: all where that cannot be told cheaply. In *hints, a byte a row, grains of its text that
 * can be left out. */
FN_SLOW u32 w_seek_rows(const struct kseg *seg, i64 row, u32 act, const struct leads *leads,
                        u32 *s_bits, u32 *hints) {
    const u32 live = w_ballot(act != 0);
    *hints = 0;
    if (!live || leads->count == 0) {
        return act;
    }
    s_bits += t_id() / 32u * SEEK_SHARED;
    const u32 *const ends = (const u32 *)seg->data;
    const vec16 four = act ? load16(ends + row) : vec_of(0, 0);
    u32 at[5];
    at[0] = act && row ? ends[row - 1] : 0u;
    u32 lane_from = at[0];
    u32 lane_upto = at[0];
    u32 bytes = 0;
    UNROLL for (u32 j = 0; j < 4; j++) {
        const u32 is = act >> j & 1u;
        at[j + 1] = four.w[j];
        lane_from = act & ((1u << j) - 1u) ? lane_from : at[j];
        lane_upto = is ? at[j + 1] : lane_upto;
        bytes += is ? at[j + 1] - at[j] : 0u;
    }
    const u32 from = w_from_u32(lane_from, first_set_u32(live));
    const u32 span = w_from_u32(lane_upto, 63u - zeros_above_u64(live)) - from;
    NO_UNROLL for (u32 mask = 16; mask > 0; mask >>= 1) {
        bytes += w_xor_u32(bytes, mask);
    }
    if (bytes < span / 8u || span >> 31) {
        return act; /* most of it would be of other rows */
    }
    const u8 *const text = (const u8 *)((u64)(seg->bytes + from) & ~(u64)15u);
    const u32 skip = (u32)(seg->bytes + from - text);
    u32 seen[4] = {0, 0, 0, 0};
    u32 may = 0;
    NO_UNROLL for (u32 part = 0; part < skip + span; part += SEEK_BYTES) {
        const u32 left = skip + span - part;
        const u32 part_bytes = left < SEEK_BYTES ? left : SEEK_BYTES;
        w_seek_grains(text + part, part_bytes, (u32)(left > SEEK_BYTES), leads, s_bits);
        UNROLL for (u32 j = 0; j < 4; j++) {
            const u32 begin = skip + (at[j] - from);
            const u32 end = skip + (at[j + 1] - from);
            const u32 first = begin < part ? 0u : begin - part;
            const u32 last = end < part ? 0u : end - part < part_bytes ? end - part : part_bytes;
            if ((act >> j & 1u) && first < last) {
                u32 hint = 0; /* only of texts that lie in one part */
                may |= seek_row(first, last, (u32)(leads->count > 1u), s_bits, &seen[j], &hint) << j;
                hint = begin < part ? 0u : hint < 255u ? hint : 255u;
                *hints |= hint << 8u * j;
            }
        }
        w_sync();
    }
    return may;
}

/* --- LIKE of literals between %s ----------------------------------------------------------- */

#define SEEK_PIECES 6u /* of a pattern; others are not woven so (has_pieces of weave_seek.c) */
struct seek_pieces {
    u64 pattern; /* its bytes */
    u32 count;
    u32 to_end; /* the last one ends where the text does */
    u32 at[SEEK_PIECES], len[SEEK_PIECES];
    u32 bytes[SEEK_PIECES], up[SEEK_PIECES]; /* the first four, as those of leads */
};

FN_SLOW void seek_pieces_of(struct seek_pieces *out, str pattern) {
    const u8 *p = fn_str_ptr(pattern);
    u32 count = 0;
    u32 len = 0;
    out->pattern = pattern.addr;
    out->to_end = (u32)(p[pattern.len - 1] != '%');
    NO_UNROLL for (u32 i = 0; i <= pattern.len; i++) {
        const u32 byte = i < pattern.len ? p[i] : (u32)'%';
        if (byte != '%') {
            len++;
        } else if (len) {
            struct leads lead;
            str piece;
            piece.len = len;
            piece.prefix = 0;
            piece.addr = pattern.addr + i - len;
            fn_find_leads(&lead, piece);
            out->at[count] = i - len;
            out->len[count] = len;
            out->bytes[count] = lead.bytes[0];
            out->up[count] = lead.up[0];
            count++;
            len = 0;
        }
    }
    out->count = count;
}

/* Four bytes from any address, the first lowest: no word is read that none of them is in. */
FN u32 seek_four(u64 addr) {
    const u32 *const words = (const u32 *)(addr & ~(u64)3u);
    const u32 shift = (u32)(addr & 3u) * 8u;
    return shift ? (u32)(((u64)words[1] << 32 | words[0]) >> shift) : words[0];
}

/* What lies behind the first four bytes of a piece. */
FN u32 seek_rest(u64 text, u64 piece, u32 len) {
    u32 same = 1;
    NO_UNROLL for (u32 at = 4; same && at < len; at += 4) {
        const u32 from = at + 4u <= len ? at : len - 4u;
        same = (u32)(seek_four(text + from) == seek_four(piece + from));
    }
    return same;
}

/* Where a piece is met in [from, len) of a text first; len when nowhere. */
FN u32 seek_piece(str text, u32 from, u64 piece, u32 piece_len, u32 bytes, u32 up) {
    const u64 end = text.addr + text.len;
    u64 at = (text.addr + from) & ~(u64)7u;
    u64 word = *(const u64 *)at;
    u32 before = (u32)(text.addr + from - at); /* bytes of the word that are passed */
    NO_UNROLL for (; at + piece_len <= end; at += 8u) {
        const u64 next = at + 8u < end ? *(const u64 *)(at + 8u) : 0u;
        u32 hits = (u32)((u32)word * up == bytes);
        UNROLL for (u32 k = 1; k < 8; k++) {
            const u32 four = (u32)(word >> 8u * k | next << (64u - 8u * k));
            hits |= (u32)(four * up == bytes) << k;
        }
        hits &= ~0u << before;
        before = 0;
        NO_UNROLL for (; hits; hits &= hits - 1u) {
            const u64 found = at + first_set_u32(hits);
            if (found + piece_len <= end && seek_rest(found, piece, piece_len)) {
                return (u32)(found - text.addr);
            }
        }
        word = next;
    }
    return text.len;
}

/* Whether a text is LIKE the pattern; `hint` of its grains can be left out. */
FN_SLOW u32 seek_like(str text, u32 hint, const struct seek_pieces *pieces) {
    u32 from = hint ? hint * 16u - 15u : 0u; /* the first grain may begin before the text */
    const u32 free = pieces->count - pieces->to_end; /* pieces that may be anywhere */
    NO_UNROLL for (u32 i = 0; i < free; i++) {
        const u32 found = from < text.len ? seek_piece(text, from, pieces->pattern + pieces->at[i],
                                                       pieces->len[i], pieces->bytes[i],
                                                       pieces->up[i])
                                          : text.len;
        if (found == text.len) {
            return 0;
        }
        from = found + pieces->len[i];
    }
    if (!pieces->to_end) {
        return 1;
    }
    const u32 len = pieces->len[free];
    return (u32)((u64)from + len <= text.len &&
                 seek_piece(text, text.len - len, pieces->pattern + pieces->at[free], len,
                            pieces->bytes[free], pieces->up[free]) != text.len);
}

#endif
