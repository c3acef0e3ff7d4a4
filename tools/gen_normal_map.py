#!/usr/bin/env python3
"""Writes the tables of Unicode normalisation: src/host/normal_map.h or src/host/normal_pairs.h.

usage: tools/gen_normal_map.py map > src/host/normal_map.h
       tools/gen_normal_map.py pairs > src/host/normal_pairs.h

Decompositions are those of one step, as the Unicode Character Database lists them; normal.c repeats
them. Hangul syllables are left out: they are computed.
"""
import sys
import unicodedata

from c_table import write


def points():
    return (c for c in range(0x80, 0x110000) if not 0xD800 <= c < 0xE000)


def decompositions():
    """(code point, compatibility, parts) in ascending order."""
    for c in points():
        text = unicodedata.decomposition(chr(c))
        if text:
            words = text.split()
            compat = words[0].startswith("<")
            yield c, compat, [int(w, 16) for w in words[compat:]]


def units(parts):
    data = "".join(map(chr, parts)).encode("utf-16-le")
    return [data[i] | data[i + 1] << 8 for i in range(0, len(data), 2)]


def head(file, what):
    print(f"/* {file}: {what} of Unicode {unicodedata.unidata_version}.\n"
          " *\n"
          " * Made by tools/gen_normal_map.py from Python's unicodedata, where the form of the tables is explained\n"
          " * as well. Read by normal.c only. clang-format has no say here: lines are as full as they can be,\n"
          " * to keep the file short. */")
    guard = "WF_HOST_" + file.upper().replace(".", "_")
    print(f"#ifndef {guard}\n#define {guard}\n\n#include \"base/word.h\"\n\n/* clang-format off */")


def write_map():
    head("normal_map.h", "decompositions of one step")
    rows = list(decompositions())
    pool, keys, blocks = [], [], []
    for i, (c, compat, parts) in enumerate(rows):
        if i % 16 == 0:
            blocks.append(len(pool))
        u = units(parts)
        assert len(u) < 32
        keys.append(c | compat << 21 | len(u) << 22)
        pool += u
    print("/* Code point, from bit 21 on: whether it is a compatibility one; from bit 22 on: its units in the pool. */")
    write("static const u32 normal_keys[]", [f"0x{k:x}" for k in keys])
    print("/* Where the units of every sixteenth key begin. */")
    write("static const u16 normal_blocks[]", blocks)
    print("/* UTF-16. */")
    write("static const u16 normal_pool[]", [f"0x{u:x}" for u in pool])
    print("/* clang-format on */\n\n#endif")


def write_pairs():
    head("normal_pairs.h", "combining classes and compositions")
    runs = []
    for c in points():
        k = unicodedata.combining(chr(c))
        if k == 0:
            continue
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == k:
            runs[-1][1] = c
        else:
            runs.append([c, c, k])
    print("/* Runs of code points of one class other than 0: the first, and from bit 21 on how many follow it. */")
    assert all(last - first < 2048 for first, last, _ in runs)
    write("static const u32 class_runs[]", [f"0x{first | last - first << 21:x}" for first, last, _ in runs])
    write("static const u8 class_of_runs[]", [k for _, _, k in runs])
    pairs = []
    for i, (c, compat, parts) in enumerate(decompositions()):
        # A composition is excluded where composing its parts does not give it back.
        if not compat and len(parts) == 2 and unicodedata.normalize("NFC", "".join(map(chr, parts))) == chr(c):
            pairs.append((parts, i))
    print("/* Pairs that compose, ascending by the pair: the composition's place among the keys. */")
    write("static const u16 normal_pairs[]", [i for _, i in sorted(pairs)])
    print("/* clang-format on */\n\n#endif")


write_map() if sys.argv[1] == "map" else write_pairs()
