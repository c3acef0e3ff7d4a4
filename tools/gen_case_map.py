#!/usr/bin/env python3
"""Writes src/defs/case_map.h: simple (one to one) case mappings of Unicode as ranges.

usage: tools/gen_case_map.py > src/defs/case_map.h

A range (first, last, step, delta) maps every step-th code point of first..last to itself + delta. ASCII is
left out: fn_case.h handles it before it looks here.
"""
import unicodedata


def simple_upper(c):
    s = chr(c)
    # Where the full mapping has several characters, the title case is the simple upper case.
    for mapped in (s.upper(), s.title()):
        if len(mapped) == 1:
            return ord(mapped)
    return c


def simple_lower(c):
    if c == 0x130:  # its full mapping is i with a combining dot
        return 0x69
    mapped = chr(c).lower()
    return ord(mapped) if len(mapped) == 1 else c


def ranges(mapping):
    pairs = [(c, mapping(c)) for c in range(0x80, 0x110000)
             if not 0xD800 <= c < 0xE000 and mapping(c) != c]
    out = []
    for c, m in pairs:
        if out:
            first, last, step, delta = out[-1]
            if m - c == delta and first == last and c - last in (1, 2):
                out[-1] = (first, c, c - last, delta)
                continue
            if m - c == delta and c - last == step and first != last:
                out[-1] = (first, c, step, delta)
                continue
        out.append((c, c, 1, m - c))
    return out


def write(name, rows):
    print(f"CONST_TABLE struct case_range {name}[] = {{")
    for first, last, step, delta in rows:
        print(f"    {{0x{first:x}, 0x{last:x}, {step}, {delta}}},")
    print("};")


print("/* case_map.h: simple case mappings of Unicode " + unicodedata.unidata_version
      + ", as ranges in ascending order.\n"
      " *\n"
      " * Made by tools/gen_case_map.py from Python's unicodedata. A range maps every step-th code point\n"
      " * from first to last to itself plus delta. Kernel text\n"
      " * (see fn_int.h), read by fn_case.h only. */")
print("#ifndef WF_DEFS_CASE_MAP_H\n#define WF_DEFS_CASE_MAP_H\n")
print("struct case_range {\n    u32 first;\n    u32 last;\n    i32 step;\n    i32 delta;\n};\n")
write("to_upper", ranges(simple_upper))
print()
write("to_lower", ranges(simple_lower))
print("\n#endif")
