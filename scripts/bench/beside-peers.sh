#!/usr/bin/env bash
# Whole processes of binlogz in turn with the program that people compare it with: one large payload and single-row deletes beside zstd,
# `dump` beside mysqlbinlog, the start of a small job. Medians of RUNS, by the clock and by processor time (user and system), which a busy
# machine changes less. What the figures mean: lab/book/core.md, lab/book/dump.md.
#
# usage: beside-peers.sh [LARGE DELETES LOG…]    plain logs: one large transaction; single-row deletes; those that `dump` prints. Without
#                                                them `workloads` makes them at full scale.
#        RUNS=5, BINLOGZ=PROGRAM
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/measure-lib.sh
. scripts/measure-lib.sh
# make_logs KIND: the paths of logs that are made once and kept.
make_logs() {
    cargo run --quiet --release --package binlogz-bench-programs --bin workloads -- --scale 1 --setting plain --of "$1" | grep -o '/[^ ]*$'
}
if [ $# -eq 0 ]; then
    mapfile -t workloads < <(make_logs workloads)
    mapfile -t shapes < <(make_logs more-shapes)
    for log in "${workloads[@]}"; do
        case $log in
            */bulk-update.*) large=$log ;;
            */delete.*) deletes=$log ;;
        esac
    done
    set -- "$large" "$deletes" "${shapes[@]}"
fi
[ $# -ge 3 ] || { sed -n '6,8p' "$0" | cut -c3- >&2; exit 2; }

large=$(realpath "$1") deletes=$(realpath "$2")
shift 2
runs=${RUNS:-5}
binlogz=$(binlogz_program)
zstd=$(scripts/get-tool.sh zstd)/bin/zstd
mysqlbinlog=$(scripts/get-tool.sh mysql)/bin/mysqlbinlog
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# timed COMMAND…: seconds by the clock and of the processor; its output is thrown away.
timed() {
    local TIMEFORMAT='%R %U %S'
    { time "$@" >/dev/null 2>"$work/said"; } 2>&1 | awk '{ printf "%.3f %.3f\n", $1, $2 + $3 }'
}

# pair WHAT OURS… -- THEIRS…: a line with the medians of both.
pair() {
    local what=$1 ours=() run
    shift
    while [ "$1" != -- ]; do ours+=("$1"); shift; done
    shift
    : >"$work/ours"
    : >"$work/theirs"
    for ((run = 0; run < runs; run++)); do
        timed "${ours[@]}" >>"$work/ours"
        timed "$@" >>"$work/theirs"
    done
    echo "$(cut -d' ' -f1 "$work/ours" | median) $(cut -d' ' -f1 "$work/theirs" | median)" \
        "$(cut -d' ' -f2 "$work/ours" | median) $(cut -d' ' -f2 "$work/theirs" | median) $what" | tee -a "$work/lines" |
        awk '{ what = substr($0, index($0, $5))
            printf "%-34s %8.3f %8.3f %6.2f %9.3f %8.3f %6.2f\n", what, $1, $2, $1 / $2, $3, $4, $3 / $4 }'
}

# means WHAT: the geometric means of the lines that begin with it.
means() {
    awk -v what="$1" 'index($0, " " what) { n++; clock += log($1 / $2); cpu += log($3 / $4) }
        END { printf "%-34s %24.2f %25.2f\n", what ": geometric mean", exp(clock / n), exp(cpu / n) }' "$work/lines"
}

"$binlogz" compress --output "$work/large" "$large" >/dev/null
"$binlogz" compress --output "$work/deletes" "$deletes" >/dev/null
"$zstd" -3 -q "$large" -o "$work/large.zst"
"$zstd" -3 -q "$deletes" -o "$work/deletes.zst"
printf '%-34s %8s %8s %6s %9s %8s %6s\n' "seconds, medians of $runs" clock peer ratio processor peer ratio
pair 'expand, one payload' "$binlogz" expand --force --output "$work/back" "$work/large" -- "$zstd" -d -q -f "$work/large.zst" -o "$work/theirs.log"
cmp "$work/back" "$large"
pair 'expand of it into a pipe' "$binlogz" expand --output - "$work/large" -- "$zstd" -d -q -c "$work/large.zst"
pair 'compress, one transaction' "$binlogz" compress --force --output "$work/back" "$large" -- \
    "$zstd" -3 --single-thread -q -f "$large" -o "$work/theirs.log"
pair 'dump of that payload' "$binlogz" dump --no-defaults "$work/large" -- "$mysqlbinlog" --no-defaults "$work/large"
pair 'deletes, compress' "$binlogz" compress --force --output "$work/back" "$deletes" -- "$zstd" -3 -T2 -q -f "$deletes" -o "$work/theirs.log"
pair 'deletes, expand' "$binlogz" expand --force --output "$work/back" "$work/deletes" -- "$zstd" -d -T2 -q -f "$work/deletes.zst" -o "$work/theirs.log"
pair 'dump of a small log' "$binlogz" dump --no-defaults samples/plain/binlog.000001 -- "$mysqlbinlog" --no-defaults samples/plain/binlog.000001
for log in "$@"; do
    pair "dump $(basename "$log")" "$binlogz" dump --no-defaults "$log" -- "$mysqlbinlog" --no-defaults "$log"
done
for log in "$@"; do
    pair "dump -v $(basename "$log")" "$binlogz" dump --no-defaults -v --base64-output=decode-rows "$log" -- \
        "$mysqlbinlog" --no-defaults -v --base64-output=decode-rows "$log"
done
means 'dump -v'
sed -i '/ dump -v /d; / dump of /d' "$work/lines"
means 'dump'
