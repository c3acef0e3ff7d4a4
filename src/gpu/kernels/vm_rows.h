/* vm_rows.h: the virtual machine with a row sink. Output rows are reserved once per tile; a list of
 * the kept rows in shared memory lets neighbouring threads write neighbouring elements, straight
 * from the registers' places. */
#define WF_MIN_BLOCKS 5 /* 96 registers: with fewer, what spills costs more than the blocks gain \
                         */
#include "vm.h"

#define VM_COPY_ROWS for (u32 k = t_id(); k < fits; k += VM_THREADS)

FN void vm_copy(const u8 *s, u32 place, u32 bytes, u8 *data, u64 base, u32 fits, const u16 *list) {
    if (bytes == 4) {
        VM_COPY_ROWS {
            ((u32 *)data)[base + k] = *(const u32 *)(s + vm_elem(place, 4, list[k]));
        }
    } else if (bytes == 8) {
        VM_COPY_ROWS {
            ((u64 *)data)[base + k] = *(const u64 *)(s + vm_elem(place, 8, list[k]));
        }
    } else if (bytes == 1) {
        VM_COPY_ROWS {
            data[base + k] = s[vm_elem(place, 1, list[k])];
        }
    } else {
        VM_COPY_ROWS {
            store16(data + 16 * (base + k), load16(s + vm_elem(place, 16, list[k])));
        }
    }
}

FN void b_vm_emit(const u8 *s, u16 *list, u32 *s_sums, u64 *s_base, const struct kout *outs,
                  u32 out_count, i64 capacity, i64 limit, u64 *report, u32 act) {
    struct b_place place = b_reserve(bits_set_u32(act), s_sums, s_base, &report[REPORT_ROWS]);
    if (place.total) {
        u32 fits = out_fits(place, capacity, limit, report);
        u32 at = place.first;
        UNROLL for (u32 i = 0; i < 4u * VM_GROUPS; i++) {
            if (act >> i & 1u) {
                list[at] = (u16)((i >> 2) * VM_SPAN + t_id() * 4u + (i & 3u));
            }
            at += act >> i & 1u;
        }
        b_sync();
        for (u32 c = 0; c < out_count; c++) {
            vm_copy(s, outs[c].reg, outs[c].bytes, outs[c].data, place.base, fits, list);
            if (outs[c].nulls) {
                vm_copy(s, outs[c].null_reg, 1, outs[c].nulls, place.base, fits, list);
            }
        }
        b_sync();
    }
}

KERNEL(k_vm_rows, struct kargs, 128) {
    SHARED_BYTES(s_slots);
    SHARED(u32, s_sums, 32);
    SHARED(u64, s_base, 1);
    u16 *list = (u16 *)(s_slots + args.slot_bytes);
    VM_BODY(b_vm_emit(s_slots, list, s_sums, s_base, args.outs, args.out_count, args.capacity,
                      args.limit, args.report, act))
}
