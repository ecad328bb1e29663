#!/usr/bin/env bash
# `binlogz archive` side by side with `xz -6` and `zstd -19 --long=27` on the five workloads at full scale: sizes, and
# seconds to create (with its verification) and to restore.
#
# usage: archive.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

release=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release
cargo build --quiet --release --package binlogz
mapfile -t files < <(cargo run --quiet --release --package binlogz-testkit --bin workloads -- \
    --scale 1 --setting plain | grep -o '/[^ ]*$')

# seconds COMMAND…: how long it takes, its output thrown away.
seconds() {
    local begin=$EPOCHREALTIME
    "$@" >/dev/null 2>&1
    awk -v begin="$begin" -v end="$EPOCHREALTIME" 'BEGIN { printf "%.2f\n", end - begin }'
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '%-24s %10s %10s %10s %10s %7s %8s %8s %8s\n' file plain archive 'xz -6' zstd-19 'of xz' create restore xz
for file in "${files[@]}"; do
    rm -rf "$work/arc" "$work/back"
    create=$(seconds "$release/binlogz" archive create --to "$work/arc" "$file")
    restore=$(seconds "$release/binlogz" archive restore --to "$work/back" "$work/arc")
    cmp "$file" "$work/back/$(basename "$file")"
    xz_begin=$EPOCHREALTIME
    xz=$(xz -6 --stdout "$file" | wc -c)
    xz_seconds=$(awk -v begin="$xz_begin" -v end="$EPOCHREALTIME" 'BEGIN { printf "%.2f", end - begin }')
    zstd=$(zstd -19 --long=27 --quiet --stdout "$file" | wc -c)
    echo "$(basename "$file") $(stat -c %s "$file") $(du -bc "$work"/arc/objects/* | awk 'END { print $1 }')" \
        "$xz $zstd $create $restore $xz_seconds"
done | awk '{
    printf "%-24s %10d %10d %10d %10d %7.3f %8.2f %8.2f %8.2f\n", $1, $2, $3, $4, $5, $3 / $4, $6, $7, $8
    n++; ratio += log($3 / $4)
} END { printf "geometric mean of xz -6: %.3f\n", exp(ratio / n) }'
