#!/usr/bin/env python3
"""Triangles and 4-cliques of an RMAT graph (.57 .19 .19 .05), counted by Warpfox, DuckDB and Kuzu, in one run on the same edges.

    bench/compare_graph.py [--levels 18] [--edges 4194304] [--pattern triangles] [--threads 2] [--runs 3] [--cpu] [--skip NAME] [--folder FOLDER]

Needs the module duckdb, which also draws the edges; kuzu where there is one. Edges go from the lower to the higher node, each once, in no order;
2^levels nodes. Wall and processor seconds, best of each; factors by wall time, --cpu: by processor time of all threads. DuckDB and Kuzu run the
query once, Warpfox as often as --runs says, in two ways: "warpfox" sorts edges and renames nodes every time, "again" finds them kept from the
statement before. Kuzu has its lists from loading. --folder keeps the drawn edges there, and takes them from there."""
import argparse
import os
import sys
import tempfile
import time

import duckdb

import wf

try:
    import kuzu
except ImportError:
    kuzu = None

PATTERNS = {
    "triangles": ["xy", "yz", "xz"],
    "4-cliques": ["xy", "xz", "yz", "xw", "yw", "zw"],
}


def sql_of(edges, what="count(*)", table="e"):
    places = {}
    conditions = []
    for i, edge in enumerate(edges):
        for node, column in zip(edge, "ab"):
            here = f"e{i}.{column}"
            if node in places:
                conditions.append(f"{places[node]} = {here}")
            places.setdefault(node, here)
    tables = ", ".join(f"{table} e{i}" for i in range(len(edges)))
    return f"select {what} from {tables} where {' and '.join(conditions)}"


def cypher_of(edges):
    return "match " + ", ".join(f"({a}:node)-[:edge]->({b}:node)" for a, b in edges) + " return count(*)"


def draw(folder, levels, count):
    """Edges and nodes as files, unless they are there."""
    duck = duckdb.connect()
    if os.path.exists(f"{folder}/nodes.csv"):
        return duck.execute(f"select count(*) from '{folder}/edges.csv'").fetchone()[0]
    duck.execute("select setseed(0.5)")
    duck.execute("set threads = 1")
    duck.execute(f"create table r (x bigint, y bigint)")
    duck.execute(f"insert into r select 0, 0 from range({count})")
    for level in range(levels):
        duck.execute(f"""create or replace table r as select x + case when d >= .76 then {1 << level} else 0 end as x,
            y + case when (d >= .57 and d < .76) or d >= .95 then {1 << level} else 0 end as y from (select x, y, random() as d from r)""")
    duck.execute(f"""copy (select a, b from (select distinct least(x, y) as a, greatest(x, y) as b from r where x <> y) order by hash(a * {1 << levels} + b))
        to '{folder}/edges.csv' (header false)""")
    duck.execute(f"copy (select range from range({1 << levels})) to '{folder}/nodes.csv' (header false)")
    rows = duck.execute(f"select count(*) from '{folder}/edges.csv'").fetchone()[0]
    duck.close()
    return rows


def open_ours(folder, args, tries="computed"):
    ours = wf.Connection(threads=args.threads, device="cpu")
    ours.run("create table e (a bigint, b bigint)")
    ours.run(f"copy e from '{folder}/edges.csv' (format csv)")
    ours.run(f"set tries = {tries}")
    return lambda edges: int(ours.row(sql_of(edges))[0])


def open_again(folder, args):
    ask = open_ours(folder, args, "kept")
    ask(PATTERNS[args.pattern])
    return ask


def open_duckdb(folder, args):
    duck = duckdb.connect()
    duck.execute(f"set threads = {args.threads}")
    duck.execute("create table e (a bigint, b bigint)")
    duck.execute(f"copy e from '{folder}/edges.csv' (header false)")
    return lambda edges: duck.execute(sql_of(edges)).fetchone()[0]


def open_kuzu(folder, args):
    database = kuzu.Database(os.path.join(tempfile.mkdtemp(dir=folder), "kuzu"))
    connection = kuzu.Connection(database, num_threads=args.threads)
    connection.execute("create node table node(id int64, primary key (id))")
    connection.execute("create rel table edge(from node to node)")
    connection.execute(f"copy node from '{folder}/nodes.csv' (header=false)")
    connection.execute(f"copy edge from '{folder}/edges.csv' (header=false)")
    connection.set_query_timeout(3600000)
    return lambda edges: connection.execute(cypher_of(edges)).get_next()[0]


SYSTEMS = {"warpfox": open_ours, "again": open_again, "kuzu": open_kuzu if kuzu else None, "duckdb": open_duckdb}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", type=int, default=18)
    parser.add_argument("--edges", type=int, default=1 << 22)
    parser.add_argument("--pattern", default="triangles", choices=PATTERNS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="factors by processor time")
    parser.add_argument("--folder", help="where drawn edges stay")
    parser.add_argument("--skip", action="append", default=[], choices=SYSTEMS)
    args = parser.parse_args()
    answers, ours = {}, None
    with tempfile.TemporaryDirectory(dir=args.folder) as own:
        folder = args.folder or own
        rows = draw(folder, args.levels, args.edges)
        print(f"{args.pattern}, 2^{args.levels} nodes, {rows} edges, {args.threads} threads; seconds: wall, processor")
        for name, opens in SYSTEMS.items():
            if not opens or name in args.skip:
                continue
            ask, walls, cpus = opens(folder, args), [], []
            for _ in range(args.runs if name in ("warpfox", "again") else 1):
                start, start_cpu = time.perf_counter(), time.process_time()
                answers[name] = ask(PATTERNS[args.pattern])
                walls.append(time.perf_counter() - start)
                cpus.append(time.process_time() - start_cpu)
            taken = min(cpus if args.cpu else walls)
            ours = ours or taken
            print(f"{name:8} {min(walls):>10.3f} {min(cpus):>10.3f} {taken / ours:>8.1f}x  {answers[name]}", flush=True)
            del ask
    sys.exit(len(set(answers.values())) > 1)


if __name__ == "__main__":
    main()
