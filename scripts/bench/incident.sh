#!/usr/bin/env bash
# `binlogz incident` over many small transactions: the shop and sysbench's run, each grown to half of MB. For lab/book/stats.md.
#
# Prints the number of transactions, then of each of RUNS runs its seconds and memory, and the load before it; then the median.
# Fails if that is LIMIT seconds or more.
#
# usage: incident.sh               MB=2000 RUNS=3 LIMIT=10
# BINLOGZ names a program to try instead of a release build, WORKLOADS one that makes the logs.
set -euo pipefail
cd "$(dirname "$0")/../.."

megabytes=${MB:-2000} runs=${RUNS:-3} limit=${LIMIT:-10}
. scripts/measure-lib.sh
. scripts/advise-lib.sh
binlogz=$(binlogz_program)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

number=0
while IFS=$'\t' read -r name path; do
    case $name in shop | sysbench-run) ;; *) continue ;; esac
    number=$((number + 1))
    python3 scripts/soak/grown-log.py "$path" $((megabytes * 500000)) "$work/$(printf 'binlog.%06d' "$number")"
done < <(plain_logs 0.03 workloads more-shapes)
[ "$number" = 2 ] || { echo "incident.sh: $number of the two workloads were found" >&2; exit 1; }

"$binlogz" incident --format json "$work"/binlog.0* >"$work/found"
python3 -c 'import json, sys
print(f"""{json.load(open(sys.argv[1]))["transactions"]:,} transactions""")' "$work/found"
for ((run = 0; run < runs; run++)); do
    load=$(cut -d' ' -f1-2 /proc/loadavg)
    /usr/bin/env time -f '%e %M' -o "$work/figures" "$binlogz" incident "$work"/binlog.0* >/dev/null
    read -r seconds memory <"$work/figures"
    echo "$seconds" >>"$work/seconds"
    printf '%8s s %6s MiB  load %s\n' "$seconds" $((memory / 1024)) "$load"
done
median <"$work/seconds" | awk -v limit="$limit" '{ printf "median %s s, expected less than %s s\n", $1, limit; exit $1 >= limit }'
