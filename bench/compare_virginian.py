#!/usr/bin/env python3
"""The ten Virginian queries, Warpfox and DuckDB on the same rows in one process; results fetched as Arrow.

    bench/compare_virginian.py [--rows 8000000] [--runs 7] [--json FILE]
"""
import argparse
import json
import math
import time

import duckdb
import numpy as np
import pyarrow as pa

import wf

INTEGER = [
    "select id, uniformi, normali5 from test where uniformi > 60 and normali5 < 0",
    "select id, uniformi, normali5 from test where uniformi > -60 and normali5 < 5",
    "select id, uniformi, normali20 from test where (normali20 + 40) > (uniformi - 10)",
    "select id, normali5, normali20 from test where normali5 * normali20 >= -5 and normali5 * normali20 <= 5",
    "select id, uniformi, normali5, normali20 from test where uniformi >= -1 and uniformi <= 1 or "
    "normali5 >= -1 and normali5 <= 1 or normali20 >= -1 and normali20 <= 1",
]
FLOAT = [
    "select id, uniformf, normalf5 from test where uniformf > 60.0 and normalf5 < 0.0",
    "select id, uniformf, normalf5 from test where uniformf > -60.0 and normalf5 < 5.0",
    "select id, uniformf, normalf20 from test where (normalf20 + 40.0) > (uniformf - 10.0)",
    "select id, normalf5, normalf20 from test where normalf5 * normalf20 >= -5.0 and normalf5 * normalf20 <= 5.0",
    "select id, uniformf, normalf5, normalf20 from test where uniformf >= -1.0 and uniformf <= 1.0 or "
    "normalf5 >= -1.0 and normalf5 <= 1.0 or normalf20 >= -1.0 and normalf20 <= 1.0",
]
QUERIES = [q for pair in zip(INTEGER, FLOAT) for q in pair]
NAMES = ["id", "uniformi", "uniformf", "normali5", "normalf5", "normali20", "normalf20"]


def make(rows, seed=7):
    rng = np.random.default_rng(seed)
    return [np.arange(rows, dtype=np.int32),
            rng.integers(-100, 101, rows, dtype=np.int32),
            rng.uniform(-100, 100, rows).astype(np.float32),
            np.rint(rng.normal(0, 5, rows)).astype(np.int32),
            rng.normal(0, 5, rows).astype(np.float32),
            np.rint(rng.normal(0, 20, rows)).astype(np.int32),
            rng.normal(0, 20, rows).astype(np.float32)]


def best(run, runs):
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        out = run()
        times.append(time.perf_counter() - start)
    return min(times[1:]), out


def same(ours, theirs):
    a = ours.sort_by("id") if ours.num_rows else ours
    b = theirs.sort_by("id") if theirs.num_rows else theirs
    return a.num_rows == b.num_rows and all(
        a.column(i).to_numpy().tolist() == b.column(i).to_numpy().tolist() for i in range(a.num_columns))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json")
    args = parser.parse_args()
    columns = make(args.rows)
    table = pa.table(dict(zip(NAMES, columns)))
    report = []
    for threads in (2, 1):
        duck = duckdb.connect()
        duck.execute(f"set threads = {threads}")
        duck.register("source", table)
        duck.execute("create table test as select * from source")
        ours = wf.Connection(threads=threads)
        ours.run("create table test (id integer, uniformi integer, uniformf real, normali5 integer, normalf5 real, "
                 "normali20 integer, normalf20 real)")
        for at in range(0, args.rows, 1 << 20):
            ours.append("test", [c[at:at + (1 << 20)] for c in columns])
        print(f"\n{threads} thread{'s' if threads > 1 else ''}, {args.rows:,} rows, DuckDB {duckdb.__version__}")
        print(f"{'query':>5} {'rows':>10} {'warpfox ms':>11} {'duckdb ms':>11} {'ratio':>7}  answers")
        ratios = []
        for number, sql in enumerate(QUERIES, 1):
            mine, a = best(lambda: ours.arrow(sql), args.runs)
            theirs, b = best(lambda: duck.sql(sql).to_arrow_table(), args.runs)
            ratios.append(theirs / mine)
            equal = same(a, b)
            print(f"{number:>5} {a.num_rows:>10} {mine * 1e3:>11.2f} {theirs * 1e3:>11.2f} {theirs / mine:>7.2f}  "
                  f"{'equal' if equal else 'DIFFERENT'}")
            report.append({"threads": threads, "query": number, "rows": a.num_rows, "warpfox_ms": mine * 1e3,
                           "duckdb_ms": theirs * 1e3, "equal": equal})
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean: DuckDB takes {mean:.2f} times as long; least {min(ratios):.2f}")
        ours.close()
    if args.json:
        json.dump(report, open(args.json, "w"), indent=1)


main()
