/* probe.h: what the card can do at best: reading memory and nothing else. The figure a scan is compared with. */
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
