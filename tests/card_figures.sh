# shellcheck shell=bash
# card_figures.sh: the parts of tests/card.sh whose figures have a goal: scale factor 100, little memory of the card, the
# first query of a process, SSB, everyday questions, fusion, what a hot step costs the host, scale factor 300, and a slice
# of the scripts under compute-sanitizer. Sourced by it.
#
# Answers of large scale factors are compared as they come: queries run in turn on every device within one process, each
# behind a line that names it, and the sorted rows of each run are those of the CPU's. Times are the shell's.
figures=()

figure() { # name, goal, measured, whether it is met (0), and whether times say something
    local met=yes
    [ "$4" = 0 ] || met="**no**"
    [ "$simt" ] && met="simt"
    [ "$3" ] || met="not measured"
    figures+=("| $1 | $2 | ${3:--} | $met |")
    echo "$1: ${3:--} (goal $2): $met" >&2
}

at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 <= b + 0) }'; }
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 >= b + 0) }'; }

# The queries of TPC-H, `rounds` times on every device of "gpu:5 cpu:1", over the columns that they read. A line for every
# run in $tmp/runs: device, round, query, milliseconds, sum of the answer.
tpch_rounds() { # scale factor, devices and rounds, options of the program
    local sf=$1 plan=$2 code=woven part device round number
    shift 2
    [ -n "$simt" ] && code=vm
    rm -rf "$tmp/blocks" && mkdir "$tmp/blocks"
    : >"$tmp/labels" && : >"$tmp/rounds.sql"
    say() { printf '%s;\n' "$1" >>"$tmp/rounds.sql" && echo "${2:--}" >>"$tmp/labels"; }
    say "call tpch(sf => $sf, columns => 'queries')"
    for part in $plan; do
        device=${part%:*}
        say "set device = $device"
        say "set gpu_code = $([ "$device" = gpu ] && echo "$code" || echo auto)"
        for round in $(seq "${part#*:}"); do
            for number in $(seq 22); do
                say "select '== $device $round $number' as mark"
                say "$(tpch_text "$sf" "$number")" "$device $round $number"
            done
        done
    done
    "$fox" "$@" --format csv --timer -f "$tmp/rounds.sql" >"$tmp/answers" 2>"$tmp/times" || return 1
    awk -v to="$tmp/blocks/" '/^== / { close(file); file = to $2 "-" $3 "-" $4; printf "" >file; next }
        file != "" && $0 != "mark" { print >file }' "$tmp/answers"
    (cd "$tmp/blocks" && for part in *; do echo "$part $(sort "$part" | cksum | tr ' ' '-')"; done) | tr '-' ' ' |
        awk '{ print $1, $2, $3, $4 "-" $5 }' | sort -k 1,3 >"$tmp/sums"
    awk '/^time / { print $2 * ($3 == "s" ? 1000 : $3 == "min" ? 60000 : 1) }' "$tmp/times" | paste -d ' ' "$tmp/labels" - |
        awk 'NF == 4' | sort -k 1,3 >"$tmp/took"
    [ "$(wc -l <"$tmp/sums")" = "$(wc -l <"$tmp/took")" ] || return 1
    paste -d ' ' "$tmp/took" "$tmp/sums" | awk '{ print $1, $2, $3, $4, $8 }' >"$tmp/runs"
}

# Query 11 has a fraction that depends on the scale factor.
tpch_text() { # scale factor, number
    local fraction
    fraction=$(awk -v sf="$1" 'BEGIN { printf "%.10f", 0.0001 / sf }')
    sed -e '/^--/d' -e "s/0\.0001000000/$fraction/" "bench/tpch/q$(printf %02d "$2").sql"
}

# Answers that are not the CPU's.
wrong_runs() {
    awk '$1 == "cpu" { right[$3] = $5 } { line[NR] = $0 } END { for (i = 1; i <= NR; i++) { split(line[i], f)
        if (f[5] != right[f[3]]) { printf " %s:%s:%s", f[1], f[2], f[3]; n++ } } exit n > 0 }' "$tmp/runs"
}

# Of a device: the best time of every query, or the median of its later half of rounds.
times_of() { # device, best or median
    awk -v device="$1" '$1 == device { print $3, $2, $4 }' "$tmp/runs" | sort -k 1,1n -k 2,2n | awk -v how="$2" '
        function flush(   i, j, t, first) {
            first = how == "best" ? 0 : int(n / 2)
            for (i = first; i < n; i++) for (j = i + 1; j < n; j++) if (ms[j] < ms[i]) { t = ms[i]; ms[i] = ms[j]; ms[j] = t }
            if (n) print query, ms[how == "best" ? 0 : first + int((n - first - 1) / 2)]
        }
        $1 != query { flush(); query = $1; n = 0 } { ms[n++] = $3 } END { flush() }'
}

summed() { awk '{ s += $2; l += log($2 > 0 ? $2 : 0.001); m = $2 > m ? $2 : m } END { if (NR) printf "%.2f %.3f %.2f", s, exp(l / NR), m }'; }

figures_hundred() { # SF 100, hot, and once with little memory
    local sf=$1 few=$2 wrong sum mean most hot round
    tpch_rounds "$sf" "gpu:5 cpu:1"
    wrong=$? says=""
    [ $wrong = 0 ] && { says=$(wrong_runs) || wrong=1; }
    row $wrong hundred "SF $sf, gpu, five rounds" "$(wc -l <"$tmp/runs") answers${says:+; wrong:$says}"
    times_of gpu best >"$tmp/best"
    read -r sum mean most <<<"$(summed <"$tmp/best")"
    figure "SF $sf hot, all" "160 ms (then 80)" "$sum ms" "$(at_most "$sum" 160; echo $?)"
    figure "SF $sf hot, geometric mean" "5 ms" "$mean ms" "$(at_most "$mean" 5; echo $?)"
    figure "SF $sf hot, slowest" "20 ms" "$most ms" "$(at_most "$most" 20; echo $?)"
    for round in 1:3 6:1.5 18:4; do
        hot=$(awk -v q="${round%:*}" '$1 == q { print $2 }' "$tmp/best")
        figure "SF $sf hot, Q${round%:*}" "${round#*:} ms" "$hot ms" "$(at_most "$hot" "${round#*:}"; echo $?)"
    done
    echo "SF $sf best:$(awk '{ printf " Q%d %.2f", $1, $2 }' "$tmp/best")" >&2
    tpch_rounds "$sf" "gpu:2 cpu:1" --gpu-memory "$few"
    wrong=$? says=""
    [ $wrong = 0 ] && { says=$(wrong_runs) || wrong=1; }
    row $wrong hundred "SF $sf, --gpu-memory $few" "$(wc -l <"$tmp/runs") answers${says:+; wrong:$says}"
    hot=$(awk '$1 == "gpu" && $2 == 2 { s += $4 } END { printf "%.0f", s }' "$tmp/runs")
    # 1.68 GB a unit of the scale factor cross the bus, at 53 GB/s.
    most=$(awk -v sf="$sf" -v s="$sum" 'BEGIN { printf "%.0f", 1.68 * sf / 53 * 1000 + 3 * s }')
    figure "SF $sf with $few, second round" "the bus and 3 times hot: $most ms" "$hot ms" "$(at_most "$hot" "$most"; echo $?)"
}

figures_auto() { # scale factor: every query within 1.1 times or 0.1 ms of the better device
    local sf=$1 over wrong
    tpch_rounds "$sf" "gpu:8 cpu:3 auto:$(small 3 40)"
    wrong=$? says=""
    [ $wrong = 0 ] && { says=$(wrong_runs) || wrong=1; }
    row $wrong auto "SF $sf, gpu, cpu and auto in turn" "$(wc -l <"$tmp/runs") answers${says:+; wrong:$says}"
    times_of gpu median | sort -k 1,1 >"$tmp/gpu"
    times_of cpu median | sort -k 1,1 >"$tmp/cpu"
    times_of auto median | sort -k 1,1 >"$tmp/auto"
    join "$tmp/cpu" "$tmp/gpu" | join - "$tmp/auto" | sort -k 1,1n >"$tmp/three"
    awk -v sf="$sf" '{ printf "SF %s Q%d: cpu %.2f gpu %.2f auto %.2f\n", sf, $1, $2, $3, $4 }' "$tmp/three" >&2
    over=$(awk '{ best = $2 < $3 ? $2 : $3; if ($4 > best * 1.1 && $4 > best + 0.1) printf " Q%d %.2f for %.2f", $1, $4, best }' "$tmp/three")
    [ "$(wc -l <"$tmp/three")" = 22 ] || over="$over; $(wc -l <"$tmp/three") of 22 queries were compared"
    figure "SF $sf, auto, medians of the later runs" "1.1 times or 0.1 ms over the better device" "${over:- all within}" "$([ -z "$over" ]; echo $?)"
}

figures_first() { # a process that opens a file of SF 1 and asks one query, with nothing compiled before
    local dir name goal most number ms
    "$fox" "$tmp/first.wf" -c "call tpch(sf => $(small 0.01 1))" >/dev/null 2>&1 || return
    for dir in "$build:compiled ahead:500" "$plain:not compiled ahead:2000"; do
        IFS=: read -r dir name goal <<<"$dir"
        most=""
        for number in 1 3 6 9 13 18 21; do
            [ -x "$dir/warpfox" ] || continue
            rm -rf "$tmp/none"
            ms=$(date +%s%N)
            WARPFOX_CACHE=$tmp/none "$dir/warpfox" "$tmp/first.wf" --readonly -d gpu --format csv -c "$(tpch_text 1 "$number")" >/dev/null 2>"$tmp/err"
            [ $? = 0 ] || cat "$tmp/err" >&2
            ms=$((($(date +%s%N) - ms) / 1000000))
            echo "first query, $name: Q$number $ms ms" >&2
            most=$((ms > ${most:-0} ? ms : most))
        done
        figure "first query of a process, $name, slowest of 7" "$goal ms" "${most:+$most ms}" "$(at_most "$most" "$goal"; echo $?)"
    done
    rm -f "$tmp/first.wf" "$tmp/first.wf.log"
}

figures_ssb() {
    local sf=$1 kernels walls
    "$fox" bench ssb -d gpu --gpu-code "$(small vm woven)" --sf "$sf" --runs "$runs" --json >"$tmp/out" 2>&1
    row $? ssb "SF $sf, gpu" "$(grep -c '"answer": "right"' "$tmp/out") right of $(grep -c '"query":' "$tmp/out")"
    kernels=$(grep -o '"kernel_ms": [0-9.]*' "$tmp/out" | awk '{ s += $2 } END { if (NR) printf "%.2f", s }')
    walls=$(grep -o '"median_ms": [0-9.]*' "$tmp/out" | awk '{ s += $2 } END { if (NR) printf "%.2f", s }')
    figure "SSB SF $sf, kernels of all 13" "10.9 ms" "${kernels:+$kernels ms}" "$(at_most "$kernels" 10.9; echo $?)"
    figure "SSB SF $sf, wall time of all 13" "16.4 ms" "${walls:+$walls ms}" "$(at_most "$walls" 16.4; echo $?)"
}

figures_everyday() { # rows
    local end mean slower waits
    "$fox" bench everyday --rows "$1" --runs "$(small 1 3)" --gpu-code woven >"$tmp/out" 2>"$tmp/err"
    row $? everyday "$1 rows" "$(tail -n 1 "$tmp/out")$(grep -m 3 differ "$tmp/err")"
    end=$(tail -n 1 "$tmp/out")
    mean=$(echo "$end" | sed -n 's/^GPU \([0-9.]*\) times.*/\1/p')
    slower=$(echo "$end" | sed -n 's/.*slower: \([0-9]*\);.*/\1/p')
    waits=$(awk '$0 ~ / gpu / && NF { for (i = NF; i > 3; i--) if ($i ~ /^[0-9]+$/) { n += $i > 1; break } } END { print n + 0 }' "$tmp/out")
    figure "everyday questions, $1 rows, against the CPU" "10 times" "${mean:+$mean times}" "$(at_least "$mean" 10; echo $?)"
    figure "everyday questions slower than the CPU" 0 "$slower" "$(at_most "$slower" 0; echo $?)"
    figure "everyday questions that wait more than once" "few" "$waits" 0
}

figures_weave() {
    local mean
    "$fox" bench weave --rows "$1" -d gpu --runs "$(small 1 3)" >"$tmp/out" 2>&1
    row $? weave "$1 rows" "$(grep -c '^(' "$tmp/out") patterns"
    grep '^(\|^geometric' "$tmp/out" >&2
    mean=$(sed -n 's/^geometric mean of the patterns on gpu[^,]*, against partition, compute, gather: //p' "$tmp/out")
    figure "fusion against partition, compute, gather" "2.9 times" "${mean:+$mean times}" "$(at_least "$mean" 2.9; echo $?)"
}

# A hot statement of one step, from its text to its answer, over one tablet and over many.
figures_host() {
    local rows=655360 size ms best=() i
    [ -n "$simt" ] && rows=20480
    for size in 1048576 $((rows / 640)); do
        { echo "set tablet_rows = $size;"
            echo "create table t as select i % 97 as a, i % 1013 as b from generate_series(1, $rows) i;"
            echo "set device = gpu; set gpu_code = $(small vm woven); set host_rows = 0;"
            for i in $(seq "$(small 12 300)"); do echo "select sum(b) from t where a < 50;"; done; } >"$tmp/host.sql"
        ms=$("$fox" --format csv --timer -f "$tmp/host.sql" 2>&1 >/dev/null | awk '/^time / && ++n > 8 { v = $2 * ($3 == "s" ? 1000 : 1); if (b == "" || v < b) b = v } END { print b }')
        best+=("$ms")
    done
    figure "a hot statement of one step: 1 tablet, 640 tablets" "0.1 ms (50 us of the host, a launch, a wait)" \
        "${best[0]} and ${best[1]} ms" "$(at_most "${best[1]}" 0.1; echo $?)"
}

figures_load() { # a scale factor of which the columns that queries read just fit
    local sf=$1 wrong
    tpch_rounds "$sf" "gpu:2 cpu:1"
    wrong=$? says=""
    [ $wrong = 0 ] && { says=$(wrong_runs) || wrong=1; }
    row $wrong load "SF $sf, columns that the queries read" "$(wc -l <"$tmp/runs") answers${says:+; wrong:$says}"
    figure "SF $sf is right" "all answers" "$([ $wrong = 0 ] && echo all || echo "not:$says")" $wrong
    echo "SF $sf: loaded in $(sed -n '1s/^time //p' "$tmp/times"), rounds of gpu: $(awk '$1 == "gpu" { s[$2] += $4 } END { printf "%.0f, %.0f ms", s[1], s[2] }' "$tmp/runs")" >&2
}

# Scripts k, k + n, k + 2n … under compute-sanitizer, several at a time, until the time is over; names those not reached.
sanitized() { # K/N, PATTERN, seconds
    local k=${1%/*} n=${1#*/} tool done found left
    tool="$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer) --tool memcheck --error-exitcode 99"
    [ -n "$simt" ] && tool=env
    find tests/sql -name '*.test' | grep -E "$2" | sort | awk -v k="$k" -v n="$n" 'NR % n == k % n' >"$tmp/slice"
    # shellcheck disable=SC2016
    xargs -P "$(small 2 8)" -I '{}' bash -c '
        if [ "$(date +%s)" -ge "$1" ]; then
            echo "late $4"
        elif says=$($2 "$3" --cell "gpu vm" "$4" 2>&1); then
            echo "good $4"
        else
            echo "bad $4"
            echo "$4:" >&2
            echo "$says" | grep -E "=====|failed|expected" | head -n 20 >&2
        fi' sanitize "$(($(date +%s) + $3))" "$tool" "$build/runner" '{}' <"$tmp/slice" >"$tmp/slices"
    done=$(grep -c '^[gb]' "$tmp/slices") found=$(grep -c '^bad' "$tmp/slices") left=$(grep -c '^late' "$tmp/slices")
    sed -n 's/^late/not reached:/p' "$tmp/slices" >&2
    row "$((found > 0))" sanitizer "slice $k of $n, memcheck, gpu vm" "$done scripts, $found with errors, $left not reached"
    figure "compute-sanitizer silent, slice $k of $n" "no error" "$found in $done scripts, $left not reached" "$((found > 0))"
}
