/* cliques.h: counts cliques: edges turned by degree, then common neighbours behind every node.
 *
 * Triangles of a node are pairs of its neighbours that are an edge. A thread takes an edge of a node
 * with few neighbours, and goes through both ends' lists; a warp or a block keeps those of others in
 * shared memory, as a list and as a hash set, and goes through what its neighbours have to look at: for
 * each the cheaper of two, its own neighbours, looked up in the set, or the node's behind it, looked up in
 * the matrix of the heaviest nodes (by a block word by word: a node's neighbours are close together there).
 * Among these, rows of the matrix are ANDed. Larger cliques: the neighbours of a node get a matrix
 * of their own, and a warp goes down in it, node by node. */
#include "prelude.h"

#include "defs/kcliques.h"

#define CLIQUE_EACH(i, n)                                                              \
    for (i64 i = (i64)t_block() * CLIQUE_THREADS + (i64)t_id(); i < (i64)(n);         \
         i += (i64)t_blocks() * CLIQUE_THREADS)
#define CLIQUE_FREE 0xffffffffu

FN void clique_add(u64 *to, u64 x) {
    NO_UNROLL for (u32 mask = 16; mask > 0; mask >>= 1) {
        x += w_xor_u64(x, mask);
    }
    if (t_lane() == 0 && x) {
        atom_add_u64(to, x);
    }
}

/* Which way edges go; degrees of a sample of them. */
KERNEL(k_clique_facts, struct kcliques, 256) {
    u64 up = 0;
    u64 down = 0;
    u64 loops = 0;
    CLIQUE_EACH(i, args.rows) {
        const u32 a = args.from[i];
        const u32 b = args.ends[i];
        up += a < b;
        down += a > b;
        loops += a == b;
        if ((u64)i / CLIQUE_GROUP % args.every == 0) {
            atom_add_u32(&args.degrees[a], 1);
            atom_add_u32(&args.degrees[b], 1);
        }
    }
    clique_add(&args.report[CLIQUE_UP], up);
    clique_add(&args.report[CLIQUE_DOWN], down);
    clique_add(&args.report[CLIQUE_LOOPS], loops);
}

/* Classes of degrees, ascending: 32 an octave. */
FN u32 clique_class(u32 degree) {
    if (degree < 32u) {
        return degree;
    }
    const u32 octave = 63u - zeros_above_u64(degree);
    const u32 at = 32u + (octave - 5u) * 32u + (degree >> (octave - 5u) & 31u);
    return at < CLIQUE_CLASSES ? at : CLIQUE_CLASSES - 1u;
}

KERNEL(k_clique_classes, struct kcliques, 256) {
    SHARED(u32, s_count, CLIQUE_CLASSES);
    for (u32 i = t_id(); i < CLIQUE_CLASSES; i += CLIQUE_THREADS) {
        s_count[i] = 0;
    }
    b_sync();
    CLIQUE_EACH(i, args.nodes) {
        atom_add_u32(&s_count[clique_class(args.degrees[i])], 1);
    }
    b_sync();
    for (u32 i = t_id(); i < CLIQUE_CLASSES; i += CLIQUE_THREADS) {
        if (s_count[i]) {
            atom_add_u32(&args.classes[i], s_count[i]);
        }
    }
}

/* classes[] holds where the next node of each goes. */
KERNEL(k_clique_ranks, struct kcliques, 256) {
    SHARED(u32, s_count, CLIQUE_CLASSES);
    const i64 tile = CLIQUE_THREADS * CLIQUE_RANKS;
    for (i64 first = (i64)t_block() * tile; first < (i64)args.nodes;
         first += (i64)t_blocks() * tile) {
        u32 of[CLIQUE_RANKS];
        u32 at[CLIQUE_RANKS];
        for (u32 i = t_id(); i < CLIQUE_CLASSES; i += CLIQUE_THREADS) {
            s_count[i] = 0;
        }
        b_sync();
        UNROLL for (u32 k = 0; k < CLIQUE_RANKS; k++) {
            const i64 i = first + (i64)(k * CLIQUE_THREADS + t_id());
            of[k] = i < (i64)args.nodes ? clique_class(args.degrees[i]) : 0u;
            at[k] = i < (i64)args.nodes ? atom_add_u32(&s_count[of[k]], 1) : 0u;
        }
        b_sync();
        for (u32 i = t_id(); i < CLIQUE_CLASSES; i += CLIQUE_THREADS) {
            s_count[i] = s_count[i] ? atom_add_u32(&args.classes[i], s_count[i]) : 0u;
        }
        b_sync();
        UNROLL for (u32 k = 0; k < CLIQUE_RANKS; k++) {
            const i64 i = first + (i64)(k * CLIQUE_THREADS + t_id());
            if (i < (i64)args.nodes) {
                args.rank[i] = s_count[of[k]] + at[k];
            }
        }
        b_sync();
    }
}

/* Edges as words to sort; of a part of all edges, how many begin in each block of nodes, and which way they go. */
KERNEL(k_clique_turn, struct kcliques, 256) {
    u64 up = 0;
    u64 down = 0;
    u64 loops = 0;
    CLIQUE_EACH(i, args.rows) {
        const u32 a = args.from[i];
        const u32 b = args.ends[i];
        u32 first = a;
        if (args.form == CLIQUE_PLAIN) {
            args.words[i] = (u64)a << args.bits | b;
        } else {
            const u32 x = args.rank ? args.rank[a] : a;
            const u32 y = args.rank ? args.rank[b] : b;
            const u64 word = x < y ? (u64)x << args.bits | y : (u64)y << args.bits | x;
            args.words[i] = args.form == CLIQUE_BOTH ? word << 1 | (u64)(a < b) : word;
            first = x < y ? x : y;
        }
        if (args.blocks) {
            up += a < b;
            down += a > b;
            loops += a == b;
            atom_add_u32(&args.blocks[first >> args.shift], 1);
        }
    }
    if (args.blocks) {
        clique_add(&args.report[CLIQUE_UP], up);
        clique_add(&args.report[CLIQUE_DOWN], down);
        clique_add(&args.report[CLIQUE_LOOPS], loops);
    }
}

/* Ranges of words over the bus, one behind the other: hundreds of them in a launch. */
KERNEL(k_clique_bring, struct kcliques, 256) {
    CLIQUE_EACH(i, args.rows) {
        u32 from = 0;
        u32 end = args.range_count;
        NO_UNROLL while (from + 1u < end) { /* the last that begins here or before */
            const u32 middle = from + (end - from) / 2u;
            const u32 before = args.ranges[2u * middle + 1u] <= (u64)i;
            from = before ? middle : from;
            end = before ? end : middle;
        }
        args.words[i] = args.source[args.ranges[2u * from] + (u64)i - args.ranges[2u * from + 1u]];
    }
}

FN u64 clique_word(const struct kcliques *a, u64 edge) {
    return a->form == CLIQUE_BOTH ? a->words[2 * edge] >> 1 : a->words[edge];
}

/* The ends of sorted edges, and whether these are what the form says. */
KERNEL(k_clique_ends, struct kcliques, 256) {
    u64 odd = 0;
    CLIQUE_EACH(i, args.edges) {
        const u64 word = clique_word(&args, (u64)i);
        args.to[i] = (u32)(word & (((u64)1 << args.bits) - 1u));
        if (args.form != CLIQUE_PLAIN) {
            odd += i > 0 && clique_word(&args, (u64)i - 1u) == word;
        }
        if (args.form == CLIQUE_BOTH) {
            odd += args.words[2 * i + 1] != (args.words[2 * i] | 1u) || (args.words[2 * i] & 1u);
        }
    }
    clique_add(&args.report[CLIQUE_ODD], odd);
}

/* Of edges that are sorted by their first node alone: each goes to its place in the list, by how many are
 * less. Short lists. */
KERNEL(k_clique_order, struct kcliques, 256) {
    u64 odd = 0;
    const u32 mask = (u32)(((u64)1 << args.bits) - 1u);
    CLIQUE_EACH(i, args.edges) {
        const u64 word = args.words[i];
        const u32 u = (u32)(word >> args.bits);
        const u32 from = args.offsets[u];
        const u32 end = args.offsets[u + 1];
        const u32 v = (u32)word & mask;
        u32 less = 0;
        u32 same = 0;
        NO_UNROLL for (u32 k = from; k < end; k++) {
            const u32 w = (u32)args.words[k] & mask;
            less += w < v;
            same += w == v;
        }
        odd += same > 1u;
        args.to[from + less] = v;
    }
    clique_add(&args.report[CLIQUE_ODD], odd);
}

/* By search: a thread that filled the offsets of nodes without neighbours might fill them all. */
KERNEL(k_clique_offsets, struct kcliques, 256) {
    CLIQUE_EACH(v, (i64)args.nodes + 1) {
        const u64 least = (u64)(v + args.base) << args.bits;
        u64 from = 0;
        u64 end = (u64)args.edges;
        NO_UNROLL while (from < end) {
            const u64 middle = (from + end) / 2u;
            const u32 less = clique_word(&args, middle) < least;
            from = less ? middle + 1u : from;
            end = less ? end : middle;
        }
        args.offsets[v] = (u32)((u64)args.first + from);
    }
}

/* The node, of those of `offsets`, that an edge is from. */
FN u32 clique_from(const struct kcliques *a, u64 edge) {
    if (a->words) {
        return (u32)(clique_word(a, edge) >> a->bits);
    }
    u32 from = 0;
    u32 end = a->nodes;
    NO_UNROLL while (from + 1u < end) { /* the last that begins at the edge or before */
        const u32 middle = from + (end - from) / 2u;
        const u32 before = a->offsets[middle] <= edge;
        from = before ? middle : from;
        end = before ? end : middle;
    }
    return from;
}

/* Of the nodes of `offsets` those that are heavy. */
KERNEL(k_clique_matrix, struct kcliques, 256) {
    const u32 light = args.heavy > args.base ? args.heavy - args.base : 0u;
    const u64 first = args.offsets[light];
    CLIQUE_EACH(i, args.offsets[args.nodes] - first) {
        const u32 u = clique_from(&args, first + (u64)i) + args.base - args.heavy;
        const u32 v = args.to[first + (u64)i] - args.heavy;
        atom_or_u32(&args.matrix[(u64)u * args.row_words + (v >> 5)], 1u << (v & 31u));
    }
}

/* Whether the neighbours of v are here. */
FN u32 clique_is_here(const struct kcliques *a, u32 v) {
    return v - a->second < a->second_count;
}
/* The first neighbour that is not less than w. */
FN u32 clique_seek_in(const u32 *to, u32 from, u32 end, u32 w) {
    NO_UNROLL while (from < end) {
        const u32 middle = from + (end - from) / 2u;
        const u32 less = to[middle] < w;
        from = less ? middle + 1u : from;
        end = less ? end : middle;
    }
    return from;
}
/* Whether w is among the neighbours of v, which are here: how often, where edges may be repeated. */
FN u32 clique_seek(const struct kcliques *a, u32 v, u32 w) {
    return clique_seek_in(a->second_to, a->second_offsets[v - a->second], a->second_offsets[v - a->second + 1u], w);
}
FN u32 clique_has(const struct kcliques *a, u32 v, u32 w) {
    const u32 at = clique_seek(a, v, w);
    return at < a->second_offsets[v - a->second + 1u] && a->second_to[at] == w;
}
FN u32 clique_times(const struct kcliques *a, u32 v, u32 w) {
    return clique_seek(a, v, w + 1u) - clique_seek(a, v, w);
}
FN u32 clique_bit(const struct kcliques *a, u32 v, u32 w) {
    v -= a->heavy;
    w -= a->heavy;
    return a->matrix[(u64)v * a->row_words + (w >> 5)] >> (w & 31u) & 1u;
}

/* Neighbours that a node has from `at` on and v has as well: where one has many more, each of the others is
 * looked for, else both lists are gone through together. */
FN u32 clique_both(const struct kcliques *a, u32 v, u32 at, u32 end) {
    u32 other = a->second_offsets[v - a->second];
    const u32 other_end = a->second_offsets[v - a->second + 1u];
    const u32 own = other_end - other;
    const u32 steps = 64u - zeros_above_u64(own);
    u32 found = 0;
    if (own == 0) {
        return 0;
    }
    if ((end - at) * steps < own) {
        NO_UNROLL for (; at < end; at++) {
            found += clique_has(a, v, a->to[at]);
        }
        return found;
    }
    u32 x = a->to[at];
    u32 y = a->second_to[other];
    for (;;) {
        const u32 first = x <= y;
        const u32 second = y <= x;
        found += first & second;
        if (first) {
            if (++at == end) {
                return found;
            }
            x = a->to[at];
        }
        if (second) {
            if (++other == other_end) {
                return found;
            }
            y = a->second_to[other];
        }
    }
}

/* Triangles of nodes with few neighbours: a thread an edge. */
KERNEL(k_clique_tiny, struct kcliques, 256) {
    u64 found = 0;
    const u32 first = args.offsets[0];
    CLIQUE_EACH(i, args.offsets[args.light] - first) {
        const u32 edge = first + (u32)i;
        const u32 v = args.to[edge];
        if (v < args.heavy && !clique_is_here(&args, v)) {
            continue;
        }
        const u32 u = clique_from(&args, edge);
        const u32 end = args.offsets[u + 1];
        if (end - args.offsets[u] >= args.least || edge + 1u >= end) {
            continue;
        }
        if (v < args.heavy) {
            found += clique_both(&args, v, edge + 1u, end);
            continue;
        }
        NO_UNROLL for (u32 k = edge + 1u; k < end; k++) {
            found += clique_bit(&args, v, args.to[k]);
        }
    }
    clique_add(&args.report[CLIQUE_FOUND], found);
}

/* Lists the other nodes before the heavy ones, by the number of their neighbours: a block's together, since
 * all share two counters. */
KERNEL(k_clique_list, struct kcliques, 256) {
    SHARED(u32, s_count, 2);
    SHARED(u32, s_base, 2);
    u64 longest = 0;
    const i64 tile = CLIQUE_THREADS * CLIQUE_RANKS;
    for (i64 first = (i64)t_block() * tile; first < (i64)args.light;
         first += (i64)t_blocks() * tile) {
        u32 is[CLIQUE_RANKS];
        u32 at[CLIQUE_RANKS];
        if (t_id() < 2) {
            s_count[t_id()] = 0;
        }
        b_sync();
        UNROLL for (u32 k = 0; k < CLIQUE_RANKS; k++) {
            const i64 u = first + (i64)(k * CLIQUE_THREADS + t_id());
            const u32 count = u < (i64)args.light ? args.offsets[u + 1] - args.offsets[u] : 0u;
            is[k] = count < args.least ? 2u : count > CLIQUE_WARP || args.size > 3u ? 1u : 0u;
            longest = is[k] < 2u && count > longest ? count : longest;
            at[k] = 0;
            UNROLL for (u32 list = 0; list < 2; list++) {
                const u32 mask = w_ballot(is[k] == list);
                u32 base = 0;
                if (mask && t_lane() == 0) {
                    base = atom_add_u32(&s_count[list], bits_set_u32(mask));
                }
                base = w_from_u32(base, 0);
                at[k] = is[k] == list ? base + bits_set_u32(mask & ((1u << t_lane()) - 1u)) : at[k];
            }
        }
        b_sync();
        if (t_id() < 2 && s_count[t_id()]) {
            s_base[t_id()] = (u32)atom_add_u64(&args.report[CLIQUE_LISTED + t_id()], s_count[t_id()]);
        }
        b_sync();
        UNROLL for (u32 k = 0; k < CLIQUE_RANKS; k++) {
            if (is[k] < 2u) {
                u32 *list = is[k] ? args.listed_block : args.listed;
                list[s_base[is[k]] + at[k]] = (u32)first + k * CLIQUE_THREADS + t_id();
            }
        }
        b_sync();
    }
    if (longest) {
        atom_max_u64(&args.report[CLIQUE_LONGEST], longest);
    }
}

/* --- sets of neighbours ---------------------------------------------------------------------- */

FN u32 clique_hash(u32 x) {
    x *= 0x9e3779b1u;
    return x ^ x >> 15;
}
FN u32 clique_put(u32 *slots, u32 mask, u32 x) {
    u32 at = clique_hash(x) & mask;
    NO_UNROLL while (atom_cas_u32(&slots[at], CLIQUE_FREE, x) != CLIQUE_FREE) {
        at = (at + 1u) & mask;
    }
    return at;
}
FN u32 clique_find(const u32 *slots, u32 mask, u32 x, u32 *out_at) {
    u32 at = clique_hash(x) & mask;
    u32 held = slots[at];
    NO_UNROLL while (held != CLIQUE_FREE && held != x) {
        at = (at + 1u) & mask;
        held = slots[at];
    }
    *out_at = at;
    return held == x;
}

struct clique_set { /* in shared memory */
    u32 *list;
    u32 *slots;
    u32 *places; /* by slot: where in the list; or 0 */
    u32 count, mask;
    /* Of a block's: words of the matrix' rows that hold any of it, with their bits; by place: which is the
     * first of a heavy neighbour. */
    u32 *word_bits;
    u16 *word_at, *entry;
    u32 entries;
};
enum clique_way {
    WAY_OWN,    /* the neighbour's own list, in the set */
    WAY_MATRIX, /* those behind it, in the matrix */
    WAY_SEARCH, /* those behind it, in its own list */
    WAY_WORDS   /* those behind it, in the matrix, word by word */
};

/* Bits of a matrix among the neighbours of a node, by their places; or 0. */
struct clique_rows {
    u32 *rows;
    u32 words;
};

/* Whether (or of WAY_WORDS how often) what neighbour `place` of a set has to look at, number k of it, is
 * there; *io_place is then the other neighbour's. */
FN u32 clique_look(const struct kcliques *a, const struct clique_set *set, u32 way, u32 v, u32 at,
                   u32 *io_place) {
    u32 is = 0;
    if (way == WAY_OWN) {
        u32 slot = 0;
        is = clique_find(set->slots, set->mask, a->second_to[at], &slot);
        *io_place = is && set->places ? set->places[slot] : 0u;
    } else if (way == WAY_WORDS) {
        const u32 *row = a->matrix + (u64)(v - a->heavy) * a->row_words;
        is = bits_set_u32(row[set->word_at[at]] & set->word_bits[at]);
    } else {
        const u32 w = set->list[*io_place];
        is = way == WAY_MATRIX ? clique_bit(a, v, w) : clique_has(a, v, w);
    }
    return is;
}

FN u32 clique_choose(const struct kcliques *a, const struct clique_set *set, u32 p, u32 *out_start,
                     u32 *out_length) {
    const u32 v = set->list[p];
    const u32 behind = set->count - 1u - p;
    u32 own = v >= a->heavy ? CLIQUE_FREE : 0u; /* they need not be here */
    if (clique_is_here(a, v)) {
        *out_start = a->second_offsets[v - a->second];
        own = a->second_offsets[v - a->second + 1u] - *out_start;
    }
    *out_length = own;
    if (v >= a->heavy && set->word_bits) {
        const u32 first = set->entry[p];
        if (set->entries - first <= own) {
            *out_start = first;
            *out_length = set->entries - first;
            return WAY_WORDS;
        }
    } else if (v >= a->heavy) {
        *out_length = behind <= own ? behind : own;
        return behind <= own ? WAY_MATRIX : WAY_OWN;
    } else {
        const u32 steps = 2u * (64u - zeros_above_u64(own));
        if (own && (u64)behind * steps < own) {
            *out_length = behind;
            return WAY_SEARCH;
        }
    }
    return WAY_OWN;
}

FN void clique_note(const struct clique_rows *into, u32 p, u32 place) {
    atom_or_u32(&into->rows[p * into->words + (place >> 5)], 1u << (place & 31u));
}

/* What `unit` neighbours from place p0 on have to look at: where that is much one after the other, else laid
 * end to end over the warp. Counts pairs that are edges, or notes them. */
FN u32 clique_chunk(const struct kcliques *a, const struct clique_set *set,
                    const struct clique_rows *into, u32 p0, u32 unit) {
    const u32 p = p0 + t_lane();
    u32 length = 0;
    u32 start = 0;
    u32 way = WAY_OWN;
    u32 v = 0;
    u32 found = 0;
    if (t_lane() < unit && p + 1u < set->count) {
        v = set->list[p];
        way = clique_choose(a, set, p, &start, &length);
    }
    NO_UNROLL for (u32 some = w_ballot(length >= CLIQUE_LONG); some; some &= some - 1u) {
        const u32 lane = first_set_u32(some);
        const u32 all = w_from_u32(length, lane);
        const u32 from = w_from_u32(start, lane);
        const u32 how = w_from_u32(way, lane);
        const u32 of = w_from_u32(v, lane);
        if (how == WAY_WORDS) {
            const u32 *row = a->matrix + (u64)(of - a->heavy) * a->row_words;
            for (u32 k = from + t_lane(); k < set->entries; k += 32u) {
                found += bits_set_u32(row[set->word_at[k]] & set->word_bits[k]);
            }
            continue;
        }
        NO_UNROLL for (u32 k = t_lane(); k < all; k += 32u) {
            u32 place = p0 + lane + 1u + k;
            const u32 is = clique_look(a, set, how, of, from + k, &place);
            found += is;
            if (is && into) {
                clique_note(into, p0 + lane, place);
            }
        }
    }
    length = length >= CLIQUE_LONG ? 0u : length;
    u32 upto = length;
    UNROLL for (u32 by = 1; by < 32; by *= 2) {
        const u32 before = w_up_u32(upto, by);
        upto += t_lane() >= by ? before : 0u;
    }
    const u32 all = w_from_u32(upto, 31);
    const u32 first = upto - length;
    NO_UNROLL for (u32 base = 0; base < all; base += 32u) {
        const u32 no = base + t_lane();
        u32 owner = 0;
        UNROLL for (u32 by = 16; by > 0; by /= 2) {
            owner += w_from_u32(first, owner + by) <= no ? by : 0u;
        }
        const u32 k = no - w_from_u32(first, owner);
        const u32 from = w_from_u32(start, owner);
        const u32 how = w_from_u32(way, owner);
        const u32 of = w_from_u32(v, owner);
        if (no < all) {
            u32 place = p0 + owner + 1u + k;
            const u32 is = clique_look(a, set, how, of, from + k, &place);
            found += is;
            if (is && into) {
                clique_note(into, p0 + owner, place);
            }
        }
    }
    return found;
}

KERNEL(k_clique_warps, struct kcliques, 256) {
    SHARED(u32, s_lists, CLIQUE_WARPS * CLIQUE_WARP);
    SHARED(u32, s_slots, CLIQUE_WARPS * CLIQUE_WARP_SLOTS);
    const u32 warp = t_id() / 32u;
    const u64 count = args.report[CLIQUE_LISTED];
    struct clique_set set = {s_lists + warp * CLIQUE_WARP, s_slots + warp * CLIQUE_WARP_SLOTS,
                             (u32 *)0, 0, 0, (u32 *)0, (u16 *)0, (u16 *)0, 0};
    u64 found = 0;
    for (;;) {
        u64 ticket = t_lane() == 0 ? atom_add_u64(&args.report[CLIQUE_TICKETS], 4) : 0u;
        ticket = w_from_u64(ticket, 0);
        if (ticket >= count) {
            break;
        }
        NO_UNROLL for (u64 no = ticket; no < ticket + 4u && no < count; no++) {
            const u32 u = args.listed[no];
            const u32 from = args.offsets[u];
            set.count = args.offsets[u + 1] - from;
            set.mask = set.count <= 32u ? CLIQUE_WARP_SLOTS / 2u - 1u : CLIQUE_WARP_SLOTS - 1u;
            for (u32 i = t_lane(); i <= set.mask; i += 32u) {
                set.slots[i] = CLIQUE_FREE;
            }
            w_sync();
            for (u32 i = t_lane(); i < set.count; i += 32u) {
                set.list[i] = args.to[from + i];
                clique_put(set.slots, set.mask, args.to[from + i]);
            }
            w_sync();
            NO_UNROLL for (u32 p = 0; p + 1u < set.count; p += 32u) {
                found += clique_chunk(&args, &set, (const struct clique_rows *)0, p, 32);
            }
            w_sync();
        }
    }
    clique_add(&args.report[CLIQUE_FOUND], found);
}

/* Slots for a set of `count`: more where that is all there is to a slot, so that most of what is not there
 * is known by one look. */
FN u32 clique_slots(u32 count, u32 places) {
    u32 slots = CLIQUE_WARP_SLOTS;
    while (slots < (places ? 2u : 4u) * count) {
        slots *= 2u;
    }
    return slots;
}

/* The neighbours of a node in the block's memory. */
FN struct clique_set b_clique_set(const struct kcliques *a, u32 u, u32 *s, u32 places) {
    const u32 from = a->offsets[u];
    struct clique_set set;
    set.count = a->offsets[u + 1] - from;
    const u32 slots = clique_slots(set.count, places);
    set.word_bits = (u32 *)0;
    set.word_at = (u16 *)0;
    set.entry = (u16 *)0;
    set.entries = 0;
    set.mask = slots - 1u;
    set.slots = s;
    set.places = places ? s + slots : (u32 *)0;
    set.list = s + (places ? 2u : 1u) * slots;
    for (u32 i = t_id(); i < slots; i += CLIQUE_THREADS) {
        set.slots[i] = CLIQUE_FREE;
    }
    b_sync();
    for (u32 i = t_id(); i < set.count; i += CLIQUE_THREADS) {
        const u32 w = a->to[from + i];
        const u32 at = clique_put(set.slots, set.mask, w);
        set.list[i] = w;
        if (places) {
            set.places[at] = i;
        }
    }
    b_sync();
    return set;
}

/* Words of the matrix' rows that hold any of a block's set, which is in order. */
FN void b_clique_words(const struct kcliques *a, struct clique_set *set, u32 *s_sums) {
    set->word_bits = set->list + set->count;
    set->word_at = (u16 *)(set->word_bits + set->count);
    set->entry = set->word_at + set->count;
    NO_UNROLL for (u32 first = 0; first < set->count; first += CLIQUE_THREADS) {
        const u32 i = first + t_id();
        const u32 is = i < set->count && set->list[i] >= a->heavy;
        const u32 word = is ? (set->list[i] - a->heavy) >> 5 : 0u;
        const u32 head = is && (i == 0 || (set->list[i - 1u] - a->heavy) >> 5 != word);
        const u32 heads = w_ballot((i32)head);
        if (t_lane() == 0) {
            s_sums[t_id() / 32u] = bits_set_u32(heads);
        }
        b_sync();
        u32 before = set->entries;
        for (u32 w = 0; w < CLIQUE_WARPS; w++) {
            before += w < t_id() / 32u ? s_sums[w] : 0u;
            set->entries += s_sums[w];
        }
        const u32 no = before + bits_set_u32(heads & (0xffffffffu >> (31u - t_lane()))) - 1u;
        if (is) {
            set->entry[i] = (u16)no;
        }
        if (head) {
            u32 bits = 0;
            for (u32 k = i; k < set->count && (set->list[k] - a->heavy) >> 5 == word; k++) {
                bits |= 1u << ((set->list[k] - a->heavy) & 31u);
            }
            set->word_bits[no] = bits;
            set->word_at[no] = (u16)word;
        }
        b_sync();
    }
}

/* The block's next node of `count`, in *s_ticket; what warps take is counted in s_ticket[1]. */
FN u32 b_clique_next(u64 *tickets, u32 *s_ticket) {
    b_sync();
    if (t_id() == 0) {
        s_ticket[0] = (u32)atom_add_u64(tickets, 1);
        s_ticket[1] = 0;
        s_ticket[2] = 0;
    }
    b_sync();
    return s_ticket[0];
}
FN u32 w_clique_take(u32 *s_at, u32 by) {
    const u32 at = t_lane() == 0 ? atom_add_u32(s_at, by) : 0u;
    return w_from_u32(at, 0);
}

KERNEL(k_clique_blocks, struct kcliques, 256) {
    SHARED_BYTES(s_bytes);
    SHARED(u32, s_ticket, 3);
    SHARED(u32, s_sums, CLIQUE_WARPS);
    const u32 count = (u32)args.report[CLIQUE_LISTED_BLOCK];
    u64 found = 0;
    for (;;) {
        const u32 no = b_clique_next(&args.report[CLIQUE_TICKETS + 1], s_ticket);
        if (no >= count) {
            break;
        }
        struct clique_set set = b_clique_set(&args, args.listed_block[no], (u32 *)s_bytes, 0);
        b_clique_words(&args, &set, s_sums);
        for (;;) {
            const u32 p = w_clique_take(&s_ticket[1], CLIQUE_UNIT);
            if (p + 1u >= set.count) {
                break;
            }
            found += clique_chunk(&args, &set, (const struct clique_rows *)0, p, CLIQUE_UNIT);
        }
    }
    clique_add(&args.report[CLIQUE_FOUND], found);
}

/* Triangles of heavy nodes: a node's row in shared memory, ANDed with those of its neighbours from these on. */
KERNEL(k_clique_heavy, struct kcliques, 256) {
    SHARED_BYTES(s_bytes);
    SHARED(u32, s_ticket, 3);
    const u32 vecs = args.row_words / 4u;
    const u32 light = args.heavy > args.base ? args.heavy - args.base : 0u;
    u64 found = 0;
    for (;;) {
        const u32 no = light + b_clique_next(&args.report[CLIQUE_TICKETS + 2], s_ticket);
        if (no >= args.nodes) {
            break;
        }
        const u32 u = no + args.base - args.heavy;
        const u32 from = args.offsets[no];
        const u32 count = args.offsets[no + 1] - from;
        if (count < 2u) {
            continue;
        }
        const u32 *row = args.matrix + (u64)u * args.row_words;
        for (u32 i = ((args.to[from] - args.heavy) >> 7) + t_id(); i < vecs; i += CLIQUE_THREADS) {
            store16(s_bytes + 16u * i, load16(row + 4u * i));
        }
        b_sync();
        for (;;) {
            const u32 first = w_clique_take(&s_ticket[1], 4);
            if (first + 1u >= count) {
                break;
            }
            NO_UNROLL for (u32 p = first; p < first + 4u && p + 1u < count; p++) {
                const u32 v = args.to[from + p] - args.heavy;
                const u32 *other = args.matrix + (u64)v * args.row_words;
                if (count - 1u - p < vecs - (v >> 7)) { /* bit by bit */
                    for (u32 k = p + 1u + t_lane(); k < count; k += 32u) {
                        const u32 w = args.to[from + k] - args.heavy;
                        found += other[w >> 5] >> (w & 31u) & 1u;
                    }
                    continue;
                }
                for (u32 i = (v >> 7) + t_lane(); i < vecs; i += 32u) {
                    const vec16 x = load16(other + 4u * i);
                    const vec16 y = load16(s_bytes + 16u * i);
                    UNROLL for (u32 k = 0; k < 4; k++) {
                        found += bits_set_u32(x.w[k] & y.w[k]);
                    }
                }
            }
        }
    }
    clique_add(&args.report[CLIQUE_FOUND], found);
}

/* --- larger cliques -------------------------------------------------------------------------- */

/* Cliques of `missing` more nodes among the bits at masks[0], by a warp: masks[d] are those that d nodes
 * more have in common. */
FN u64 w_clique_deep(const u32 *rows, u32 words, u32 *masks, u32 missing) {
    u64 found = 0;
    u32 depth = 0;
    u32 cursor[CLIQUE_DEPTH]; /* the bit to go on with */
    cursor[0] = 0;
    for (;;) {
        const u32 *mask = masks + depth * words;
        u32 next = 0xffffffffu;
        for (u32 first = cursor[depth] / 32u; first < words && next == 0xffffffffu; first += 32u) {
            const u32 at = first + t_lane();
            u32 bits = at < words ? mask[at] : 0u;
            bits &= at == cursor[depth] / 32u ? 0xffffffffu << (cursor[depth] & 31u) : 0xffffffffu;
            const u32 some = w_ballot(bits != 0);
            if (some) {
                const u32 lane = first_set_u32(some);
                next = (first + lane) * 32u + first_set_u32(w_from_u32(bits, lane));
            }
        }
        if (next == 0xffffffffu) {
            if (depth == 0) {
                return found;
            }
            w_sync(); /* this depth's mask, which all have read, is made anew */
            depth--;
            continue;
        }
        cursor[depth] = next + 1u;
        const u32 *row = rows + next * words;
        const u32 last = depth + 2u == missing;
        for (u32 i = t_lane(); i < words; i += 32u) {
            const u32 both = mask[i] & row[i];
            if (last) {
                found += bits_set_u32(both);
            } else {
                masks[(depth + 1u) * words + i] = both;
            }
        }
        if (!last) {
            w_sync();
            depth++;
            cursor[depth] = next + 1u;
        }
    }
}

/* The matrix among the neighbours of a node, as far as those of second nodes are here. */
FN void b_clique_fill(const struct kcliques *a, const struct clique_set *set,
                      const struct clique_rows *rows, u32 *s_at) {
    for (;;) {
        const u32 p = w_clique_take(s_at, CLIQUE_UNIT);
        if (p + 1u >= set->count) {
            break;
        }
        (void)clique_chunk(a, set, rows, p, CLIQUE_UNIT);
    }
}

/* Cliques in it, by a block. */
FN u64 b_clique_descend(const struct kcliques *a, const struct clique_rows *rows, u32 count,
                        u32 *masks, u32 *s_at) {
    u64 found = 0;
    for (;;) {
        const u32 p = w_clique_take(s_at, 1);
        if (p >= count) {
            return found;
        }
        for (u32 i = t_lane(); i < rows->words; i += 32u) {
            masks[i] = rows->rows[p * rows->words + i];
        }
        w_sync();
        found += w_clique_deep(rows->rows, rows->words, masks, a->size - 2u);
        w_sync();
    }
}

/* Of more than three nodes: a matrix of the neighbours of every node, in shared memory or, where it has
 * no room there, in the block's part of `scratch`; behind it masks for every warp. */
KERNEL(k_clique_deep, struct kcliques, 256) {
    SHARED_BYTES(s_bytes);
    SHARED(u32, s_ticket, 3);
    const u32 count = (u32)args.report[CLIQUE_LISTED_BLOCK];
    const u32 depths = args.size - 3u;
    u64 found = 0;
    for (;;) {
        const u32 no = b_clique_next(&args.report[CLIQUE_TICKETS + 1], s_ticket);
        if (no >= count) {
            break;
        }
        const u32 u = args.listed_block[no];
        const struct clique_set set = b_clique_set(&args, u, (u32 *)s_bytes, 1);
        struct clique_rows rows;
        rows.words = (set.count + 31u) / 32u;
        rows.rows = args.scratch ? args.scratch + t_block() * args.scratch_words
                                 : set.list + set.count;
        for (u32 i = t_id(); i < set.count * rows.words; i += CLIQUE_THREADS) {
            rows.rows[i] = 0;
        }
        b_sync();
        b_clique_fill(&args, &set, &rows, &s_ticket[1]);
        mem_fence();
        b_sync();
        u32 *masks = rows.rows + set.count * rows.words + t_id() / 32u * depths * rows.words;
        found += b_clique_descend(&args, &rows, set.count, masks, &s_ticket[2]);
    }
    clique_add(&args.report[CLIQUE_FOUND], found);
}

/* The same in boxes: matrices of a slab's nodes stay until all second nodes have been here. */
KERNEL(k_clique_box, struct kcliques, 256) {
    SHARED_BYTES(s_bytes);
    SHARED(u32, s_ticket, 3);
    const u32 count = (u32)args.report[CLIQUE_LISTED_BLOCK];
    u64 found = 0;
    for (;;) {
        const u32 no = b_clique_next(&args.report[CLIQUE_TICKETS + 1], s_ticket);
        if (no >= count) {
            break;
        }
        const u32 u = args.listed_block[no];
        const u32 degree = args.offsets[u + 1] - args.offsets[u];
        struct clique_rows rows;
        rows.words = (degree + 31u) / 32u;
        rows.rows = args.scratch + args.places[no];
        if (args.stage == CLIQUE_FILL) {
            const struct clique_set set = b_clique_set(&args, u, (u32 *)s_bytes, 1);
            b_clique_fill(&args, &set, &rows, &s_ticket[1]);
        } else {
            u32 *masks = args.masks + t_block() * args.mask_words +
                         t_id() / 32u * (args.size - 3u) * rows.words;
            found += b_clique_descend(&args, &rows, degree, masks, &s_ticket[2]);
        }
    }
    clique_add(&args.report[CLIQUE_FOUND], found);
}

/* --- any graph ------------------------------------------------------------------------------- */

/* Edges as they come: a thread takes an edge, and goes through the neighbours of its first node, or of its
 * second where these are fewer, for all further ones. Equal edges count as often as they are there. */
KERNEL(k_clique_plain, struct kcliques, 256) {
    u64 found = 0;
    u64 over = 0; /* what a word cannot hold */
    CLIQUE_EACH(no, args.last - args.first) {
        const u64 edge = (u64)(args.first + no);
        const u32 u = clique_from(&args, edge);
        const u32 end = args.offsets[u + 1];
        u32 node[CLIQUE_DEPTH];
        u32 at[CLIQUE_DEPTH];
        u64 weight[CLIQUE_DEPTH];
        u32 depth = 1; /* nodes that were chosen behind u */
        node[0] = args.to[edge];
        if (!clique_is_here(&args, node[0])) { /* of a box of triangles: its turn comes */
            continue;
        }
        const u32 start = args.offsets[u];
        const u32 other = args.second_offsets[node[0] - args.second];
        const u32 other_end = args.second_offsets[node[0] - args.second + 1u];
        const u32 fewer = other_end - other < end - start;
        const u32 *list = fewer ? args.second_to : args.to;
        const u32 list_start = fewer ? other : start;
        const u32 list_end = fewer ? other_end : end;
        weight[0] = 1;
        at[1] = list_start;
        NO_UNROLL while (depth > 0) {
            if (at[depth] >= list_end) {
                depth--;
                continue;
            }
            const u32 w = list[at[depth]++];
            const u32 *in = fewer ? args.to : args.second_to;
            const u32 first = clique_seek_in(in, fewer ? start : other, fewer ? end : other_end, w);
            const u64 both = clique_seek_in(in, first, fewer ? end : other_end, w + 1u) - first;
            u64 times = weight[depth - 1u];
            over += mul_high_u64(times, both) != 0;
            times *= both;
            NO_UNROLL for (u32 k = 1; k < depth && times; k++) {
                const u64 more = clique_times(&args, node[k], w);
                over += mul_high_u64(times, more) != 0;
                times *= more;
            }
            if (times && depth + 2u == args.size) {
                over += found + times < found;
                found += times;
            } else if (times) {
                node[depth] = w;
                weight[depth] = times;
                depth++;
                at[depth] = list_start;
            }
        }
    }
    over += found >> 58 != 0; /* so that a block's threads can be summed up */
    clique_add(&args.report[CLIQUE_FOUND], found);
    clique_add(&args.report[CLIQUE_OVER], over);
}
