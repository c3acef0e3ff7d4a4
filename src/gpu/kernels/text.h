/* text.h: strings on the card: views loaded from columns, and their addresses translated.
 *
 * A view in a register points into memory of the card, one in a variable into memory of the host.
 * The bytes of a column are on the card where its placement put them; a table of what lies where
 * leads from one address to the other. Text that only passes through keeps the host's address and
 * is never touched, but for the first four bytes that a view holds. */
#ifndef WF_TEXT_H
#define WF_TEXT_H

#include "block.h"

#include "defs/fault.h"
#include "defs/fn_str.h"

FN str str_none(void) {
    str s;
    s.len = 0;
    s.prefix = 0;
    s.addr = 0;
    return s;
}
FN str str_of(u64 low, u64 high) {
    str s;
    s.len = (u32)low;
    s.prefix = (u32)(low >> 32);
    s.addr = high;
    return s;
}
FN str vec_str(vec16 v) {
    return str_of(vec_low(v), vec_high(v));
}
FN vec16 str_vec(str s) {
    return vec_of((u64)s.prefix << 32 | s.len, s.addr);
}

/* The same string in the other memory. What lies in none of the places is empty: the value of a
 * NULL, or of a row that was never active. */
FN_SLOW str text_moved(const struct ktext *texts, u32 count, str s) {
    u32 lo = 0;
    u32 hi = count;
    while (lo + 1u < hi) {
        u32 mid = (lo + hi) / 2u;
        if (texts[mid].from <= s.addr) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    if (!count) {
        return str_none();
    }
    u64 at = s.addr - texts[lo].from;
    if (at > texts[lo].bytes || s.len > texts[lo].bytes - at) {
        s = str_none();
        at = 0;
    }
    s.addr = texts[lo].to + at;
    return s;
}

/* A word of text as it is (0), in upper (1) or lower case (2): of ASCII then. */
FN u64 text_cased(u64 word, u32 mode) {
    const u64 low = 0x0101010101010101ULL;
    const u64 first = mode == 1 ? 'a' : 'A';
    const u64 letters = (word + (128 - first) * low) & ~(word + (128 - first - 26) * low) & 128 * low;
    return mode ? word ^ letters >> 2 : word;
}

/* Bytes that do not overlap. Words are written at their places and read at theirs, within the text:
 * a thread that asks for bytes one by one waits for each, and writes a sector for each. */
FN_SLOW void text_copy(u8 *out, const u8 *from, u64 len, u32 mode) {
    u64 i = 0;
    if (len >= 16) {
        const u64 head = (8u - word8_lead(out)) & 7u;
        NO_UNROLL for (; i < head; i++) {
            out[i] = (u8)text_cased(from[i], mode);
        }
        const u32 lead = word8_lead(from + i);
        if (i < lead) { /* the word that from + i lies in begins before the text */
            u64 word = 0;
            NO_UNROLL for (u32 k = 0; k < 8; k++) {
                word |= (u64)from[i + k] << 8u * k;
            }
            word8_to(out + i, text_cased(word, mode));
            i += 8;
        }
        u64 here = i - lead + 8 <= len ? word8_at(from + i - lead) : 0;
        NO_UNROLL for (; i - lead + (lead ? 16 : 8) <= len; i += 8) {
            u64 word = here;
            if (lead) {
                here = word8_at(from + i - lead + 8);
                word = word >> 8u * lead | here << (64u - 8u * lead);
            } else if (i + 16 <= len) {
                here = word8_at(from + i + 8);
            }
            word8_to(out + i, text_cased(word, mode));
        }
    }
    NO_UNROLL for (; i < len; i++) {
        out[i] = (u8)text_cased(from[i], mode);
    }
}

FN void copy_bytes(u8 *out, const u8 *from, u64 len) {
    text_copy(out, from, len, 0);
}

FN void copy_case(u8 *out, const u8 *from, u64 len, u32 upper) {
    text_copy(out, from, len, upper ? 1u : 2u);
}

/* Room for `bytes` of made text; 0 when there is none left: the step runs again with more. */
FN u8 *heap_take(u8 *heap, u64 heap_bytes, u64 bytes, u64 *report) {
    if (!bytes) {
        return (u8 *)0;
    }
    const u64 at = atom_add_u64((u64 *)heap, bytes);
    if (at + bytes > heap_bytes) {
        atom_or_u32((u32 *)&report[REPORT_RETRY], RETRY_HEAP);
        return (u8 *)0;
    }
    return heap + HEAP_HEAD + at;
}

/* The same for every thread of the warp, by one reservation. */
FN u8 *w_heap_take(u8 *heap, u64 heap_bytes, u64 bytes, u64 *report) {
    u64 upto = bytes;
    UNROLL
    for (u32 by = 1; by < 32; by *= 2) {
        const u64 below = w_up_u64(upto, by);
        upto += t_lane() >= by ? below : 0;
    }
    const u64 all = w_from_u64(upto, 31);
    u64 first = 0;
    if (t_lane() == 31 && all) {
        first = (u64)heap_take(heap, heap_bytes, all, report);
    }
    first = w_from_u64(first, 31);
    return first && bytes ? (u8 *)(first + upto - bytes) : (u8 *)0;
}

FN str str_made(const u8 *p, u32 len) {
    str s;
    s.len = len;
    s.prefix = fn_prefix(p, len);
    s.addr = (u64)p;
    return s;
}

/* Row `row` of a column; `host`: with the host's address. */
FN_SLOW str text_load(const struct kseg *seg, i64 row, u32 host, struct ktexts in,
                      struct ktexts out) {
    str s = str_none();
    if (seg->form == SEG_VIEW) {
        s = vec_str(load16(seg->data + 16 * row));
        return host ? s : text_moved(in.items, in.count, s);
    }
    if (seg->form == SEG_STR) {
        const u32 *ends = (const u32 *)seg->data;
        u32 first = row ? ends[row - 1] : 0u;
        s.len = ends[row] - first;
        s.prefix = fn_prefix(seg->bytes + first, s.len);
        s.addr = (host ? seg->base : (u64)seg->bytes) + first;
        return s;
    }
    u64 code = seg->base;
    switch (seg->form) {
    case SEG_U8:
        code += seg->data[row];
        break;
    case SEG_U16:
        code += ((const u16 *)seg->data)[row];
        break;
    case SEG_U32:
        code += ((const u32 *)seg->data)[row];
        break;
    default:
        break;
    }
    if (code < seg->base_high) {
        s = ((const str *)seg->bytes)[code];
    }
    return host ? text_moved(out.items, out.count, s) : s;
}

#endif
