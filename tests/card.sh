#!/usr/bin/env bash
# All that only a card can tell: scripts in woven kernels, TPC-H against the CPU, LogiQL against SQL, auto against the
# better device, database files in every placement, graphs; and every figure that has a goal (card_figures.sh). Prints a
# table of what was checked and one of what was measured, as Markdown, and ends with `N passed, N failed`. Without a card it
# runs under the simt driver, where times say nothing. An H200 has ten minutes a call:
#   tests/card.sh --part figures [--plain DIR]      all figures
#   tests/card.sh --part "scripts files graph budgets"   what is right
#   tests/card.sh --slice 1/7                       every seventh script under compute-sanitizer
# Usage: tests/card.sh [--build DIR] [--plain DIR] [--part "PART..."] [--skip "PART..."] [--seconds N] [--slice K/N]
#                      [--sf "LIST"] [--runs N] [--graph EDGES] [--scripts PATTERN]
#   --plain    another build, without kernels compiled ahead: its first query is timed, too
#   --part     scripts files graph budgets tpch logiql auto first hundred ssb everyday weave host load; figures: all from tpch on
#   --seconds  no part begins later than that, and no script of a slice (540)
#   --sf       scale factors ("1 10"; under simt "0.01")
#   --runs     of each query, after one to warm up (5; under simt 1)
#   --graph    edges of the graphs (16M; under simt 2000)
#   --scripts  those of tests/sql that match run in woven kernels ('.'; under simt '/join/[a-h]')
#   --skip     parts to leave out
# What is built must be there: warpfox, runner and, without a card, libcuda-simt.so in DIR (build).
set -u
cd "$(dirname "$0")/.." || exit 2
build=build
sfs="" runs="" edges="" pattern="" skip="" plain="" slice="" seconds=540
parts="scripts files graph budgets tpch logiql auto"
while [ $# -gt 0 ]; do
    case "$1" in
    --build) build=$2 ;;
    --sf) sfs=$2 ;;
    --runs) runs=$2 ;;
    --graph) edges=$2 ;;
    --scripts) pattern=$2 ;;
    --skip) skip=$2 ;;
    --plain) plain=$2 ;;
    --part) parts=${2/figures/first host tpch logiql auto hundred ssb everyday weave load} ;;
    --seconds) seconds=$2 ;;
    --slice) slice=$2 parts="" ;;
    *) sed -n '2,22s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
    shift 2 || exit 2
done
fox=$build/warpfox
[ -x "$fox" ] && [ -x "$build/runner" ] || { echo "$fox and $build/runner have to be built first" >&2 && exit 2; }
if [ -z "${WARPFOX_CUDA:-}" ] && ! "$fox" devices 2>/dev/null | grep -q '^gpu: .*multiprocessors'; then
    export WARPFOX_CUDA="$PWD/$build/libcuda-simt.so"
fi
export WARPFOX_CUDA="${WARPFOX_CUDA:-libcuda.so.1}" # the runner's GPU cells ask for a name
simt=""
case "$WARPFOX_CUDA" in *simt*) simt=yes ;; esac
if [ -n "$simt" ]; then
    export SIMT_STRICT="${SIMT_STRICT:-0}" SIMT_OPT="${SIMT_OPT:-0}" SIMT_CXX="${SIMT_CXX:-0}"
    export SIMT_CACHE="${SIMT_CACHE:-$PWD/$build/simt-cache}"
fi
sfs=${sfs:-$([ "$simt" ] && echo 0.01 || echo "1 10")}
runs=${runs:-$([ "$simt" ] && echo 1 || echo 5)}
edges=${edges:-$([ "$simt" ] && echo 2000 || echo 16M)}
pattern=${pattern:-$([ "$simt" ] && echo '/join/[a-h]' || echo .)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
rows=()

row() { # status, part, what, figure
    local says=right
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        says="**WRONG**"
    fi
    rows+=("| $2 | $3 | $says | $4 |")
    echo "$2: $3: $says, $4" >&2
}

wants() { # part
    case " $skip " in *" $1 "*) return 1 ;; esac
    case " $parts " in *" $1 "*) ;; *) return 1 ;; esac
    [ $SECONDS -lt "$seconds" ] && return 0
    echo "$1: no time left" >&2
    late="$late $1"
    return 1
}
late=""
small() { # what simt gets, what a card gets
    if [ "$simt" ]; then echo "$1"; else echo "$2"; fi
}
# shellcheck source=tests/card_figures.sh
. tests/card_figures.sh

suite() { # language, device, scale factor: the suite's report in $tmp/out, its geometric mean in $mean, its status
    local queries=1-22 code=auto times=$runs
    [ "$2" = gpu ] && [ -z "$simt" ] && code=woven # the virtual machine would be in the first runs
    [ "$2" = auto ] && times=$((runs * 8))         # which way is best is found out by trying
    # Of nothing LogiQL has no sum, where SQL's is one NULL: query 17 of the smallest tables.
    [ "$1" = logiql ] && [ "$3" = 0.01 ] && queries=1-16,18-22
    "$fox" bench tpch -l "$1" -d "$2" --gpu-code "$code" --sf "$3" --runs "$times" --queries "$queries" >"$tmp/out" 2>&1
    local status=$?
    mean=$(sed -n 's/^geometric mean of the medians: \([0-9.]*\) ms.*/\1/p' "$tmp/out")
    counts=$(tail -n 1 "$tmp/out")
    return $status
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f", a / b; else printf "-" }'; }

medians() { awk '/^ *[0-9]+  .* (right|not checked|wrong)/ { for (i = NF; i > 0; i--) if ($i ~ /^[0-9]+\.[0-9]+$/) { print $1, $i; break } }' "$tmp/out" | sort -k 1,1; }

if wants scripts; then
    list=$(find tests/sql -name '*.test' | grep -E "$pattern" | sort)
    for cell in "gpu woven" "gpu vm file"; do
        # shellcheck disable=SC2086
        says=$("$build/runner" --cell "$cell" $list 2>"$tmp/err" | tail -n 1)
        [[ $says == *" 0 failed"* ]]
        row $? scripts "$cell" "$says"
    done
fi

if wants files && [ -x "$build/unit/test_gpu_file" ]; then
    [ -n "$simt" ] || export WARPFOX_TEST_GPU=1
    says=$("$build/unit/test_gpu_file" 2>&1 | grep -m 1 -E 'PASSED|FAILED')
    [[ $says == *PASSED* ]]
    row $? files test_gpu_file "$says"
fi

for sf in $sfs; do
    if wants tpch || wants logiql; then
        suite sql cpu "$sf"
        cpu=$? cpu_mean=$mean cpu_counts=$counts
        medians >"$tmp/cpu"
        row $cpu tpch "SF $sf, cpu" "$cpu_counts; geometric mean $cpu_mean ms"
        suite sql gpu "$sf"
        gpu=$? gpu_mean=$mean
        medians >"$tmp/gpu"
        row $gpu tpch "SF $sf, gpu" "$counts; geometric mean $gpu_mean ms, $(ratio "$cpu_mean" "$gpu_mean") times the CPU's speed"
        case "$sf" in
        1) figure "SF 1, gpu, geometric mean" "0.5 ms" "${gpu_mean:+$gpu_mean ms}" "$(at_most "$gpu_mean" 0.5; echo $?)" ;;
        10) figure "SF 10, gpu, geometric mean" "1.1 ms" "${gpu_mean:+$gpu_mean ms}" "$(at_most "$gpu_mean" 1.1; echo $?)" ;;
        esac
    fi
    if wants logiql; then
        suite logiql gpu "$sf"
        row $? logiql "SF $sf, gpu" "$counts; $(ratio "$mean" "$gpu_mean") of SQL's time"
        figure "SF $sf, LogiQL : SQL" 1.1 "$(ratio "$mean" "$gpu_mean")" "$(at_most "$(ratio "$mean" "$gpu_mean")" 1.1; echo $?)"
    fi
    wants auto && figures_auto "$sf"
    wants files || continue
    file=$tmp/tpch.wf
    rm -f "$file" "$file.log"
    "$fox" "$file" -c "call tpch(sf => $sf)" >/dev/null 2>"$tmp/err"
    row $? files "SF $sf is written" "$(du -m "$file" | cut -f 1) MB"
    for query in bench/tpch/q*.sql; do
        cat "$query"
        echo ";"
    done >"$tmp/all.sql"
    "$fox" "$file" --readonly -d cpu --format csv -f "$tmp/all.sql" 2>"$tmp/err" | sort >"$tmp/right"
    for placement in cached mapped streamed auto; do
        memory=()
        [ "$placement" = auto ] && [ -n "$simt" ] && memory=(--gpu-memory 2MB --memory 64MB)
        { echo "set gpu_placement = $placement;" && cat "$tmp/all.sql" "$tmp/all.sql"; } >"$tmp/both.sql"
        "$fox" "$file" --readonly -d gpu "${memory[@]}" --format csv --timer -f "$tmp/both.sql" 2>"$tmp/times" | sort | uniq -c |
            awk '{ n = $1; sub(/^ *[0-9]+ /, ""); for (i = 0; i < n / 2; i++) print }' | sort >"$tmp/there"
        [ -s "$tmp/right" ] && cmp -s "$tmp/right" "$tmp/there"
        status=$?
        took=$(awk '/^time / { unit = $3 == "s" ? 1000 : $3 == "min" ? 60000 : 1; ms[n++] = $2 * unit }
            END { half = int((n - 1) / 2); for (i = 1; i <= half; i++) cold += ms[i]; for (; i < n; i++) hot += ms[i]
                  printf "cold %.0f ms, again %.0f ms", cold, hot }' "$tmp/times")
        bytes=$("$fox" "$file" --readonly -d gpu "${memory[@]}" -c "set gpu_placement = $placement" -c "set host_rows = 0" \
            -c "explain analyze $(cat bench/tpch/q06.sql)" 2>&1 | grep -o '[0-9.]* MB moved[^;]*' | head -n 1)
        row $status files "SF $sf, $placement${memory:+, little memory}" "$took; Q6: ${bytes:-nothing moved}"
    done
    rm -f "$file" "$file.log"
done

wants first && figures_first
wants host && figures_host
wants hundred && figures_hundred "$(small 0.02 100)" "$(small 2MB 8GB)"
wants ssb && figures_ssb "$(small 0.01 20)"
wants everyday && figures_everyday "$(small 2000 10M)"
wants weave && figures_weave "$(small 3000 16M)"
wants load && figures_load "$(small 0.02 300)"
[ "$slice" ] && sanitized "$slice" "$pattern" "$seconds"

if wants graph; then
    for graph in rmat rmat45; do
        "$fox" bench graph --rows "$edges" --graph "$graph" --only triangle --runs "$runs" >"$tmp/out" 2>&1
        status=$?
        triangles=$(awk '$4 == "gpu" && $5 == "multiway" && $6 == "count" && $7 == "all" { print $10; exit }' "$tmp/out")
        row $status graph "triangles of $graph, $edges edges" "$(tail -n 1 "$tmp/out"); gpu multiway ${triangles:-?} ms"
    done
fi

# Little memory on the card: at most three times what it takes with all of it, and the edges over the bus once.
# A graph of so many edges at most, the more at a node the lower its number.
skewed() { # table, edges, nodes
    echo "create table $1 as select distinct least(a, b) a, greatest(a, b) b from (select
        (power((i * 2654435761 % 4294967296) / 4294967296.0::double precision, 3) * $3)::int a,
        (power((i * 40503 * 65537 % 4294967291) / 4294967291.0::double precision, 2) * $3)::int b
        from generate_series(1::bigint, $2) v(i)) e where a <> b;"
}
triangles_of() { echo "select $2 from $1 x, $1 y, $1 z where x.b = y.a and x.a = z.a and y.b = z.b;"; }

# Runs the file after settings, on the CPU and on the card; whether both say the same, and ms of the last statements.
on_both() { # statements, options of the card...
    local file=$1
    shift
    timeout 60 "$fox" -d cpu --format csv -f "$file" 2>"$tmp/err" >"$tmp/right"
    timeout "$(small 600 60)" "$fox" -d gpu --gpu-code woven "$@" --format csv --timer -f "$file" 2>"$tmp/times" >"$tmp/there"
    [ -s "$tmp/right" ] && cmp -s "$tmp/right" "$tmp/there"
}
timed() { # the nth last
    awk -v n="$1" '/^time / { unit = $3 == "s" ? 1000 : $3 == "min" ? 60000 : 1; ms[++k] = $2 * unit } END { printf "%.2f", ms[k + 1 - n] }' "$tmp/times"
}

# A tenth of the data: with nothing kept, and with the sorted graph kept; beside it the same with all memory. What crosses the
# bus at least is every edge, 8 bytes, up as it is, down sorted, up again, and 4 bytes down and up.
budgets_tenth() {
    local memory cold="" kept="" took least more
    {
        skewed e "$wide" "$nodes"
        echo "set host_rows = 0; set multiway = on; set tries = computed;"
        for _ in 1 2 3; do triangles_of e "count(*)"; done
        echo "set tries = kept;"
        for _ in 1 2 3; do triangles_of e "count(*)"; done
    } >"$tmp/tenth.sql"
    for memory in all "$((wide * 16 / 10000))kB"; do
        if [ "$memory" = all ]; then on_both "$tmp/tenth.sql"; else on_both "$tmp/tenth.sql" --gpu-memory "$memory"; fi
        row $? budgets "triangles of $wide edges, memory: $memory" "sorted $(timed 6) and $(timed 5) ms, kept $(timed 2) and $(timed 1) ms"
        cold="$cold $(timed 5)" kept="$kept $(timed 1)"
    done
    within() { # in one piece, in parts, bytes of an edge over the bus at 53 GB/s: what is allowed, and whether it is
        least=$(awk -v whole="$1" -v bytes="$3" -v e="$wide" 'BEGIN { printf "%.1f", 3 * whole + bytes * e / 53e6 }')
        took=$2
        at_most "$took" "$least"
        more=$?
    }
    # shellcheck disable=SC2086
    within $cold 32
    figure "triangles of $wide edges in a tenth of the data as memory, sorted anew" "3 times and the bus: $least ms" "$took ms" "$more"
    # shellcheck disable=SC2086
    within $kept 4
    figure "the same, sorted before" "3 times and the bus: $least ms" "$took ms" "$more"
}

# What was sorted is kept on the card: asked once, again, and when the kernels are there but the rows have changed.
budgets_kept() {
    local what
    for what in "count(*)" "sum(x.a + y.b)"; do
        {
            skewed e "$wide" "$nodes"
            echo "set host_rows = 0; set multiway = on;"
            triangles_of e "$what" && triangles_of e "$what"
            echo "insert into e values (1, 2);"
            triangles_of e "$what" && triangles_of e "$what"
        } >"$tmp/kept.sql"
        on_both "$tmp/kept.sql"
        row $? budgets "triangles, $what, of $wide edges, kept on the card" \
            "first $(timed 5) ms, again $(timed 4) ms; rows changed: $(timed 2) ms, again $(timed 1) ms"
    done
}

# Cliques of five whose rows are asked for: four lists at once.
budgets_lists() {
    {
        skewed e $((wide / 16)) $((nodes / 16))
        echo "set host_rows = 0; set multiway = on;"
        for i in 1 2; do
            echo "select count(*), sum(e45.b) from e e12, e e13, e e23, e e14, e e24, e e34, e e15, e e25, e e35, e e45 where
                e13.a = e12.a and e14.a = e12.a and e15.a = e12.a and e23.a = e12.b and e24.a = e12.b and e25.a = e12.b and
                e23.b = e13.b and e34.a = e13.b and e35.a = e13.b and e24.b = e14.b and e34.b = e14.b and e45.a = e14.b and
                e25.b = e15.b and e35.b = e15.b and e45.b = e15.b;"
        done
    } >"$tmp/lists.sql"
    on_both "$tmp/lists.sql"
    row $? budgets "cliques of five listed, $((wide / 16)) edges" "first $(timed 2) ms, again $(timed 1) ms"
}

# Slabs by device: two workers of a card that has room for a quarter of the graph, and the host.
budgets_workers() {
    local device slabs
    for device in gpu hybrid; do
        {
            skewed e "$wide" "$nodes"
            echo "set host_rows = 0; set multiway = on; set device = $device;"
            [ $device = gpu ] || echo "set hybrid_share = 50;"
            triangles_of e "count(*)"
            echo "explain analyze $(triangles_of e "count(*)")"
        } >"$tmp/slabs.sql"
        slabs=$("$fox" --gpu-workers 2 --gpu-memory $((wide * 7 / 1000 + 60))kB --format csv -f "$tmp/slabs.sql" 2>&1 |
            grep -o '[0-9]* boxes of [^;]*' | head -n 1)
        [ -n "$slabs" ]
        row $? budgets "slabs, device = $device" "${slabs:-none}"
    done
}

if wants budgets; then
    wide=$((${edges/M/000000}))
    nodes=$([ -n "$simt" ] && echo 256 || echo 1048576)
    [ -n "$simt" ] && wide=4000
    "$fox" bench graph --graph "rmat:$nodes,$wide" -d gpu --only "triangles multiway count" --runs "$runs" >"$tmp/all" 2>&1
    whole=$(awk '$4 == "gpu" && $5 == "multiway" && $7 == "all" { print $10; exit }' "$tmp/all")
    "$fox" bench graph --graph "rmat:$nodes,$wide" -d gpu --only "triangles budget" --runs "$runs" >"$tmp/out" 2>&1
    status=$?
    took=$(awk '$4 == "gpu" && $7 ~ /%/ { printf "%s %s ms, ", $7, $10 }' "$tmp/out")
    tenth=$(awk '$4 == "gpu" && $7 == "10%" { print $10; exit }' "$tmp/out")
    floor=$(awk '$4 == "gpu" && $7 == "10%" { printf "%.1f", $3 * 16 / 50e9 * 1e3; exit }' "$tmp/out")
    row $status budgets "triangles of rmat, $wide edges, little memory" \
        "${took}in one piece ${whole:-?} ms; 10 %: $(ratio "${tenth:-0}" "${whole:-0}") times, the bus at 50 GB/s ${floor:-?} ms"
    budgets_tenth
    budgets_kept
    budgets_lists
    budgets_workers
fi

echo
"$fox" devices 2>/dev/null | grep -m 1 '^gpu' | sed 's/^/Card: /'
echo "Commit $(git rev-parse --short HEAD 2>/dev/null), $(date -u +%F)${simt:+, under the simt driver: times say nothing}"
echo
echo "| part | what | answers | figures |"
echo "|---|---|---|---|"
printf '%s\n' "${rows[@]}"
echo
if [ ${#figures[@]} -gt 0 ]; then
    echo "| figure | goal | measured | met |"
    echo "|---|---|---|---|"
    printf '%s\n' "${figures[@]}"
    echo
fi
[ -z "$late" ] || echo "No time left for:$late"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
