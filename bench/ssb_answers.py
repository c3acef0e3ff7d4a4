#!/usr/bin/env python3
"""Makes bench/ssb_answers.h: what the 13 answers are, as checksums, computed by DuckDB on the rows of CALL ssb.

    bench/ssb_answers.py SF ...

The rows go from build/warpfox to DuckDB as CSV; the checksums are those of tpch_answers.py."""
import os
import subprocess
import sys
import tempfile

import duckdb

import tpch_answers

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = ["lineorder", "part", "customer", "supplier", "date"]
# Per column: e exact; capital: a column of ORDER BY.
KINDS = {"1.1": "e", "1.2": "e", "1.3": "e", "2.1": "eEE", "2.2": "eEE", "2.3": "eEE", "3.1": "eeEE", "3.2": "eeEE",
         "3.3": "eeEE", "3.4": "eeEE", "4.1": "EEe", "4.2": "EEEe", "4.3": "EEEe"}


def query_text(name):
    return open(f"{HERE}/ssb/q{name}.sql").read()


def make_tables(duck, scale, folder):
    copies = "".join(f"copy {table} to '{folder}/{table}.csv' (format csv, header);" for table in TABLES)
    subprocess.run([f"{HERE}/../build/warpfox", "-c", f"call ssb(sf => {scale}, columns => 'queries'); {copies}"], check=True)
    for table in TABLES:
        duck.execute(f"create table {table} as from read_csv('{folder}/{table}.csv', header=true)")


def main():
    out = ["/* ssb_answers.h: checksums of the 13 answers; made by ssb_answers.py from the rows of CALL ssb. */",
           "#ifndef BENCH_SSB_ANSWERS_H",
           "#define BENCH_SSB_ANSWERS_H",
           "",
           '#include "bench_suite.h"',
           "",
           "static const struct known_answer ssb_answers[] = {"]
    for scale in sys.argv[1:]:
        duck = duckdb.connect()
        with tempfile.TemporaryDirectory() as folder:
            make_tables(duck, scale, folder)
        for name, kinds in KINDS.items():
            rows = duck.execute(query_text(name)).fetchall()
            total, order = tpch_answers.checksums(rows, kinds)
            out.append(f'    {{"{scale}", "{name}", {len(rows)}, 0x{total:016x}ULL, 0x{order:016x}ULL}},')
        duck.close()
    out += ["};", "", "#endif"]
    with open(f"{HERE}/ssb_answers.h", "w") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
