#!/usr/bin/env bash
# `binlogz advise` against the truth. For lab/book/advise.md.
#
#   exact     --exact on files that the server wrote at levels 1, 3 and 19: their very sizes; and beside compress, in time
#   times     --exact at level 3 beside compress at level 3, without whole files
#   sample    the default budget at SEEDS seeds: largest error and half-width, how often the truth is within, seconds
#   stage     processor time for a gigabyte beside the server's own timing of its compressing, in the same run, one behind
#             the other; medians of RUNS
#   quiet     what needs a quiet machine, in six minutes once all is built: times, stage at a tenth of the scale, sample of
#             the workloads at one seed, beside the files that the server wrote (other runs of the same load)
#
# What --exact says of a file, which sample compares with, is kept in the cache.
#
# usage: advise.sh [exact|times|sample|stage|quiet]…            SEEDS=10 SCALE=1 RUNS=5 ONLY=NAME
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/measure-lib.sh

seeds=${SEEDS:-10} scale=${SCALE:-1} runs=${RUNS:-5} only=${ONLY:-}
stage_scale=$scale kinds="workloads shapes" by_server=
[ $# -gt 0 ] || set -- exact times sample stage
cargo build --quiet --release --package binlogz
cargo build --quiet --release --package binlogz-bench-programs --bin workloads --bin stage-timing
release=${CARGO_TARGET_DIR:-target}/release
truths=${BINLOGZ_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/binlogz}/advise-truth
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# levels ARGUMENT…: the rows of advise's table by level, in the order of docs/reference/advise.md.
levels() {
    "$release/binlogz" advise --format json "$@" | python3 -c 'import json, sys
names = "level bytes half_width_percent saved_bytes saved_percent compress_s_per_gb p50_us p95_us p99_us expand_s_per_gb"
for row in json.load(sys.stdin)["levels"]:
    print(*("-" if row[name] is None else row[name] for name in names.split()))'
}
# files SETTING: name and path of each workload and shape.
files() {
    for of in $kinds; do
        "$release/workloads" --of "$of" --scale "$scale" --setting "$1" | cut -f 2,4 |
            awk -v only="$only" 'only == "" || $1 == only'
    done
}
# truth NAME PATH: the file with the exact sizes at levels 1, 3 and 19.
truth() {
    local kept level
    if [ -n "$by_server" ]; then
        for level in 1 3 19; do
            files "level$level" | while read -r name path; do
                [ "$name" != "$1" ] || echo "$level $(stat -c %s "$path")"
            done
        done >"$work/truth"
        echo "$work/truth"
        return
    fi
    mkdir -p "$truths"
    kept=$truths/$1-$(stat -c %s-%Y "$2")
    if [ ! -f "$kept" ]; then
        levels --exact --levels 1,3,19 "$2" | awk '{ print $1, $2 }' >"$kept.new"
        mv "$kept.new" "$kept"
    fi
    echo "$kept"
}

exact() {
    local failed=0 level name path size found
    printf '\n%-6s %-18s %12s %12s\n' level file server advise
    for level in 1 3 19; do
        while read -r name path; do
            size=$(stat -c %s "$path")
            found=$(levels --exact --levels "$level" "$path" | awk '{ print $2 }')
            printf '%-6s %-18s %12s %12s\n' "$level" "$name" "$size" "$found"
            [ "$size" = "$found" ] || failed=1
        done < <(files "level$level")
    done
    return "$failed"
}

times() {
    local name path
    printf '\n%-18s %10s %10s %6s\n' 'level 3, seconds' compress advise x
    while read -r name path; do
        for ((run = 0; run < runs; run++)); do
            seconds "$release/binlogz" compress --level 3 --output /dev/null "$path" >>"$work/compress-$name"
            seconds "$release/binlogz" advise --exact --no-whole-files --levels 3 "$path" >>"$work/advise-$name"
        done
        echo "$name $(median <"$work/compress-$name") $(median <"$work/advise-$name")" |
            awk '{ printf "%-18s %10.3f %10.3f %6.2f\n", $1, $2, $3, $3 / $2 }'
    done < <(files plain)
}

sample() {
    local name path seed kept
    printf '\n%-18s %6s %12s %14s %8s %8s\n' file level 'error % max' 'half-width max' within 's max'
    while read -r name path; do
        kept=$(truth "$name" "$path")
        : >"$work/found"
        for ((seed = 1; seed <= seeds; seed++)); do
            begin=$EPOCHREALTIME
            levels --seed "$seed" "$path" >"$work/one"
            awk -v begin="$begin" -v end="$EPOCHREALTIME" '{ print $1, $2, $3, end - begin }' "$work/one" >>"$work/found"
            awk -v name="$name" -v seed="$seed" 'FNR == 1 { printf "%s, seed %s:", name, seed } { printf " %s ± %s", $1, $3 }
                END { print "" }' "$work/one" >&2
        done
        awk -v name="$name" '
            NR == FNR { truth[$1] = $2; next }
            $1 in truth {
                error = 100 * ($2 / truth[$1] - 1); if (error < 0) error = -error
                if (error > errors[$1]) errors[$1] = error
                if ($3 > widths[$1]) widths[$1] = $3
                if ($4 > times[$1]) times[$1] = $4
                count[$1]++; if (error <= $3 + 0.01) within[$1]++
            }
            END { for (level in truth) printf "%-18s %6s %12.2f %14.2f %5d/%-2d %8.1f\n",
                      name, level, errors[level], widths[level], within[level], count[level], times[level] }
        ' "$kept" "$work/found" | sort -k2n
    done < <(files plain)
}

stage() {
    local run level name server path found
    for ((run = 0; run < runs; run++)); do
        # The server's turn, then ours: side by side they would take the cores from each other.
        coproc timing { "$release/stage-timing" "$work" --scale "$stage_scale" --level 1 --level 3 --level 19; }
        while read -r level name server path <&"${timing[0]}"; do
            found=$(levels --no-whole-files --levels "$level" "$path" | awk '{ print $(NF - 4) }')
            echo "$level $name $server $found" | tee -a "$work/stage" >&2
            echo >&"${timing[1]}"
        done
        wait
    done
    printf '\n%-6s %-18s %14s %14s %6s %s\n' level file 'server s/GB' 'advise s/GB' x 'x from … to'
    awk '{ key = $1 " " $2; if (!(key in count)) keys[++known] = key
           place = ++count[key]; servers[key, place] = $3; founds[key, place] = $4; ratios[key, place] = $4 / $3 }
        function middle(of, key, n,    i, j, v, t) {
            for (i = 1; i <= n; i++) v[i] = of[key, i]
            for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
            low = v[1]; high = v[n]
            return v[int((n + 1) / 2)]
        }
        END { for (k = 1; k <= known; k++) {
            key = keys[k]; split(key, part)
            server = middle(servers, key, count[key]); found = middle(founds, key, count[key])
            ratio = middle(ratios, key, count[key])
            printf "%-6s %-18s %14.2f %14.2f %6.2f %.2f … %.2f\n", part[1], part[2], server, found, ratio, low, high
        } }' "$work/stage"
}

quiet() {
    kinds=workloads by_server=1
    times
    # A gigabyte of the same takes as long.
    stage_scale=0.1
    stage
    seeds=1
    sample
}

for part in "$@"; do "$part"; done
