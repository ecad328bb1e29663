#!/usr/bin/env bash
# `binlogz advise` while other programs want the processor: for lab/book/advise.md.
#
# Twelve workloads (the five, the three shapes, three pairs of them, samples/) at SCALE, each with SEEDS seeds under LOADS
# loops that do nothing but run, beside whatever else the machine does. Of each run: what it recommends, and whether the
# stated intervals hold the sizes that `--exact` finds, which comes first and without loops. A table by workload and load;
# fails if
#   - two runs of a workload give different answers: "can't tell" is no answer;
#   - an interval that is narrower than WIDE percent doesn't hold the truth.
#
# usage: advise-load.sh            SEEDS=1 SCALE=0.1 LOADS="0 4 16" WIDE=10 BUDGET=30s ONLY=NAME
# BINLOGZ names a program to try instead of a release build, WORKLOADS one that makes the logs.
set -euo pipefail
cd "$(dirname "$0")/../.."

seeds=${SEEDS:-1} scale=${SCALE:-0.1} loads=${LOADS:-0 4 16} wide=${WIDE:-10} budget=${BUDGET:-30s} only=${ONLY:-}
levels=1,3,6,9,15,19
. scripts/measure-lib.sh
. scripts/advise-lib.sh
binlogz=$(binlogz_program)
work=$(mktemp -d)
trap 'quiet; rm -rf "$work"' EXIT

declare -A paths
while IFS=$'\t' read -r name path; do
    paths[$name]=$path
done < <(plain_logs "$scale" workloads shapes)
mapfile -t names < <(printf '%s\n' "${!paths[@]}" | sort)
# Two at a time: what is judged need not be of one kind.
paths[${names[0]}+${names[1]}]="${paths[${names[0]}]} ${paths[${names[1]}]}"
paths[${names[2]}+${names[3]}]="${paths[${names[2]}]} ${paths[${names[3]}]}"
paths[${names[4]}+${names[5]}]="${paths[${names[4]}]} ${paths[${names[5]}]}"
paths[samples]=$(echo samples/plain/*.0*)

# advised NAME ARGUMENT…: verdict and level, then level, bytes and half-width in percent of each level.
advised() {
    local name=$1
    shift
    # shellcheck disable=SC2086  # a list of files
    "$binlogz" advise --format json --levels "$levels" "$@" ${paths[$name]} 2>"$work/told" |
        python3 -c 'import json, sys
found = json.load(sys.stdin)
row = found["recommendation"][0]
# Where times decide, a trial is advised: that is no answer of its own.
doubts = ("this machine was busy", "the processor time that decides")
doubted = any(told["reason"].startswith(doubts) for told in found["reasons"])
print("cant_tell" if doubted else row["verdict"], row["level"])
for row in found["levels"]:
    print(row["level"], row["bytes"], row["half_width_percent"])'
}

printf '%-24s %5s %5s  %-24s %10s %14s\n' workload load seed answer intervals 'half-width max'
failed=0 checked=0 held=0
mapfile -t names < <(printf '%s\n' "${!paths[@]}" | sort | { [ -z "$only" ] && cat || grep -Fx -- "$only"; })
for name in "${names[@]}"; do
    advised "$name" --exact --no-whole-files >"$work/exact"
    tail -n +2 "$work/exact" >"$work/truth"
    read -r verdict level <"$work/exact"
    grep -v '^cant_tell' <<<"$verdict $level" >"$work/answers" || true
    printf '%-24s %5s %5s  %-24s\n' "$name" 0 exact "$verdict $level"
    for load in $loads; do
        busy "$load"
        for ((seed = 1; seed <= seeds; seed++)); do
            advised "$name" --seed "$seed" --budget "$budget" >"$work/found"
            read -r verdict level <"$work/found"
            [ "$verdict" = cant_tell ] || echo "$verdict $level" >>"$work/answers"
            # A hundredth of a percent is what the figures are rounded to.
            read -r count right widest < <(tail -n +2 "$work/found" | awk -v wide="$wide" '
                NR == FNR { truth[$1] = $2; next }
                { count++; error = 100 * ($2 / truth[$1] - 1); if (error < 0) error = -error
                  if (error <= $3 + 0.01 || $3 > wide) right++
                  if ($3 + 0 > widest) widest = $3 + 0 }
                END { print count + 0, right + 0, widest + 0 }' "$work/truth" -)
            checked=$((checked + count)) held=$((held + right))
            printf '%-24s %5s %5s  %-24s %7s/%-2s %14s\n' "$name" "$load" "$seed" "$verdict $level" "$right" "$count" "$widest"
        done
    done
    quiet
    if [ "$(sort -u "$work/answers" | wc -l)" -gt 1 ]; then
        echo "$name: different answers: $(sort "$work/answers" | uniq -c | tr -s ' \n' ' ')"
        failed=1
    fi
done
echo "$held of $checked intervals hold the truth or are wider than $wide %"
[ "$failed" = 0 ] && [ "$checked" -gt 0 ] && [ "$held" = "$checked" ]
