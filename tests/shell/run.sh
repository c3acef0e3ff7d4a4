#!/usr/bin/env bash
# What a user types, and what comes back: options, formats, exit statuses, errors, pipes, commands.
# Usage: tests/shell/run.sh [path of warpfox]. Ends with `N passed, N failed`.
set -u
cd "$(dirname "$0")/../.." || exit 2
fox=$(realpath "${1:-build/warpfox}")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME="$tmp"
unset COLUMNS
passed=0
failed=0

note() { # condition's status, name, detail
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $2"
        [ -n "${3:-}" ] && printf '%s\n' "$3" | sed 's/^/    /' | head -n 12
    fi
    return 0
}

# expect NAME STATUS STDOUT-FILE-OR-TEXT ARGS…: exact standard output (a final newline is ignored).
expect() {
    local name="$1" status="$2" wanted="$3" got rc
    shift 3
    got=$("$fox" "$@" 2>"$tmp/err" </dev/null)
    rc=$?
    [ "$rc" = "$status" ] && [ "$got" = "$wanted" ]
    note $? "$name" "status $rc, wanted $status; got:
$got
$(cat "$tmp/err")"
}

# complains NAME STATUS PATTERN ARGS…: status, and standard error matches the extended pattern.
complains() {
    local name="$1" status="$2" pattern="$3" rc
    shift 3
    "$fox" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    rc=$?
    [ "$rc" = "$status" ] && grep -Eq -- "$pattern" "$tmp/err"
    note $? "$name" "status $rc, wanted $status; stderr:
$(cat "$tmp/err")"
}

# prints NAME PATTERN ARGS…: status 0, and standard output has a line that matches.
prints() {
    local name="$1" pattern="$2" rc
    shift 2
    "$fox" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    rc=$?
    [ "$rc" = 0 ] && grep -Eq -- "$pattern" "$tmp/out"
    note $? "$name" "status $rc; stdout:
$(cat "$tmp/out" "$tmp/err")"
}

# piped NAME STATUS TEXT WANTED ARGS…: the text on standard input.
piped() {
    local name="$1" status="$2" text="$3" wanted="$4" got rc
    shift 4
    got=$(printf '%s' "$text" | "$fox" "$@" 2>"$tmp/err")
    rc=$?
    [ "$rc" = "$status" ] && [ "$got" = "$wanted" ]
    note $? "$name" "status $rc, wanted $status; got:
$got
$(cat "$tmp/err")"
}

t="create table t (id integer, name text, price decimal(6,2), ok boolean, f double precision);
   insert into t values (1, 'plain', 1.50, true, 0.5), (2, 'a,\"b\"', null, false, 1e10),
   (3, '', 0.00, null, null), (null, null, -2.25, true, -1);"

# --- options ---
prints "--version" '^warpfox [0-9]+\.[0-9]+' --version
prints "--help lists options" '--keep-going' --help
prints "-h" '^Usage' -h
prints "-?" '^Usage' '-?'
expect "long names" 0 $'device\ncpu' --device=cpu --format csv --command "show device"
complains "unknown option" 2 'unknown option "--frmat"' --frmat csv
complains "missing value" 2 'needs a value' -c
complains "unknown format" 2 'unknown format "xml".*markdown' --format xml -c "select 1"
complains "bad threads" 2 '22023' --threads many -c "select 1"
complains "bad memory" 2 '22023' --memory lots -c "select 1"
complains "bad device" 2 '22023' -d tpu -c "select 1"
complains "flag with value" 2 'takes no value' --timer=yes
complains "two files" 2 'more than one' a b
expect "-l logiql" 0 $'x,y\n1,2\n1,3\n2,3' -l logiql --format csv -c 'e(1,2). e(2,3). p(x,y) <- e(x,y). p(x,z) <- p(x,y), e(y,z). _(x,y) <- p(x,y).'
expect "several queries" 0 $'x\n1\nx\n2' -l logiql --format csv -c '_(x) <- x = 1. _(x) <- x = 2.'
piped "clauses arrive one by one" 0 $'p(1).\n_(x) <-\n  p(x).\n' $'x\n1' -l logiql --format csv
complains "a key with two values" 1 'ERROR 23514: that f\[…\] has one value is violated by \(1, a, b\)' -c "select * from logiql('f[1] = \"a\". f[1] = \"b\". _(x) <- f[_] = x.')"
complains "a clause's mistake" 1 'ERROR 42703: variable y.*' -l logiql -c 'p(1). q(x) <- p(x), y < 2.'
printf 'p(1.\nq(2.\n' >"$tmp/two.logic"
complains "the first mistake" 1 'two.logic:1: ERROR 42601' -l logiql -f "$tmp/two.logic"
complains "all mistakes" 1 'two.logic:2: ERROR 42601' -l logiql -f "$tmp/two.logic"
printf 'e(1, 2).\nf(x) <- nope(x).\ng(x) <- e(x).\n' >"$tmp/two.logic"
complains "all mistakes of names" 1 'two.logic:3: ERROR 42P10' -l logiql -f "$tmp/two.logic"
piped ".drop with its constraint" 0 $'e(1, 2).\nf[x] = y <- e(x, y).\n.drop f\n.rules' '' -l logiql
expect "a script is all or nothing" 1 $'x\n1' -l logiql --keep-going --format csv -c 'p(1).' -c 'p(2). p("a").' -c '_(x) <- p(x).'
piped ".language" 0 $'.language\n.language logiql\n.language\np(5).\n_(x) <- p(x).\n.language sql\nselect x1 as a from p;' \
    $'language is sql\nlanguage is logiql\nx\n5\na\n5' --format csv
complains ".language of another kind" 1 'takes sql or logiql' -c ".language prolog"
piped ".rules, .strata, .drop" 0 $'e(1, 2).\np(x) <- e(x, _). p(x) <- p(y), e(y, x). q(x) <- e(x, _), !p(x).\n.rules\n.strata\n.rules q\n.drop q\n.rules q' \
    $'p(x) <- e(x, _).  // kept, not computed yet\np(x) <- p(y), e(y, x).\nq(x) <- e(x, _), !p(x).\n1: p (recursive; kept, not computed yet)\n2: q\nq(x) <- e(x, _), !p(x).' -l logiql
piped ".rules shows what is declared of tables" 0 $'person(x), person_name(x:n) -> string(n).\nboss[p] = q -> person(p), person(q).\n.rules\n.strata' \
    $'person(x), person_name(x : n) -> string(n).\nboss[p] = q -> person(p), person(q).\nperson_name(x : n) -> person(x), string(n).\nperson_name[x] = n <- person:person_name[x] = n.\n1: person_name' -l logiql
piped ".strata says what is kept" 0 $'e(1, 2).\np(x) <- e(x, _). p(x) <- p(y), e(y, x).\n_(x) <- p(x).\n.strata\n+e(3, 4).\n.strata\nlang:setting["derived"] = "computed".\n.strata' \
    $'x\n1\n2\n1: p (recursive; kept, fresh)\n1: p (recursive; kept, stale)\n1: p (recursive)' -l logiql --format csv
prints "explain of a query" 'Scan p' -l logiql --format csv -c 'p(1).' -c 'explain _(x) <- p(x).'
piped ".explain, .schema" 0 $'p(1). q(x) <- p(x).\n.schema q\n.explain on\n_(x) <- p(x), x > 1.' \
    $'CALL logiql($lq$\nq(x) <- p(x).\n$lq$);\nSort by x  [~1 rows]\n  Project x  [~1 rows]\n    Project x  [~1 rows]\n      Project x1 as x  [~1 rows]\n        Filter x1 > 1  [~1 rows]\n          Scan p (x1)  [~1 rows]' -l logiql
printf 'a,b\n1,x\n2,y\n' >"$tmp/in.csv"
expect "file predicates" 0 $'o,a,b\n0,1,x\n1,2,y\nb\ny' -l logiql --format csv -c 'lang:physical:filePath[`_in] = "'"$tmp"'/in.csv". lang:physical:delimiter[`_in] = ",".
    lang:physical:hasColumnNames[`_in] = true. _in(o; a, b) -> int(o), int(a), string(b). +e(a, b) <- _in(_; a, b). _(o, a, b) <- _in(o; a, b). _(b) <- e(2, b).'
complains "a file that is not there" 1 '58P01' -l logiql -c 'lang:physical:filePath[`q] = "/nowhere/x.csv". q(a) -> int(a).'
complains "a property without a predicate" 1 '42601.*filePath' -l logiql -c 'lang:physical:filePath["q"] = "x.csv".'
complains "a file is no table" 1 '42809' -l logiql -c 'lang:physical:filePath[`q] = "'"$tmp"'/in.csv". q(a, b) -> string(a), string(b). q("1", "2").'
complains "unknown language" 2 'unknown language' -l prolog
expect "--format=csv" 0 $'a\n1' --format=csv -c "select 1 as a"
expect "repeated options: the last one counts" 0 $'threads\n2' --format json --format csv --threads 1 --memory 1GB --memory 2GB --threads 9 --threads 8 \
    --threads 7 --threads 6 --threads 5 --threads 4 --threads 3 --threads 2 -d cpu -d cpu -d cpu --gpu-memory 1GB --gpu-memory 1GB --timer --timer \
    -c "show threads"
expect "-c repeated" 0 $'a\n1\nb\n2' --format csv -c "select 1 as a" -c "select 2 as b;"
expect "several statements in -c" 0 $'a\n1\nb\n2' --format csv -c "select 1 as a; select 2 as b"
expect "settings reach the session" 0 $'device,threads\ncpu,3' -d cpu --threads 3 --format csv \
    -c "create table s (device text, threads text)" -c "insert into s values ('cpu', '3')" -c "select * from s"
expect "-d cpu" 0 $'device\ncpu' -d cpu --format csv -c "show device"
expect "--threads" 0 $'threads\n3' --threads 3 --format csv -c "show threads"
complains "--timer" 0 '^time [0-9]+\.[0-9]{3} ms$' --timer --format none -c "select 1"
expect "none prints nothing" 0 "" --format none -c "select 1"

# --- the FILE argument ---
expect "a database file is made" 0 "" sales.wf -c "create table s (a integer primary key, b text); insert into s values (1, 'x'), (2, null)"
expect "and has its rows" 0 $'a,b\n1,x\n2,' sales.wf --format csv -c "select * from s order by a"
expect "also read-only" 0 $'count\n2' --readonly sales.wf --format csv -c "select count(*) from s"
complains "which takes no changes" 1 '25006.*read-only' --readonly sales.wf -c "insert into s values (3)"
[ ! -e sales.wf.log ]
note $? "no log is left"
prints "check says what it saw" '^│ s  .*fine' check sales.wf
complains "a second writer" 0 '55006.*sales.wf" is in use by process' sales.wf -c ".shell $fox sales.wf -c 'select 1' || true"
echo "this is text, and quite a bit of it" > other.wf
complains "a foreign file" 1 '42809.*not a Warpfox database' other.wf -c "create table t (a integer)"
cp sales.wf short.wf && truncate -s 9000 short.wf
complains "a truncated file" 1 'XX001.*shorter' short.wf -c "select 1"
complains "a folder" 1 '42809' . -c "select 1"
complains "no such folder" 1 '58P01' nowhere/a.wf -c "select 1"
rm -f sales.wf other.wf other.wf.log short.wf short.wf.log
complains "parquet file" 1 '0A000.*Parquet' data.parquet
[ ! -e data.parquet ]
note $? "nothing was created"

# --- formats ---
expect "csv" 0 'id,name,price,ok,f
1,plain,1.50,true,0.5
2,"a,""b""",,false,10000000000
3,"",0.00,,
,,-2.25,true,-1' --format csv -c "$t" -c "select * from t"
expect "tsv" 0 $'id\tname\n1\tplain\n2\ta,"b"\n3\t\n\\N\t\\N' --format tsv -c "$t" -c "select id, name from t"
expect "json" 0 '[{"id":1,"name":"plain","price":1.50,"ok":true,"f":0.5},
 {"id":2,"name":"a,\"b\"","price":null,"ok":false,"f":10000000000},
 {"id":3,"name":"","price":0.00,"ok":null,"f":null},
 {"id":null,"name":null,"price":-2.25,"ok":true,"f":-1}]' --format json -c "$t" -c "select * from t"
expect "json without rows" 0 '[]' --format json -c "$t" -c "select id from t where id > 99"
expect "jsonl" 0 '{"id":1,"ok":true}
{"id":2,"ok":false}' --format jsonl -c "$t" -c "select id, ok from t where id < 3 order by id"
expect "csv quotes what holds a line's end" 0 $'x\n"a\rb"\n"c\nd"\n"e,f"' --format csv -c "select E'a\\rb' as x union all select E'c\\nd' union all select 'e,f'"
expect "try_cast is named as a cast is" 0 $'int4,x\n7,' --format csv -c "select try_cast('7' as integer), try_cast(x as integer) from (select 'a' as x) t"
expect "csv names too" 0 $'"a\rb"\n1' --format csv -c $'select 1 as "a\rb"'
expect "json of what JSON has no numbers for" 0 '{"a":"NaN","b":"Infinity","c":"-Infinity","d":"NaN","e":"-Infinity","f":1.5}' --format jsonl \
    -c "select 'nan'::float8 as a, 'inf'::float8 as b, '-inf'::float8 as c, 'nan'::real as d, '-inf'::real as e, 1.5::real as f"
expect "json, all of it" 0 '[{"a":"NaN"},
 {"a":null}]' --format json -c "select 'nan'::float8 as a union all select null"
expect "json escapes" 0 '{"x":"tab\tline\n\"q\" \\"}' --format jsonl -c "select E'tab\tline\n\"q\" \\\\' as x"
expect "markdown" 0 '| id | name |
|---:|---|
| 1 | plain |
| 3 |  |' --format markdown -c "$t" -c "select id, name from t where id <> 2 order by id"
expect "line" 0 '  id = 1
name = plain

  id = NULL
name = NULL' --format line -c "$t" -c "select id, name from t where id = 1 or id is null order by id"

# --- boxes ---
"$fox" -c "$t" -c "select id, name, ok from t" >"$tmp/out" 2>"$tmp/err"
head -n 9 "$tmp/out" >"$tmp/head"
cat >"$tmp/wanted" <<'BOX'
┌─────────┬───────┬─────────┐
│      id │ name  │ ok      │
│ integer │ text  │ boolean │
├─────────┼───────┼─────────┤
│       1 │ plain │ true    │
│       2 │ a,"b" │ false   │
│       3 │       │ NULL    │
│    NULL │ NULL  │ true    │
└─────────┴───────┴─────────┘
BOX
cmp -s "$tmp/head" "$tmp/wanted"
note $? "box" "$(cat "$tmp/out" "$tmp/err")"
grep -Eq '^\(4 rows, [0-9.]+ ms, cpu\)$' "$tmp/out"
note $? "footer" "$(tail -n 1 "$tmp/out")"
prints "one row" '^\(1 row, ' -c "select 1"
prints "ascii" '^\+-+\+$' --ascii -c "select 1"
prints "cjk box" '^│ 日本 │$' -c "select '日本' as x"
prints "rounds of a recursion" '^t 1,[0-9]+,2,[0-9]+,[0-9]+,[0-9]+,' --format csv -d cpu -c "explain (rounds) select * from logiql('e(1, 2). e(2, 3). e(3, 4). e(4, 2). e(2, 1). t(x, y) <- e(x, y). t(x, z) <- t(x, y), e(y, z). _(x, y) <- t(x, y).')"
prints "rounds below the steps" '^c 1 +all +[0-9]+ +[0-9]+ +[0-9]+ ' -d cpu -c 'explain analyze with recursive c(a) as (select 1 union select a % 20 + 1 from c) select sum(a) from c'
prints "EXPLAIN is plain lines" '^Project ' -c "explain select 1 as x"
"$fox" -c "$t" -c "explain (opcodes) select id + 1, id + 2, id + 3, id + 4, id + 5, id + 6, id + 7, id + 8, id * 2, id * 3,
    id * 4, id * 5, id * 6, id * 7, id * 8, id * 9, id - 1, id - 2, id - 3, id - 4, id - 5, id - 6, id - 7 from t" >"$tmp/out" 2>&1
[ "$(wc -l <"$tmp/out")" -gt 45 ]
note $? "EXPLAIN is never cut" "$(cat "$tmp/out")"
prints "control characters" '│ a\\nb\\tc │' -c "select E'a\nb\tc' as x"

# Its lines fit the terminal: numbers in 80 columns, what is said in words on as many lines as it takes.
COLUMNS=80 "$fox" -c "$t" -c "explain analyze select count(*), id + 1111111111, 'a long text that stands in the plan', name from t where id > 1 and name <> 'nobody' and price is not null
    group by 2, name order by 1, 2" >"$tmp/out" 2>&1
awk 'length($0) > 80 { bad = 1 } END { exit bad }' "$tmp/out" && grep -q '^step  *time  *floor  *rows in' "$tmp/out" && grep -Eq '^ +0 +[0-9.]+ ms +[0-9.]+ ms +[0-9]+ ' "$tmp/out"
note $? "EXPLAIN ANALYZE fits the terminal" "$(cat "$tmp/out")"
COLUMNS=30 "$fox" -c "explain select 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' as x, 'ä ä ä ä ä ä ä ä ä ä ä ä ä ä' as y" >"$tmp/out" 2>&1
LC_ALL=C.UTF-8 sed 's/[^ -~]/#/g' "$tmp/out" | awk 'length($0) > 30 { bad = 1 } END { exit bad }' && [ "$(tr -d ' \n' <"$tmp/out" | grep -c 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')" = 1 ]
note $? "words longer than the line" "$(cat "$tmp/out")"
simt="$(dirname "$fox")/libcuda-simt.so"
if [ ! -e "$simt" ] && ! ls /dev/nvidia0 >/dev/null 2>&1; then
    "$fox" -c "explain analyze select 1" >"$tmp/out" 2>&1
    ! grep -q 'too few rows' "$tmp/out" && grep -Eq '^why there: .*(driver|GPU)' "$tmp/out"
    note $? "no GPU is said to rest where there is none" "$(cat "$tmp/out")"
else
    WARPFOX_CUDA=$simt "$fox" -c "explain analyze select 1" >"$tmp/out" 2>&1
    grep -q '^why there: too few rows to start the GPU for$' "$tmp/out"
    note $? "a GPU that rests" "$(cat "$tmp/out")"
    WARPFOX_CUDA=/nowhere/libcuda.so "$fox" -c "explain analyze select 1" >"$tmp/out" 2>&1
    grep -q '^why there: WARPFOX_CUDA=/nowhere/libcuda.so cannot be loaded$' "$tmp/out"
    note $? "no GPU is said to rest where there is none" "$(cat "$tmp/out")"
    for room in 128 64K; do # a card that is nearly full
        SIMT_MEMORY=$room WARPFOX_CUDA=$simt "$fox" devices >"$tmp/out" 2>&1 && grep -q '^gpu: simt' "$tmp/out" &&
            grep -q 'pinned copies could not be measured' "$tmp/out" && ! grep -q 'device read' "$tmp/out"
        note $? "devices: a card with $room bytes" "$(cat "$tmp/out")"
    done
    gone="create table r as select i as a, i % 10 as g from generate_series(1, 1000) s(i); delete from r where a > 990"
    for query in "select g, count(*) from r group by g" "select count(*) from r" "select g, max(a) from r where a > 500 group by g" \
        "select a from r where a > 500 order by a limit 3" "select count(*) from r join r u on r.a = u.a"; do
        WARPFOX_CUDA=$simt "$fox" -d gpu -c "$gone" -c "explain analyze $query" >"$tmp/out" 2>&1
        # each row that is told is that of the CPU, and scans always tell theirs
        ! grep -E '^ +(Scan|Filter|Join|Sort|Project).*actual' "$tmp/out" | grep -Evq 'actual (990|490|3)\]' && grep -Eq 'Scan r.*actual 990\]' "$tmp/out" &&
            grep -Eq 'gpu (vm|woven): ' "$tmp/out" # woven where an earlier run left the kernel
        note $? "EXPLAIN ANALYZE on the GPU counts rows, not groups: $query" "$(cat "$tmp/out")"
    done
fi

{
    echo "create table n (a integer); insert into n values (0)"
    for i in $(seq 1 99); do printf ', (%d)' "$i"; done
    echo ";"
} >"$tmp/hundred.sql"
"$fox" -f "$tmp/hundred.sql" -c "select a from n order by a" >"$tmp/out" 2>"$tmp/err"
rows=$(grep -cE '^│ +[0-9]+ │$' "$tmp/out")
[ "$rows" = 40 ] && grep -Eq '^│ +19 │$' "$tmp/out" && grep -Eq '^│ +80 │$' "$tmp/out" && ! grep -Eq '^│ +(20|79) │$' "$tmp/out"
note $? "first and last 20 rows" "$(cat "$tmp/out")"
grep -q '^(100 rows, 40 shown, ' "$tmp/out"
note $? "the total" "$(tail -n 1 "$tmp/out")"
# 100 rows joined with themselves twice: computed while shown, through a small budget
million="select x.a * 10000 + y.a * 100 + z.a as v from n x join n y on x.a * 0 = y.a * 0 join n z on y.a * 0 = z.a * 0"
"$fox" --memory 16MB -f "$tmp/hundred.sql" -c "$million" >"$tmp/out" 2>"$tmp/err"
[ "$(grep -cE '^│ +[0-9]+ │$' "$tmp/out")" = 40 ] && grep -q '^(1000000 rows, 40 shown, ' "$tmp/out"
note $? "a long result in a box" "$(cat "$tmp/err"; tail -n 3 "$tmp/out")"
[ "$("$fox" --memory 16MB --format csv -f "$tmp/hundred.sql" -c "$million" | wc -l)" = 1000001 ]
note $? "a long result as csv"
"$fox" --format csv -f "$tmp/hundred.sql" -c "set result_bytes = 40" -c "select 1000 / (a - 90) from n" >"$tmp/out" 2>"$tmp/err"
[ $? = 1 ] && [ "$(head -n 2 "$tmp/out" | tail -n 1)" = -11 ] && grep -q '^ERROR 22012' "$tmp/err"
note $? "an error after some rows" "$(cat "$tmp/out" "$tmp/err")"
timeout 20 bash -c "\"$fox\" --format csv -f '$tmp/hundred.sql' -c '$million' | head -n 2" >"$tmp/out" 2>&1
[ "$(wc -l <"$tmp/out")" = 2 ]
note $? "a reader that leaves early" "$(cat "$tmp/out")"
COLUMNS=40 "$fox" -c "select 'a long text that does not fit into forty columns' as x, 1 as y" >"$tmp/out" 2>&1
LC_ALL=C.UTF-8 sed 's/[^ -~]/#/g; /^(/d' "$tmp/out" | awk 'length($0) > 40 { bad = 1 } END { exit bad }' && grep -q '…' "$tmp/out"
note $? "fits the terminal" "$(cat "$tmp/out")"
COLUMNS=40 "$fox" -c "select 11111 as a, 1 as b, 1 as c, 1 as d, 1 as e, 1 as f, 1 as g" >"$tmp/out" 2>&1
grep -Eq '^\(1 row, [0-9] of 7 columns shown, ' "$tmp/out"
note $? "hidden columns are counted" "$(cat "$tmp/out")"

# --- COPY TO ---
c="create table c (a int, b boolean, s text, d date); insert into c values (1, true, 'x,y', '2024-01-01'), (2, false, 'q\"z', null), (3, null, '', null), (4, true, null, null)"
expect "COPY TO STDOUT" 0 '1,t,"x,y",2024-01-01
2,f,"q""z",
3,,"",
4,t,,' -c "$c" -c "copy c to stdout"
expect "COPY TO with options" 0 's;a
x,y;1
"q""z";2
;3
NULL;4' -c "$c" -c "copy c (s, a) to stdout (header, delimiter ';', null 'NULL')"
expect "COPY of a query, quotes forced" 0 '"4";t
"3";' -c "$c" -c "copy (select a, b from c where a > 2 order by a desc) to stdout (delimiter ';', force_quote (a))"
expect "COPY there and back" 0 'a,b,s,d
1,true,"x,y",2024-01-01
2,false,"q""z",
3,,"",
4,true,,' --format csv -c "$c" -c "copy c to '$tmp/c.csv' (header)" -c "create table e (a int, b boolean, s text, d date)" \
    -c "copy e from '$tmp/c.csv' (header)" -c "select * from e order by a"
expect "tbl there and back" 0 'n
2' --format csv -c "$c" -c "copy c (a, d) to '$tmp/c.tbl'" -c "create table e (a int, d date)" \
    -c "copy e from '$tmp/c.tbl'" -c "select count(*) as n from e join c on e.a = c.a where e.d is null and c.a < 4"
complains "tbl has no quotes" 1 '^ERROR 22P04' -c "create table v (s text)" -c "insert into v values ('a|b')" -c "copy v to '$tmp/v.tbl'"
[ ! -e "$tmp/v.tbl" ]
note $? "a failed COPY TO leaves no file"
complains "COPY TO nowhere" 1 '^ERROR 58P01' -c "$c" -c "copy c to '$tmp/none/c.csv'"
complains "COPY TO names its columns" 1 '^ERROR 42703' -c "$c" -c "copy c (zz) to stdout"
ln -s "$tmp/c.csv" "$tmp/link.csv"
expect "COPY TO a link writes what it names" 0 '' -c "$c" -c "copy c (a) to '$tmp/link.csv'"
[ -L "$tmp/link.csv" ] && [ "$(wc -l <"$tmp/c.csv")" = 4 ]
note $? "the link is still one"

# --- files in FROM ---
printf 'id,name,price,day\n1,ann,1.5,2024-01-01\n2,"bob, jr",2,2024-02-01\n3,,,\n' >"$tmp/people.csv"
printf '1|a b|\n2|c|\n' >"$tmp/pairs.tbl"
printf 'x;y\nfoo;bar\nbaz;qux\n' >"$tmp/words.csv"
printf '5\t6\n7\t8\n' >"$tmp/tabs.tsv"
{ echo "n,t"; seq 1 200000 | sed 's/.*/&,w&/'; echo "4.5,w"; } >"$tmp/late.csv"
: >"$tmp/empty.csv"
expect "a file in FROM" 0 'id,name,price,day
1,ann,1.5,2024-01-01
2,"bob, jr",2,2024-02-01
3,,,' --format csv -c "from '$tmp/people.csv'"
complains "what was found out about it" 0 \
    "^NOTICE:  .*people.csv: \(FORMAT csv, DELIMITER ',', QUOTE '\"', HEADER true\), columns \(\"id\" integer, \"name\" text, \"price\" double precision, \"day\" date\)" \
    -c "from '$tmp/people.csv'"
expect "tbl and header by themselves" 0 'column0,column1,y
1,a b,bar
1,a b,qux' --format csv -c "select p.*, w.y from '$tmp/pairs.tbl' p, '$tmp/words.csv' w where p.column0 = 1 order by y"
expect "tabs, no header" 0 'sum
12' --format csv -c "select sum(column0) from '$tmp/tabs.tsv'"
complains "types follow a sample" 1 'late.csv, line 200002, column 1 \(n\): "4.5" is not an integer' -c "select count(*), max(n) from '$tmp/late.csv'"
complains "and the file is pointed at" 1 '^ {27}\^$' -c "select max(n) from '$tmp/late.csv'"
complains "and the option that helps is named" 1 '^HINT: .*sample_size => -1' -c "select count(*), max(n) from '$tmp/late.csv'"
expect "types follow the whole file where asked to" 0 'count,max
200001,200000' --format csv -c "select count(*), max(n) from read_csv('$tmp/late.csv', sample_size => -1)"
{ echo "n,t"; yes '123,abc' | head -c 48000000; echo "4.5,w"; } >"$tmp/much.csv"
gzip -1 <"$tmp/much.csv" >"$tmp/much.csv.gz"
expect "of an archive, too, and the memory that takes is small" 0 'count,max
6000001,123' --memory 16MB --threads 2 --format csv -c "select count(*), max(n) from read_csv('$tmp/much.csv.gz', sample_size => -1)"
complains "and a timeout ends it" 1 '57014.*timeout' -c "set statement_timeout = 50" -c "select count(*) from read_csv('$tmp/much.csv.gz', sample_size => -1)"
rm "$tmp/much.csv" "$tmp/much.csv.gz"
expect "columns not asked for are not looked at" 0 'count,max
200001,w99999' --format csv -c "select count(*), max(t) from '$tmp/late.csv'"
expect "a limit reads the beginning" 0 'n,t
1,w1' --format csv -c "select * from '$tmp/late.csv' limit 1"
{ echo "n,g,t"; awk 'BEGIN { for (i = 0; i < 3000000; i++) print i "," i % 7 ",text of some length " i }'; } >"$tmp/long.csv"
expect "a file larger than the memory" 0 'g,n,s
0,428572,642857357142
3,428571,642855642858' --memory 48MB --format csv -c "select g, count(*) as n, sum(n) as s from '$tmp/long.csv' group by g having g % 3 = 0 and g < 6 order by g"
expect "the first of its order" 0 'n,t
0,text of some length 0
1,text of some length 1' --memory 48MB --format csv -c "select n, t from read_csv('$tmp/long.csv', types => {'n': 'bigint'}) order by n limit 2"
gzip -1 "$tmp/long.csv"
expect "and an archive of one" 0 'n,m
3000000,79888890' --memory 48MB --format csv -c "select count(*) as n, sum(length(t)) as m from '$tmp/long.csv.gz'"
rm "$tmp/long.csv.gz"
piped "a file from standard input, twice" 0 $'a,b\n1,2\n3,4' $'a,b\n1,4\n3,4' --format csv -c "with f as (from '/dev/stdin') select x.a, y.b from f x, f y where y.b > 3 order by 1"
expect "read_csv with options" 0 'column0
x
foo
baz' --format csv -c "select column0 from read_csv('$tmp/words.csv', header => false, delimiter => ';')"
expect "DESCRIBE a file" 0 'column_name,column_type
id,integer
name,text
price,double precision
day,date' --format csv -c "describe '$tmp/people.csv'"
expect "SUMMARIZE" 0 'column_name,min,max,distinct_count,count,null_percentage
id,1,3,3,3,0.00
name,ann,"bob, jr",2,3,33.33' --format csv -c "select * exclude (column_type, avg, std) from (summarize select id, name from '$tmp/people.csv')"
expect "an empty file" 0 'column0' --format csv -c "from '$tmp/empty.csv'"
complains "a missing file" 1 '^ERROR 58P01' -c "from '$tmp/nothing.csv'"
complains "an unknown option" 1 '^ERROR 22023' -c "from read_csv('$tmp/words.csv', colour => 'red')"

# --- errors ---
complains "error text" 1 '^ERROR 42703: column "nme" does not exist$' -c "$t" -c "select nme from t"
complains "line and caret" 1 '^LINE 1: select nme from t$' -c "$t" -c "select nme from t"
complains "caret" 1 '^               \^$' -c "$t" -c "select nme from t"
complains "hint" 1 '^HINT: .*"?name"?' -c "$t" -c "select nme from t"
two="create table p (k bigint, t text, primary key (k, t)); create table c (a int, b text, foreign key (a, b) references p); insert into p select i, 'x' from generate_series(1, 200000) i"
complains "a reference names the key" 1 'HINT: +Key \(a, b\)=\(5, y\) is not present in table "p"' -c "$two" -c "insert into c values (5, 'x'), (5, 'y')"
complains "of many rows, too" 1 'HINT: +Key \(a, b\)=\(200001, x\) is not present in table "p"' -c "$two" -c "insert into c select i, 'x' from generate_series(1, 200009) i"
complains "the key of a row that is referred to" 1 'HINT: +Key \(k, t\)=\(7, x\) is still referenced from table "c"' -c "$two" -c "insert into c values (7, 'x')" -c "delete from p where k = 7"
complains "of many rows, too" 1 'HINT: +Key \(k, t\)=\(1, x\) is still referenced from table "c"' -c "$two" -c "insert into c select i, 'x' from generate_series(1, 200000) i" -c "delete from p"
complains "and of a key that changes" 1 'HINT: +Key \(k, t\)=\(7, x\) is still referenced' -c "$two" -c "insert into c values (7, 'x')" -c "update p set k = 0 where k = 7"
t0="$t; create view v as select                                10 / (id - id) as y from t; create view w as select * from v"
complains "a view fails where it is named" 1 '^                             \^$' -c "$t0" -c "select y + 1 from    v where y > 0"
complains "a view of a view" 1 '^                      \^$' -c "$t0" -c "select * from w"
printf 'a\n1\n' > "$tmp/gone.csv"
complains "a view whose file is gone" 1 '^                      \^$' -c "create view v as select                  * from '$tmp/gone.csv'" -c ".shell rm $tmp/gone.csv" -c "select * from v"
"$fox" -c "create table c (a integer check (1 / a > 0))" -c "insert into c values (0)" 2>"$tmp/err"
! grep -q LINE "$tmp/err" && grep -q 22012 "$tmp/err"
note $? "no caret into the text of a CHECK" "$(cat "$tmp/err")"
complains "unknown table" 1 '^ERROR 42P01: .*"tt"' -c "$t" -c "select * from tt"
complains "syntax" 1 '^ERROR 42601: ' -c "select from from"
complains "division by zero" 1 '^ERROR 22012: ' -c "$t" -c "select 1 / (id - id) from t"
complains "overflow" 1 '^ERROR 22003: ' -c "select 2147483647 + 1"
complains "missing file" 1 '^ERROR 58P01: ' -f "$tmp/absent.sql"
complains "COPY of a missing file" 1 '^ERROR 58P01: .*absent.csv' -c "$t" -c "copy t from '$tmp/absent.csv'"
complains "COPY from parquet" 1 '^ERROR 0A000: .*Parquet' -c "$t" -c "copy t from 'x.parquet'"
expect "stops at the first error" 1 $'a\n1' --format csv -c "select 1 as a" -c "select x" -c "select 2 as b"
expect "--keep-going" 1 $'a\n1\nb\n2' --keep-going --format csv -c "select 1 as a" -c "select x" -c "select 2 as b"
expect "earlier statements of a text are kept" 1 $'a\n1' --format csv -c "select 1 as a; selec 2; select 3"
{
    echo "$t"
    echo "insert into t (name) values ('x')"
    for i in $(seq 1 20000); do printf ", ('%0200d')" "$i"; done
} >"$tmp/large.sql"
complains "out of memory" 1 'ERROR 53200: ' --memory 1MB -f "$tmp/large.sql"
expect "usable after it" 1 $'n\n0' --memory 1MB --keep-going --format csv -f "$tmp/large.sql" -c "select count(*) - 4 as n from t"
printf 'select 1 as a;\n\n-- a remark\nselect\n  nothing;\n' >"$tmp/bad.sql"
complains "file and line" 1 "bad.sql:5: ERROR 42703" -f "$tmp/bad.sql"
printf 'select \xff;' >"$tmp/utf8.sql"
complains "invalid UTF-8" 1 '^.*ERROR 22021: ' -f "$tmp/utf8.sql"
printf 'select 1\0;' >"$tmp/nul.sql"
complains "NUL byte" 1 'ERROR 22021: ' -f "$tmp/nul.sql"

complains "a parameter beyond 32 bits" 1 '^ERROR 42P02: there is no parameter \$99999999999: the highest number is 65535$' -c 'select 1 + $99999999999'
complains "and its place" 1 '^                   \^$' -c 'select 1 + $99999999999'
complains "a parameter that 32 bits take for another" 1 '^ERROR 42P02: there is no parameter \$4294967297' -c 'prepare p as select $4294967297::int'
{
    echo "create table t (a int); create view v0 as select * from t;"
    for i in $(seq 1 260); do echo "create view v$i as select * from v$((i - 1));"; done
} >"$tmp/views.sql"
complains "views that nest too deeply" 1 'views may nest at most 249 levels deep$' -f "$tmp/views.sql"
deep=1
for _ in $(seq 1 600); do deep="(select $deep)"; done
complains "subqueries that do" 1 'subqueries may nest at most 499 levels deep$' -c "select $deep"
deep=t
for i in $(seq 1 1100); do deep="($deep join t t$i on true)"; done
complains "joins that do" 1 'joins may nest at most 998 levels deep$' -c "create table t (a int)" -c "select 1 from $deep"

# Statements there are not yet, by PostgreSQL's names for them.
while IFS='|' read -r tag sql; do
    complains "no $tag" 1 "^ERROR 0A000: not supported yet: $tag\$" -c "$sql"
done <<'TAGS'
CREATE TRIGGER|create trigger t before insert on x for each row execute function f()
CREATE EVENT TRIGGER|create event trigger e on ddl_command_end execute function f()
ALTER EVENT TRIGGER|alter event trigger e disable
LISTEN|listen x
LOCK TABLE|lock table x
DISCARD|discard all
DO|do $$ begin end $$
CREATE FUNCTION|create function f() returns int language sql as 'select 1'
CREATE PROCEDURE|create procedure f() language sql as 'select 1'
ALTER PROCEDURE|alter procedure f() stable
CREATE AGGREGATE|create aggregate a(int) (sfunc = f, stype = int)
CREATE OPERATOR|create operator + (function = f, leftarg = int)
CREATE OPERATOR CLASS|create operator class c for type int using btree as operator 1 <
ALTER OPERATOR FAMILY|alter operator family c using btree add operator 1 < (int, int)
CREATE TYPE|create type t as enum ('a')
CREATE TYPE|create type t as (a int)
CREATE TYPE|create type t as range (subtype = int)
ALTER TYPE|alter type t add value 'b'
CREATE COLLATION|create collation c (locale = 'C')
CREATE TEXT SEARCH CONFIGURATION|create text search configuration c (parser = p)
ALTER TEXT SEARCH DICTIONARY|alter text search dictionary c (a = b)
ALTER ROLE|alter role r set a = 1
REVOKE|revoke select on t from r
REVOKE ROLE|revoke r from s
CREATE DATABASE|create database d
ALTER DATABASE|alter database d refresh collation version
DROP DATABASE|drop database d
CREATE TABLESPACE|create tablespace t location '/x'
ALTER TABLESPACE|alter tablespace t set (a = 1)
ALTER EXTENSION|alter extension e add table t
CREATE FOREIGN DATA WRAPPER|create foreign data wrapper w
CREATE SERVER|create server s foreign data wrapper w
CREATE RULE|create rule r as on insert to t do nothing
CREATE STATISTICS|create statistics s on a, b from t
CREATE ACCESS METHOD|create access method m type table handler h
SECURITY LABEL|security label on table t is 'x'
REFRESH MATERIALIZED VIEW|refresh materialized view v
MOVE|move c
CLOSE CURSOR|close c
ALTER FUNCTION|alter function f() owner to r
ALTER SCHEMA|alter schema s owner to r
ALTER TRIGGER|alter trigger t on x depends on extension e
DROP MATERIALIZED VIEW|drop materialized view v
DROP EVENT TRIGGER|drop event trigger e
DROP STATISTICS|drop statistics s
DROP SERVER|drop server s
DROP TEXT SEARCH PARSER|drop text search parser p
DROP OPERATOR FAMILY|drop operator family c using btree
ALTER DOMAIN|alter domain r rename to s
ALTER TYPE|alter type t set schema g
PREPARE TRANSACTION|prepare transaction 'x'
COMMIT PREPARED|commit prepared 'x'
TAGS

# --- COPY ---
printf 'id,name\n1,one\n2,"two, too"\n3,\n' >"$tmp/data.csv"
expect "COPY csv" 0 $'id,name\n1,one\n2,"two, too"\n3,' --format csv \
    -c "create table c (id integer, name text)" -c "copy c from '$tmp/data.csv' with (header)" -c "select * from c order by id"
printf 'id,name\n1,one\nx,two\n' >"$tmp/bad.csv"
complains "bad line names file, line, column" 1 '22P02.*bad.csv.*3.*' \
    -c "create table c (id integer, name text)" -c "copy c from '$tmp/bad.csv' with (header)"

# --- pipes and scripts ---
piped "piped input" 0 $'create table p (a integer);\ninsert into p values (1), (2);\nselect sum(a) as s from p' $'s\n3' --format csv
piped "piped input stops at an error" 1 $'select 1 as a;\nselect x;\nselect 2 as b;' $'a\n1' --format csv
piped "empty input" 0 '' ''
piped "blank input" 0 $'\n -- nothing\n;;\n' ''
piped "commands in a script" 0 $'.mode csv\nselect 1 as a;\n.mode jsonl\nselect 2 as b;\n.quit\nselect 3;' $'a\n1\n{"b":2}'
piped "-f -" 0 'select 5 as a' $'a\n5' --format csv -f -
printf '.mode csv\nselect 7 as a;\n' >"$tmp/in.sql"
piped ".read" 0 ".read $tmp/in.sql" $'a\n7'
piped "semicolons in quotes" 0 "select ';' as a; select \$\$;\$\$ as b" $'a\n;\nb\n;' --format csv

printf '.mode csv\nselect 1 as a;\n.read %s\n' "$tmp/endless.sql" >"$tmp/endless.sql"
timeout 20 "$fox" -f "$tmp/endless.sql" >"$tmp/out" 2>"$tmp/err"
rc=$?
[ "$rc" = 1 ] && [ "$(grep -c '^1$' "$tmp/out")" = 17 ] && grep -q 'nested too deeply' "$tmp/err"
note $? "a script that reads itself" "status $rc; $(head -n 5 "$tmp/err")"
printf '.read %s\n' "$tmp/in.sql" >"$tmp/twice.sql"
piped "scripts one after the other nest no deeper" 0 "$(for _ in $(seq 20); do echo ".read $tmp/twice.sql"; done)" \
    "$(for _ in $(seq 20); do printf 'a\n7\n'; done)"

# --- commands ---
piped ".tables" 0 $'create table b (x integer); create table a (y text);\n.tables' $'a\nb'
piped ".schema" 0 $'create table b (x integer not null, "Y z" decimal(5,2));\n.schema b' $'CREATE TABLE b (\n    x integer NOT NULL,\n    "Y z" decimal(5,2)\n);'
piped 'a table without columns' 0 $'create table b ();\ncopy b from stdin;\n\n\n\\.\nselect count(*) as n from b;\n\\d b' $'n\n2\nCREATE TABLE b (\n);' --format csv
piped '\d' 0 $'create table b (x integer);\n\\d\n\\d b' $'b\nCREATE TABLE b (\n    x integer\n);'
piped '\d of anything' 0 $'create schema o; create table o.h (i int); create table "Y z" (a int); create sequence s; create index ix on "Y z" (a);
\\d o.h\n\\d "Y z"\n\\d s\n\\d ix\n\\d S\n\\dt' $'CREATE TABLE o.h (\n    i integer\n);\nCREATE TABLE "Y z" (\n    a integer\n);
CREATE SEQUENCE s AS bigint START WITH 1 INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807;\nCREATE INDEX ix ON "Y z" (a);
CREATE SEQUENCE s AS bigint START WITH 1 INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807;\nY z\no.h'
piped ".schema of several schemas" 0 $'create schema o; create table o.h (i int); create table a (j int);\n.schema' $'CREATE TABLE a (\n    j integer\n);\nCREATE TABLE o.h (\n    i integer\n);'
piped ".tables of an open transaction" 0 $'begin; create table a (x integer);\n.tables\nrollback;\n.tables' 'a'
piped ".schema of nothing" 1 '.schema nix' ''
piped ".explain" 0 $'.explain\n.explain off\n.explain' $'explain is off\nexplain is off'
piped "exit" 0 $'exit\nselect 1;' ''
piped "quit;" 0 $'quit;\nselect 1;' ''
piped "unknown command" 1 '.nonsense' ''
grep -q 'unknown command' "$tmp/err"
note $? "unknown command is named"
for word in .help help '\?'; do
    printf '%s\n' "$word" | "$fox" >"$tmp/out" 2>&1
    grep -q '\.schema' "$tmp/out"
    note $? "$word"
done
many=$'create table many as select i as a from generate_series(1, 100) s(i);\n'
rows() { # commands, then how many rows the box has
    printf '%s%s\nselect a from many order by a;\n' "$many" "$1" | "$fox" 2>&1 | grep -cE '^│ +[0-9]+ │$'
}
[ "$(rows '.maxrows 0')" = 100 ] && [ "$(rows '.maxrows 7')" = 7 ] && [ "$(rows '.maxrows 1')" = 1 ] && [ "$(rows '.maxrows 100')" = 100 ] && [ "$(rows '.maxrows')" = 40 ]
note $? ".maxrows" "$(rows '.maxrows 0') $(rows '.maxrows 7') $(rows '.maxrows 1') $(rows '.maxrows 100') $(rows '.maxrows')"
printf '%s.maxrows 5\nselect a from many order by a;\n' "$many" | "$fox" >"$tmp/out" 2>&1
[ "$(grep -oE '^│ +[0-9·]+ │$' "$tmp/out" | tr -cd '0-9·\n' | tr '\n' ' ')" = '1 2 3 · 99 100 ' ] && grep -q '^(100 rows, 5 shown, ' "$tmp/out"
note $? ".maxrows shows the first and the last" "$(cat "$tmp/out")"
piped ".maxrows takes numbers" 1 '.maxrows -1' ''
piped ".maxwidth says what it is" 0 $'.maxwidth 33\n.maxwidth' 'maxwidth is 33'
printf ".maxwidth 30\nselect 'a long text that does not fit into thirty columns' as x, 1 as y;\n" | "$fox" >"$tmp/out" 2>&1
LC_ALL=C.UTF-8 sed 's/[^ -~]/#/g; /^(/d' "$tmp/out" | awk 'length($0) > 30 { bad = 1 } END { exit bad }' && grep -q '…' "$tmp/out"
note $? ".maxwidth" "$(cat "$tmp/out")"
piped '\x' 0 $'\\x on\nselect 1 as a, 2 as bb;\n\\x off\n.mode csv\nselect 3 as c;' $' a = 1\nbb = 2\nc\n3'
piped '\x turns round' 0 $'\\x\nselect 1 as a;\n\\x\n\\x\nselect 2 as a;' $'a = 1\na = 2'
printf '\\timing\nselect 1;\n\\timing off\nselect 1;\n' | "$fox" --format none >"$tmp/out" 2>"$tmp/err"
[ "$(grep -c '^time [0-9.]* ms$' "$tmp/err")" = 1 ]
note $? '\timing' "$(cat "$tmp/err")"
"$fox" --timer -c "select pg_sleep(1.01)" 2>&1 | grep -Eq '^time 1\.[0-9]{3} s$'
note $? "a time of seconds"
piped ".output and back" 0 $'.mode csv\n.output '"$tmp/o1"$'\nselect 1 as a;\ncopy (select 5) to stdout;\n\\dt\n.output\nselect 2 as b;' $'b\n2'
[ "$(cat "$tmp/o1")" = $'a\n1\n5' ]
note $? ".output is in the file" "$(cat "$tmp/o1")"
piped '\o with blanks in the name, errors on stderr' 1 $'.mode csv\n\\o '"'$tmp/o 2'"$'\nselect 1 as a;\nselect nonsense;' ''
[ "$(cat "$tmp/o 2")" = $'a\n1' ]
note $? 'its file' "$(cat "$tmp/o 2")"
piped ".once" 0 $'.mode csv\n.once '"$tmp/o3"$'\nselect 1 as a;\nselect 2 as b;' $'b\n2'
[ "$(cat "$tmp/o3")" = $'a\n1' ]
note $? ".once is in the file" "$(cat "$tmp/o3")"
piped ".once into a program" 0 $'.mode csv\n.once | tr a-z A-Z\nselect 1 as a;\nselect 2 as b;' $'A\n1\nb\n2'
printf '%s.mode csv\n.once |head -n 1\nselect x.a from many x, many y, many z, many u;\nselect 2 as b;\n' "$many" | timeout 20 "$fox" >"$tmp/out" 2>"$tmp/err"
rc=$?
[ "$rc" = 0 ] && [ "$(cat "$tmp/out")" = $'a\nb\n2' ] && [ ! -s "$tmp/err" ]
note $? "a program that stops reading" "status $rc; $(cat "$tmp/out" "$tmp/err")"
piped ".output to nowhere" 1 ".output $tmp/none/o" ''
piped ".once of nothing" 1 '.once' ''
printf 'select 9 as a;\n' >"$tmp/o 2.sql"
piped '\i with blanks in the name' 0 $'\\i '"'$tmp/o 2.sql'" $'a\n9' --format csv
mkdir -p "$tmp/sub"
printf '.mode csv\n\\ir other.sql\n' >"$tmp/sub/one.sql"
printf 'select 11 as a;\n' >"$tmp/sub/other.sql"
piped '\ir' 0 "\\i $tmp/sub/one.sql" $'a\n11'
piped '\!' 0 $'\\! echo hello; echo "there  you"\n\\!echo so' $'hello\nthere  you\nso'
printf '#!/bin/sh\nsed -i "s/1/2/; s/;/ as edited;/" "$1"\n' >"$tmp/editor"
chmod +x "$tmp/editor"
VISUAL="$tmp/editor" piped '\e runs what the editor leaves' 0 $'select 1;\n\\e' $'?column?\n1\nedited\n2' --format csv
VISUAL=true piped '\e of nothing new runs nothing' 0 $'select 1;\n\\e' $'?column?\n1' --format csv
VISUAL=false piped '\e when the editor fails' 1 $'select 1;\n\\e' $'?column?\n1' --format csv
piped ".print" 0 $'.print "a  b"\n\\echo c' $'a  b\nc'
piped ".tables with a pattern" 0 $'create table aa (x int); create table ab (x int); create table b (x int);\n.tables a*' $'aa\nab'
piped '\dv and its kin' 0 $'create table t (a int primary key); create view v as select 1; create sequence s;\n\\dv\n\\ds\n\\di\n\\dn\n\\l\n\\du' \
    $'schema,name\npublic,v\nschema,name\npublic,s\nschema,name,table\npublic,t_pkey,t\nname\npublic\nname\nmemory\nname\nwarpfox' --format csv
piped '\dv with a pattern' 0 $'create view v_1 as select 1; create view vx1 as select 1;\n\\dv v_*' $'schema,name\npublic,v_1' --format csv
printf '\\df date_t*\n' | "$fox" | grep -q '^date_trunc '
note $? '\df'
for line in '.tabels|perhaps you meant .tables' '.maxrow 3|perhaps you meant .maxrows' '\copy t from x|COPY t FROM' '.import a b|COPY t FROM' '\g|end the statement' '\c other|one database'; do
    printf '%s\n' "${line%%|*}" | "$fox" >"$tmp/out" 2>"$tmp/err"
    [ $? = 1 ] && grep -qF -- "${line##*|}" "$tmp/err"
    note $? "${line%%|*} is answered" "$(cat "$tmp/err")"
done
printf '.timer on\nselect 1;\n.timer off\nselect 1;\n' | "$fox" --format none >"$tmp/out" 2>"$tmp/err"
[ "$(grep -c '^time ' "$tmp/err")" = 1 ]
note $? ".timer on and off"
printf '.explain on\nselect 1;\n' | "$fox" --format csv >"$tmp/out" 2>"$tmp/err"
[ "$(head -n 1 "$tmp/out")" = plan ]
note $? ".explain on" "$(cat "$tmp/out" "$tmp/err")"

# --- subcommands ---
prints "devices" 'worker threads: [0-9]+' devices
complains "devices takes nothing" 2 'takes no' devices all
complains "unknown benchmark" 2 'virginian' bench nonsense
complains "bench without a name" 2 'virginian' bench
complains "bench with an unknown option" 2 'bench: unknown option "--frmat"' bench tpch --frmat
complains "bench with an option of the shell only" 2 'unknown option "--timer"' bench tpch --timer
complains "the shell with an option of bench only" 2 'unknown option "--sf"' --sf 1
complains "bench with an option of another experiment" 2 'virginian takes no "--sf"' bench virginian --sf 1
complains "bench with two names" 2 'one experiment' bench tpch prim
complains "bench with a device there is not" 2 'no device "tpu"' bench prim -d tpu
complains "bench tpch with a device there is not" 2 'device' bench tpch -d tpu
complains "bench with bad memory" 2 'memory' bench tpch --memory lots
complains "bench with bad memory of the GPU" 2 'gpu_memory' bench prim -d cpu --gpu-memory lots
complains "bench with bad threads" 2 'threads' bench tpch --threads many
complains "bench with bad rows" 2 'positive' bench prim --rows 10x
complains "bench without a value" 2 '"--sf" needs a value' bench tpch --sf
prints "bench --help" '^ +-d, --device NAME' bench --help
prints "bench takes the settings of the shell" '"threads": 2, "device": "cpu"' bench tpch --sf=0.01 --queries 6 --runs 1 --json \
    -d cpu --threads 2 --memory 1GB --gpu-memory 1GB
if [ -r ../shared/corpus/graph/ol_cedge.csv ]; then
    expect "known answers of a graph" 0 $'count\n146120\ncount\n285431' --format csv -d cpu \
        -c "create table ol as select column0 as x, column1 as y from read_csv('../shared/corpus/graph/ol_cedge.csv', header => false)" \
        -c "select count(*) from logiql('p(x,y) <- ol(x,y). p(x,z) <- p(x,y), ol(y,z). _(x,y) <- p(x,y).')" \
        -c "select count(*) from logiql('s(x,y) <- ol(p,x), ol(p,y), x != y. s(x,y) <- ol(a,x), s(a,b), ol(b,y). _(x,y) <- s(x,y).')"
fi
if [ -r ../shared/corpus/graph/ego_facebook.csv ]; then
    expect "known answers of larger graphs" 0 $'count\n481121\ncount\n608090\ncount\n1612010\ncount\n1612010\nn\n30004668' --format csv -d cpu \
        -c "create table tg as select column0 as x, column1 as y from read_csv('../shared/corpus/graph/tg_cedge.csv', header => false)" \
        -c "create table fb as select column0 as x, column1 as y from read_csv('../shared/corpus/graph/ego_facebook.csv', header => false)" \
        -c "select count(*) from logiql('p(x,y) <- tg(x,y). p(x,z) <- p(x,y), tg(y,z). _(x,y) <- p(x,y).')" \
        -c "select count(*) from logiql('s(x,y) <- tg(p,x), tg(p,y), x != y. s(x,y) <- tg(a,x), s(a,b), tg(b,y). _(x,y) <- s(x,y).')" \
        -c "select count(*) from logiql('u(x,y) <- fb(x,y), x < y. u(x,y) <- fb(y,x), x < y. _(x,y,z) <- u(x,y), u(y,z), u(x,z).')" \
        -c "with u as (select distinct least(x,y) x, greatest(x,y) y from fb where x <> y) select count(*) from u a, u b, u c where a.y = b.x and a.x = c.x and b.y = c.y" \
        -c "select * from logiql('u(x,y) <- fb(x,y), x < y. u(x,y) <- fb(y,x), x < y. _[] = n <- agg<< n = count() >> u(x,y), u(y,z), u(x,z), u(x,w), u(y,w), u(z,w).')"
fi
if [ -r ../shared/corpus/graph/ego_facebook.csv ]; then
    triangles="select count(*) from u a, u b, u c where a.y = b.x and a.x = c.x and b.y = c.y"
    both="select count(*) / 6 as count from w a, w b, w c where a.y = b.x and a.x = c.x and b.y = c.y"
    cliques="select count(*) from u a, u b, u c, u d, u e, u f where a.y = b.x and a.x = c.x and b.y = c.y and d.x = a.x and e.x = a.y and f.x = b.y and d.y = e.y and e.y = f.y"
    counts=$'count\n1612010\ncount\n1612010\ncount\n30004668'
    for threads in 1 2; do
        expect "cliques of a graph in any memory, $threads threads" 0 "$counts"$'\n'"$counts"$'\n'"$counts"$'\n'"$counts" --format csv -d cpu --threads $threads \
            -c "create table fb as select column0 as x, column1 as y from read_csv('../shared/corpus/graph/ego_facebook.csv', header => false)" \
            -c "create table u as select distinct least(x, y) x, greatest(x, y) y from fb where x <> y" \
            -c "create table w as select x, y from u union all select y, x from u" \
            -c "set tries = computed" -c "$triangles" -c "$both" -c "$cliques" \
            -c "set statement_memory = '70kB'" -c "$triangles" -c "$both" -c "$cliques" \
            -c "set statement_memory = '350kB'" -c "$triangles" -c "$both" -c "$cliques" \
            -c "set tries = kept" -c "set statement_memory = 0" -c "$triangles" -c "$both" -c "$cliques"
    done
fi
# No parts of query 17 at this scale: no tuple there, a NULL in SQL.
prints "bench tpch in LogiQL" '"wrong": 0, "failed": 0' bench tpch --sf 0.01 --queries 1-16,18-22 --runs 1 --language logiql --json -d cpu
complains "bench tpch in another language" 2 'logiql' bench tpch --language prolog
complains "bench with a bad scale factor" 2 'positive' bench tpch --sf 1x
complains "bench with a scale factor out of range" 1 '0\.001 to 1000' bench tpch --sf 0.0001 --text duckdb
prints "bench tpch checks its answers" '^2 right, 0 wrong, 0 not checked, 0 failed$' bench tpch --sf 0.01 --queries 1,6 --runs 1
prints "bench tpch as JSON" '"query": 6, .*"answer": "right"' bench tpch --sf 0.01 --queries 5-6 --runs 1 --json
prints "bench tpch with a list of columns" '^1 right, 0 wrong' bench tpch --sf 0.01 --queries 6 --runs 1 --columns l_shipdate,l_discount,l_quantity,l_extendedprice
prints "bench ssb checks its answers" '^4 right, 0 wrong, 0 not checked, 0 failed$' bench ssb --sf 0.01 --queries 1.2-1.3,2.1,4.1 --runs 1
prints "bench ssb says what a query did" '^1\.1 +[0-9]+ +0 +0 +0\.000 +[0-9.]+ +[0-9]+% +[0-9.]+' bench ssb --sf 0.01 --queries 1.1 --runs 1 -d cpu
prints "bench ssb has operators" '^Aggregate +[0-9]+ +[0-9.]+ +[0-9.]+%' bench ssb --sf 0.01 --queries 1.1 --runs 1
prints "bench ssb profile as JSON" '"kernels": 0, "waits": 0, "steps_ms": .*"device_peak": 0' bench ssb --sf 0.01 --queries 1.1 --runs 1 --json -d cpu
prints "bench ssb draws" '^2 right' bench ssb --sf 0.01 --queries 1.1,1.2 --runs 1 --plot "$tmp/bars.svg"
[ "$(grep -c '<rect' "$tmp/bars.svg")" -gt 8 ] && tail -n 1 "$tmp/bars.svg" | grep -q '</svg>'
note $? "bench ssb's chart" "$(tail -n 3 "$tmp/bars.svg")"
complains "bench ssb draws where it cannot" 1 'cannot be written' bench ssb --sf 0.01 --queries 1.1 --runs 1 --plot "$tmp/no/bars.svg"
prints "bench tpch of another text" '^1 right, 0 wrong, 1 not checked, 0 failed$' bench tpch --sf 0.01 --queries 6,10 --runs 1 --text duckdb
prints "explain (steps) is a table" 'step .*operators .*kernel_ns .*device_peak' -c 'explain (steps) select 1'
prints "bench weave fuses five patterns" '^geometric mean of the patterns on cpu, against partition, compute, gather: ' bench weave --rows 3000 --runs 1 -d cpu
prints "bench weave sweeps" '"pattern": "sweep", "percent": 90, .*"way": "unfused"' bench weave --rows 1000 --runs 1 -d cpu --only sweep --json
prints "bench weave as Markdown" '^\| e \| cpu \| 0.0 \| fused' bench weave --rows 1000 --runs 1 -d cpu --only e --markdown --plot "$tmp/weave.svg"
tail -n 1 "$tmp/weave.svg" | grep -q '</svg>'
note $? "bench weave draws" "$(tail -n 3 "$tmp/weave.svg")"
prints "bench everyday asks all questions" '^time +quarter hours +cpu +[1-9]' bench everyday --rows 2000 --runs 1 -d cpu
prints "bench everyday as JSON" '"question":"small, number","device":"cpu","ok":true,"ms":[0-9]*[.][0-9]*[1-9]' bench everyday --rows 1000 --runs 1 -d cpu --only join --json
prints "bench everyday counts its questions" '^asked: 5; failed: 0$' bench everyday --rows 1000 --runs 1 -d cpu --only join
"$fox" bench everyday --rows 1000 --runs 1 -d cpu --only nosuch >"$tmp/out" 2>&1
[ $? = 1 ] && grep -q 'no kind or question is called nosuch' "$tmp/out"
note $? "bench everyday asks no question" "$(tail -n 3 "$tmp/out")"
if [ -e "$simt" ]; then # the virtual machine does not add months
    WARPFOX_CUDA=$simt "$fox" bench everyday --rows 1000 --runs 1 -d gpu --gpu-code vm --only "a month later" --json >"$tmp/out" 2>&1
    [ $? = 1 ] && grep -q '"question":"a month later","device":"gpu","ok":false' "$tmp/out" && grep -q '"asked":1,"failed":1' "$tmp/out"
    note $? "bench everyday fails where a question is refused" "$(tail -n 3 "$tmp/out")"
fi
prints "bench datalog checks its answers" ' right, 0 wrong, 0 not checked, 0 failed' bench datalog --rows 60 --runs 1 -d cpu
prints "bench datalog as JSON" '"program":"left","graph":"chain:9","device":"cpu","rounds":8,"tuples":36,.*"answer":"right"' bench datalog --graph chain:9 --only left --runs 1 -d cpu --json
printf '# a graph\n10 20\n20,30\n30\t10\n' >"$tmp/edges.txt"
prints "bench datalog reads edges" '^\| right \| edges.txt \| cpu \| 3 \| 9 .*\| right \|' bench datalog --graph "$tmp/edges.txt" --only right --runs 1 -d cpu --markdown
printf '1 2\n1 x\n' >"$tmp/edges.txt"
prints "bench datalog with many nodes" '^reach +tree:40000 +cpu .*right' bench datalog --graph tree:40000 --only reach --runs 1 -d cpu
complains "bench datalog with a bad file" 1 'edges.txt:2: two numbers are wanted' bench datalog --graph "$tmp/edges.txt" --runs 1 -d cpu
complains "bench datalog without a file" 1 'no graph "nowhere"' bench datalog --graph nowhere --runs 1 -d cpu
complains "bench datalog with a bad size" 1 'no graph has the size' bench datalog --graph grid:0 --runs 1 -d cpu
complains "bench datalog with no such program" 1 'no program "sorting"' bench datalog --only sorting --runs 1 -d cpu
prints "bench graph checks its answers" '^36 right, 0 wrong, 0 failed$' bench graph --rows 200 --runs 1 -d cpu --only count --plot "$tmp/graph.svg"
grep -q '>multiway, CPU<' "$tmp/graph.svg"
note $? "bench graph draws" "$(tail -n 3 "$tmp/graph.svg")"
prints "bench graph as JSON" '"pattern":"triangles","graph":"gnm:20,60",.*"way":"multiway","form":"list",.*"answer":"right"' bench graph --graph gnm:20,60 --only "triangles multiway list" --runs 1 -d cpu --json
printf '7 9\n9 7\n7 7\n9 11\n11 7\n' >"$tmp/edges.txt"
prints "bench graph in LogiQL" '^\| triangles \| edges.txt \| 3 \| cpu \| multiway \| list \| all \| - \| 1 .*\| right \|' bench graph --graph "$tmp/edges.txt" --language logiql --runs 1 -d cpu --markdown
complains "bench graph without such a pattern" 1 'graph has nothing called "squares"' bench graph --rows 20 --only squares --runs 1 -d cpu
complains "bench weave with a scale factor" 2 'weave takes no "--sf"' bench weave --sf 1
prints "bench ssb takes a flight" '^3 right, 0 wrong' bench ssb --sf 0.01 --queries 2 --runs 1
complains "bench ssb with texts" 2 'ssb takes no "--text"' bench ssb --text dbgen
complains "bench with columns that are no names" 2 'columns' bench ssb --columns "x'"
prints "bench tpch at another scale" '^1 right|0 right, 0 wrong, 1 not checked' bench tpch --sf 0.002 --queries 6 --runs 1 --text duckdb
mkdir -p "$tmp/answers"
printf 'revenue\n1193053.2253\n' >"$tmp/answers/q06.csv"
prints "bench tpch against a file" '1 right, 0 wrong' bench tpch --sf 0.01 --queries 6 --runs 1 --answers "$tmp/answers" --text duckdb
printf 'revenue\n1193053.2254\n' >"$tmp/answers/q06.csv"
"$fox" bench tpch --sf 0.01 --queries 6 --runs 1 --answers "$tmp/answers" --text duckdb >"$tmp/out" 2>&1
rc=$?
[ "$rc" = 1 ] && grep -q "WRONG.*column 1 is '1193053.2253' instead of '1193053.2254'" "$tmp/out"
note $? "bench tpch says what is wrong" "status $rc; $(cat "$tmp/out")"

# --- a terminal ---
typist="$(dirname "$fox")/typist"
if [ -x "$typist" ]; then
    # shellcheck source=tests/shell/prompt.sh
    . tests/shell/prompt.sh
fi

# --- COPY FROM STDIN ---
printf 'create table t (a integer, b text);\ncopy t from stdin (format csv);\n1,x\n2,"y;z"\n\\.\nselect * from t order by a;\n' >"$tmp/copy.sql"
expect "COPY FROM STDIN in a file" 0 'a,b
1,x
2,y;z' --format csv -f "$tmp/copy.sql"
got=$("$fox" --format csv <"$tmp/copy.sql" 2>&1)
[ "$got" = 'a,b
1,x
2,y;z' ]
note $? "COPY FROM STDIN in a pipe" "$got"
complains "COPY FROM STDIN of a bad line" 1 '22P02' -c "create table t (a integer)" -c 'copy t from stdin;
x
\.
'

got=$(echo 1 | "$fox" --format csv -c "create table t(a int); copy t from stdin (format csv); select a + 1 as b from t; select nonsense" 2>"$tmp/err")
[ $? = 1 ] && [ "$got" = 'b
2' ] && grep -q 42703 "$tmp/err"
note $? "COPY FROM STDIN in -c reads standard input, and the rest runs" "$got"
printf 'create table t (a int);\ncopy t from stdin;\nselect sum(a) as s from t;\n' >"$tmp/in.sql"
got=$(printf '1\n2\n' | "$fox" --format csv -f "$tmp/in.sql" 2>&1)
[ "$got" = 's
3' ]
note $? "COPY FROM STDIN in -f without lines of its own reads standard input" "$got"
got=$(printf '1\n2\n\\.\nnothing' | "$fox" --format csv -f "$tmp/in.sql" 2>&1)
[ "$got" = 's
3' ]
note $? "a line \\. ends standard input" "$got"
printf '1\n2\n\\.\n40\n50\n' >"$tmp/two.txt"
got=$("$fox" --format csv -c "create table t (a int); copy t from stdin; copy t from stdin; select sum(a) as s from t" <"$tmp/two.txt" 2>&1)
[ "$got" = 's
93' ]
note $? "two COPY FROM STDIN of one file" "$got"
got=$(printf 'x,y\n1,2\n' | "$fox" --format csv -c "select * from '/dev/stdin'" 2>"$tmp/err")
[ "$got" = 'x,y
1,2' ]
note $? "/dev/stdin as a file" "$got $(cat "$tmp/err")"
got=$("$fox" --format csv -c "select * from '/dev/stdin'" <"$tmp/data.csv" 2>/dev/null | head -n 1)
[ "$got" = 'id,name' ]
note $? "/dev/stdin that is a file" "$got"
got=$("$fox" --format csv -c "create table t (a int)" -c "copy t from '/dev/fd/63'" -c "select * from t" 63< <(printf '5\n') 2>&1)
[ "$got" = 'a
5' ]
note $? "process substitution" "$got"
mkfifo "$tmp/fifo"
(sleep 0.2; printf '7\n' >"$tmp/fifo") &
got=$(timeout 20 "$fox" --format csv -c "create table t (a int)" -c "copy t from '$tmp/fifo'" -c "select * from t" 2>&1)
[ "$got" = 'a
7' ]
note $? "a named pipe whose writer comes late" "$got"
wait
timeout 20 "$fox" -c "copy (select 8) to '$tmp/fifo'" & got=$(cat "$tmp/fifo")
wait
[ "$got" = 8 ]
note $? "COPY TO a named pipe" "$got"
complains "a pipe nobody writes to" 1 '57014' -c "set statement_timeout = 300" -c "select * from '$tmp/fifo'"
complains "a pipe nobody reads" 1 '57014' -c "set statement_timeout = 300" -c "copy (select 1) to '$tmp/fifo'"
yes 1,2 | timeout 20 "$fox" -c "set statement_timeout = 300" -c "select count(*) from '/dev/stdin'" >"$tmp/out" 2>"$tmp/err"
grep -q 57014 "$tmp/err"
note $? "a pipe that never ends" "$(cat "$tmp/err")"
yes 1,2 | timeout 20 "$fox" --memory 64MB -c "select count(*) from '/dev/stdin'" >"$tmp/out" 2>"$tmp/err"
grep -q 53200 "$tmp/err"
note $? "a pipe that never ends takes no more memory than it may" "$(cat "$tmp/err")"
timeout 20 "$fox" -c "set statement_timeout = 500" -c "copy (select * from generate_series(1, 1000000)) to stdout" 2>"$tmp/err" | (sleep 1.5; cat >/dev/null)
grep -q 57014 "$tmp/err"
note $? "a reader that sleeps" "$(cat "$tmp/err")"
"$fox" --format csv -c "select 1 as a" -c "copy (select 2) to '/dev/stdout'" -c "select 3 as b" >"$tmp/out" 2>&1
[ "$(cat "$tmp/out")" = 'a
1
2
b
3' ]
note $? "/dev/stdout is what is open, not opened anew" "$(cat "$tmp/out")"

# --- a row is found by its key, whatever the order of rows ---
for how in "k = 23757" "v = 'v77' and w = 77"; do
    "$fox" --format csv -c "create table kv(k bigint primary key, v text, w integer, unique(v, w))" \
        -c "insert into kv select (i * 7919::bigint) % 100003, 'v' || i, i from generate_series(1, 100000) i" \
        -c "explain analyze select k from kv where $how" >"$tmp/out" 2>&1
    grep -q '99999 rows skipped' "$tmp/out"
    note $? "a row is found by its key: $how" "$(cat "$tmp/out")"
done

# --- options of files, compressed files ---
printf 'a,b\n1,2\n3\n5,6\n' >"$tmp/short.csv"
complains "a short line names the option that helps" 1 'line 3: 1 field found, 2 expected' -c "from '$tmp/short.csv'"
grep -q 'null_padding => true' "$tmp/err"
note $? "null_padding is hinted at" "$(cat "$tmp/err")"
expect "null_padding" 0 $'a,b\n1,2\n3,\n5,6' --format csv -c "from read_csv('$tmp/short.csv', null_padding = true)"
expect "ignore_errors" 0 $'a,b\n1,2\n5,6' --format csv -c "from read_csv('$tmp/short.csv', ignore_errors => true)"
grep -q '1 line was left out' "$tmp/err"
note $? "lines left out are counted" "$(cat "$tmp/err")"
expect "types of columns" 0 $'a,b\n1.00,2\n,6' --format csv \
    -c "from read_csv('$tmp/short.csv', types = {'a': 'decimal(5,2)', \"b\": varchar}, nullstr = ['5', '-'], ignore_errors = true)"
expect "all columns" 0 $'x,y\n1,2\n5,6' --format csv -c "select x, y from read_csv_auto('$tmp/short.csv', columns = {'x': 'bigint', 'y': 'text'}, header = true, ignore_errors = true)"
expect "names, skip, quote, delim" 0 $'q,column1\n1,2\n3,\n5,6' --format csv \
    -c "from read_csv('$tmp/short.csv', names = ['q'], skip = 1, quote = '', delim = ',', null_padding = true)"
complains "an unknown option" 1 '22023: read_csv has no option "wibble"' -c "from read_csv('$tmp/short.csv', wibble = 1)"
complains "an unknown type" 1 '42704: type "wibble"' -c "from read_csv('$tmp/short.csv', types = {'a': 'wibble'})"
complains "lists are for files" 1 '42601' -c "select [1, 2]"
printf 'title\n1,a\n2 # c\n# it is "\nx,y\n3,"z # 1"\n' >"$tmp/odd.csv"
complains "COPY names the option that helps" 1 'HINT:.*NULL_PADDING.*IGNORE_ERRORS' -c "create table t (a int, b text)" -c "copy t from '$tmp/odd.csv'"
expect "COPY with options" 0 $'a,b\n1,a\n2,\n3,z # 1' --format csv -c "create table t (a int, b text)" \
    -c "copy t from '$tmp/odd.csv' (skip 1, comment '#', null_padding, ignore_errors)" -c "table t"
complains "COPY TO takes no options of reading" 1 '0A000' -c "copy (select 1) to stdout (skip 1)"
for packed in x.csv.gz x.csv.zst x.tbl.gz; do
    expect "COPY to and from $packed" 0 $'n,s\n1000,500500' --format csv -c "create table t as select i as a, 'v' || i as b from generate_series(1, 1000) s(i)" \
        -c "copy t to '$tmp/$packed'" -c "create table u (a int, b text)" -c "copy u from '$tmp/$packed'" -c "select count(*) as n, sum(a) as s from u"
done
gzip -dc "$tmp/x.csv.gz" | cmp -s - <(for i in $(seq 1000); do echo "$i,v$i"; done)
note $? "gzip reads what COPY packed"
expect "a gzip file in FROM" 0 $'n\n1000' --format csv -c "select count(*) as n from '$tmp/x.csv.gz'"
head -c 300 "$tmp/x.csv.gz" >"$tmp/cut.csv.gz"
complains "an archive cut short" 1 '22P04: .*cut short' -c "from '$tmp/cut.csv.gz'"
complains "no archive" 1 '22P04: .*no zstd archive' -c "from read_csv('$tmp/short.csv', compression = 'zstd')"
got=$("$fox" --format csv -c "select count(*) as n from read_csv('/dev/stdin', compression = 'gzip')" <"$tmp/x.csv.gz" 2>/dev/null)
[ "$got" = $'n\n1000' ]
note $? "an archive on standard input" "$got"

cat >"$tmp/made.sql" <<'END'
create schema z;
create table z.p (k integer primary key, s text default 'x''y', d decimal(9,2), f double precision, t timestamp, b boolean);
create table q (id integer generated always as identity, k integer references z.p (k) on delete cascade, check (k > 0), iv interval);
create view v as select k, s from z.p; comment on table q is 'a ''table'; create unique index u on z.p (s);
create sequence sq start 10; select nextval('sq');
insert into z.p values (1, E'o''ne\n2', 2.25, 'NaN', '2020-01-01 10:00', true), (2, null, null, 1e300, null, false), (3, '', 0.1, 1, 'infinity', null);
insert into q (k, iv) values (1, '1 day'), (2, null);
create table one (s text); insert into one values ('\.'), (''), (null), (E'a\nb'), ('COPY x FROM /* here */ ''1_q.csv''');
create table "we""ird FROM STDIN" (a int); insert into "we""ird FROM STDIN" values (5); create table empty (a int);
call logiql('base(x, y) -> int(x), int(y). +base(1, 2). path(x, y) <- base(x, y). path(x, z) <- path(x, y), base(y, z).');
END
"$fox" "$tmp/one.wf" -f "$tmp/made.sql" >/dev/null 2>&1
"$fox" "$tmp/one.wf" -c .dump >"$tmp/one.sql" 2>"$tmp/err" && "$fox" "$tmp/two.wf" <"$tmp/one.sql" >/dev/null 2>>"$tmp/err" &&
    "$fox" "$tmp/two.wf" -c ".output $tmp/two.sql" -c .dump 2>>"$tmp/err" && cmp -s "$tmp/one.sql" "$tmp/two.sql" &&
    "$fox" --format none -c ".read $tmp/one.sql" -c ".output $tmp/three.sql" -c .dump >/dev/null 2>>"$tmp/err" &&
    cmp -s "$tmp/one.sql" "$tmp/three.sql" && [ "$(wc -l <"$tmp/one.sql")" -gt 60 ]
note $? ".dump makes the same database again" "$(cat "$tmp/err")"
expect ".dump has the rows" 0 $'k,s\n1,"o\'ne\n2"\n2,\n3,""' --format csv "$tmp/two.wf" -c "table v order by k"
TMPDIR=$tmp/nowhere complains ".dump without a place" 1 'ERROR 58030: cannot make' -c .dump

# --- tables from files and long answers ---
expect "a table of a file's own tablets" 0 $'n,s,lo\n1001,501499,nobody' --format csv -c "create table b as select b as name, a from read_csv('$tmp/x.csv.gz', names = ['a', 'b'])" \
    -c "insert into b values ('nobody', 1000), (null, 1)" -c "delete from b where a = 4" -c "update b set a = a + 1 where a = 1000" -c "select count(*) as n, sum(a) as s, min(name) as lo from b"
expect "CREATE TABLE AS in little memory" 0 $'n,s\n3640000,text 90' --memory 160MB --format csv \
    -c "create table b as select i, 'text ' || i % 100 as t, i * 2 as j from generate_series(1, 4000000) s(i)" -c "select count(*) as n, max(t) as s from b where t < 'text 91'"
expect "INSERT in little memory" 0 $'n\n4000000' --memory 160MB --format csv \
    -c "create table b (i int, t text, j bigint)" -c "insert into b select i, 'text ' || i % 100 as t, i * 2 as j from generate_series(1, 4000000) s(i)" -c "select count(*) as n from b"

# --- start-up: the best of several, since others may want the machine ---
best=1000000
for ((i = 0; i < 40 && best >= ${START_UP_US:-20000}; i++)); do
    a=$(date +%s%N)
    "$fox" --format none -c "" </dev/null
    b=$(date +%s%N)
    best=$(((b - a) / 1000 < best ? (b - a) / 1000 : best))
done
[ "$best" -lt "${START_UP_US:-20000}" ] # an instrumented build takes longer
note $? "start-up under 20 ms" "$best us"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
