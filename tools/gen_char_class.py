#!/usr/bin/env python3
"""Writes src/defs/char_class.h: which code points are letters, digits, punctuation and so on.

usage: LC_ALL=C.UTF-8 tools/gen_char_class.py > src/defs/char_class.h

Asks the C library's iswalpha and its kin in the locale C.UTF-8, because PostgreSQL does. A range (first, last,
step) holds every step-th code point. ASCII is left out: char_class.c handles it before it looks here.
"""
import ctypes
import locale

from c_table import write

CLASSES = ["alpha", "upper", "lower", "space", "punct", "print"]
locale.setlocale(locale.LC_ALL, "C.UTF-8")
libc = ctypes.CDLL(None)


def ranges(name):
    test = getattr(libc, "isw" + name)
    out = []
    for c in range(0x80, 0x110000):
        if 0xD800 <= c < 0xE000 or not test(ctypes.c_uint(c)):
            continue
        if out:
            first, last, step = out[-1]
            if first == last and c - last in (1, 2):
                out[-1] = (first, c, c - last)
                continue
            if c - last == step and first != last:
                out[-1] = (first, c, step)
                continue
        out.append((c, c, 1))
    return out


print("/* char_class.h: letters, punctuation and the like beyond ASCII, as ranges in ascending order.\n"
      " *\n"
      " * Made by tools/gen_char_class.py from the C library's tables for C.UTF-8. A range holds every step-th\n"
      " * code point from first to last. Kernel text (see fn_int.h). clang-format has no say here: lines are as\n"
      " * full as they can be, to keep the file short. */")
print("#ifndef WF_DEFS_CHAR_CLASS_H\n#define WF_DEFS_CHAR_CLASS_H\n")
print("struct class_range {\n    u32 first;\n    u32 last;\n    u32 step;\n};\n\n/* clang-format off */")
for name in CLASSES:
    write(f"CONST_TABLE struct class_range class_{name}[]",
          (f"{{0x{first:x}, 0x{last:x}, {step}}}" for first, last, step in ranges(name)))
print("/* clang-format on */\n\n#endif")
