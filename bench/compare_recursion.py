#!/usr/bin/env python3
"""WITH RECURSIVE of Warpfox and of DuckDB on the same rows in one process: closures, and what one node of a grid reaches.

    bench/compare_recursion.py [--threads 2] [--runs 5] [--match TEXT] [--device cpu] [--cpu]

Needs the module duckdb alone. Best times; --cpu measures the processor time of all threads instead of the time that passes."""
import argparse
import math
import random
import sys
import tempfile
import time

import duckdb

import wf

CLOSURE = ("with recursive c(a, b) as (select a, b from e union select c.a, e.b from c join e on c.b = e.a) "
           "select count(*), {} from c")
REACH = ("with recursive r(a) as (select 0::bigint union select e.b from r join e on r.a = e.a) "
         "select count(*), sum(a) from r")
SUMS, ENDS = "sum(a), sum(b)", "min(a), max(b)"


def random_edges(nodes, edges):
    draw = random.Random(nodes)
    return [(draw.randrange(nodes), draw.randrange(nodes)) for _ in range(edges)]


def grid_edges(side):
    return [(i, i + step) for i in range(side * side) for step in (1, side)
            if (i % side + 1 < side if step == 1 else i + side < side * side)]


CASES = {
    "closure 2000/8000, integer": ("integer", lambda: random_edges(2000, 8000), CLOSURE.format(SUMS)),
    "closure 2000/8000, bigint": ("bigint", lambda: random_edges(2000, 8000), CLOSURE.format(SUMS)),
    "closure 2000/8000, text": ("text", lambda: random_edges(2000, 8000), CLOSURE.format(ENDS)),
    "closure G(10000, .001), integer": ("integer", lambda: random_edges(10000, 100000), CLOSURE.format(SUMS)),
    "closure G(10000, .001), bigint": ("bigint", lambda: random_edges(10000, 100000), CLOSURE.format(SUMS)),
    "reach, grid 300 x 300": ("bigint", lambda: grid_edges(300), REACH),
}


def best_of(run, runs, clock):
    times, out = [], run()
    for _ in range(runs):
        start = clock()
        out = run()
        times.append(clock() - start)
    return min(times), out


def measure(title, kind, edges, sql, args):
    clock = time.process_time if args.cpu else time.perf_counter
    duck = duckdb.connect()
    duck.execute(f"set threads = {args.threads}")
    ours = wf.Connection(threads=args.threads, device=args.device)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.writelines(f"{a},{b}\n" for a, b in edges)
        file.flush()
        for run in (ours.run, duck.execute):
            run(f"create table e (a {kind}, b {kind})")
            run(f"copy e from '{file.name}' (format csv)")
    mine, a = best_of(lambda: ours.row(sql), args.runs, clock)
    theirs, b = best_of(lambda: duck.sql(sql).fetchall(), args.runs, clock)
    equal = a == [str(value) for value in b[0]]
    print(f"{title:31} {mine * 1e3:>11.1f} {theirs * 1e3:>10.1f} {theirs / mine:>6.2f}  {'equal' if equal else 'DIFFERENT'}", flush=True)
    duck.close()
    ours.close()
    return theirs / mine, equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--match", default="")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cpu", action="store_true", help="processor time")
    args = parser.parse_args()
    print(f"{args.threads} threads, best of {args.runs}, {'processor time, ' if args.cpu else ''}DuckDB {duckdb.__version__}")
    print(f"{'recursion':31} {'warpfox ms':>11} {'duckdb ms':>10} {'ratio':>6}  answers")
    lines = [measure(title, kind, edges(), sql, args) for title, (kind, edges, sql) in CASES.items() if args.match in title]
    if lines:
        mean = math.exp(sum(math.log(ratio) for ratio, _ in lines) / len(lines))
        print(f"geometric mean: DuckDB takes {mean:.2f} times as long")
    sys.exit(any(not equal for _, equal in lines))


main()
