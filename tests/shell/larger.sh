#!/usr/bin/env bash
# Data of several times the memory: statements of every kind (larger.sql) give what they give with all memory, and the process
# stays near its limit; loads, keys and references of as many rows; full and missing temporary space.
# Usage: tests/shell/larger.sh [path of warpfox]. Ends with `N passed, N failed`.
set -u
cd "$(dirname "$0")/../.." || exit 2
fox=$(realpath "${1:-build/warpfox}")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME="$tmp"
file="$tmp/larger.wf"
memory=16MB
most_kb=42000 # with the program itself, and pages that wait to be counted
passed=0
failed=0

note() { # status, name, what was seen
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $2: $3"
    fi
}
little() { # threads, arguments: with little memory; what the process took at most is in $tmp/peak
    local threads=$1
    shift
    /usr/bin/time -o "$tmp/peak" -f %M "$fox" "$file" -d cpu --threads "$threads" --memory $memory --format csv "$@" 2>"$tmp/err" </dev/null
}
does() { # name, arguments
    local name=$1
    shift
    little 2 "$@" >"$tmp/out"
    note $? "$name" "$(head -n 2 "$tmp/err")"
}
gives() { # name, wanted (lines joined by blanks), arguments
    local name=$1 wanted=$2 got
    shift 2
    got=$(little 2 "$@" | grep -v '^[a-z]' | tr '\n' ' ')
    [ "${got% }" = "$wanted" ]
    note $? "$name" "$got, not $wanted; $(head -n 2 "$tmp/err")"
}
complains() { # name, pattern, arguments
    local name=$1 wanted=$2
    shift 2
    little 2 "$@" >"$tmp/out"
    grep -qE "$wanted" "$tmp/err"
    note $? "$name" "$(head -n 2 "$tmp/err")"
}

# --- loads: columns that pack to nearly nothing leave memory like others ---
rows=300000
does "numbers in their order" -c "create table n as select i, i as j, 5 as five, null::bigint as no, i % 3 as m from generate_series(1::bigint, 6000000) i"
gives "they are all there" "6000000,18000003000000,30000000,0,6000000" -c "select count(*), sum(i), sum(five), count(no), sum(m) from n"
does "rows of a table" -c "create table m (i bigint, m bigint)" -c "insert into m select j, m from n" -c "drop table n" -c "drop table m"
does "a table" -c "create table a as select (i * 7919 % 300007)::bigint as k, (i * 31337 % 300017)::bigint as v, 'text number ' || (i * 31 % 299999) || repeat('.', 30) as s from generate_series(1::bigint, $rows) i"
does "another table" -c "create table b as select (i * 104729 % 300007)::bigint as k, (i * 7 % 300017)::bigint as v, 'text number ' || (i * 37 % 330001) || repeat('.', 30) as s from generate_series(1::bigint, $rows) i"

# Columns of a tablet that are larger than memory: they were loaded with more of it.
"$fox" "$file" -d cpu -c "create table wide as select 'a wide text number ' || i * 31 % 250007 || repeat('.', 60) as s, i as v, 't' || i % 1000 as t from generate_series(1::bigint, 250000) i" >"$tmp/out" 2>"$tmp/err" </dev/null
note $? "a table of wide texts" "$(head -n 2 "$tmp/err")"

# --- statements: as with all memory, with one thread and with two ---
threads=1
while read -r sql; do
    case $sql in --*) continue ;; esac
    want=$("$fox" "$file" --readonly -d cpu --format csv -c "$sql" 2>&1 </dev/null)
    got=$(little $threads -c "$sql")
    [ "$got" = "$want" ] && [[ $want != *ERROR* ]]
    note $? "$sql" "$(head -n 3 <<<"$got") $(head -n 2 "$tmp/err"), not $(head -n 3 <<<"$want")"
    [ "$(tail -n 1 "$tmp/peak")" -le $most_kb ] || [[ $sql == "with recursive r"* ]] # whose rounds make many texts
    note $? "$sql" "$(tail -n 1 "$tmp/peak") KB at most"
    threads=$((3 - threads))
done <tests/shell/larger.sql

# --- changes of many rows: the table is then as it is when there is all memory ---
changes() { # name, statements that make a table c: what it holds then, on a copy of the file
    local name=$1 want got commands=() whole=$file
    shift
    for sql in "$@" "select count(*), sum(k), sum(v), max(s) from c"; do
        commands+=(-c "$sql")
    done
    file="$tmp/copy.wf"
    cp "$whole" "$file"
    want=$("$fox" "$file" -d cpu --format csv "${commands[@]}" 2>&1 </dev/null | tail -n 1)
    rm -f "$file"*
    cp "$whole" "$file"
    got=$(little 2 "${commands[@]}" | tail -n 1)
    [ -n "$got" ] && [ "$got" = "$want" ]
    note $? "$name" "$got, not $want; $(head -n 2 "$tmp/err")"
    rm -f "$file"*
    file=$whole
}
made="create table c (k bigint primary key, v bigint, s text)"
changes "rows in conflict are left out" "$made" "insert into c select k, v, s from a where v % 2 = 0" "insert into c select k, v, s from b on conflict do nothing"
changes "rows in conflict are changed" "$made" "insert into c select k, v, s from a where v % 2 = 0" "insert into c select k, v, s from b on conflict (k) do update set v = c.v + excluded.v, s = excluded.s"
changes "rows are changed by others" "create table c as select * from a" "update c set v = b.v + 1, s = b.s || 'x' from b where c.k = b.k"
changes "rows go by others" "create table c as select * from a" "delete from c using b where c.s = b.s"
changes "wide rows in an order" "create table c as select k, v, s, s || repeat('x', 40) as t, s || k as u from a order by k"
changes "rows go with their parents" "create table p as select k from a" "alter table p add primary key (k)" "create table c (k bigint references p on delete cascade, v bigint, s text)" "insert into c select k, v, s from a" "delete from p where k % 2 = 0"
changes "rows lose their parents" "create table p as select k from a" "alter table p add primary key (k)" "create table c (k bigint references p on delete set null, v bigint, s text)" "insert into c select k, v, s from a" "delete from p where k % 2 = 0"
changes "texts that are a key" "create table c as select distinct on (s) k, v, s from a order by s" "create unique index ci on c (s)" "insert into c values (-1, -1, 'a text')"
changes "a column of another type" "create table c as select * from a" "alter table c add column t text default 'a text'" "update c set t = s || k where v % 2 = 0" "alter table c alter column v type numeric(20, 2)"

# --- keys and references of many rows ---
does "a key" -c "alter table a add unique (k)"
does "references" -c "create table c as select k, v from b where k in (select k from a)" -c "alter table c add foreign key (k) references a (k)"
complains "one that is missing" 23503 -c "insert into c select case when i = 250000 then 300007 else k end, i from (select k, row_number() over () as i from a) q"
gives "nothing of it is there" "299994" -c "select count(*) from c"
does "rows of a table with references" -c "insert into c select k, v from a"
complains "a parent goes" 23503 -c "delete from a where k < 250000"

# --- temporary space that is too small, or is nowhere ---
sorted="select sum(length(x)), max(r) from (select s || k x, row_number() over (order by s || k desc) r from a) q"
complains "a bound" 53400 -c "set temp_size = '1MB'" -c "$sorted"
complains "no folder" '58030|22023|42501|temp' --temp-directory "$tmp/nowhere" -c "$sorted"
gives "and again" "$("$fox" "$file" --readonly -d cpu --format csv -c "$sorted" </dev/null | tail -n 1)" -c "$sorted"
little 2 -c "set statement_timeout = '200ms'" -c "$sorted" -c "$sorted" -c "$sorted" >"$tmp/out"
find "$tmp" -newer "$tmp/peak" -name '*temp*' | grep -q . && left=1 || left=0
note $left "nothing is left behind" "$(ls "$tmp")"
"$fox" check "$file" >"$tmp/out" 2>&1 </dev/null
note $? "the file is whole" "$(head -n 3 "$tmp/out")"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
