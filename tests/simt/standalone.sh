#!/usr/bin/env bash
# EXPLAIN (CUDA, STANDALONE): the programs of some statements are written under the simt driver, and
# nvcc compiles every step of them where there is one. Running them needs a card.
# Usage: tests/simt/standalone.sh [path of warpfox] [path of libcuda-simt.so]. Ends with `N passed, N failed`.
set -u
cd "$(dirname "$0")/../.." || exit 2
fox=$(realpath "${1:-build/warpfox}")
export WARPFOX_CUDA
WARPFOX_CUDA=$(realpath "${2:-build/libcuda-simt.so}")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0
failed=0

note() { # condition's status, name, detail
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $2"
        printf '%s\n' "${3:-}" | head -n 12
    fi
}

tables="create table t (a integer, b integer, s text); insert into t select i, i % 7, 'x' || i % 90 from generate_series(1, 10000) i;
create table d (k integer primary key, v text); insert into d select i, 'v' || i from generate_series(0, 1999) i;"

# program NAME STEPS SQL: writes it, looks at it, compiles it.
program() {
    "$fox" -c "$tables" -c "explain (cuda, standalone) $3" >"$tmp/$1.cu" 2>"$tmp/err"
    note $? "$1 is written" "$(cat "$tmp/err")"
    steps=$(grep -c '^#if WF_STEP == ' "$tmp/$1.cu")
    [ "$steps" = "$2" ] && ! grep -q '^#include "' "$tmp/$1.cu"
    note $? "$1 has its steps and no includes of ours" "$steps steps"
    command -v nvcc >/dev/null || return 0
    for ((step = 0; step < steps; step++)); do
        nvcc -std=c++17 -fmad=false -arch=sm_90 -DWF_STEP=$step -o "$tmp/$1" "$tmp/$1.cu" >"$tmp/log" 2>&1 && ! grep -q . "$tmp/log"
        note $? "nvcc compiles step $step of $1" "$(cat "$tmp/log")"
    done
}

program filter 1 "select a, s from t where b = 3 and s like 'x1%'"
program group 1 "select b, count(*), sum(a), max(a) from t group by b order by b"
program join 2 "select v, sum(a) from t join d on b = k where a > 5 group by v"

# Without a table there is nothing to run; what the card cannot run is refused by name; the tables are as they were.
"$fox" -c "explain (cuda, standalone) select 1" >"$tmp/out" 2>&1
grep -q '0A000: the statement has no step that a woven kernel runs' "$tmp/out"
note $? "a statement without kernels" "$(cat "$tmp/out")"
"$fox" --format csv -c "$tables" -c "set device = gpu" -c "explain (cuda, standalone) select sum(a) from t" -c "select count(*), sum(a) from t" 2>&1 | tail -n 1 >"$tmp/out"
[ "$(cat "$tmp/out")" = 10000,50005000 ]
note $? "the sample is forgotten" "$(cat "$tmp/out")"
WARPFOX_CUDA=/nowhere "$fox" -c "$tables" -c "explain (cuda, standalone) select sum(a) from t" >"$tmp/out" 2>&1
grep -q '58000: EXPLAIN (CUDA, STANDALONE) runs the statement on samples, which needs a GPU' "$tmp/out"
note $? "without a GPU" "$(cat "$tmp/out")"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
