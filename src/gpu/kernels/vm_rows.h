/* vm_rows.h: the virtual machine with a row sink. Output rows are reserved once per tile; a list of the
 * kept rows in shared memory lets neighbouring threads write neighbouring elements, straight from the
 * registers' places. */
#include "vm.h"

FN void vm_copy(u8 *s, struct kout out, u64 base, u32 fits, const u16 *list) {
    for (u32 k = t_id(); k < fits; k += VM_THREADS) {
        const u8 *from = s + vm_elem(out.reg, out.bytes, list[k]);
        u64 to = base + k;
        switch (out.bytes) {
        case 1: out.data[to] = *from; break;
        case 4: ((u32 *)out.data)[to] = *(const u32 *)from; break;
        case 8: ((u64 *)out.data)[to] = *(const u64 *)from; break;
        default: store16(out.data + 16 * to, load16(from)); break;
        }
        if (out.nulls) {
            out.nulls[to] = s[vm_elem(out.null_reg, 1, list[k])];
        }
    }
}

FN void b_vm_emit(u8 *s, u16 *list, u32 *s_sums, u64 *s_base, const struct kout *outs, u32 out_count,
                  i64 capacity, i64 limit, u64 *report, u32 act) {
    struct b_place place = b_reserve(bits_set_u32(act), s_sums, s_base, &report[REPORT_ROWS]);
    if (place.total) {
        u32 fits = out_fits(place, capacity, limit, report);
        u32 at = place.first;
        UNROLL for (u32 j = 0; j < 4; j++) {
            if (act >> j & 1u) {
                list[at] = (u16)(t_id() * 4u + j);
                at++;
            }
        }
        b_sync();
        for (u32 c = 0; c < out_count; c++) {
            vm_copy(s, outs[c], place.base, fits, list);
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
