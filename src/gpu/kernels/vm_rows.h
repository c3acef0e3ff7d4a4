/* vm_rows.h: the virtual machine with a row sink. Output rows are reserved once per tile; a list of
 * the kept rows in shared memory lets neighbouring threads write neighbouring elements, straight
 * from the registers' places, or from source columns that nothing but the output needs. */
#ifndef VM_TILE_ROWS
#define VM_TILE_ROWS 2048u
#define WF_MIN_BLOCKS 4 /* 128 registers: with five, what spills costs more in long pipelines */
#endif
#include "vm.h"

#define VM_COUNT_BITS 5u /* of a thread's kept rows */

/* Copies kept rows: `load` is the value of row list[k]. Several loads are under way at once, for
 * one at a time would make the tile wait for memory once per 128 rows. */
#define VM_COPY_BATCH 4u
#define VM_COPY_ROWS(type, to, load)                                               \
    NO_UNROLL for (u32 k0 = t_id(); k0 < fits; k0 += VM_COPY_BATCH * VM_THREADS) { \
        type v[VM_COPY_BATCH];                                                     \
        UNROLL for (u32 b = 0; b < VM_COPY_BATCH; b++) {                           \
            u32 k = k0 + b * VM_THREADS;                                           \
            if (k < fits) {                                                        \
                v[b] = load;                                                       \
            }                                                                      \
        }                                                                          \
        UNROLL for (u32 b = 0; b < VM_COPY_BATCH; b++) {                           \
            u32 k = k0 + b * VM_THREADS;                                           \
            if (k < fits) {                                                        \
                (to)[k] = v[b];                                                    \
            }                                                                      \
        }                                                                          \
    }
#define VM_COPY_EACH for (u32 k = t_id(); k < fits; k += VM_THREADS)

FN void vm_copy(const u8 *s, u32 place, u32 bytes, u8 *data, u64 base, u32 fits, const u16 *list) {
    if (bytes == 4) {
        const u8 *from = s + vm_start(place);
        u32 step = vm_own(place) & 4u;
        u32 *to = (u32 *)data + base;
        VM_COPY_ROWS(u32, to, *(const u32 *)(from + list[k] * step))
    } else if (bytes == 8) {
        u64 *to = (u64 *)data + base;
        VM_COPY_ROWS(u64, to, *(const u64 *)(s + vm_elem(place, 8, list[k])))
    } else if (bytes == 1) {
        VM_COPY_EACH {
            data[base + k] = s[vm_elem(place, 1, list[k])];
        }
    } else {
        VM_COPY_EACH {
            store16(data + 16 * (base + k), load16(s + vm_elem(place, 16, list[k])));
        }
    }
}

/* One element of any form, its low eight bytes. */
FN_SLOW u64 vm_fetch_elem(const struct kseg *seg, i64 row) {
    switch (seg->form) {
    case SEG_U8:
        return seg->base + seg->data[row];
    case SEG_U16:
        return seg->base + ((const u16 *)seg->data)[row];
    case SEG_U32:
        return seg->base + ((const u32 *)seg->data)[row];
    case SEG_I32:
        return seg->base + (u64)(i64)((const i32 *)seg->data)[row];
    case SEG_F32:
        return ((const u32 *)seg->data)[row];
    case SEG_I64:
    case SEG_U64:
        return seg->base + ((const u64 *)seg->data)[row];
    case SEG_F64:
        return ((const u64 *)seg->data)[row];
    case SEG_U128:
        return seg->base + ((const u64 *)seg->data)[2 * row];
    case SEG_SERIES:
        return seg->base + (u64)row * seg->base_high;
    default:
        return seg->base;
    }
}

/* The same from a source column; `first` is the tile's first row. */
FN void vm_copy_late(const struct kseg *seg, i64 first, u32 bytes, u8 *data, u64 base, u32 fits,
                     const u16 *list) {
    u32 form = seg->form;
    if (bytes == 4 && (form == SEG_U32 || form == SEG_I32 || form == SEG_F32)) {
        const u32 *from = (const u32 *)seg->data + first;
        u32 add = form == SEG_F32 ? 0u : (u32)seg->base;
        u32 *to = (u32 *)data + base;
        VM_COPY_ROWS(u32, to, from[list[k]] + add)
    } else if (bytes == 4) {
        VM_COPY_EACH {
            ((u32 *)data)[base + k] = (u32)vm_fetch_elem(seg, first + list[k]);
        }
    } else {
        VM_COPY_EACH {
            ((u64 *)data)[base + k] = vm_fetch_elem(seg, first + list[k]);
        }
    }
}

/* Text: views of this device, or rows of a source column, as views of the host. Many because it is
 * out of line: what a struct holds would go through memory. */
FN_SLOW void vm_copy_text(const u8 *s, const struct kseg *seg, i64 first, struct kout out, u64 base,
                          u32 fits, const u16 *list, struct ktexts in, struct ktexts moved) {
    VM_COPY_EACH {
        str x = seg ? text_load(seg, first + list[k], 1, in, moved)
                    : text_moved(moved.items, moved.count,
                                 vec_str(load16(s + vm_elem(out.reg, 16, list[k]))));
        store16(out.data + 16 * (base + k), str_vec(x));
    }
}

/* Reserves room and lists the block's active rows. Sums of up to sixteen rows per thread by
 * ballots; while one thread reserves, the others list. s_sums holds 16 bits per warp. Two barriers.
 */
FN struct b_place b_vm_list(u16 *list, u64 *s_sums, u64 *s_base, u64 *counter, u32 act) {
    u32 mine = bits_set_u32(act);
    u32 below = (1u << t_lane()) - 1u;
    u32 before = 0;
    u32 sum = 0;
    UNROLL for (u32 b = 0; b < VM_COUNT_BITS; b++) {
        u32 votes = w_ballot((i32)(mine >> b & 1u));
        before += bits_set_u32(votes & below) << b;
        sum += bits_set_u32(votes) << b;
    }
    u32 warp = t_id() >> 5;
    if (t_lane() == 0) {
        ((u16 *)s_sums)[warp] = (u16)sum;
    }
    b_sync();
    struct b_place place;
    place.first = before;
    place.total = 0;
    u64 sums = *s_sums;
    UNROLL for (u32 w = 0; w < VM_THREADS / 32u; w++) {
        u32 one = (u32)(sums >> (16 * w)) & 0xffffu;
        place.first += w < warp ? one : 0u;
        place.total += one;
    }
    if (t_id() == 0 && place.total) {
        *s_base = atom_add_u64(counter, place.total);
    }
    u32 at = place.first;
    UNROLL for (u32 i = 0; i < VM_ROWS; i++) {
        if (act >> i & 1u) {
            list[at++] = (u16)((i >> 2) * VM_SPAN + t_id() * 4u + (i & 3u));
        }
    }
    b_sync();
    place.base = place.total ? *s_base : 0;
    return place;
}

struct vm_list { /* shared memory */
    u16 *rows;
    u64 *sums, *base;
};

/* The kept rows of a tile of `tablet` that begins at `first`, to sink `number`. Many because it is
 * pasted into the loop: what a struct holds would go through memory. */
FN void b_vm_emit(const u8 *s, const struct vm_list *l, const struct kargs *args, u64 tablet,
                  i64 first, u32 act, u32 number) {
    const u16 *list = l->rows;
    struct ksink sink = {args->capacity, 0, args->out_count, 0, 0};
    if (args->sinks) {
        sink = args->sinks[number];
        sink.capacity = sink.report ? sink.capacity : args->capacity;
    }
    u64 *const report = args->report + sink.report * REPORT_WORDS;
    if (args->emit) { /* rows whose key is new */
        struct kout set = args->outs[args->out_count];
        VM_EACH_ROW {
            if (act >> i & 1u) {
                const i64 key = get1_i64(s, set.reg, i);
                const u32 kept = set.nulls
                                     ? set_better((u32 *)set.data, (u64 *)set.nulls, key,
                                                  get1_i64(s, set.null_reg, i), set.turn)
                                 : set.turn ? keys_add((u64 *)set.data, set.turn, key,
                                                       args->capacity, args->report)
                                            : set_add((u32 *)set.data, key);
                act &= ~((u32)!kept << i);
            }
        }
    }
    struct b_place place = b_vm_list(l->rows, l->sums, l->base, &report[REPORT_ROWS], act);
    if (place.total) {
        u32 fits = out_fits(place, sink.capacity, args->limit, report);
        NO_UNROLL for (u32 c = sink.first; c < sink.first + sink.count; c++) {
            struct kout out = args->outs[c];
            const struct kseg *seg =
                args->segs + tablet + (out.reg & (KOP_ASIDE - 1u)) * args->tablet_count;
            if (out.is_text) {
                vm_copy_text(s, out.reg & KOP_ASIDE ? seg : (const struct kseg *)0, first, out,
                             place.base, fits, list, args->texts_in, args->texts_out);
            } else if (out.reg & KOP_ASIDE) {
                vm_copy_late(seg, first, out.bytes, out.data, place.base, fits, list);
            } else {
                vm_copy(s, out.reg, out.bytes, out.data, place.base, fits, list);
            }
            if (out.nulls) {
                vm_copy(s, out.null_reg, 1, out.nulls, place.base, fits, list);
            }
        }
        if (args->emit && fits < place.total) {
            struct kout set = args->outs[args->out_count];
            for (u32 k = fits + t_id(); k < place.total; k += VM_THREADS) {
                const i64 key = *(const i64 *)(s + vm_elem(set.reg, 8, list[k]));
                if (set.nulls) {
                    set_forget((u32 *)set.data, (u64 *)set.nulls, key);
                } else if (set.turn) {
                    keys_remove((u64 *)set.data, set.turn, key);
                } else {
                    set_remove((u32 *)set.data, key);
                }
            }
        }
        b_sync();
    }
}

KERNEL(k_vm_rows, struct kargs, 128) {
    SHARED_BYTES(s_slots);
    SHARED(u64, s_sums, 1);
    SHARED(u64, s_base, 1);
    struct vm_list list;
    list.rows = (u16 *)(s_slots + args.slot_bytes);
    list.sums = s_sums;
    list.base = s_base;
    VM_BODY(b_vm_emit(s_slots, &list, &args, t.tablet, t.row - (i64)t_id() * 4, act, op_imm(op)))
}
