#!/usr/bin/env bash
# Trie files: what was written is read, on every device and with little memory; files that are damaged, cut, foreign or later
# ones are refused, whichever byte it is.
# Usage: tests/shell/tries.sh [path of warpfox]. Ends with `N passed, N failed`.
set -u
cd "$(dirname "$0")/../.." || exit 2
fox=$(realpath "${1:-build/warpfox}")
simt="$(dirname "$fox")/libcuda-simt.so"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME="$tmp" SIMT_CACHE="${SIMT_CACHE:-$PWD/build/simt-cache}"
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
gives() { # name, wanted (lines of csv without the header, joined by blanks), arguments
    local name=$1 wanted=$2 got
    shift 2
    got=$("$fox" --format csv "$@" 2>"$tmp/err" </dev/null | grep -v '^[a-z]' | tr '\n' ' ')
    [ "${got% }" = "$wanted" ]
    note $? "$name" "$got, not $wanted; $(head -n 2 "$tmp/err")"
}
complains() { # name, pattern, arguments
    local name=$1 wanted=$2 got
    shift 2
    got=$("$fox" "$@" 2>&1 </dev/null)
    grep -qE "$wanted" <<<"$got"
    note $? "$name" "$got"
}
at() { # byte of a file, then hexadecimal digits: overwrites
    printf "\\x$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# --- what is written is read ---
types="i % 3 = 0 as o, (i % 7)::smallint as s, i % 101 as i, (i * 7919 % 1000003 - 500000)::bigint * 10000000000 as b, (i % 977 / 100.0)::decimal(9, 2) as d,
    date '2020-01-01' + (i % 400)::int as day, timestamp '2020-01-01' + (i % 50) * interval '1 hour' as at, time '01:02:03' + (i % 9) * interval '1 second' as t"
for threads in 1 3; do
    for cols in o i b "s, o" "d, day" "i, s, b" "day, i, o, s" "at, t, d, i, s" "o, s, i, b, d, day, at, t"; do
        gives "columns $cols, $threads threads" "0 0 1" -d cpu --threads $threads -c "create table t as select $types from generate_series(1, 30000) v(i)" \
            -c "copy (select $cols from t) to '$tmp/t.trie' (format trie)" \
            -c "select count(*) from (select $cols from t except select * from read_trie('$tmp/t.trie')) s" -c "select count(*) from (select * from '$tmp/t.trie' except select $cols from t) s" \
            -c "select ((select count(*) from '$tmp/t.trie') = (select count(*) from (select distinct $cols from t) s))::int as r"
    done
done
gives "rows are in order" "0" -d cpu -c "select count(*) from (select d, lag(d) over (order by n) as before from (select o as d, row_number() over () as n from '$tmp/t.trie') s) s where d < before"
gives "no rows" "0 0" -d cpu -c "copy (select 1 as a, 2 as b where false) to '$tmp/e.trie'" -c "select count(*) from '$tmp/e.trie'" -c "select count(*) from '$tmp/e.trie' x, '$tmp/e.trie' y where x.b = y.a"
gives "the ends of a type" "-9223372036854775808,9223372036854775807" -d cpu -c "copy (values (-9223372036854775807 - 1), (9223372036854775807)) to '$tmp/l.trie'" -c "select min(column1), max(column1) from '$tmp/l.trie'"
gives "COPY FROM" "30000 3" -d cpu -c "copy (select i, i % 3 as k from generate_series(1, 30000) v(i)) to '$tmp/c.trie'" -c "create table c (k int, i bigint, z int default 3)" -c "copy c (i, k) from '$tmp/c.trie'" \
    -c "select count(*) from c" -c "select max(z) from c"
gives "LogiQL reads it" "30000" -d cpu -c "call logiql('_in(i, k) -> int(i), int(k). lang:physical:filePath[\`_in] = \"$tmp/c.trie\". n[] = c <- agg<< c = count() >> _in(i, k).')" -c "select * from logiql('_(c) <- n[] = c.')"

# --- what is not written ---
complains "NULLs" '23502.*column "column1" has a NULL' -d cpu -c "copy (values (1), (null)) to '$tmp/n.trie'"
complains "NULLs, named" 'WHERE "a" IS NOT NULL' -d cpu -c "copy (select case when i > 1 then i end as a from generate_series(1, 3) v(i)) to '$tmp/n.trie'"
complains "text" '0A000.*column "a" is text' -d cpu -c "copy (select 'x'::text as a) to '$tmp/n.trie'"
complains "options" '0A000.*no other options' -d cpu -c "copy (select 1 as a) to '$tmp/n.trie' (header true)"
complains "standard output" '0A000' -d cpu -c "copy (select 1 as a) to stdout (format trie)"
[ ! -e "$tmp/n.trie" ]
note $? "nothing is left" "$(ls "$tmp")"

# --- graphs ---
edges="select distinct least(i, k) as a, greatest(i, k) as b from (select (i * 7919) % 20011 as i, (i * 104729 + i / 1000 * 31) % 15013 as k from generate_series(1::bigint, 200000) v(i)) s where i <> k"
count="select count(*) as n from G x, G y, G z where x.b = y.a and y.b = z.b and x.a = z.a"
paths="select sum(x.a + y.b) as n from G x, G y, G z where x.b = y.a and y.b = z.b and x.a = z.a and x.a % 2 = 0"
wanted=$("$fox" --format csv -d cpu -c "create table g as $edges" -c "copy g to '$tmp/g.trie'" -c "copy (select a, b from g union all select b, a from g) to '$tmp/both.trie'" -c "${count//G/g}" -c "${paths//G/g}" 2>"$tmp/err" | grep -v n | tr '\n' ' ')
[ -n "$wanted" ]
note $? "the table's answer" "$(cat "$tmp/err")"
file="'$tmp/g.trie'"
for options in "-d cpu --threads 1" "-d cpu --threads 3" "-d cpu --memory 1500kB --threads 2" "-d gpu --gpu-code vm" "-d gpu --gpu-code vm --gpu-memory 600kB" "-d hybrid --gpu-code vm"; do
    case $options in *gpu* | *hybrid*) [ -e "$simt" ] || continue; export WARPFOX_CUDA=$simt ;; esac
    ask=(-c "${count//G/$file}")
    case $options in *gpu*) set -- ;; *) ask+=(-c "${paths//G/$file}") ;; esac
    want=${wanted% }
    [ ${#ask[@]} = 2 ] && want=${want% *}
    # shellcheck disable=SC2086
    gives "triangles, $options" "$want" $options -c "set host_rows = 0" "${ask[@]}"
    unset WARPFOX_CUDA
done
complains "the levels as they lie" 'not run: the file has these rows in order' -d cpu -c "explain analyze ${count//G/$file}"
gives "both directions" "$((6 * ${wanted%% *}))" -d cpu -c "${count//G/\'$tmp/both.trie\'}"
chmod 400 "$tmp/g.trie"
gives "a file that may only be read" "${wanted% }" --readonly -d cpu -c "${count//G/$file}" -c "${paths//G/$file}"
if [ -x /usr/bin/time ]; then
    "$fox" -d cpu -c "copy (select i as a, i * 7919 % 8000009 as b from generate_series(1::bigint, 8000000) v(i)) to '$tmp/big.trie'" >/dev/null 2>&1
    peak=$(/usr/bin/time -f %M "$fox" --format csv -d cpu --threads 2 --memory 6MB -c "select count(*), sum(b) from '$tmp/big.trie'" 2>&1 >"$tmp/out" | tail -n 1)
    [ "$peak" -lt 40000 ] && [ "$(stat -c %s "$tmp/big.trie")" -gt 90000000 ] && grep -q '^8000000,' "$tmp/out"
    note $? "a file larger than the memory" "$peak kB, $(cat "$tmp/out")"
    rm "$tmp/big.trie"
fi

# --- files that are no trie ---
"$fox" -d cpu -c "copy (select i % 700 as a, i as b from generate_series(1, 21000) v(i)) to '$tmp/d.trie'" >/dev/null 2>&1
ask="select sum(a) as n, sum(b) as n from '$tmp/x.trie'"
bytes=$(stat -c %s "$tmp/d.trie")
right=$("$fox" --format csv -d cpu -c "select sum(a) as n, sum(b) as n from '$tmp/d.trie'" 2>&1)
missed=""
for i in $(seq 0 39); do
    byte=$((i < 12 ? 8 * i + 1 : (i * i * 7919 + i * 104729) % bytes))
    cp "$tmp/d.trie" "$tmp/x.trie"
    old=$(od -An -tu1 -j $byte -N 1 "$tmp/x.trie" | tr -d ' ')
    at "$tmp/x.trie" $byte "$(printf %02x $((old ^ 1 << i % 8)))"
    got=$("$fox" --format csv -d cpu -c "$ask" 2>&1)
    grep -q XX001 <<<"$got" || missed="$missed $byte"
done
[ -z "$missed" ] && [ -n "$right" ]
note $? "a bit of any byte" "not seen:$missed"
cut=""
for size in 0 4 7 8 50 95 96 200 4095 4096 70000 $((bytes - 8)) $((bytes - 1)); do
    head -c $size "$tmp/d.trie" >"$tmp/x.trie"
    "$fox" -d cpu -c "$ask" 2>&1 | grep -q XX001 || cut="$cut $size"
done
[ -z "$cut" ]
note $? "a file cut short" "taken:$cut"
(cat "$tmp/d.trie" && echo) >"$tmp/x.trie"
complains "something behind it" 'XX001.*behind its end' -d cpu -c "$ask"
cp "$tmp/d.trie" "$tmp/x.trie"
at "$tmp/x.trie" 8 02
complains "a later version" 'XX001.*a later version wrote it' -d cpu -c "$ask"
echo "a,b" >"$tmp/x.trie"
complains "a text" 'XX001.*does not begin like one' -d cpu -c "$ask"
complains "no file" '58P01|58030|no such file|cannot open' -d cpu -c "select * from read_trie('$tmp/nothing.trie')"
complains "a folder" '58030' -d cpu -c "select * from read_trie('$tmp')"
complains "no name" '22023.*name of a file' -d cpu -c "select * from read_trie()"
complains "a number" '22023.*constant text' -d cpu -c "select * from read_trie(3)"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
