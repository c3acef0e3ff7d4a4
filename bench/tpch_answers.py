#!/usr/bin/env python3
"""Makes bench/tpch_answers.h: what the 22 answers are, as checksums, computed by DuckDB on dbgen's rows.

    bench/tpch_answers.py SF=DIR ...        DIR holds the .tbl files of that scale factor (tpchgen-cli tbl -s SF)
    bench/tpch_answers.py --compare ANSWERS SF=DIR ...   also compares with answer files, ANSWERS/sfSF/qNN.csv

Two checksums an answer: the sum over rows of each row's hash, and one hash of the ORDER BY columns in sequence; so rows
that tie may come in any order. Answer files belong to the texts as they stand. Numbers lose trailing zeros, averages are rounded to six decimals. bench/suite_check.c does the same."""
import argparse
import csv
import os

import duckdb

import tpch_tables

HERE = os.path.dirname(os.path.abspath(__file__))
# Per column: e exact, a an average or quotient; capital: a column of ORDER BY.
KINDS = ["EEeeeeaaae", "EEEEeeee", "eEEe", "Ee", "eE", "e", "EEEe", "Ea", "EEe", "eeEeeeee", "eE", "Eee", "EE", "a", "Eeeee",
         "EEEE", "a", "eeeEEe", "e", "Ee", "EE", "Eee"]
BASIS, PRIME, MASK = 1469598103934665603, 1099511628211, (1 << 64) - 1


def fnv(text, start=BASIS):
    for byte in text.encode():
        start = ((start ^ byte) * PRIME) & MASK
    return start


def plain(value, kind):
    if value is None:
        return ""
    if kind in "aA":
        value = "%.6f" % float(value)
    text = str(value)
    number = text.lstrip("-").replace(".", "", 1).isdigit()
    return text.rstrip("0").rstrip(".") if number and "." in text else text


def checksums(rows, kinds):
    total, order = 0, BASIS
    for row in rows:
        values = [plain(v, k) for v, k in zip(row, kinds)]
        total = (total + fnv("".join(v + "|" for v in values))) & MASK
        order = fnv("".join(v + "|" for v, k in zip(values, kinds) if k.isupper()) + "\n", order)
    return total, order


def differing(rows, path, kinds):
    """Names of the columns in which an answer file says something else."""
    with open(path, newline="") as file:
        lines = list(csv.reader(file, delimiter="|"))
    if len(lines) != len(rows) + 1:
        return ["number of rows"]
    bad = set()
    for line, row in zip(lines[1:], rows):
        for name, theirs, ours, kind in zip(lines[0], line, row, kinds):
            if plain(theirs or None, kind) != plain(ours, kind):
                bad.add(name)
    return sorted(bad)


def query_text(number, scale):
    """The query's text; the fraction of query 11 goes down as the scale factor goes up."""
    text = open(f"{HERE}/tpch/q{number:02}.sql").read()
    return text.replace("0.0001000000", f"{0.0001 / float(scale):.10f}") if number == 11 else text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compare")
    parser.add_argument("scale", nargs="+")
    args = parser.parse_args()
    out = ["/* tpch_answers.h: checksums of the 22 answers; made by tpch_answers.py from dbgen's rows. */",
           "#ifndef BENCH_TPCH_ANSWERS_H",
           "#define BENCH_TPCH_ANSWERS_H",
           "",
           '#include "bench_suite.h"',
           "",
           "static const struct known_answer tpch_answers[] = {"]
    for scale, folder in (s.split("=") for s in args.scale):
        duck = duckdb.connect()
        tpch_tables.duckdb_load(duck, folder)
        for number in range(1, 23):
            rows = duck.execute(query_text(number, scale)).fetchall()
            total, order = checksums(rows, KINDS[number - 1])
            out.append(f'    {{"{scale}", "{number}", {len(rows)}, 0x{total:016x}ULL, 0x{order:016x}ULL}},')
            if args.compare:
                rows = duck.execute(query_text(number, "1")).fetchall()
                bad = differing(rows, f"{args.compare}/sf{scale}/q{number:02}.csv", KINDS[number - 1])
                if bad:
                    print(f"SF {scale} q{number:02}: the answer file differs in {', '.join(bad)}")
    out += ["};", "", "#endif"]
    with open(f"{HERE}/tpch_answers.h", "w") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
