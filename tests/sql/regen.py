#!/usr/bin/env python3
"""Rewrites the expected rows and SQLSTATEs of scripts by asking PostgreSQL 15, which decides meaning.

    tests/sql/regen.py DSN SCRIPT...        (needs psycopg; a database that may be scribbled on)

Each script runs in a schema of its own. A record preceded by a comment line `# ours` keeps what it says: there the
project defines the answer (static decimal types, settings, our own statements).
"""
import sys
import psycopg


def render(value, letter, type_code):
    if value is None:
        return "NULL"
    if letter == "R":
        return "%.3f" % float(value)
    text = value
    if type_code == 16:
        text = {"t": "true", "f": "false"}[value]
    return text if text != "" else "(empty)"


def run_query(conn, sql, types, mode):
    with conn.cursor() as cur:
        cur.execute(sql)
        codes = [d.type_code for d in cur.description]
        assert len(codes) == len(types), f"{len(codes)} columns, types {types}: {sql}"
        rows = [[render(v, t, c) for v, t, c in zip(row, types, codes)] for row in cur.fetchall()]
    if mode == "rowsort":
        rows.sort(key=lambda r: [v.encode() for v in r])
    return ["\t".join(row) for row in rows]


def regen(conn, path):
    lines = open(path, encoding="utf-8").read().split("\n")
    out, i, ours = [], 0, False
    conn.execute("drop schema if exists script cascade")
    conn.execute("create schema script")
    conn.execute("set search_path = script")
    conn.execute("set extra_float_digits = 1")
    while i < len(lines):
        line = lines[i]
        word = line.split()
        if not word or word[0] not in ("statement", "query"):
            ours = line.strip() == "# ours" or (ours and bool(word))
            out.append(line)
            i += 1
            continue
        j = i + 1
        sql = []
        while j < len(lines) and lines[j] and lines[j] != "----":
            sql.append(lines[j])
            j += 1
        text = "\n".join(sql)
        end = j
        while end < len(lines) and lines[end]:
            end += 1
        if ours:
            out += lines[i:end]
            if word[0] == "statement" and word[1] == "ok":
                try:
                    conn.execute(text)
                except psycopg.Error:
                    pass
        elif word[0] == "statement":
            state = None
            try:
                conn.execute(text)
            except psycopg.Error as error:
                state = error.sqlstate
            if word[1] == "ok":
                assert state is None, f"{path}: {state} for {text}"
                out.append("statement ok")
            else:
                assert state, f"{path}: no error for {text}"
                out.append(f"statement error {state}")
            out += sql
        else:
            mode = word[2] if len(word) > 2 else "nosort"
            out.append(line)
            out += sql + ["----"]
            out += run_query(conn, text, word[1], mode)
        ours = False
        i = end
    open(path, "w", encoding="utf-8").write("\n".join(out))


class TextLoader(psycopg.adapt.Loader):
    def load(self, data):
        return bytes(data).decode()


def main():
    with psycopg.connect(sys.argv[1], autocommit=True) as conn:
        for oid in (16, 17, 20, 21, 23, 25, 700, 701, 1042, 1043, 1082, 1083, 1114, 1184, 1186, 1700, 2950):
            conn.adapters.register_loader(oid, TextLoader)
        for path in sys.argv[2:]:
            regen(conn, path)


main()
