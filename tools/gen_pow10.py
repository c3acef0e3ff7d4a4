#!/usr/bin/env python3
"""Writes src/defs/pow10_table.h: the powers of ten that shortest float text needs.

usage: tools/gen_pow10.py > src/defs/pow10_table.h

Entry k is 10^k scaled by a power of two into [2^127, 2^128) and rounded up.
"""
LEAST, MOST = -292, 324


def scaled(k):
    num, den = (10 ** k, 1) if k >= 0 else (1, 10 ** -k)
    shift = num.bit_length() - den.bit_length() - 128
    while True:
        n, d = (num, den << shift) if shift >= 0 else (num << -shift, den)
        g = -(-n // d)
        if g >= 1 << 128:
            shift += 1
        elif g < 1 << 127:
            shift -= 1
        else:
            return g


print("/* pow10_table.h: 10^k for k from POW10_LEAST to POW10_MOST, scaled by a power of two into 128 bits\n"
      " * and rounded up: high half, low half. Made by tools/gen_pow10.py; kernel text (see fn_int.h). */")
print("#ifndef WF_DEFS_POW10_TABLE_H\n#define WF_DEFS_POW10_TABLE_H\n")
print(f"#define POW10_LEAST ({LEAST})\n#define POW10_MOST {MOST}\n")
print("CONST_TABLE u64 pow10_table[POW10_MOST - POW10_LEAST + 1][2] = {")
for k in range(LEAST, MOST + 1):
    g = scaled(k)
    print(f"    {{0x{g >> 64:016x}ULL, 0x{g & (1 << 64) - 1:016x}ULL}},")
print("};\n\n#endif")
