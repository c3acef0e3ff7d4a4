#!/usr/bin/env python3
"""Sorts, joins, aggregations and TPC-H queries: Warpfox and DuckDB on the same rows in one process, fetched as Arrow.

    bench/compare_cpu.py [--runs 5] [--threads 2] [--only sort,top,group,join,tpch] [--tpch DIR] [--queries DIR]
                         [--rows 10000000] [--json FILE] [--no-duckdb]

--tpch names a folder of .tbl files, --queries one of q01.sql to q22.sql; queries that Warpfox refuses are listed as such.
"""
import argparse
import decimal
import json
import math
import os
import time

import duckdb
import numpy as np
import pyarrow as pa

import wf

TPCH = {
    "nation": "n_nationkey integer, n_name varchar, n_regionkey integer, n_comment varchar",
    "region": "r_regionkey integer, r_name varchar, r_comment varchar",
    "part": "p_partkey integer, p_name varchar, p_mfgr varchar, p_brand varchar, p_type varchar, p_size integer, "
            "p_container varchar, p_retailprice decimal(15,2), p_comment varchar",
    "supplier": "s_suppkey integer, s_name varchar, s_address varchar, s_nationkey integer, s_phone varchar, "
                "s_acctbal decimal(15,2), s_comment varchar",
    "partsupp": "ps_partkey integer, ps_suppkey integer, ps_availqty integer, ps_supplycost decimal(15,2), ps_comment varchar",
    "customer": "c_custkey integer, c_name varchar, c_address varchar, c_nationkey integer, c_phone varchar, "
                "c_acctbal decimal(15,2), c_mktsegment varchar, c_comment varchar",
    "orders": "o_orderkey integer, o_custkey integer, o_orderstatus varchar, o_totalprice decimal(15,2), o_orderdate date, "
              "o_orderpriority varchar, o_clerk varchar, o_shippriority integer, o_comment varchar",
    "lineitem": "l_orderkey integer, l_partkey integer, l_suppkey integer, l_linenumber integer, l_quantity decimal(15,2), "
                "l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), l_returnflag varchar, "
                "l_linestatus varchar, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct varchar, "
                "l_shipmode varchar, l_comment varchar",
}
SORT = {
    "sort int": "select k, v from s order by k",
    "sort bigint sparse": "select w, v from s order by w",
    "sort double desc": "select f, v from s order by f desc",
    "sort 3 keys": "select a, b, k, v from s order by a, b desc, k",
    "sort 2 sparse": "select w, f, v from s order by a, w, f",
    "sort text": "select t, v from x order by t",
    "sort text long prefix": "select u, v from x order by u",
}
TOP = {
    "top 10 int": "select k, v, w from s order by w limit 10",
    "top 100 text": "select t, v from x order by t limit 100",
    "top 10000 3 keys": "select a, b, k, v from s order by a, b desc, k limit 10000",
    "top 10 desc double": "select f, k from s order by f desc limit 10",
}
GROUP = {
    "group 10": "select a, count(*), sum(v) from s group by a",
    "group 50 k": "select g, count(*), sum(v) from s group by g",
    "group 1 M dense": "select m, count(*), sum(v), min(k) from s group by m",
    "group 1 M sparse": "select ms, count(*), sum(v), min(k) from s group by ms",
    "group 10 M distinct": "select w, count(*), sum(v) from s group by w",
    "group sorted key": "select o, count(*), sum(v) from s group by o",
    "group 2 keys": "select a, g, count(*), sum(v) from s group by a, g",
    "group text 100 k": "select h, count(*), sum(v) from x group by h",
    "count distinct": "select count(distinct m) from s",
    "count distinct by": "select a, count(distinct m) from s group by a",
}
JOIN = {
    "join dense 1 M": "select count(*), sum(s.v + d.p) from s join d on s.m = d.id",
    "join sparse 1 M": "select count(*), sum(s.v + d.p) from s join d on s.ms = d.sid",
    "join sparse 10 M": "select count(*), sum(s.v + e.p) from s join e on s.w = e.sid",
    "join runs": "select count(*), sum(d.p + r.v) from d join r on d.id = r.m",
    "join select": "select count(*), sum(s.v + d.p) from s join d on s.m = d.id where d.c = 7",
    "join two keys": "select count(*), sum(s.v + d.p) from s join d on s.m = d.id and s.a = d.c",
}
LIKES = {
    "group 1.5 M (Q18)": "select l_orderkey, sum(l_quantity) from lineitem group by l_orderkey having sum(l_quantity) > 300",
    "like in text": "select count(*) from part where p_name like '%green%'",
    "like in comments": "select count(*) from orders where o_comment not like '%special%requests%'",
    "group by part": "select l_partkey, l_suppkey, sum(l_quantity), count(*) from lineitem group by l_partkey, l_suppkey",
    "wide filter": "select l_comment, l_orderkey from lineitem where l_shipdate < date '1992-03-01'",
}


def numbers(rows, seed=7):
    rng = np.random.default_rng(seed)
    sparse = rng.integers(-2**62, 2**62, rows, dtype=np.int64)
    pool = rng.integers(-2**62, 2**62, rows // 10, dtype=np.int64)
    m = rng.integers(0, rows // 10, rows, dtype=np.int32)
    s = {"k": rng.permutation(rows).astype(np.int32), "v": rng.integers(0, 1000, rows, dtype=np.int32), "w": sparse,
         "f": rng.normal(0, 1e6, rows), "a": rng.integers(0, 10, rows, dtype=np.int32), "b": rng.integers(0, 300, rows, dtype=np.int32),
         "g": rng.integers(0, 50000, rows, dtype=np.int32), "m": m, "ms": pool[m], "o": np.sort(rng.integers(0, rows // 4, rows, dtype=np.int32))}
    d = {"id": rng.permutation(rows // 10).astype(np.int32), "p": rng.integers(0, 1000, rows // 10, dtype=np.int32),
         "c": rng.integers(0, 20, rows // 10, dtype=np.int32), "sid": pool}
    e = {"sid": rng.permutation(sparse), "p": rng.integers(0, 1000, rows, dtype=np.int32)}
    r = {"m": m[:rows // 2], "v": s["v"][:rows // 2]}
    return {"s": s, "d": d, "e": e, "r": r}


def texts(rows, path, seed=8):
    if os.path.exists(path):
        return
    rng = np.random.default_rng(seed)
    letters = rng.integers(97, 123, (rows, 14), dtype=np.uint8)
    lengths = rng.integers(4, 15, rows)
    heads = rng.integers(0, 100000, rows)
    with open(path, "wb") as out:
        for i in range(rows):
            t = letters[i, :lengths[i]].tobytes()
            out.write(b"%s,customer#%s,h%d,%d\n" % (t, t, heads[i], i % 1000))


KINDS = {np.dtype(np.int32): "integer", np.dtype(np.int64): "bigint", np.dtype(np.float64): "double precision"}


def load(ours, duck, args, sections):
    if {"sort", "top", "group", "join"} & sections:
        for name, cols in numbers(args.rows).items():
            ours.run(f"create table {name} ({', '.join(f'{c} {KINDS[v.dtype]}' for c, v in cols.items())})")
            count = len(next(iter(cols.values())))
            for at in range(0, count, 1 << 20):
                ours.append(name, [c[at:at + (1 << 20)] for c in cols.values()])
            if duck:
                duck.register("source", pa.table(cols))
                duck.execute(f"create table {name} as select * from source")
        path = f"/tmp/warpfox-texts-{args.rows}.csv"
        texts(args.rows, path)
        for db in filter(None, (ours.run, duck and duck.execute)):
            db("create table x (t varchar, u varchar, h varchar, v integer)")
            db(f"copy x from '{path}' (format csv)")
    if "tpch" in sections:
        for name, cols in TPCH.items():
            ours.run(f"create table {name} ({cols})")
            ours.run(f"copy {name} from '{args.tpch}/{name}.tbl'")
            if duck:
                duck.execute(f"create table {name} ({cols})")
                duck.execute(f"copy {name} from '{args.tpch}/{name}.tbl' (format csv, delimiter '|', header false)")


def queries(args, sections):
    for section, items in (("sort", SORT), ("top", TOP), ("group", GROUP), ("join", JOIN), ("tpch", LIKES)):
        if section in sections:
            yield from items.items()
    if "tpch" in sections and args.queries:
        for name in sorted(os.listdir(args.queries)):
            yield name[:-4], open(os.path.join(args.queries, name)).read().strip().rstrip(";")


def best(run, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        out = run()
        times.append(time.perf_counter() - start)
        if sum(times) > 12:
            break
    return min(times), out


def cell(x):
    """Engines differ in the types of sums and averages: fractions compare by six digits, whole numbers by all."""
    if isinstance(x, (float, decimal.Decimal)):
        return str(int(x)) if x == int(x) else f"{float(x):.6g}"
    return str(x).rstrip()


def cells(table, ordered):
    rows = [tuple(map(cell, row)) for row in zip(*[c.to_pylist() for c in table.columns])]
    return rows if ordered else sorted(rows)


def same(a, b, sql):
    if a.num_rows != b.num_rows:
        return "DIFFERENT"
    if a.num_rows > 200_000:
        return "same count"
    ordered = "order by" in sql
    return "equal" if cells(a, ordered) == cells(b, ordered) or cells(a, False) == cells(b, False) else "DIFFERENT"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="sort,top,group,join,tpch")
    parser.add_argument("--match", default="")
    parser.add_argument("--tpch", default="/tmp/tpch/sf1")
    parser.add_argument("--queries", default="")
    parser.add_argument("--no-duckdb", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()
    sections = set(args.only.split(","))
    duck = None if args.no_duckdb else duckdb.connect()
    if duck:
        duck.execute(f"set threads = {args.threads}")
    ours = wf.Connection(threads=args.threads, device="cpu")
    ours.run("set statement_timeout = 60000")
    load(ours, duck, args, sections)
    print(f"{args.threads} threads, DuckDB {duckdb.__version__}, best of {args.runs}")
    print(f"{'query':24} {'rows':>9} {'warpfox ms':>11} {'duckdb ms':>10} {'ratio':>6}  answers", flush=True)
    ratios, report = [], []
    for name, sql in queries(args, sections):
        if args.match and args.match not in name:
            continue
        try:
            mine, a = best(lambda: ours.arrow(sql), args.runs)
        except RuntimeError as error:
            print(f"{name:24} refused: {str(error)[:90]}", flush=True)
            continue
        line = {"query": name, "rows": a.num_rows, "warpfox_ms": mine * 1e3}
        if duck:
            theirs, b = best(lambda: duck.sql(sql).to_arrow_table(), args.runs)
            line |= {"duckdb_ms": theirs * 1e3, "answers": same(a, b, sql)}
            ratios.append(theirs / mine)
        report.append(line)
        print(f"{name:24} {a.num_rows:>9} {mine * 1e3:>11.1f} {line.get('duckdb_ms', 0):>10.1f} "
              f"{line.get('duckdb_ms', 0) / mine / 1e3:>6.2f}  {line.get('answers', '')}", flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean: DuckDB takes {mean:.2f} times as long; least {min(ratios):.2f}")
    if args.json:
        json.dump(report, open(args.json, "w"), indent=1)
    ours.close()


main()
