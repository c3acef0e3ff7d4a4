#!/usr/bin/env python3
"""Warpfox and DuckDB on the same rows in one process; results fetched as Arrow, hot.

    bench/compare.py [NAME ...] [--threads 2 1] [--runs 7] [--json FILE] [--record FILE.md]

virginian  the ten filter queries of the Virginian paper over --rows rows, best times
sort, top, group, join
           whole orders, first rows, aggregations, joins of numbers and texts, over --operator-rows rows, best times
arrays     wf_prim_join of --array-rows sparse 64-bit keys a side, and DuckDB's join of the same tables, best times
regex      shapes of regular expressions over --regex-rows rows, best times
tpch, ssb  the queries of TPC-H or of the Star Schema Benchmark at each --sf, median times; DuckDB's tables are filled from
           Warpfox's, through Arrow
load       COPY of lineitem.tbl at the first --sf, and what CALL tpch takes; the file comes from tpchgen-cli
--cpu measures the processor time of all threads instead of the time that passes, for a machine that others use, too.
Without a name: all of them. --match TEXT takes only the sorts, … whose name has it. --record writes what is printed with commit, date, command and hardware, as bench/results has it."""
import argparse
import datetime
import decimal
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import duckdb
import numpy as np
import pyarrow as pa

import compare_regex
import ssb_answers
import tpch_answers
import tpch_tables
import wf

HERE = os.path.dirname(os.path.abspath(__file__))
printed = []
report = []
clock = time.perf_counter


def say(line=""):
    printed.append(line)
    print(line, flush=True)


def times_of(run, runs):
    """The times of `runs` runs after one that does not count, and the last answer."""
    times, out = [], run()
    for _ in range(runs):
        out = None
        start = clock()
        out = run()
        times.append(clock() - start)
    return times, out


def threads_text(threads):
    return f"{threads} thread{'s' if threads > 1 else ''}"


def ratio_line(ratios, what):
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    say(f"geometric mean of {what}: DuckDB takes {mean:.2f} times as long; least {min(ratios):.2f}")


# --- virginian ---------------------------------------------------------------------------------------------------

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


def same(ours, theirs):
    a = ours.sort_by("id") if ours.num_rows else ours
    b = theirs.sort_by("id") if theirs.num_rows else theirs
    return a.num_rows == b.num_rows and all(
        a.column(i).to_numpy().tolist() == b.column(i).to_numpy().tolist() for i in range(a.num_columns))


def virginian(args):
    columns = make(args.rows)
    table = pa.table(dict(zip(NAMES, columns)))
    for threads in args.threads:
        duck = duckdb.connect()
        duck.execute(f"set threads = {threads}")
        duck.register("source", table)
        duck.execute("create table test as select * from source")
        ours = wf.Connection(threads=threads)
        ours.run("create table test (id integer, uniformi integer, uniformf real, normali5 integer, normalf5 real, "
                 "normali20 integer, normalf20 real)")
        for at in range(0, args.rows, 1 << 20):
            ours.append("test", [c[at:at + (1 << 20)] for c in columns])
        say(f"{threads_text(threads)}, {args.rows:,} rows, DuckDB {duckdb.__version__}")
        say(f"{'query':>5} {'rows':>10} {'warpfox ms':>11} {'duckdb ms':>11} {'ratio':>7}  answers")
        ratios = []
        for number, sql in enumerate(QUERIES, 1):
            mine, a = times_of(lambda: ours.arrow(sql), args.runs)
            theirs, b = times_of(lambda: duck.sql(sql).to_arrow_table(), args.runs)
            mine, theirs = min(mine), min(theirs)
            ratios.append(theirs / mine)
            equal = same(a, b)
            say(f"{number:>5} {a.num_rows:>10} {mine * 1e3:>11.2f} {theirs * 1e3:>11.2f} {theirs / mine:>7.2f}  "
                f"{'equal' if equal else 'DIFFERENT'}")
            report.append({"experiment": "virginian", "threads": threads, "query": number, "rows": a.num_rows,
                           "warpfox_ms": mine * 1e3, "duckdb_ms": theirs * 1e3, "equal": equal})
        ratio_line(ratios, "the best times")
        say()
        ours.close()


# --- sort, top, group, join ---------------------------------------------------------------------------------------

SORT = {
    "sort int": "select k, v from s order by k",
    "sort bigint sparse": "select w, v from s order by w",
    "sort double desc": "select f, v from s order by f desc",
    "sort 3 keys": "select a, b, k, v from s order by a, b desc, k",
    "sort 2 sparse": "select w, f, v from s order by a, w, f",
    "sort wide": "select * from s order by w",
    "sort text": "select t, v from x order by t",
    "sort text long prefix": "select u, v from x order by u",
}
TOP = {
    "top 10 int": "select k, v, w from s order by w limit 10",
    "top 10 wide": "select * from s order by w limit 10",
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
    "join sparse all": "select count(*), sum(s.v + e.p) from s join e on s.w = e.sid",
    "join dense 1 M": "select count(*), sum(s.v + d.p) from s join d on s.m = d.id",
    "join sparse 1 M": "select count(*), sum(s.v + d.p) from s join d on s.ms = d.sid",
    "join runs": "select count(*), sum(d.p + r.v) from d join r on d.id = r.m",
    "join select": "select count(*), sum(s.v + d.p) from s join d on s.m = d.id where d.c = 7",
    "join two keys": "select count(*), sum(s.v + d.p) from s join d on s.m = d.id and s.a = d.c",
}
OPERATORS = {"sort": SORT, "top": TOP, "group": GROUP, "join": JOIN}
COLUMN_TYPES = {np.dtype(np.int32): "integer", np.dtype(np.int64): "bigint", np.dtype(np.float64): "double precision"}


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
    """Words of 4 to 14 letters, the same behind a long prefix, 100,000 different ones, and a number."""
    rng = np.random.default_rng(seed)
    letters = rng.integers(97, 123, (rows, 14), dtype=np.uint8)
    lengths = rng.integers(4, 15, rows)
    heads = rng.integers(0, 100000, rows)
    with open(path, "wb") as out:
        for i in range(rows):
            t = letters[i, :lengths[i]].tobytes()
            out.write(b"%s,customer#%s,h%d,%d\n" % (t, t, heads[i], i % 1000))


def operator_tables(ours, duck, rows, folder):
    for name, columns in numbers(rows).items():
        ours.run(f"create table {name} ({', '.join(f'{c} {COLUMN_TYPES[v.dtype]}' for c, v in columns.items())})")
        for at in range(0, len(next(iter(columns.values()))), 1 << 20):
            ours.append(name, [c[at:at + (1 << 20)] for c in columns.values()])
        duck.register("source", pa.table(columns))
        duck.execute(f"create table {name} as select * from source")
        duck.unregister("source")
    path = os.path.join(folder, "texts.csv")
    texts(rows, path)
    for run in (ours.run, duck.execute):
        run("create table x (t varchar, u varchar, h varchar, v integer)")
        run(f"copy x from '{path}' (format csv)")
    os.remove(path)


def cell(x):
    """Engines differ in the types of sums and averages: fractions compare by six digits, whole numbers by all."""
    if isinstance(x, (float, decimal.Decimal)):
        return str(int(x)) if x == int(x) else f"{float(x):.6g}"
    return str(x).rstrip()


def cells(table, ordered):
    rows = [tuple(map(cell, row)) for row in zip(*[c.to_pylist() for c in table.columns])]
    return rows if ordered else sorted(rows)


def same_rows(a, b, sql):
    if a.num_rows != b.num_rows:
        return "DIFFERENT"
    if a.num_rows > 200_000:
        return "same count"
    ordered = "order by" in sql
    return "equal" if cells(a, ordered) == cells(b, ordered) or cells(a, False) == cells(b, False) else "DIFFERENT"


def operator_lines(ours, duck, name, threads, args):
    ratios = []
    for title, sql in OPERATORS[name].items():
        if args.match not in title:
            continue
        mine, a = times_of(lambda: ours.arrow(sql), args.runs)
        theirs, b = times_of(lambda: duck.sql(sql).to_arrow_table(), args.runs)
        mine, theirs, answers = min(mine), min(theirs), same_rows(a, b, sql)
        ratios.append(theirs / mine)
        say(f"{title:24} {a.num_rows:>9} {mine * 1e3:>11.1f} {theirs * 1e3:>10.1f} {theirs / mine:>6.2f}  {answers}")
        report.append({"experiment": name, "threads": threads, "query": title, "rows": a.num_rows, "warpfox_ms": mine * 1e3,
                       "duckdb_ms": theirs * 1e3, "equal": answers != "DIFFERENT"})
    return ratios


def operators(args, names):
    for threads in args.threads:
        folder = tempfile.mkdtemp(prefix="compare_")
        duck = duckdb.connect()
        duck.execute(f"set threads = {threads}")
        ours = wf.Connection(threads=threads, device="cpu")
        try:
            operator_tables(ours, duck, args.operator_rows, folder)
        finally:
            shutil.rmtree(folder)
        say(f"{threads_text(threads)}, {args.operator_rows:,} rows, best of {args.runs}, DuckDB {duckdb.__version__}")
        say(f"{'query':24} {'rows':>9} {'warpfox ms':>11} {'duckdb ms':>10} {'ratio':>6}  answers")
        ratios = [ratio for name in names for ratio in operator_lines(ours, duck, name, threads, args)]
        if ratios:
            ratio_line(ratios, "the best times")
        say()
        duck.close()
        ours.close()


# --- arrays ------------------------------------------------------------------------------------------------------

ALGORITHMS = {"auto": 0, "partitioned": 5, "plain": 6}


def array_sides(rows, seed=9):
    """Keys all over 64 bits, the same on both sides in another order, and row numbers."""
    rng = np.random.default_rng(seed)
    keys = np.unique(rng.integers(0, 2**64, rows + rows // 1000, dtype=np.uint64))[:rows]
    numbers = np.arange(len(keys), dtype=np.uint64)
    return (rng.permutation(keys), numbers), (rng.permutation(keys), numbers)


def arrays(args):
    """wf_prim_join, which writes keys and columns, and DuckDB's join of the same tables, summed."""
    r, s = array_sides(args.array_rows)
    for threads in args.threads:
        duck = duckdb.connect()
        duck.execute(f"set threads = {threads}")
        for name, side in (("r", r), ("s", s)):
            duck.register("source", pa.table({"k": side[0], "v": side[1]}))
            duck.execute(f"create table {name} as select * from source")
            duck.unregister("source")
        theirs, b = times_of(lambda: duck.sql("select count(*), sum(r.v + s.v) from r join s on r.k = s.k").fetchall(), args.runs)
        ours = wf.Connection(threads=threads, device="cpu")
        joiner = wf.Joiner(ours, len(r[0]))
        say(f"{threads_text(threads)}, {len(r[0]):,} with {len(s[0]):,} rows, u64 keys, best of {args.runs}, DuckDB {duckdb.__version__}")
        say(f"{'join of arrays':24} {'rows':>9} {'warpfox ms':>11} {'duckdb ms':>10} {'ratio':>6}  answers")
        for name, number in ALGORITHMS.items():
            mine, rows = times_of(lambda: joiner.join(number, r, s), args.runs)
            total = int(joiner.out[1][:rows].sum() + joiner.out[2][:rows].sum())
            answers = "equal" if (rows, total) == tuple(map(int, b[0])) else "DIFFERENT"
            say(f"{name:24} {rows:>9} {min(mine) * 1e3:>11.1f} {min(theirs) * 1e3:>10.1f} {min(theirs) / min(mine):>6.2f}  {answers}")
            report.append({"experiment": "arrays", "threads": threads, "query": name, "rows": rows, "warpfox_ms": min(mine) * 1e3,
                           "duckdb_ms": min(theirs) * 1e3, "equal": answers == "equal"})
        say()
        joiner.close()
        ours.close()
        duck.close()


# --- regex -------------------------------------------------------------------------------------------------------

def regex(args):
    for threads in args.threads:
        duck = duckdb.connect()
        duck.execute(f"set threads = {threads}")
        ours = wf.Connection(threads=threads, device="cpu")
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            compare_regex.write_rows(file.name, args.regex_rows)
            for run in (ours.run, duck.execute):
                run(f"create table t {compare_regex.COLUMNS}")
                run(f"copy t from '{file.name}' (format csv)")
        say(f"{threads_text(threads)}, {args.regex_rows:,} rows, best of {args.runs}, DuckDB {duckdb.__version__}")
        say(f"{'regular expression':24} {'warpfox ms':>11} {'duckdb ms':>10} {'ratio':>6}  answers")
        ratios = []
        for title, column, kind, pattern in compare_regex.SHAPES:
            if args.match not in title:
                continue
            mine_sql, duck_sql = compare_regex.queries(column, kind, pattern)
            mine, a = times_of(lambda: ours.arrow(mine_sql), args.runs)
            theirs, b = times_of(lambda: duck.sql(duck_sql).to_arrow_table(), args.runs)
            mine, theirs = min(mine), min(theirs)
            equal = (a.column(0)[0].as_py() or 0) == (b.column(0)[0].as_py() or 0)
            ratios.append(theirs / mine)
            say(f"{title:24} {mine * 1e3:>11.1f} {theirs * 1e3:>10.1f} {theirs / mine:>6.2f}  {'equal' if equal else 'DIFFERENT'}")
            report.append({"experiment": "regex", "threads": threads, "query": title, "warpfox_ms": mine * 1e3,
                           "duckdb_ms": theirs * 1e3, "equal": equal})
        if ratios:
            ratio_line(ratios, "the best times")
        say()
        duck.close()
        ours.close()


# --- tpch --------------------------------------------------------------------------------------------------------

def copy_tables(ours, duck, tables):
    for table in tables:
        duck.register("source", ours.arrow_reader(f"select * from {table}"))
        duck.execute(f"create table {table} as select * from source")
        duck.unregister("source")


def rows_of(table):
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns))


def suite_query(ours, duck, name, sql, kinds, runs):
    """One line of the table, as a dict; `error` when Warpfox cannot answer."""
    line = {"query": name}
    theirs, b = times_of(lambda: duck.sql(sql).to_arrow_table(), runs)
    line["duckdb_ms"] = statistics.median(theirs) * 1e3
    try:
        mine, a = times_of(lambda: ours.arrow(sql), runs)
    except RuntimeError as error:
        line["error"] = str(error)
        return line
    line["rows"] = a.num_rows
    line["warpfox_ms"] = statistics.median(mine) * 1e3
    line["ratio"] = line["duckdb_ms"] / line["warpfox_ms"]
    line["equal"] = tpch_answers.checksums(rows_of(a), kinds) == tpch_answers.checksums(rows_of(b), kinds)
    return line


def suite_scale(args, suite, scale, threads):
    """One benchmark at one scale: suite is its procedure, title, tables, and {query: (text, kinds)}."""
    procedure, title, tables, queries = suite
    ours = wf.Connection(threads=threads, **({"memory": args.memory} if args.memory else {}))
    duck = duckdb.connect()
    duck.execute(f"set threads = {threads}")
    ours.run(f"call {procedure}(sf => {scale}, columns => 'queries')")
    copy_tables(ours, duck, tables)
    say(f"{title} at scale factor {scale}, {threads_text(threads)}, medians of {args.runs}, DuckDB {duckdb.__version__}")
    say(f"{'query':>5} {'rows':>8} {'warpfox ms':>11} {'duckdb ms':>11} {'ratio':>7}  answers")
    ratios = []
    for name in args.queries or queries:
        line = suite_query(ours, duck, name, *queries[name], args.runs)
        report.append(dict(line, experiment=procedure, threads=threads, sf=scale))
        if "error" in line:
            say(f"{name:>5} {'':>8} {'':>11} {line['duckdb_ms']:>11.2f} {'':>7}  {line['error'][:90]}")
            continue
        ratios.append(line["ratio"])
        say(f"{name:>5} {line['rows']:>8} {line['warpfox_ms']:>11.2f} {line['duckdb_ms']:>11.2f} {line['ratio']:>7.2f}  "
            f"{'equal' if line['equal'] else 'DIFFERENT'}")
    if ratios:
        ratio_line(ratios, f"{len(ratios)} medians")
    say()
    duck.close()
    ours.close()


def tpch(args):
    for scale in args.sf:
        queries = {str(n): (tpch_answers.query_text(n, scale), tpch_answers.KINDS[n - 1]) for n in range(1, 23)}
        for threads in args.threads:
            suite_scale(args, ("tpch", "TPC-H", tpch_tables.TABLES, queries), scale, threads)


def ssb(args):
    queries = {name: (ssb_answers.query_text(name), kinds) for name, kinds in ssb_answers.KINDS.items()}
    for scale in args.sf:
        for threads in args.threads:
            suite_scale(args, ("ssb", "Star Schema Benchmark", ssb_answers.TABLES, queries), scale, threads)


# --- load --------------------------------------------------------------------------------------------------------

def lineitem_file(scale, folder):
    tool = shutil.which("tpchgen-cli") or os.path.join(os.path.dirname(sys.executable), "tpchgen-cli")
    subprocess.run([tool, "tbl", "-s", scale, "--tables", "lineitem", f"--output-dir={folder}"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return os.path.join(folder, "lineitem.tbl")


def load_once(threads, path):
    """Seconds of one COPY of each, into tables made anew."""
    columns = tpch_tables.TABLES["lineitem"]
    ours = wf.Connection(threads=threads)
    ours.run(f"create table lineitem ({columns.replace('varchar', 'text')})")
    start = time.perf_counter()
    ours.run(f"copy lineitem from '{path}' (format tbl)")
    mine = time.perf_counter() - start
    ours.close()
    duck = duckdb.connect()
    duck.execute(f"set threads = {threads}")
    duck.execute(f"create table lineitem ({columns})")
    start = time.perf_counter()
    duck.execute(tpch_tables.copy_text("lineitem", path))
    theirs = time.perf_counter() - start
    duck.close()
    return mine, theirs


def generate_once(scale, threads, more):
    ours = wf.Connection(threads=threads)
    start = time.perf_counter()
    ours.run(f"call tpch(sf => {scale}{more})")
    seconds = time.perf_counter() - start
    rows = ours.arrow("select count(*) from lineitem").column(0)[0].as_py()
    ours.close()
    return seconds, rows


def load(args):
    scale = args.sf[0]
    folder = tempfile.mkdtemp(prefix="compare_")
    try:
        path = args.lineitem or lineitem_file(scale, folder)
        for threads in args.threads:
            pairs = [load_once(threads, path) for _ in range(max(args.runs // 2, 1))]
            mine, theirs = (statistics.median(column) for column in zip(*pairs))
            say(f"COPY of lineitem.tbl, {os.path.getsize(path) / 1e6:.0f} MB, {threads_text(threads)}: "
                f"warpfox {mine:.2f} s, duckdb {theirs:.2f} s, ratio {theirs / mine:.2f}")
            report.append({"experiment": "copy", "threads": threads, "warpfox_ms": mine * 1e3, "duckdb_ms": theirs * 1e3})
            for name, more in (("all columns", ""), ("columns => 'queries'", ", columns => 'queries'")):
                seconds, rows = generate_once(scale, threads, more)
                say(f"CALL tpch(sf => {scale}), {name}, {threads_text(threads)}: {seconds:.2f} s for all tables, "
                    f"{rows / seconds / 1e6:.2f} million lineitem rows a second")
                report.append({"experiment": "generate", "threads": threads, "columns": name, "ms": seconds * 1e3})
        say()
    finally:
        shutil.rmtree(folder)


# --- the whole ---------------------------------------------------------------------------------------------------

def command_output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def hardware():
    model = ""
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{len(os.sched_getaffinity(0))} cores of {model or 'an unnamed processor'}, {memory:.0f} GB"


def record(path, names):
    commit = command_output("git", "-C", HERE, "describe", "--always", "--dirty")
    with open(path, "w") as out:
        out.write(f"# {', '.join(names)} against DuckDB on the CPU, {datetime.date.today()}\n\n"
                  f"Hardware: {hardware()}. Command: `bench/compare {' '.join(sys.argv[1:])}`, commit {commit}: both databases\n"
                  "in one process on the same rows, in memory, results fetched as Arrow tables.\n\n```\n")
        out.write("\n".join(printed).rstrip() + "\n```\n")


def main():
    global clock
    experiments = {"virginian": virginian, "arrays": arrays, "regex": regex, "tpch": tpch, "ssb": ssb, "load": load} | dict.fromkeys(OPERATORS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="; ".join(experiments))
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--operator-rows", type=int, default=10_000_000)
    parser.add_argument("--array-rows", type=int, default=16_000_000)
    parser.add_argument("--regex-rows", type=int, default=1_000_000)
    parser.add_argument("--match", default="")
    parser.add_argument("--sf", nargs="+", default=["1", "10"])
    parser.add_argument("--queries", nargs="+")
    parser.add_argument("--threads", nargs="+", type=int, default=[2, 1])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--memory", help="Warpfox's budget, as for --memory")
    parser.add_argument("--lineitem", help="lineitem.tbl, when there is one")
    parser.add_argument("--cpu", action="store_true", help="processor time")
    parser.add_argument("--json")
    parser.add_argument("--record")
    args = parser.parse_args()
    names = args.name or list(experiments)
    if args.cpu:
        clock = time.process_time
        say("processor time of all threads")
    for name in names:
        if name not in experiments:
            parser.error(f"no experiment {name}")
    for name in names:
        if experiments[name]:
            experiments[name](args)
    if any(name in OPERATORS for name in names): # they share their tables
        operators(args, [name for name in names if name in OPERATORS])
    if args.json:
        with open(args.json, "w") as out:
            json.dump(report, out, indent=1)
    if args.record:
        record(args.record, names)
    if any(not line.get("equal", True) for line in report):
        sys.exit("answers differ")


main()
