/* intern.h: strings and pairs to dense numbers: a hash table that rows of all blocks share.
 *
 * Whoever finds a free slot marks it busy, writes the entry and its bytes, and publishes the
 * number; others that meet a busy slot wait for it, which is short and never in a circle, since the
 * writer waits for nobody. The table is at most half full, so that a search ends. A full one makes
 * the step run again with a larger table; until then new keys get number 0, and nobody looks at
 * what comes of it. Entries are read around the first cache, which other blocks' writes do not
 * reach. */
#ifndef WF_INTERN_H
#define WF_INTERN_H

#include "text.h"

#define INTERN_BUSY 0xffffffffu

FN u64 intern_word(const u8 *p, u32 left) { /* up to eight bytes */
    u64 x = 0;
    if (left >= 8u) {
        return fn_load8(p);
    }
    NO_UNROLL for (u32 i = 0; i < left; i++) {
        x |= (u64)p[i] << (56u - 8u * i);
    }
    return x;
}

FN u64 intern_hash_text(str s) {
    const u8 *p = fn_str_ptr(s);
    u64 h = s.len;
    NO_UNROLL for (u32 i = 0; i < s.len; i += 8u) {
        h = (h ^ intern_word(p + i, s.len - i)) * 0x9e3779b97f4a7c15ULL;
        h ^= h >> 29;
    }
    return hash_64(h);
}
FN u64 intern_hash_pair(i64 a, i64 b) {
    return hash_64(hash_64((u64)a) + (u64)b);
}

/* A key on its way into the table: a string, or (a, b). */
struct intern_key {
    u64 hash;
    u64 a, b;        /* a string: its length, anything */
    const u8 *bytes; /* 0: a pair */
};
FN struct intern_key intern_key_text(str s) {
    struct intern_key k;
    k.hash = intern_hash_text(s);
    k.a = s.len;
    k.b = 0;
    k.bytes = fn_str_ptr(s);
    return k;
}
FN struct intern_key intern_key_pair(i64 a, i64 b) {
    struct intern_key k;
    k.hash = intern_hash_pair(a, b);
    k.a = (u64)a;
    k.b = (u64)b;
    k.bytes = (const u8 *)0;
    return k;
}

FN i32 intern_same(const struct kintern *t, u32 number, const struct intern_key *k, u32 is_text) {
    const u64 *entry = t->entries + (u64)number * INTERN_WORDS;
    if (read_u64(entry) != k->hash || read_u64(entry + 1) != k->a) {
        return 0;
    }
    u64 b = read_u64(entry + 2);
    if (!is_text) {
        return b == k->b;
    }
    const u64 *words = (const u64 *)(t->heap + b);
    u32 len = (u32)k->a;
    NO_UNROLL for (u32 i = 0; i < len; i += 8u) {
        if (read_u64(words + (i >> 3)) != intern_word(k->bytes + i, len - i)) {
            return 0;
        }
    }
    return 1;
}

/* The slot is ours. */
FN i32 intern_insert(const struct kintern *t, u32 *slot, struct intern_key k, u32 is_text,
                     u64 *report) {
    u64 room = is_text ? (k.a + 7u) & ~7ULL : 0u;
    u64 at = is_text ? atom_take_u64(&t->counts[INTERN_BYTES], room) : 0u;
    u64 number = t->entry_limit;
    if (at + room <= t->heap_bytes) {
        number = atom_take_u64(&t->counts[INTERN_ENTRIES], 1);
    }
    if (number >= t->entry_limit) {
        atom_or_u32((u32 *)&report[REPORT_RETRY], RETRY_INTERN);
        atom_exch_u32(slot, 0);
        return 0;
    }
    u64 *entry = t->entries + number * INTERN_WORDS;
    entry[0] = k.hash;
    entry[1] = k.a;
    entry[2] = is_text ? at : k.b;
    u64 *words = (u64 *)(t->heap + at);
    NO_UNROLL for (u32 i = 0; is_text && i < (u32)k.a; i += 8u) {
        words[i >> 3] = intern_word(k.bytes + i, (u32)k.a - i);
    }
    mem_fence();
    atom_exch_u32(slot, (u32)number + 1u);
    return (i32)number;
}

/* The key's number, given to it when new; find: -1 instead. */
FN i32 intern_number(const struct kintern *t, struct intern_key k, u32 is_text, u32 find,
                     u64 *report) {
    u64 mask = t->slot_count - 1;
    u64 slot = k.hash & mask;
    for (;;) {
        u32 held = read_u32(&t->slots[slot]);
        if (held == 0) {
            if (find) {
                return -1;
            }
            if (read_u64(&t->counts[INTERN_ENTRIES]) >= t->entry_limit) {
                atom_or_u32((u32 *)&report[REPORT_RETRY], RETRY_INTERN);
                return 0;
            }
            held = atom_cas_u32(&t->slots[slot], 0, INTERN_BUSY);
            if (held == 0) {
                return intern_insert(t, &t->slots[slot], k, is_text, report);
            }
        }
        while (held == INTERN_BUSY) {
            spin_wait();
            held = read_u32(&t->slots[slot]);
        }
        if (held && intern_same(t, held - 1u, &k, is_text)) {
            return (i32)(held - 1u);
        }
        slot = held ? (slot + 1) & mask : slot; /* given back: look again */
    }
}

FN_SLOW i32 intern_text(const struct kintern *t, str s, u32 find, u64 *report) {
    return intern_number(t, intern_key_text(s), 1u, find, report);
}
/* Below, at or above 0 as the text of a number is before, at or after s. */
FN i32 intern_compare(const struct kintern *t, u32 number, str s) {
    const u64 *entry = t->entries + (u64)number * INTERN_WORDS;
    const u32 len = (u32)read_u64(entry + 1);
    const u64 *words = (const u64 *)(t->heap + read_u64(entry + 2));
    const u32 both = len < s.len ? len : s.len;
    const u8 *p = fn_str_ptr(s);
    NO_UNROLL for (u32 i = 0; i < both; i += 8u) { /* words end in zeros */
        const u64 x = read_u64(words + (i >> 3));
        const u64 y = intern_word(p + i, s.len - i);
        if (x != y) {
            return x < y ? -1 : 1;
        }
    }
    return len == s.len ? 0 : len < s.len ? -1 : 1;
}

/* A text's first bytes, so that of two texts that differ in them the better has more. */
FN u64 best_lead(str s, u32 greatest) {
    const u64 lead = intern_word(fn_str_ptr(s), s.len < 8u ? s.len : 8u);
    return greatest ? lead : ~lead;
}

/* Whether the text that a key's slot remembers is no worse than s. The lead is written after the
 * number, and a number only makes way for a better one. */
FN u32 best_holds(const struct kintern *t, const u64 *best, str s, u64 lead, u32 greatest) {
    const u64 shown = read_u64(best + BEST_LEAD);
    const u32 number = (u32)read_u64(best + BEST_NUMBER); /* + 1 */
    if (number == 0u) {
        return 0;
    }
    if (shown <= lead) {
        const i32 order = intern_compare(t, number - 1u, s);
        return (greatest ? order >= 0 : order <= 0) ? number : 0u;
    }
    return number;
}

/* For the least (greatest) text of every key: the number of s, or of one that came before with the
 * same key and is no worse. Such a one is remembered in the key's slot, of whoever takes it first:
 * the slot's key never changes, and its number is always that of a text with that key. Who has a
 * better one holds the slot while it is filed; others that have wait for it, which is short, since
 * who holds it waits for nobody. So a key files about as many texts as the logarithm of its rows.
 * Texts of keys that find four slots taken, and of the one that reads as a free slot, are filed as
 * they come. */
FN_SLOW i32 intern_best(const struct kintern *t, u64 *bests, u64 slots, i64 key, str s,
                        u32 greatest, u64 *report) {
    const u64 mark = (u64)key ^ 0x9e3779b97f4a7c15ULL; /* 0 = free */
    u64 slot = hash_64((u64)key);
    u64 *best = bests;
    u64 held = 0;
    NO_UNROLL for (u32 tried = 0; mark && held != mark && tried < 4u; tried++, slot++) {
        best = bests + BEST_WORDS * (slot & (slots - 1));
        held = read_u64(best);
        if (held == 0) {
            held = atom_cas_u64(best, 0, mark);
            held = held ? held : mark;
        }
    }
    if (held != mark || mark == 0) {
        return intern_text(t, s, 0, report);
    }
    const u64 lead = best_lead(s, greatest);
    for (;;) {
        u32 number = best_holds(t, best, s, lead, greatest);
        if (number) {
            return (i32)(number - 1u);
        }
        if (read_u64(&report[REPORT_RETRY]) & RETRY_INTERN) { /* full: what is there may be nobody's */
            return 0;
        }
        if (atom_cas_u64(best + BEST_BUSY, 0, 1) == 0) {
            number = best_holds(t, best, s, lead, greatest);
            const i32 added = number ? (i32)(number - 1u) : intern_text(t, s, 0, report);
            if (!number && !(read_u64(&report[REPORT_RETRY]) & RETRY_INTERN)) {
                mem_fence();
                (void)atom_exch_u64(best + BEST_NUMBER, (u64)(u32)added + 1u);
                mem_fence();
                (void)atom_exch_u64(best + BEST_LEAD, lead);
            }
            mem_fence();
            (void)atom_exch_u64(best + BEST_BUSY, 0);
            return added;
        }
        spin_wait();
    }
}

FN_SLOW i32 intern_pair(const struct kintern *t, i64 a, i64 b, u32 find, u64 *report) {
    return intern_number(t, intern_key_pair(a, b), 0u, find, report);
}

/* Half 0 or 1 of a pair; of a number that nobody has, 0. */
FN i64 intern_half(const struct kintern *t, i32 number, u32 half) {
    if (number < 0 || (u64)number >= t->counts[INTERN_ENTRIES] || (u64)number >= t->entry_limit) {
        return 0;
    }
    return (i64)t->entries[(u64)number * INTERN_WORDS + 1u + half];
}

#endif
