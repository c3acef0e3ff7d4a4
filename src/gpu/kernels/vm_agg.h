/* vm_agg.h: the virtual machine with an aggregation sink. Small tables live in shared memory, in as
 * many private copies per block as fit, and are merged into the state when the block ends; larger
 * ones are updated where they are. */
#define WF_MIN_BLOCKS \
    5 /* 96 registers: with fewer, what spills costs more than the blocks gain \
       */
#define VM_TILE_ROWS 1024u
#include "vm.h"

/* Row i's limbs into the state whose words start at `at`: in the block's tables, or where it is. */
FN_SLOW void vm_agg_limbs(const u8 *s, u64 *table, const struct kagg *agg, u64 at, u32 i) {
    NO_UNROLL for (u32 l = 0; l < agg->limb_count; l++) {
        struct klimbs run = agg->limbs[l];
        f64 x = get1_f64(s, run.reg, i);
        i32 lsb = get1_i32(s, run.lsb, 0);
        i32 limb = limb_first(x, lsb, run.square);
        u32 limbs = LIMB_COUNT(run.square);
        NO_UNROLL for (u32 k = 0; k < limbs; k++, limb++) {
            i64 part = run.square ? fn_fsquare(x, lsb, limb) : fn_flimb(x, lsb, limb);
            u32 no = (u32)(limb - run.first);
            if (part && no < run.count) {
                if (agg->copies) {
                    agg_shared_word(table, agg->copies, at + run.word + no, WORD_ADD, part);
                } else {
                    atom_add_u64(&table[at + run.word + no], (u64)part);
                }
            }
        }
    }
}

FN void vm_agg_one(const u8 *s, u64 *table, u32 copies, u32 word_count, const u8 *word_ops,
                   const u16 *word_regs, u32 act) {
    for (u32 w = 0; w < word_count; w++) {
        u32 op = word_ops[w];
        if (word_regs[w] == AGG_NO_REG) {
            continue;
        }
        i64 sum = word_identity(op);
        VM_EACH_GROUP {
            i64 x[4];
            get4_i64(s, word_regs[w], h, x);
            UNROLL for (u32 j = 0; j < 4; j++) {
                sum = act >> (4 * h + j) & 1u ? word_merge(op, sum, x[j]) : sum;
            }
        }
        if (act) {
            agg_shared_word(table, copies, w, op, sum);
        }
    }
}

/* Where the state of row i's group begins in a dense table. */
FN u64 vm_agg_slot(const u8 *s, const struct kagg *agg, u32 i) {
    u64 slot = (u64)get1_i64(s, agg->key, i) - (u64)agg->key_lo;
    return slot * (agg->head + agg->word_count);
}

/* The four rows of group h; act holds their bits. */
FN void vm_agg_shared(const u8 *s, u64 *table, struct kagg agg, u32 act, u32 h) {
    u64 at[4];
    UNROLL for (u32 j = 0; j < 4; j++) {
        at[j] = act >> j & 1u ? vm_agg_slot(s, &agg, 4 * h + j) : 0u;
        if ((act >> j & 1u) && agg.head) {
            agg_shared_word(table, agg.copies, at[j], WORD_ADD, 1);
        }
    }
    for (u32 w = 0; w < agg.word_count; w++) {
        if (agg.word_regs[w] == AGG_NO_REG) {
            continue;
        }
        i64 x[4];
        get4_i64(s, agg.word_regs[w], h, x);
        u32 op = agg.word_ops[w];
        UNROLL for (u32 j = 0; j < 4; j++) {
            if (act >> j & 1u) {
                agg_shared_word(table, agg.copies, at[j] + agg.head + w, op, x[j]);
            }
        }
    }
    for (u32 j = 0; agg.limb_count && j < 4; j++) {
        if (act >> j & 1u) {
            vm_agg_limbs(s, table, &agg, at[j] + agg.head, 4 * h + j);
        }
    }
}

/* A dense table whose words have four bytes. */
FN_SLOW void vm_agg_narrow(const u8 *s, const struct kagg *agg, u32 act, u32 h) {
    NO_UNROLL for (u32 w = 0; w < agg->word_count; w++) {
        i64 x[4];
        get4_i64(s, agg->word_regs[w], h, x);
        UNROLL for (u32 j = 0; j < 4; j++) {
            if (act >> j & 1u) {
                narrow_add((u32 *)agg->state + vm_agg_slot(s, agg, 4 * h + j) + w, x[j]);
            }
        }
    }
}

FN void vm_agg_global(const u8 *s, struct kagg agg, u32 act, u32 h, u64 *report) {
    u64 *at[4];
    u32 fresh = 0;
    UNROLL for (u32 j = 0; j < 4; j++) {
        at[j] = (u64 *)0;
        if (act >> j & 1u) {
            if (agg.form == AGG_HASH) {
                at[j] =
                    agg_find(&agg, agg.word_count, get1_i64(s, agg.key, 4 * h + j), report, &fresh);
            } else {
                at[j] = agg.state + vm_agg_slot(s, &agg, 4 * h + j);
                if (agg.head && !read_u64(at[j])) {
                    atom_add_u64(at[j], 1);
                }
            }
        }
    }
    agg_count(&agg, fresh, report);
    for (u32 w = 0; w < agg.word_count; w++) {
        if (agg.word_regs[w] == AGG_NO_REG) {
            continue;
        }
        i64 x[4];
        get4_i64(s, agg.word_regs[w], h, x);
        u32 op = agg.word_ops[w];
        UNROLL for (u32 j = 0; j < 4; j++) {
            if (at[j]) {
                word_atom(op, at[j] + agg.head + w, x[j]);
            }
        }
    }
    for (u32 j = 0; agg.limb_count && j < 4; j++) {
        if (at[j]) {
            vm_agg_limbs(s, at[j], &agg, agg.head, 4 * h + j);
        }
    }
}

FN void vm_agg(const u8 *s, u64 *table, struct kagg agg, u32 act, u64 *report) {
    if (!agg.has_key) {
        vm_agg_one(s, table, agg.copies, agg.word_count, agg.word_ops, agg.word_regs, act);
        for (u32 i = 0; agg.limb_count && i < 4u * VM_GROUPS; i++) {
            if (act >> i & 1u) {
                vm_agg_limbs(s, table, &agg, 0u, i);
            }
        }
        return;
    }
    NO_UNROLL for (u32 h = 0; h < VM_GROUPS; h++) {
        u32 rows = act >> (4 * h) & 15u;
        if (rows && agg.copies) {
            vm_agg_shared(s, table, agg, rows, h);
        } else if (rows && agg.narrow) {
            vm_agg_narrow(s, &agg, rows, h);
        } else if (rows) {
            vm_agg_global(s, agg, rows, h, report);
        }
    }
}

/* Of several aggregations a launch makes one: another place to go would cost all of them registers. */
KERNEL(k_vm_agg, struct kargs, 128) {
    SHARED_BYTES(s_slots);
    u64 *table = (u64 *)(s_slots + args.slot_bytes);
    if (args.aggs[0].copies) {
        b_agg_begin(table, &args.aggs[0], args.aggs[0].head, args.aggs[0].word_count);
    }
    VM_BODY(if (op_imm(op) == args.emit) {
        vm_agg(s_slots, table, args.aggs[0], act, args.report);
    })
    if (args.aggs[0].copies) {
        b_agg_end(table, &args.aggs[0], args.aggs[0].head, args.aggs[0].word_count);
    }
}
