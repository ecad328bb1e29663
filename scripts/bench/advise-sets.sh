#!/usr/bin/env bash
# `binlogz advise` over 40 sets of logs: does a verdict come, and does `--exact` say the same? For lab/book/advise.md.
#
# The five workloads, the three shapes and the ten more shapes at SCALE, the five also as the server compressed them, each log of samples/,
# all of them plain and compressed, and logs of two, three and five servers together. Of each set: its size, the seconds, and what is
# recommended without an option and by `--exact`. Fails if
#   - a set has no verdict ("can't tell"), though --exact has one;
#   - two runs of a set give different answers. Where both advise a trial on a replica, that decides between levels: processor time of this machine
#     does not, and the levels may differ.
#
# usage: advise-sets.sh            SCALE=0.01 BUDGET=30s ONLY=NAME
# BINLOGZ names a program to try instead of a release build, WORKLOADS one that makes the logs.
set -euo pipefail
cd "$(dirname "$0")/../.."

scale=${SCALE:-0.01} budget=${BUDGET:-30s} only=${ONLY:-}
levels=1,3,6,9
. scripts/measure-lib.sh
binlogz=$(binlogz_program)
workloads=(cargo run --quiet --package binlogz-bench-programs --bin workloads --)
[ -z "${WORKLOADS:-}" ] || workloads=("$WORKLOADS")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each set's files, by its name.
declare -A files
# made OF SETTING: a set for each log of that kind.
made() {
    local name path of
    of=-$2
    [ "$2" != plain ] || of=
    while IFS=$'\t' read -r _ name _ path; do
        files[$name$of]=$path
    done < <("${workloads[@]}" --of "$1" --scale "$scale" --setting "$2")
}
made workloads plain
made workloads level3
made shapes plain
made more-shapes plain
for log in samples/plain/binlog.0*; do
    files[sample-${log##*.00000}]=$log
done
files[samples]=$(echo samples/plain/binlog.0*)
files[samples-compressed]=$(echo samples/compressed/binlog.0*)
# together NAME…: their logs, as of several servers.
together() {
    local name set=
    for name; do
        set+="${files[$name]} "
    done
    files[$(IFS=+; echo "$*")]=$set
}
mapfile -t names < <(printf '%s\n' "${!files[@]}" | grep -v '^sample\|-level3$' | sort)
together "${names[0]}" "${names[1]}"
together "${names[2]}" "${names[3]}"
together "${names[4]}" "${names[5]}" "${names[6]}"
together "${names[7]}" "${names[8]}" "${names[9]}"
together "${names[10]}" "${names[11]}" "${names[12]}"
together "${names[@]:13:5}"

# advised NAME ARGUMENT…: verdict and level; "trial" where the times of this machine leave several answers.
advised() {
    local name=$1
    shift
    # shellcheck disable=SC2086  # a list of files
    "$binlogz" advise --format json --levels "$levels" --no-whole-files "$@" ${files[$name]} 2>"$work/told" |
        python3 -c 'import json, sys
found = json.load(sys.stdin)
row = found["recommendation"][0]
doubts = ("this machine was busy", "the processor time that decides")
doubted = any(told["reason"].startswith(doubts) for told in found["reasons"])
print("trial" if doubted else row["verdict"], row["level"])'
}

printf '%-40s %10s %8s  %-20s %8s  %-20s\n' set MB seconds answer seconds exact
mapfile -t names < <(printf '%s\n' "${!files[@]}" | sort | { [ -z "$only" ] && cat || grep -Fx -- "$only"; })
without=0 other=0 trials=0 neither=0
for name in "${names[@]}"; do
    # shellcheck disable=SC2086  # a list of files
    size=$(cat ${files[$name]} | wc -c)
    begun=$(date +%s.%N)
    answer=$(advised "$name" --budget "$budget")
    between=$(date +%s.%N)
    exact=$(advised "$name" --exact)
    ended=$(date +%s.%N)
    printf '%-40.40s %10.2f %8.1f  %-20s %8.1f  %-20s\n' "$name" "$(bc <<<"scale=2; $size / 1000000")" \
        "$(bc <<<"$between - $begun")" "$answer" "$(bc <<<"$ended - $between")" "$exact"
    case "$answer/$exact" in
        trial*|*/trial*|try_on_replica*/try_on_replica*) trials=$((trials + 1)) ;;
        cant_tell*/cant_tell*) neither=$((neither + 1)) ;;
        cant_tell*) without=$((without + 1)) ;;
        *) [ "$answer" = "$exact" ] || other=$((other + 1)) ;;
    esac
done
echo "${#names[@]} sets: $without without a verdict that --exact has, $other with another one, $trials where a trial on a replica decides, $neither where --exact can't tell either"
[ "$without" = 0 ] && [ "$other" = 0 ] && [ "${#names[@]}" -gt 0 ]
