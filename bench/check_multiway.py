#!/usr/bin/env python3
"""Multiway joins drawn at random, and large ones, answered by Warpfox and DuckDB: every answer has to be the same.

    bench/check_multiway.py [--seed 1] [--queries 200] [--device cpu] [--threads 2] [--gpu-memory 300kB] [--gpu-code woven]

Relations of two to four columns with repeated rows, loops, NULLs and other types, one without rows, some with low numbers more often; three to twenty atoms; decimals meet integers. Half of the queries have something around the pattern: groups, DISTINCT,
outer joins, EXISTS, conditions on NULLs, unions. Each is asked with `multiway` on and auto, again, when sorted rows are kept, with vectors of three rows, with rows that are never kept, and with little memory; those that take DuckDB over 5 s are left
out. Then cliques and cycles of up to 16 nodes."""
import argparse
import os
import random
import sys
import threading

import duckdb

import compare_graph
import wf

TABLES = {  # columns, rows, values, share of NULLs
    "e": (["int", "int"], 60, 9, 0),
    "d": (["bigint", "bigint"], 80, 8, .1),
    "m": (["int", "bigint"], 70, 9, .05),
    "s": (["text", "text"], 60, 8, .05),
    "z": (["int", "int"], 0, 8, 0),
    "t3": (["int", "bigint", "int"], 80, 7, .05),
    "t4": (["bigint", "int", "smallint", "int"], 90, 6, .02),
    "c": (["decimal(8,2)", "int"], 60, 8, .05),
}
WAYS = ["set multiway = on", "set multiway = auto", "set multiway = on", "set vector_rows = 3", "set tries = computed",
        "set statement_memory = '{}MB'", "set statement_memory = '{}kB'"]


def literal(kind, value):
    return "null" if value is None else f"'n{value}'" if kind == "text" else str(value)


class Pair:
    def __init__(self, args):
        self.duck = duckdb.connect()
        self.ours = wf.Connection(threads=args.threads, device=args.device, gpu_memory=args.gpu_memory)
        self.duck.execute("set enable_progress_bar = false")
        self.ours.run("set statement_timeout = '60s'")
        if args.device != "cpu":
            self.ours.run("set host_rows = 0") # few rows are the card's, too
            self.ours.run(f"set gpu_code = {args.gpu_code}")
        self.asked = self.wrong = self.refused = self.slow = 0
        self.simulated = args.device != "cpu" and "simt" in os.environ.get("WARPFOX_CUDA", "")
        few = max(args.threads, 2) # workers hold vectors of every column of twenty atoms
        if args.device != "cpu":
            few *= 2 # texts of kernels, and what crosses the bus
        self.ways = [way.format(few if "MB" in way else 512 * few) for way in WAYS]

    def run(self, sql):
        self.duck.execute(sql)
        self.ours.run(sql)

    def make(self, rng, name):
        kinds, rows, values, nulls = TABLES[name]
        skew = rng.choice([1, 1, 2]) # low numbers more often
        self.run(f"create table {name} (" + ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds)) + ")")
        drawn = [[None if rng.random() < nulls else int(values * rng.random() ** skew) for _ in kinds] for _ in range(rows)]
        if rows:
            texts = ["(" + ", ".join(map(literal, kinds, row)) + ")" for row in drawn]
            self.run(f"insert into {name} values " + ", ".join(texts))

    def ask_duck(self, sql):
        """None: it takes too long."""
        timer = threading.Timer(5, self.duck.interrupt)
        timer.start()
        try:
            return [None if v is None else str(int(v)) for v in self.duck.execute(sql).fetchone()]
        except duckdb.InterruptException:
            return None
        finally:
            timer.cancel()

    def ask(self, sql, right=None):
        right = right or self.ask_duck(sql)
        if not right:
            return
        self.asked += 1
        for way in self.ways:
            self.ours.run(way)
            try:
                got = [None if v in (None, "") else str(v) for v in self.ours.row(sql)]
            except Exception as error: # any other failure is a wrong answer
                got = str(error)
                if "cannot run on the GPU" in got:
                    self.refused += 1
                    continue
                if self.simulated and got.startswith("57014"): # rows that a card, but not its simulation, has time for
                    self.slow += 1
                    continue
            if got != right:
                self.wrong += 1
                print(f"{way}: {got}, not {right}: {sql}", flush=True)
                break
        for usual in ("statement_memory = 0", "vector_rows = 1024", "tries = kept"):
            self.ours.run(f"set {usual}")


def around(rng, atoms, where, places, names):
    """A query over the pattern whose answer is one row of integers."""
    nodes = list(places.values())
    x, y = rng.choice(nodes), rng.choice(nodes)
    rows = f"select {x} as x, {y} as y from {', '.join(atoms)} where {where}"
    other = names[0]
    return rng.choice([
        f"select count(*), sum(n), max(n) from (select x, count(*) as n from ({rows}) p group by x) g",
        f"select count(*), sum(n) from (select x, y, count(*) as n from ({rows}) p group by x, y having count(*) > 2) g",
        f"select count(*), count(distinct x), count(y) from (select distinct x, y from ({rows}) p) d",
        f"select count(*), count(o.c0), count(o.c1) from ({rows}) p left join {other} o on o.c0 = p.x and o.c1 = p.y",
        f"select count(*), count(p.x) from {other} o left join ({rows}) p on o.c0 = p.x and o.c1 = p.y",
        f"select count(*), count(p.x), count(o.c0) from (select distinct x, y from ({rows}) p) p full join {other} o on o.c0 = p.x",
        f"select count(*) from {other} o where exists (select 1 from {', '.join(atoms)} where {where} and {x} = o.c0)",
        f"select count(*) from {other} o where not exists (select 1 from {', '.join(atoms)} where {where} and {x} = o.c0 and {y} <> o.c1)",
        f"select count(*) from {other} o where o.c1 not in (select x from ({rows}) p) or o.c1 is null",
        f"select count(*) from (({rows}) union select c0, c1 from {other}) u where x is null or y is not null",
        f"select count(*), count(x) from (({rows}) except select c0, c1 from {other}) u",
        f"select count(*) from (select x, y from ({rows}) p order by 1, 2 limit 7 offset 3) t",
        f"select count(*), sum(r) from (select row_number() over (partition by x) as r from ({rows}) p) t",
        f"select count(*) from {', '.join(atoms)} where {where} and ({x} = {y} or {x} in (select c0 from {other}))",
    ])


def draw(rng):
    text = rng.random() < .15
    names = ["s"] if text else ["e", "e", "e", "d", "m", "t3", "t4"] + ["c"] * (rng.random() < .2) + ["z"] * (rng.random() < .1)
    nodes, places, conditions, atoms = rng.choice([3, 3, 4, 4, 5]), {}, [], []
    for i in range(rng.choice([3, 3, 4, 5, 6, 8, 12, 20])):
        name = rng.choice(names)
        atoms.append(f"{name} a{i}")
        for k in range(len(TABLES[name][0])):
            node, here = rng.randrange(nodes), f"a{i}.c{k}"
            if node in places:
                conditions.append(f"{places[node]} = {here}")
            places.setdefault(node, here)
    if len(conditions) < len(atoms) - 1 + nodes // 2: # too many rows
        return None
    for here in places.values():
        if not text and rng.random() < .2:
            conditions.append(f"{here} {rng.choice(['<', '>', '<>', '<='])} {rng.choice(list(places.values()))}")
    if rng.random() < .5:
        return around(rng, atoms, " and ".join(conditions), places, names)
    sums = "" if text or "c" in names or rng.random() < .5 else ", " + ", ".join(f"sum({here})" for here in places.values())
    return f"select count(*){sums} from {', '.join(atoms)} where {' and '.join(conditions)}"


def pattern(edges, what="count(*)"):
    return compare_graph.sql_of(edges, what, "k")


def choose(n, k):
    return 1 if k == 0 else choose(n - 1, k - 1) * n // k


def large(pair):
    """All with each other: n over k cliques; a ring: one cycle, from every node, where all go round."""
    pair.run("create table k (a int, b int)")
    pair.run("insert into k select x, y from generate_series(0, 17) v(x), generate_series(0, 17) w(y) where x < y")
    for size in (5, 8, 12, 16):
        edges = [(i, j) for i in range(size) for j in range(i + 1, size)]
        pair.ask(pattern(edges), [str(choose(18, size))])
        if size <= 8:
            pair.ask(pattern(edges, "count(distinct e0.a)"), [str(18 - size + 1)])
    pair.run("delete from k")
    pair.run("insert into k select x, (x + 1) % 16 from generate_series(0, 15) v(x)")
    for size in (16, 20):
        pair.ask(pattern([(i, (i + 1) % size) for i in range(size)]), [str(16 if size % 16 == 0 else 0)])
    pair.run("insert into k select b, a from k")
    pair.ask(pattern([(i, (i + 1) % 12) for i in range(12)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--gpu-memory", default="0", help="of the card")
    parser.add_argument("--gpu-code", default="woven", help="kernels: MEET is in woven ones only")
    args = parser.parse_args()
    rng, pair = random.Random(args.seed), Pair(args)
    for name in TABLES:
        pair.make(rng, name)
    for _ in range(args.queries):
        sql = draw(rng)
        if sql:
            pair.ask(sql)
    large(pair)
    print(f"{pair.asked} asked, {pair.wrong} wrong" + (f", {pair.refused} times refused by the card" if pair.refused else "")
          + (f", {pair.slow} times too slow" if pair.slow else ""))
    sys.exit(pair.wrong > 0)


main()
