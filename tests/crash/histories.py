#!/usr/bin/env python3
"""Random histories of a database file: what a file answers, closed, opened and killed in between, is what memory answers.

A history is a line of random statements of several sessions: definitions of all kinds, constraints, sequences,
identities, views, indexes, changes, transactions with savepoints, rules of LogiQL, COPY, VACUUM, CHECKPOINT, copies
and exports. It runs on a database in memory and on one in a file, each in a process of its own. Between
statements the file is closed and opened, its process is killed while nothing runs, or while a statement does:
then all of it is there, or nothing. After some statements, and after every opening, all that a user can see of both is compared.
With --postgres a history of one session runs on PostgreSQL, too, as far as its grammar goes.

    tests/crash/histories.py --count 100 [--seed N] [--library build/libwarpfox.so] [--postgres DSN] [--verbose]

A history that differs is printed whole, with its seed."""
import argparse
import ctypes as C
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))


# --- a process that has a database ---

def serve(library, path):
    """Reads a request a line, answers a line: open, close, or a statement of a session."""
    import wf
    lib = wf.load(library)
    lib.wf_batch_rows.restype = C.c_int64
    lib.wf_batch_rows.argtypes = [C.c_void_p]
    lib.wf_batch_is_null.argtypes = [C.c_void_p, C.c_int32, C.c_int64]
    lib.wf_result_next_batch.argtypes = [C.c_void_p, C.POINTER(C.c_void_p)]
    lib.wf_result_column_count.argtypes = [C.c_void_p]
    lib.wf_value_text.argtypes = [C.c_void_p, C.c_int32, C.c_int64, C.c_char_p, C.c_size_t]
    lib.wf_result_error.restype = C.POINTER(wf.Error)
    lib.wf_result_error.argtypes = [C.c_void_p]
    lib.wf_result_tag.restype = C.c_char_p
    lib.wf_result_tag.argtypes = [C.c_void_p]
    db, sessions = C.c_void_p(), {}
    text = C.create_string_buffer(1 << 16)

    def value(batch, column, row):
        if lib.wf_batch_is_null(batch, column, row):
            return None
        need = lib.wf_value_text(batch, column, row, text, len(text))
        return text.raw[:min(need, len(text) - 1)].decode("utf-8", "replace")

    def ask(conn, sql):
        result, batch, rows = C.c_void_p(), C.c_void_p(), []
        if lib.wf_query(conn, sql.encode(), C.byref(result)):
            error = lib.wf_connection_error(conn).contents
            return {"state": error.sqlstate.decode(), "message": error.message.decode("utf-8", "replace")}
        if not result:
            return {"state": "", "rows": [], "tag": ""}
        columns = lib.wf_result_column_count(result)
        while True:
            if lib.wf_result_next_batch(result, C.byref(batch)):
                error = lib.wf_result_error(result).contents
                lib.wf_result_close(result)
                return {"state": error.sqlstate.decode(), "message": error.message.decode("utf-8", "replace")}
            if not batch:
                break
            for row in range(lib.wf_batch_rows(batch)):
                rows.append([value(batch, c, row) for c in range(columns)])
        tag = lib.wf_result_tag(result).decode()
        lib.wf_result_close(result)
        return {"state": "", "rows": rows, "tag": tag}

    def act(request):
        nonlocal db
        if request["do"] == "open":
            error = wf.Error()
            options = [wf.Option(k.encode(), str(v).encode()) for k, v in request["options"].items()]
            array = (wf.Option * (len(options) + 1))(*options, wf.Option(None, None))
            if lib.wf_open(path.encode() if path else None, array, C.byref(db), C.byref(error)):
                return {"state": error.sqlstate.decode(), "message": error.message.decode("utf-8", "replace")}
            return {"state": ""}
        if request["do"] == "close":
            for conn in sessions.values():
                lib.wf_disconnect(conn)
            sessions.clear()
            lib.wf_close(db)
            db = C.c_void_p()
            return {"state": ""}
        if request["do"] == "leave":
            conn = sessions.pop(request["session"], None)
            if conn:
                lib.wf_disconnect(conn)
            return {"state": ""}
        if request["session"] not in sessions:
            conn = C.c_void_p()
            lib.wf_connect(db, C.byref(conn))
            sessions[request["session"]] = conn
        return ask(sessions[request["session"]], request["sql"])

    for line in sys.stdin:
        print(json.dumps(act(json.loads(line))), flush=True)


class Lost(Exception):
    """The process ended by itself."""


class Database:
    def __init__(self, library, path, options):
        self.library, self.path, self.options, self.process = library, path, options, None
        self.start()

    def start(self):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve", self.library, self.path or ""],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        answer = self.do({"do": "open", "options": self.options})
        if answer["state"]:
            raise Lost(f"it does not open: {answer}")

    def send(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def do(self, request):
        try:
            self.send(request)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Lost(f"the process ended with {self.process.wait()}: {request}")
        return json.loads(line)

    def ask(self, sql, session=0):
        return self.do({"do": "ask", "session": session, "sql": sql})

    def leave(self, session):
        self.do({"do": "leave", "session": session})

    def reopen(self):
        self.do({"do": "close"})
        answer = self.do({"do": "open", "options": self.options})
        if answer["state"]:
            raise Lost(f"it does not open: {answer}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.start()

    def end(self):
        if self.process.poll() is None:
            self.do({"do": "close"})
            self.process.stdin.close()
        status = self.process.wait()
        if status:
            raise Lost(f"the process ended with {status}")


class Postgres:
    """The same questions to PostgreSQL, in a schema that is made anew."""

    def __init__(self, dsn):
        import psycopg2
        self.error = psycopg2.Error
        self.conn = psycopg2.connect(dsn)
        self.conn.autocommit = True
        self.cursor = self.conn.cursor()
        for sql in ("drop schema if exists public cascade", "drop schema if exists s0 cascade",
                    "drop schema if exists s1 cascade", "create schema public", "set search_path = public",
                    "set client_min_messages = error", "set default_transaction_isolation = 'repeatable read'",
                    "set timezone = 'UTC'", "set lc_messages = 'C'"):
            self.cursor.execute(sql)

    def ask(self, sql, session=0):
        try:
            self.cursor.execute(sql)
            rows = self.cursor.fetchall() if self.cursor.description else []
            return {"state": "", "rows": [[None if v is None else shown(v) for v in row] for row in rows],
                    "tag": self.cursor.statusmessage}
        except self.error as error:
            return {"state": error.pgcode or "?", "message": str(error)}


def shown(v):
    return {True: "true", False: "false"}[v] if isinstance(v, bool) else str(v)


# --- random statements ---

TYPES = [("integer", "int"), ("bigint", "int"), ("smallint", "small"), ("text", "text"), ("varchar(12)", "short"),
         ("decimal(12,2)", "num"), ("date", "date"), ("boolean", "bool"), ("double precision", "real"),
         ("timestamp", "time"), ("uuid", "uuid"), ("char(3)", "char")]
NAMES = ["a", "b", "c", "d", "e", "k", "n", "v", "Upper", "a b", "select", "naïve"]


def quoted(name):
    return name if name[:1].isalpha() and name.isascii() and name.isalnum() and name.islower() and name != "select" else f'"{name}"'


class Author:
    """Makes statements about what it believes is there; beliefs may be wrong, then there is an error, the same everywhere."""

    def __init__(self, dice, plain):
        self.dice, self.plain = dice, plain
        self.tables = {}      # name -> [(column, kind)]
        self.views, self.sequences, self.indexes, self.schemas, self.rules = [], [], [], [], []
        self.made = 0
        self.saves = 0

    def name(self, letter):
        self.made += 1
        prefix = self.dice.choice(self.schemas) + "." if self.schemas and self.dice.random() < 0.15 else ""
        odd = self.dice.random() < 0.08
        return prefix + (f'"{letter}{self.made} Odd"' if odd else f"{letter}{self.made}")

    def value(self, kind, small=False):
        d = self.dice
        if d.random() < 0.08:
            return "null"
        if kind == "int":
            return str(d.randint(-5, 40) if small or d.random() < 0.8 else d.randint(-2**31, 2**31 - 1))
        if kind == "small":
            return str(d.randint(-5, 300))
        if kind == "text":
            size = 1 if d.random() < 0.9 else 200
            return "'" + d.choice(["x", "yy", "it''s", "ä", "\\", "", "tab\tend", "zz%"]) * size + str(d.randint(0, 30)) + "'"
        if kind == "short":
            return f"'s{d.randint(0, 99999)}'" if d.random() < 0.97 else "'much too long for it'"
        if kind == "char":
            return f"'{d.choice(['a', 'ab', 'abc'])}'"
        if kind == "num":
            return f"{d.randint(-99999, 99999) / 100}"
        if kind == "date":
            return f"date '{d.randint(1990, 2030)}-{d.randint(1, 12):02}-{d.randint(1, 28):02}'"
        if kind == "time":
            return f"timestamp '{d.randint(1990, 2030)}-{d.randint(1, 12):02}-01 {d.randint(0, 23):02}:11:12'"
        if kind == "bool":
            return d.choice(["true", "false"])
        if kind == "uuid":
            return f"'00000000-0000-0000-0000-{d.randint(0, 99):012}'"
        return str(d.randint(-100, 100) / 4)

    def table(self):
        return self.dice.choice(list(self.tables)) if self.tables else "nothing"

    def column(self, table, kind=None):
        columns = [c for c in self.tables.get(table, []) if kind is None or c[1] == kind]
        return self.dice.choice(columns) if columns else ("nothing", "int")

    def condition(self, table):
        d = self.dice
        name, kind = self.column(table)
        form = d.randint(0, 4)
        if form == 0:
            return f"{name} is null"
        if form == 1:
            return f"{name} = {self.value(kind, True)}"
        if form == 2 and kind in ("int", "small"):
            return f"{name} % {d.randint(2, 7)} = {d.randint(0, 2)}"
        if form == 3:
            return f"{name} in ({', '.join(self.value(kind, True) for _ in range(3))})"
        return f"{name} {d.choice(['<', '>', '<=', '<>'])} {self.value(kind, True)}"

    def learn(self, columns):
        """What is there, of the catalog."""
        kinds = {"integer": "int", "bigint": "int", "smallint": "small", "text": "text", "character varying": "short", "numeric": "num",
                 "date": "date", "boolean": "bool", "double precision": "real", "timestamp without time zone": "time", "uuid": "uuid",
                 "character": "char"}
        self.tables = {}
        for schema, table, column, _, kind, *_ in columns:
            if table in ("edge", "person", "boss", "path", "reach") or table.startswith("constraint:"):
                continue
            full = quoted(table) if schema == "public" else f"{schema}.{quoted(table)}"
            self.tables.setdefault(full, []).append((quoted(column), kinds.get(kind, "text")))
        for view in self.views:
            self.tables.pop(view, None)

    # definitions

    def create_table(self):
        d, name = self.dice, self.name("t")
        columns, parts = [], []
        for column in d.sample(NAMES, d.randint(1, 6)):
            kind_name, kind = d.choice(TYPES)
            q = quoted(column)
            part = f"{q} {kind_name}"
            chance = d.random()
            if kind == "int" and chance < 0.12:
                part += f" generated {d.choice(['always', 'by default'])} as identity" + d.choice(["", " (start 5 increment 3)"])
            elif kind == "int" and chance < 0.17 and kind_name == "integer":
                part = f"{q} serial"
            elif chance < 0.3:
                part += f" default {self.value(kind)}"
            if d.random() < 0.12:
                part += " not null"
            if d.random() < 0.1 and kind in ("int", "small", "num"):
                part += f" check ({q} > -100)"
            columns.append((q, kind))
            parts.append(part)
        if d.random() < 0.35:
            parts.append(f"{d.choice(['primary key', 'unique'])} ({', '.join(c for c, _ in d.sample(columns, min(len(columns), d.randint(1, 2))))})")
        if d.random() < 0.2 and self.tables:
            parts.append(self.reference(columns))
        self.tables[name] = columns
        return f"create {'temporary ' if not self.plain and d.random() < 0.04 and '.' not in name else ''}table {name} ({', '.join(parts)})"

    def reference(self, columns):
        d, other = self.dice, self.table()
        action = d.choice(["", " on delete cascade", " on delete set null", " on update cascade", " on delete restrict",
                           " deferrable initially deferred"])
        return f"foreign key ({d.choice(columns)[0]}) references {other} ({self.column(other)[0]}){action}"

    def create_as(self):
        d, name, other = self.dice, self.name("t"), self.table()
        self.tables[name] = list(self.tables.get(other, []))
        return f"create table {name} as select * from {other}" + (f" where {self.condition(other)}" if d.random() < 0.5 else "")

    def create_like(self):
        name, other = self.name("t"), self.table()
        self.tables[name] = list(self.tables.get(other, []))
        return f"create table {name} (like {other} including all)"

    def drop_table(self):
        name = self.table()
        if self.dice.random() < 0.7:
            self.tables.pop(name, None)
        return f"drop table {name}" + self.dice.choice(["", " cascade", " cascade"])

    def alter_table(self):
        d, table = self.dice, self.table()
        columns = self.tables.get(table, [])
        column, kind = self.column(table)
        what = d.randint(0, 15)
        if what == 0:
            new, (kind_name, kind) = quoted(d.choice(NAMES)), d.choice(TYPES)
            if new not in [c for c, _ in columns]:
                columns.append((new, kind))
            return f"alter table {table} add column {new} {kind_name}" + d.choice(["", f" default {self.value(kind)}", " not null"])
        if what == 1:
            if len(columns) > 1:
                columns[:] = [c for c in columns if c[0] != column]
            return f"alter table {table} drop column {column}" + d.choice(["", " cascade"])
        if what == 2:
            new = quoted(d.choice(NAMES))
            if new not in [c for c, _ in columns]:
                columns[:] = [(new, k) if c == column else (c, k) for c, k in columns]
            return f"alter table {table} rename column {column} to {new}"
        if what == 3:
            new = self.name("t").split(".")[-1]
            if table in self.tables:
                prefix = table.split(".")[0] + "." if "." in table else ""
                self.tables[prefix + new] = self.tables.pop(table)
            return f"alter table {table} rename to {new}"
        if what == 4:
            to = {"int": "bigint", "small": "integer", "short": "text", "num": "decimal(14,3)", "char": "text"}.get(kind, "text")
            now = {"int": "int", "small": "int", "short": "text", "num": "num", "char": "text"}.get(kind, "text")
            if now == kind or kind in ("small", "short"):
                columns[:] = [(c, now) if c == column else (c, k) for c, k in columns]
                return f"alter table {table} alter column {column} type {to}"
            return f"alter table {table} alter column {column} set default {self.value(kind)}"
        if what == 5:
            return f"alter table {table} alter column {column} {d.choice(['set', 'drop'])} not null"
        if what == 6:
            return f"alter table {table} alter column {column} drop default"
        if what == 7:
            return f"alter table {table} add check ({self.condition(table)})" + d.choice(["", " not valid"])
        if what == 8:
            self.made += 1
            return f"alter table {table} add constraint u{self.made} unique ({column})"
        if what == 9:
            return f"alter table {table} add primary key ({column})"
        if what == 10 and columns:
            return f"alter table {table} add {self.reference(columns)}"
        if what == 11:
            return f"alter table {table} drop constraint {d.choice(['u', 'x'])}{d.randint(1, max(1, self.made))}" + d.choice(["", " cascade"])
        if what == 12 and self.schemas:
            schema = d.choice(self.schemas)
            if table in self.tables:
                self.tables[schema + "." + table.split(".")[-1]] = self.tables.pop(table)
            return f"alter table {table} set schema {schema}"
        if what == 13 and kind == "int":
            return f"alter table {table} alter column {column} add generated always as identity"
        bare = table.split(".")[-1].strip('"')
        return f'alter table {table} drop constraint "{bare}_{d.choice(["pkey", "check", column.strip(chr(34)) + "_check", column.strip(chr(34)) + "_key"])}"'

    def create_view(self):
        d, name, table = self.dice, self.name("v"), self.table()
        self.views.append(name)
        columns = self.tables.get(table, [])
        form = d.randint(0, 2)
        if form == 0:
            return f"create view {name} as select * from {table} where {self.condition(table)}"
        column = self.column(table)[0]
        if form == 1 or not self.views[:-1]:
            return f"create or replace view {name} as select {column} as g, count(*) as n from {table} group by {column}"
        return f"create view {name} as select count(*) as n from {d.choice(self.views[:-1])}"

    def drop_view(self):
        view = self.dice.choice(self.views) if self.views else "nothing"
        if view in self.views:
            self.views.remove(view)
        return f"drop view {view}" + self.dice.choice(["", " cascade"])

    def sequence(self):
        d = self.dice
        if not self.sequences or d.random() < 0.3:
            name = self.name("q")
            self.sequences.append(name)
            return f"create sequence {name}" + d.choice(["", " start 10 increment 5", " minvalue 1 maxvalue 6 cycle", " increment -1"])
        name = d.choice(self.sequences)
        literal = name.replace("'", "''")
        what = d.randint(0, 5)
        if what == 0:
            return f"alter sequence {name} " + d.choice(["restart with 3", "increment 2", "maxvalue 1000"])
        if what == 1:
            return f"select setval('{literal}', {d.randint(1, 6)}, {d.choice(['true', 'false'])})"
        if what == 2:
            self.sequences.remove(name)
            return f"drop sequence {name}" + d.choice(["", " cascade"])
        return f"select nextval('{literal}')"

    def index(self):
        d = self.dice
        if self.indexes and d.random() < 0.3:
            return f"drop index {self.indexes.pop()}"
        table = self.table()
        self.made += 1
        name = f"x{self.made}"
        self.indexes.append(name)
        return f"create {d.choice(['', 'unique '])}index {name} on {table} ({self.column(table)[0]})"

    def schema(self):
        d = self.dice
        name = d.choice(["s0", "s1"])
        if name in self.schemas and d.random() < 0.3:
            self.schemas.remove(name)
            cascade = d.random() < 0.5
            if cascade:
                for what in list(self.tables):
                    if what.startswith(name + "."):
                        del self.tables[what]
            return f"drop schema {name}" + (" cascade" if cascade else "")
        if name not in self.schemas:
            self.schemas.append(name)
        return f"create schema {name}"

    def comment(self):
        table = self.table()
        return f"comment on table {table} is {self.dice.choice(['null', repr('said so')])}"

    # changes

    def insert(self):
        d, table = self.dice, self.table()
        columns = self.tables.get(table, [])
        chosen = [c for c in columns if d.random() < 0.85] or columns[:1] or [("nothing", "int")]
        rows = d.randint(1, 4)
        values = ", ".join("(" + ", ".join("default" if d.random() < 0.06 else self.value(k) for _, k in chosen) + ")" for _ in range(rows))
        tail = d.choice(["", "", "", "", " on conflict do nothing", " returning *"])
        return f"insert into {table} ({', '.join(c for c, _ in chosen)}) values {values}{tail}"

    def insert_many(self):
        d, table = self.dice, self.table()
        columns = self.tables.get(table, []) or [("nothing", "int")]
        by = {"int": f"i * {d.choice([1, 7, -3])}", "small": "i % 300", "text": "'text ' || i % 17", "short": "'r' || i", "num": "i / 4.0",
              "date": "date '2020-01-01' + i % 900", "bool": "i % 3 = 0", "real": "i * 0.5::double precision",
              "time": "timestamp '2020-01-01' + i % 900 * interval '1 hour'",
              "uuid": "cast('00000000-0000-0000-0000-' || lpad(cast(i as text), 12, '0') as uuid)", "char": "case when i % 2 = 0 then 'x' else 'yz' end"}
        count = d.choice([5, 50, 400, 3000])
        start = d.choice([1, 1000, 100000])
        return (f"insert into {table} ({', '.join(c for c, _ in columns)}) select {', '.join(by[k] for _, k in columns)} "
                f"from generate_series({start}, {start + count}) i" + d.choice(["", "", " on conflict do nothing"]))

    def insert_from(self):
        d, table = self.dice, self.table()
        return f"insert into {table} select * from {table} where {self.condition(table)}" + d.choice(["", " on conflict do nothing"])

    def update(self):
        d, table = self.dice, self.table()
        column, kind = self.column(table)
        new = {"int": f"{column} + {d.randint(1, 9)}", "text": f"{column} || '.'", "num": f"{column} + 0.25"}.get(kind) if d.random() < 0.5 else None
        return f"update {table} set {column} = {new or self.value(kind)} where {self.condition(table)}"

    def delete(self):
        table = self.table()
        return f"delete from {table}" + (f" where {self.condition(table)}" if self.dice.random() < 0.93 else "")

    def truncate(self):
        return f"truncate {self.table()}" + self.dice.choice(["", " restart identity", " cascade"])

    # transactions

    def transaction(self):
        d = self.dice
        what = d.randint(0, 9)
        if what < 3:
            return "begin"
        if what < 5:
            return "commit"
        if what == 5:
            return "rollback"
        if what < 8:
            self.saves += 1
            return f"savepoint p{self.saves}"
        if what == 8:
            return f"rollback to p{d.randint(max(1, self.saves - 1), max(1, self.saves))}"
        return f"release p{d.randint(max(1, self.saves - 1), max(1, self.saves))}"

    # what PostgreSQL does not have

    def logiql(self):
        d = self.dice
        n = len(self.rules)
        if not n:
            self.rules.append("edge")
            return "call logiql('edge(x, y) -> int(x), int(y). edge(1, 2). edge(2, 3). edge(3, 1). " \
                   "path(x, y) <- edge(x, y). path(x, z) <- path(x, y), edge(y, z).')"
        what = d.randint(0, 9)
        if what < 3:
            return f"call logiql('+edge({d.randint(1, 12)}, {d.randint(1, 12)}).')"
        if what == 3:
            return f"call logiql('-edge({d.randint(1, 12)}, {d.randint(1, 12)}).')"
        if what == 4:
            self.rules.append("reach")
            return "call logiql('reach[x] = n <- agg<< n = count() >> path(x, _).')"
        if what == 5:
            return f"call logiql('!(edge(x, x), x > {d.randint(5, 12)}).')"
        if what == 6:
            return f"call logiql('person(x), person_name(x:n) -> string(n). boss[p] = q -> person(p), person(q). boss[\"p{d.randint(1, 9)}\"] = \"p{d.randint(1, 9)}\".')"
        if what == 7:
            return f"delete from edge where x = {d.randint(1, 12)}"
        if what == 8:
            return "select count(*), sum(x) from path"
        return f"insert into edge values ({d.randint(1, 12)}, {d.randint(1, 12)})"

    def vacuum(self):
        return "vacuum" + (" " + self.table() if self.dice.random() < 0.4 else "")

    def copy(self):
        table = self.table()
        return f"copy {table} from '@folder/rows.csv'" if self.dice.random() < 0.3 else \
               f"copy (select * from {table} order by all) to '@folder/rows.csv'"

    def query(self):
        d, table = self.dice, self.table()
        column, kind = self.column(table)
        ends = f", min({column}), max({column})" if kind not in ("bool", "uuid") else ""
        if self.views and d.random() < 0.4:
            return f"select * from {d.choice(self.views)}"
        return d.choice([f"select * from {table} where {self.condition(table)}",
                         f"select {column}, count(*) from {table} group by {column}",
                         f"select count(*){ends} from {table}"])

    def statement(self):
        common = [(self.create_table, 7), (self.create_as, 2), (self.create_like, 1), (self.drop_table, 2), (self.alter_table, 9), (self.create_view, 3),
                  (self.drop_view, 1), (self.sequence, 5), (self.index, 3), (self.schema, 1), (self.comment, 1), (self.insert, 16),
                  (self.insert_many, 8), (self.insert_from, 3), (self.update, 10), (self.delete, 5), (self.truncate, 1),
                  (self.transaction, 14), (self.query, 8)]
        own = [(self.logiql, 7), (self.vacuum, 3), (self.copy, 2), (lambda: "checkpoint", 3)]
        if len(self.tables) < 2:
            return self.create_table()
        choices = common + ([] if self.plain else own)
        return self.dice.choices([c for c, _ in choices], [w for _, w in choices])[0]()


# --- what can be seen ---

CATALOG = [
    "select n.nspname, relname, relkind from pg_class c, pg_namespace n where c.relnamespace = n.oid and c.oid >= 16384 order by 1, 2, 3",
    "select table_schema, table_name, column_name, ordinal_position, data_type, column_default, is_nullable, is_identity "
    "from information_schema.columns where table_schema in ('public', 's0', 's1') order by 1, 2, 4",
    "select conname, contype, convalidated, condeferrable, condeferred, pg_get_constraintdef(oid) from pg_constraint order by 1, 2, 6",
    "select nspname from pg_namespace where nspname in ('public', 's0', 's1') order by 1",
    "select relname, obj_description(oid) from pg_class where oid >= 16384 and obj_description(oid) is not null order by 1, 2",
    "select schemaname, viewname, definition from pg_views where schemaname in ('public', 's0', 's1') order by 1, 2",
    "select schemaname, tablename, indexname, indexdef from pg_indexes order by 1, 2, 3",
    "select schemaname, sequencename, data_type, start_value, min_value, max_value, increment_by, cycle, last_value from pg_sequences order by 1, 2",
    "select * from information_schema.referential_constraints order by 2, 3",
    "call logiql_rules()",
]


def seen(database, session):
    """All of it, as a session sees it: definitions, rows, sequences."""
    all_of = [database.ask(sql, session) for sql in CATALOG]
    for answer in all_of:
        answer["rows"] = [row for row in answer.get("rows", []) if not str(row[0]).startswith("pg_temp")]  # a session's own
        answer["rows"] = [[None if value in ("memory", "it", "copy") and at in (0, 3) else value for at, value in enumerate(row)]
                          for row in answer.get("rows", [])]
    all_of[-1] = [row[:4] for row in all_of[-1]["rows"]]  # not whether rows are kept
    for schema, name, kind in all_of[0].get("rows", []):
        full = '"' + schema + '"."' + name + '"'
        if kind in ("r", "v"):
            answer = database.ask(f"select * from {full}", session)
            all_of.append([full, answer["state"], sorted(map(str, answer.get("rows", [])))])
        elif kind == "S":
            all_of.append([full, database.ask(f"select last_value, is_called from {full}", session)])
    return all_of


def difference(a, b):
    for x, y in zip(a, b):
        if x != y:
            x, y = str(x), str(y)
            at = next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
            return f"{x[max(0, at - 200):at + 300]}\n  against\n{y[max(0, at - 200):at + 300]}"
    return f"{len(a)} against {len(b)} things"


def same_answer(a, b):
    return a["state"] == b["state"] and sorted(map(str, a.get("rows", []))) == sorted(map(str, b.get("rows", []))) and \
        a.get("tag") == b.get("tag")


class Different(Exception):
    pass


class History:
    def __init__(self, arguments, seed):
        self.dice = random.Random(seed)
        self.arguments, self.seed = arguments, seed
        self.folder = tempfile.mkdtemp(prefix="warpfox-history-")
        path = os.path.join(self.folder, "it.wf")
        options = {"device": "cpu", "threads": self.dice.choice([1, 2]), "tablet_rows": self.dice.choice([16, 256, 4096])}
        self.memory = Database(arguments.library, None, options)
        self.file = Database(arguments.library, path, dict(options, checkpoint_size=self.dice.choice(["0", "20kB", "1MB"])))
        self.postgres = Postgres(arguments.postgres) if arguments.postgres else None
        self.sessions = 1 if self.postgres or self.dice.random() < 0.4 else 3
        self.open = {}  # sessions that may be in a transaction
        self.failed = set()  # and in one that failed
        self.rolled_back = False  # since it was opened
        self.author = Author(self.dice, self.postgres is not None)
        self.lines = []
        self.killed = self.reopened = self.midway = 0

    def tell(self, line):
        self.lines.append(line)
        if self.arguments.verbose:
            print(line, flush=True)

    def both(self, sql, session):
        sql_memory = sql.replace("@folder", self.folder + "/memory")
        sql_file = sql.replace("@folder", self.folder + "/file")
        a, b = self.memory.ask(sql_memory, session), self.file.ask(sql_file, session)
        if not same_answer(a, b):
            raise Different(f"memory {str(a)[:600]}\nfile   {str(b)[:600]}")
        return a

    def compare(self, session):
        a, b = seen(self.memory, session), seen(self.file, session)
        if a != b:
            raise Different("what is seen differs: memory against file\n" + difference(a, b))

    def all_leave(self):
        for session in range(self.sessions):
            self.memory.leave(session)
        if self.postgres and self.open:
            self.postgres.ask("rollback")
        self.open.clear()
        self.failed.clear()

    def reopen(self):
        self.tell("-- closed and opened")
        self.reopened += 1
        self.all_leave()
        self.file.reopen()
        self.compare(0)

    def kill(self):
        self.tell("-- killed")
        self.killed += 1
        in_use = bool(self.open) or self.rolled_back
        self.all_leave()
        self.file.kill()
        if in_use:  # what sequences gave to nobody may be given again
            self.meet_sequences()
        self.rolled_back = False
        self.compare(0)

    def meet_sequences(self):
        for schema, name in self.memory.ask("select schemaname, sequencename from pg_sequences")["rows"]:
            full = '"' + schema + '"."' + name + '"'
            value, called = self.memory.ask(f"select last_value, is_called from {full}")["rows"][0]
            for database in (self.memory, self.file):
                database.ask(f"select setval('{full}', {value}, {called})")

    def kill_midway(self, sql, session):
        """Outside of transactions: afterwards all of the statement is there, or nothing."""
        self.tell(f"-- killed during: {sql}")
        self.midway += 1
        sql_file = sql.replace("@folder", self.folder + "/file")
        self.file.send({"do": "ask", "session": session, "sql": sql_file})
        time.sleep(self.dice.choice([0, 0.0003, 0.001, 0.003, 0.01]))
        self.all_leave()
        self.file.kill()
        now = seen(self.file, 0)
        before = seen(self.memory, 0)
        if now == before:
            self.tell("--   nothing of it")
            return
        self.memory.ask(sql.replace("@folder", self.folder + "/memory"), session)
        after = seen(self.memory, 0)
        if now != after:
            raise Different("half of it: before, after\n" + difference(before, now) + "\n\n" + difference(after, now))
        self.tell("--   all of it")
        self.all_leave()

    def check(self):
        answer = self.file.ask("call check_database()", 9)
        if answer["state"] or "damaged" in str(answer["rows"]):
            raise Different(f"check_database: {answer}")

    def copies(self):
        """VACUUM INTO and EXPORT / IMPORT have what the file has."""
        target = os.path.join(self.folder, "copy.wf")
        for old in (target, target + ".log"):
            if os.path.exists(old):
                os.remove(old)
        answer = self.file.ask(f"vacuum into '{target}'", 0)
        if answer["state"]:
            raise Different(f"vacuum into: {answer}")
        copy = Database(self.arguments.library, target, {"device": "cpu"})
        a, b = seen(self.file, 0), seen(copy, 0)
        copy.end()
        # what is temporary stays behind
        if a != b and not any("temporary table" in line for line in self.lines):
            raise Different("the copy differs: file against copy\n" + difference(a, b))
        folder = os.path.join(self.folder, "export")
        shutil.rmtree(folder, ignore_errors=True)
        answer = self.file.ask(f"export database '{folder}'", 0)
        if answer["state"]:
            raise Different(f"export: {answer}")
        other = Database(self.arguments.library, None, {"device": "cpu"})
        answer = other.ask(f"import database '{folder}'", 0)
        b = json.loads(re.sub(r"nextval\('(public|s0|s1)\.", "nextval('", json.dumps(seen(other, 0))))
        a = json.loads(re.sub(r"nextval\('(public|s0|s1)\.", "nextval('", json.dumps(a)))  # as it was written
        other.end()
        for side in (a, b):  # a view that is older than its tables' columns is made of other words
            side[5]["rows"] = [row[:2] for row in side[5]["rows"]]
        if answer["state"] and not any("temporary table" in line or "not valid" in line for line in self.lines):
            raise Different(f"import: {answer}")
        if not answer["state"] and a != b and not any("temporary table" in line for line in self.lines):
            raise Different("the import differs: file against import\n" + difference(a, b))

    def beside_postgres(self, sql, ours):
        theirs = self.postgres.ask(sql)
        if ours["state"] == "0A000" and not theirs["state"]:
            raise Skip(sql)  # from here on they are not the same
        violations = ours["state"][:2] == theirs["state"][:2] == "23"  # of several, which is told
        if ours["state"] != theirs["state"] and not violations:
            raise Different(f"ours {str(ours)[:300]}\nPostgreSQL {str(theirs)[:300]}")

    def step(self):
        session = self.dice.randrange(self.sessions)
        chance = self.dice.random()
        sql = self.author.statement()
        if session in self.failed and self.dice.random() < 0.7:
            sql = f"rollback to p{self.author.saves}" if self.author.saves and self.dice.random() < 0.4 else "rollback"
        if chance < 0.03:
            self.reopen()
        elif chance < 0.05:
            self.kill()
        elif chance < 0.08 and not self.open and "copy" not in sql and self.postgres is None and sql not in ("begin",):
            self.kill_midway(sql, session)
            return
        self.tell(f"{session}: {sql}")
        answer = self.both(sql, session)
        if answer["state"]:
            self.tell(f"--   {answer['state']} {answer.get('message', '')[:150]}")
        if sql == "begin":
            self.open[session] = True
        elif sql in ("commit", "rollback"):
            self.rolled_back |= answer.get("tag") == "ROLLBACK"
            self.open.pop(session, None)
        if session in self.open and answer["state"]:
            self.failed.add(session)
        elif session not in self.open or sql.startswith("rollback to"):
            self.failed.discard(session)
        if self.postgres:
            self.beside_postgres(sql, answer)
        if chance > 0.9 and answer["state"] != "25P02":
            self.compare(session)
        if answer["state"] not in ("", "25P02"):
            known = self.memory.ask(CATALOG[1], session)
            if not known["state"]:
                self.author.learn(known["rows"])

    def run(self, steps):
        os.mkdir(self.folder + "/memory")
        os.mkdir(self.folder + "/file")
        for _ in range(steps):
            self.step()
        for session in range(self.sessions):
            if session in self.open:
                self.both("rollback", session)
        if self.postgres:
            self.postgres.ask("rollback")
        self.compare(0)
        if self.postgres:
            self.compare_postgres()
        self.copies()
        self.check()
        self.reopen()
        self.check()
        self.memory.end()
        self.file.end()
        if os.path.exists(os.path.join(self.folder, "it.wf.log")):
            raise Different("the log is left")

    def compare_postgres(self):
        for name in self.author.tables:
            ours, theirs = self.file.ask(f"select count(*) from {name}"), self.postgres.ask(f"select count(*) from {name}")
            if ours["state"] != theirs["state"] or ours.get("rows") != theirs.get("rows"):
                raise Different(f"{name}: ours {ours}, PostgreSQL {theirs}")

    def clean(self):
        for database in (self.memory, self.file):
            if database.process.poll() is None:
                database.process.kill()
                database.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Skip(Exception):
    pass


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--serve":
        serve(sys.argv[2], sys.argv[3])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--library", default=os.path.join(HERE, "..", "..", "build", "libwarpfox.so"))
    parser.add_argument("--postgres", help="DSN of a database whose schema public is made anew")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--stop", action="store_true", help="at the first that differs")
    arguments = parser.parse_args()
    bad = killed = reopened = midway = steps = skipped = 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        history = History(arguments, seed)
        try:
            history.run(arguments.steps)
        except Skip:
            skipped += 1
        except (Different, Lost) as problem:
            bad += 1
            print(f"=== history {seed}: {type(problem).__name__}")
            print("\n".join(history.lines[-int(os.environ.get("LINES_SHOWN", "40")):]))
            print(problem, flush=True)
            if arguments.stop:
                break
        finally:
            history.clean()
        killed, reopened, midway = killed + history.killed, reopened + history.reopened, midway + history.midway
        steps += len(history.lines)
    print(f"{arguments.count} histories, {steps} lines, {reopened} times reopened, {killed} killed, {midway} killed during a statement, "
          f"{skipped} left for what is not supported, {bad} differed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
