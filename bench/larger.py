#!/usr/bin/env python3
"""Statements over data of several times the memory: each runs with all memory and with little, on its own copy of one
database file; answers are compared, with DuckDB's, too, where it is there and takes the text.

Usage: bench/larger.py [--fox PATH] [--rows N] [--memory SIZE] [--threads N] [--only PATTERN] [--limit SECONDS] [--duckdb] [CASES]
CASES is a file of cases (bench/larger.cases). A line `-- name` begins one; statements end with `;` at a line's end; `-- logiql` beside the
name, as in `-- name -- logiql`, says in which language. What the statements print is the answer.

A line for each: verdict, seconds of the processor (user + system), seconds, peak of the process in MB and in limits, name. The
program itself is some 13 MB of a peak.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def tables(rows):
    """The two tables: unique keys in no order, unique texts of about 20 bytes, numbers in order."""
    prime = rows + 17
    while any(prime % d == 0 for d in range(2, int(prime**0.5) + 1)):
        prime += 1
    text = "select (i * {} % {})::bigint as k, i as v, 'text number ' || (i * {} % {}) as s from generate_series(1::bigint, {}) t(i)"
    return {
        "a": text.format(7919, prime, 31, rows - 1, rows),
        "b": text.format(104729, prime, 37, rows + rows // 10 + 1, rows),
    }


def cases(path):
    name, language, lines = None, "sql", []
    with open(path, encoding="utf-8") as file:
        for line in list(file) + ["-- end\n"]:
            if line.startswith("-- "):
                if name and lines:
                    yield name, language, re.split(r";\s*\n", "".join(lines).strip() + "\n")[:-1]
                parts = [part.strip() for part in line[3:].split(" -- ")]
                name, language, lines = parts[0], parts[1] if len(parts) > 1 else "sql", []
            else:
                lines.append(line)


def run(command, limit):
    """What it printed, what it complained about, how it ended, seconds of the processor, seconds, peak in KB. A child of a large
    process begins with that one's peak, hence a small one between."""
    with tempfile.NamedTemporaryFile() as times:
        began = time.monotonic()
        small = ["/usr/bin/time", "-q", "-o", times.name, "-f", "%U %S %M", "prlimit", f"--cpu={limit:.0f}"]
        done = subprocess.run(small + command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        took = time.monotonic() - began
        user, system, peak = times.read().split()[-3:]
        return done.stdout, done.stderr, done.returncode, float(user) + float(system), took, int(peak)


def in_bytes(size):
    number, unit = re.fullmatch(r"(\d+)([KMG]?B?)", size).groups()
    return int(number) << {"": 0, "B": 0, "K": 10, "M": 20, "G": 30}[unit.rstrip("B")]


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--fox", default=os.path.join(HERE, "../build/warpfox"))
    ask.add_argument("--rows", type=int, default=3000000)
    ask.add_argument("--memory", default="24MB")
    ask.add_argument("--threads", default="2")
    ask.add_argument("--only", default="")
    ask.add_argument("--limit", type=float, default=60, help="seconds of the processor for each run")
    ask.add_argument("--tablet", default="", help="rows of a tablet")
    ask.add_argument("--duckdb", action="store_true")
    ask.add_argument("--folder", default=None)
    ask.add_argument("cases", nargs="?", default=os.path.join(HERE, "larger.cases"))
    args = ask.parse_args()
    folder = args.folder or tempfile.mkdtemp(prefix="warpfox_larger_")
    os.makedirs(folder, exist_ok=True)
    whole = os.path.join(folder, f"{args.rows}.wf")
    made = tables(args.rows)
    if not os.path.exists(whole):
        for name, query in made.items():
            subprocess.run([args.fox, whole] + (["-c", f"set tablet_rows = {args.tablet}"] if args.tablet else []) + ["-c", f"create table {name} as {query}"], check=True, stdout=subprocess.DEVNULL)
    duck = None
    if args.duckdb:
        import duckdb

        duck = duckdb.connect()
        for name, query in made.items():
            duck.execute(f"create table {name} as {query}")
    bound = in_bytes(args.memory)
    bad = 0
    print("verdict     cpu s       s    MB  limits  case")
    for name, language, statements in cases(args.cases):
        if not re.search(args.only, name):
            continue
        statements = [text.replace("$ROWS", str(args.rows)).replace("$FOLDER", folder) for text in statements]
        seen = []
        for memory in (None, args.memory):
            copy = os.path.join(folder, "case.wf")
            shutil.copyfile(whole, copy)
            command = [args.fox, copy, "-X", "-d", "cpu", "--format", "csv", "-l", language, "--threads", args.threads]
            if memory:
                command += ["--memory", memory]
            for text in statements:
                command += ["-c", text]
            seen.append(run(command, args.limit))
            for left in os.listdir(folder):
                if left.startswith("case."):
                    os.remove(os.path.join(folder, left))
        want, got = seen
        out, err, code, processor, took, peak = got
        state = re.search(r"\b(?=[0-9A-Z]{0,4}\d)[0-9A-Z]{5}\b", err)
        if code in (-9, -24, 137, 152):
            verdict = "late"
        elif code != want[2] or out != want[0]:
            verdict = state.group(0) if code and state else "DIFFERS"
        elif code:
            verdict = "both fail"
        elif peak * 1024 > bound * 1.1:
            verdict = "beyond"
        else:
            verdict = "ok"
        if duck and not want[2] and language == "sql":
            verdict += " " + ask_duck(duck, statements, want[0])
        bad += verdict.split()[0] not in ("ok", "beyond")
        print(f"{verdict:10} {processor:6.1f} {took:7.1f} {peak / 1024:5.0f} {peak * 1024 / bound:7.2f}  {name} "
              f"(all memory: {want[3]:.1f} s, {want[5] / 1024:.0f} MB)", flush=True)
        if verdict.split()[0] not in ("ok", "beyond"):
            print("    " + (err.strip() or out.strip())[:300].replace("\n", "\n    "), "| not |", (want[1].strip() or want[0].strip())[:200], flush=True)
    if not args.folder:
        shutil.rmtree(folder)
    return 1 if bad else 0


def ask_duck(duck, statements, want):
    """Whether DuckDB gives the same last line; `-` where it does not take the text."""
    try:
        last = None
        duck.execute("begin transaction")
        for text in statements:
            last = duck.execute(text).fetchall()
        duck.execute("rollback")
    except Exception:
        duck.execute("rollback")
        return "-"
    line = ",".join("" if x is None else str(x) for x in last[-1]) if last else ""
    return "=" if line == want.strip().split("\n")[-1].replace('"', "") else f"duck: {line[:60]}"


if __name__ == "__main__":
    sys.exit(main())
