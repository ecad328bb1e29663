#!/usr/bin/env bash
# How many bytes of an archive's segments `binlogz dump` reads, by what it looks for: the five workloads and the three shapes
# archived together, each command under strace. The reads of one segment are counted, whatever the time they take.
#
# usage: archive-bytes.sh [SCALE]      (by default 0.1)
set -euo pipefail
cd "$(dirname "$0")/../.."

scale=${1:-0.1}
command -v strace >/dev/null || { echo "strace is not installed" >&2; exit 1; }
release=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release
cargo build --quiet --release --package binlogz
make_logs() {
    cargo run --quiet --release --package binlogz-bench-programs --bin workloads -- --scale "$scale" "$@" | grep -o '/[^ ]*$'
}
mapfile -t logs < <(make_logs --setting plain && make_logs --of shapes)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$release/binlogz" archive create --level fast --to "$work/arc" "${logs[@]}" >/dev/null
size=$(cat "$work"/arc/objects/segment-* | wc -c)
echo "${#logs[@]} logs of $(cat "${logs[@]}" | wc -c) bytes, segments of $size bytes"

printf '%-44s %12s %10s %6s\n' condition 'bytes read' 'of all, %' reads
while read -r condition; do
    # A file for each thread: calls of several threads are torn apart in one. The options are words of their own.
    rm -f "$work"/trace.*
    # shellcheck disable=SC2086
    strace -ff -y -o "$work/trace" -e trace=read,pread64 \
        "$release/binlogz" dump --no-defaults $condition "$work/arc" >/dev/null
    awk -v size="$size" -v condition="$condition" '/segment-/ && / = [0-9]+$/ { bytes += $NF; reads++ }
        END { printf "%-44s %12d %10.1f %6d\n", condition, bytes, bytes / size * 100, reads }' "$work"/trace.*
done <<'CONDITIONS'
--format=jsonl
--format=jsonl --table=no.table
--format=jsonl --table=employees.titles
--format=jsonl --table=employees.salaries
--format=jsonl --table=blobs.file
--format=jsonl --table=sbtest.sbtest1
--format=jsonl --database=wide
-v
-v --table=no.table
CONDITIONS
