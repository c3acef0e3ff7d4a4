/* probe.h: what the card can do at best: reading memory from end to end, or at places all over it,
 * and nothing else. The figures that scans and lookups are compared with. */
#include "block.h"

KERNEL(k_probe_read, struct kprobe, 512) {
    u32 sum = 0;
    i64 stride = (i64)t_blocks() * t_count() * 4;
    for (i64 i = (i64)t_block() * t_count() * 4 + t_id(); i < args.count; i += stride) {
        vec16 x[4];
        UNROLL for (u32 k = 0; k < 4; k++) {
            i64 at = i + (i64)(k * t_count());
            x[k] = load16(args.data + 16 * (at < args.count ? at : i));
        }
        UNROLL for (u32 k = 0; k < 4; k++) {
            sum += x[k].w[0] ^ x[k].w[1] ^ x[k].w[2] ^ x[k].w[3];
        }
    }
    if (sum == 0x9e3779b9u) { /* hardly ever; keeps the loads alive */
        atom_add_u32(args.out, sum);
    }
}

/* As many places as there are sectors of 32 bytes, in no order; eight are on their way at a time. */
KERNEL(k_probe_places, struct kprobe, 512) {
    u32 sum = 0;
    const u64 words = (u64)args.count;
    const u64 stride = (u64)t_blocks() * t_count();
    for (u64 i = (u64)t_block() * t_count() + t_id(); i < words / 16; i += stride) {
        UNROLL for (u64 k = 0; k < 8; k++) {
            const u64 at = ((i * 8 + k) * 0x9e3779b97f4a7c15u >> 32) * words >> 32;
            sum += *(const u32 *)(args.data + 16 * at);
        }
    }
    if (sum == 0x9e3779b9u) {
        atom_add_u32(args.out, sum);
    }
}
