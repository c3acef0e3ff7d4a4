#!/usr/bin/env python3
"""Writes src/defs/real_table.h: what exponentials, logarithms and angles look up.

usage: tools/gen_real_table.py > src/defs/real_table.h

Every value is a pair: the nearest double (or one with zeros at its end, where sums of it must be exact) and what it
leaves out. All digits come from Python's decimal numbers.
"""
from decimal import Decimal as D, getcontext
import struct

from c_table import write

getcontext().prec = 120
SLOTS = 128


def sine(x, first=1):
    term, total, n = (x, x, 1) if first else (D(1), D(1), 0)
    while abs(term) > D(10) ** -110:
        term = -term * x * x / ((n + 1) * (n + 2))
        total += term
        n += 2
    return total


def atan(x):
    halvings = 6
    for _ in range(halvings):
        x = x / (1 + (1 + x * x).sqrt())
    term, total, n = x, x, 1
    while abs(term) > D(10) ** -110:
        term = -term * x * x
        n += 2
        total += term / n
    return total * 2 ** halvings


PI = 4 * atan(D(1))
LN2 = D(2).ln()


def cut(x, bits):
    """x to so many binary digits behind the point."""
    return float((x * 2 ** bits).to_integral_value() / 2 ** bits)


def top(x, bits):
    """The first so many binary digits of x."""
    e = 0
    while abs(x) * D(2) ** -e >= 1:
        e += 1
    while abs(x) * D(2) ** -e < D("0.5"):
        e -= 1
    return float((x * D(2) ** (bits - e)).to_integral_value() * D(2) ** (e - bits))


def rest(x, *taken):
    for t in taken:
        x -= D(t)
    return float(x)


def table(name, values, about):
    print(f"\n/* {about} */")
    write(f"CONST_TABLE f64 {name}[{len(values)}]", [repr(float(v)) for v in values])


def chain(name, x, bits, count):
    """x as numbers of `bits` digits each, and a last one with all its digits."""
    taken = []
    for _ in range(count - 1):
        taken.append(top(x - sum(map(D, taken)), bits))
    taken.append(rest(x, *taken))
    for i, t in enumerate(taken):
        print(f"#define {name}_{i + 1} {t!r}")


print("""/* real_table.h: what fn_real.h looks up. Kernel text (see fn_int.h). Made by tools/gen_real_table.py. */
#ifndef WF_DEFS_REAL_TABLE_H
#define WF_DEFS_REAL_TABLE_H

/* Constants as pairs, or in parts of few digits whose multiples are exact. */""")
for name, x in [("PI", PI), ("HALF_PI", PI / 2), ("LN2", LN2), ("LOG10_E", 1 / D(10).ln())]:
    print(f"#define REAL_{name}_HI {float(x)!r}\n#define REAL_{name}_LO {rest(x, float(x))!r}")
chain("REAL_EXP_STEP", LN2 / SLOTS, 34, 2)
print(f"#define REAL_EXP_STEPS {float(SLOTS / LN2)!r}")
chain("REAL_LN2", LN2, 42, 2)
chain("REAL_ANGLE", PI / 64, 26, 4)
print(f"#define REAL_ANGLES {float(64 / PI)!r}")

powers = [(LN2 * j / SLOTS).exp() for j in range(SLOTS)]
table("real_exp_hi", powers, "2^(j / 128)")
table("real_exp_lo", [rest(x, float(x)) for x in powers], "what they leave out")

# The bits of a double less REAL_LN_FIRST give exponent and slot: slots are half a slot off, so that 1 is inside one.
FIRST = 0x3FE6100000000000
WIDTH = 1 << 45
inverses = []
for j in range(SLOTS):
    low, high = FIRST + j * WIDTH, FIRST + (j + 1) * WIDTH
    a, b = (D(struct.unpack("<d", struct.pack("<Q", bits))[0]) for bits in (low, high))
    inverses.append(1.0 if a < 1 < b else cut(2 / (a + b), 20))
logs = [-D(x).ln() for x in inverses]
print(f"\n#define REAL_LN_FIRST 0x{FIRST:016x}ULL")
table("real_ln_inverse", inverses, "about 1 / x in the middle of slot j, 20 digits behind the point")
table("real_ln_hi", [cut(x, 42) for x in logs], "the logarithm of what they are the inverse of, 42 digits behind the point")
table("real_ln_lo", [rest(x, cut(x, 42)) for x in logs], "what it leaves out")

quarter = [sine(PI * j / 64) for j in range(33)]
sines = []
for j in range(160):
    q, at = divmod(j % 128, 32)
    x = quarter[at] if q % 2 == 0 else quarter[32 - at]
    sines.append(x if q < 2 else -x)
sines = [D(0) if abs(x) < D(10) ** -50 else x for x in sines]
table("real_sine_hi", sines, "the sine of j pi / 64; its cosine is 32 further on")
table("real_sine_lo", [rest(x, float(x)) for x in sines], "what they leave out")
arcs = [atan(D(j) / 64) for j in range(SLOTS)]
table("real_atan_hi", arcs, "the arc tangent of j / 64; beyond 64 for rows that are no numbers")
table("real_atan_lo", [rest(x, float(x)) for x in arcs], "what they leave out")
print("\n#endif")
