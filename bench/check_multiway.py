#!/usr/bin/env python3
"""Multiway joins drawn at random, and large ones, answered by Warpfox and DuckDB: every answer has to be the same.

    bench/check_multiway.py [--seed 1] [--queries 200] [--device cpu]

Relations of two to four columns with repeated rows, loops, NULLs and other types, one without rows; three to twenty atoms. Each query is asked with
`multiway` on and auto, and again, when sorted rows are kept, and with little memory; those that take DuckDB over 5 s are left out. Then cliques and cycles of up to 16 nodes."""
import argparse
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
}
WAYS = ["set multiway = on", "set multiway = auto", "set multiway = on", "set statement_memory = '2MB'"]


def literal(kind, value):
    return "null" if value is None else f"'n{value}'" if kind == "text" else str(value)


class Pair:
    def __init__(self, device):
        self.duck = duckdb.connect()
        self.ours = wf.Connection(threads=2, device=device)
        self.duck.execute("set enable_progress_bar = false")
        self.ours.run("set statement_timeout = '60s'")
        self.asked = self.wrong = 0

    def run(self, sql):
        self.duck.execute(sql)
        self.ours.run(sql)

    def make(self, rng, name):
        kinds, rows, values, nulls = TABLES[name]
        self.run(f"create table {name} (" + ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds)) + ")")
        drawn = [[None if rng.random() < nulls else rng.randrange(values) for _ in kinds] for _ in range(rows)]
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
        for way in WAYS:
            self.ours.run(way)
            try:
                got = [None if v in (None, "") else str(v) for v in self.ours.row(sql)]
            except Exception as error: # any failure is a wrong answer
                got = str(error)
            if got != right:
                self.wrong += 1
                print(f"{way}: {got}, not {right}: {sql}", flush=True)
                break
        self.ours.run("set statement_memory = 0")


def draw(rng):
    text = rng.random() < .15
    names = ["s"] if text else ["e", "e", "e", "d", "m", "t3", "t4"] + ["z"] * (rng.random() < .1)
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
    sums = "" if text or rng.random() < .5 else ", " + ", ".join(f"sum({here})" for here in places.values())
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
    args = parser.parse_args()
    rng, pair = random.Random(args.seed), Pair(args.device)
    for name in TABLES:
        pair.make(rng, name)
    for _ in range(args.queries):
        sql = draw(rng)
        if sql:
            pair.ask(sql)
    large(pair)
    print(f"{pair.asked} asked, {pair.wrong} wrong")
    sys.exit(pair.wrong > 0)


main()
