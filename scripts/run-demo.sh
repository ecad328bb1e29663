#!/usr/bin/env bash
# The main job on real binlogs: compress, expand back, verify both, print what it saves.
#
# usage: run-demo.sh [FILE…]      samples/ without FILEs; they are only read
#
# A file without compressed transactions must come back byte for byte; one that has some must expand to the same
# bytes before and after.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

cargo build --quiet --release --manifest-path "$root/Cargo.toml" --package binlogz
binlogz=${CARGO_TARGET_DIR:-$root/target}/release/binlogz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# job TITLE FILE…: all of them, in one table.
job() {
    local title=$1 plain=0 compressed=0 before=0 file name
    shift
    mkdir "$work/compressed" "$work/expanded" "$work/once"
    "$binlogz" compress --output "$work/compressed" "$@"
    "$binlogz" expand --output "$work/expanded" "$work"/compressed/*
    "$binlogz" expand --output "$work/once" "$@"
    "$binlogz" verify "$work"/compressed/* "$work"/expanded/* >/dev/null
    "$binlogz" verify --same "$@" -- "$work"/compressed/*

    printf '\n%s\n%-20s %12s %12s %12s %8s\n' "$title" file bytes expanded compressed saved
    for file in "$@"; do
        name=$(basename "$file")
        cmp "$work/once/$name" "$work/expanded/$name"
        row "$name" "$(size "$file")" "$(size "$work/expanded/$name")" "$(size "$work/compressed/$name")"
        before=$((before + $(size "$file")))
        plain=$((plain + $(size "$work/expanded/$name")))
        compressed=$((compressed + $(size "$work/compressed/$name")))
    done
    row total "$before" "$plain" "$compressed"
    rm -r "$work"/{compressed,expanded,once}
}

row() { printf '%-20s %12d %12d %12d %7d%%\n' "$1" "$2" "$3" "$4" $((100 - 100 * $4 / $3)); }
size() { stat --format %s "$1"; }

if [ $# -gt 0 ]; then
    job "your files" "$@"
else
    job "samples/plain: a server without compression" "$root"/samples/plain/binlog.*
    job "samples/compressed: a server with compression at level 3" "$root"/samples/compressed/binlog.*
fi
echo
echo "Every file came back: expanding what was compressed gives the same bytes, and both verify."
