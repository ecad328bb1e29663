#!/usr/bin/env bash
# `binlogz export` over a log as it is and in an archive: MB of plain log a second, and the size of the Parquet files beside the
# archive's. For lab/book/sql.md.
#
# usage: export.sh [SCALE [RUNS [OPTION…]]]      (by default 1 and 3; the logs of `workloads --of more-shapes`)
#   OPTION…      of export: --level 19
#   BIN=DIR      programs that are built already, workloads among them
#   MEASURE=cpu  MB a second of processor time, for a machine that does other things
set -euo pipefail
cd "$(dirname "$0")/../.."

scale=${1:-1}
runs=${2:-3}
options=("${@:3}")
release=${BIN:-$(realpath -m "${CARGO_TARGET_DIR:-target}")/release}
[[ -n ${BIN:-} ]] || cargo build --quiet --release --package binlogz --package binlogz-sql --package binlogz-bench-programs
mapfile -t logs < <("$release/workloads" --scale "$scale" --setting plain --of more-shapes | grep -o '/[^ ]*$')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# speed INPUT BYTES: MB a second of an export.
speed() {
    rm -rf "$work/lake"
    local TIMEFORMAT='%R %U %S'
    { time "$release/binlogz-sql" export --to "$work/lake" "${options[@]}" "$1" >/dev/null 2>"$work/error"; } 2>"$work/time" ||
        { cat "$work/error" >&2; return 1; }
    awk -v bytes="$2" -v measure="${MEASURE:-clock}" \
        '{ printf "%.1f\n", bytes / 1e6 / (measure == "cpu" ? $2 + $3 : $1) }' "$work/time"
}
# bytes FOLDER: of the files in it.
bytes() { find "$1" -type f "${@:2}" -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'; }

printf '%-24s %9s %14s %14s %12s %12s %7s\n' log MB 'plain, MB/s' 'archive, MB/s' Parquet archive ratio
for log in "${logs[@]}"; do
    size=$(stat -c %s "$log")
    "$release/binlogz" archive create --quiet --to "$work/archive" "$log" >/dev/null
    for ((run = 0; run < runs; run++)); do
        plain=$(speed "$log" "$size")
        archived=$(speed "$work/archive" "$size")
        parquet=$(bytes "$work/lake" -name '*.parquet')
        archive=$(bytes "$work/archive")
        awk -v name="$(basename "$log")" -v size="$size" -v plain="$plain" -v archived="$archived" -v parquet="$parquet" \
            -v archive="$archive" 'BEGIN { printf "%-24s %9.1f %14s %14s %12d %12d %7.2f\n", name, size / 1e6, plain, archived,
            parquet, archive, parquet / archive }'
    done
    rm -rf "$work/archive"
done
