#!/usr/bin/env bash
# The main job on real binlogs: compress, expand back, verify both, print what it saves.
#
# usage: run-demo.sh [FILE…]      samples/ without FILEs; they are only read
#
# FILEs may be everything that lies beside the logs: what is no binary log is named and skipped.
# BINLOGZ names a program to try instead of a quick build.
# A compressed file must expand to the very bytes that the file itself expands to (a file without compressed
# transactions: its own); what a server compressed at level 3 must, expanded and compressed again, be its bytes.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

binlogz=${BINLOGZ:-}
if [ -z "$binlogz" ]; then
    target=${CARGO_TARGET_DIR:-$root/target}
    [ -e "$target/quick/binlogz" ] || echo "building binlogz: this takes a few minutes the first time" >&2
    # Without object storage, which the main job doesn't need.
    cargo build --profile quick --no-default-features --manifest-path "$root/Cargo.toml" --package binlogz
    binlogz=$target/quick/binlogz
fi
binlogz=$(realpath "$binlogz")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# say WORD…: the command as a user would type it.
say() { printf '\n$ binlogz %s\n' "$*"; }

# identical FOLDER FOLDER: every file of the one is in the other, byte for byte.
identical() {
    local file
    for file in "$1"/*; do
        cmp "$file" "$2/$(basename "$file")"
    done
    echo "$3"
}

# keep_logs FILE…: puts those that are plain binary logs into the array `logs`, and says why the others are skipped.
keep_logs() {
    logs=()
    local file magic
    for file in "$@"; do
        # A file that can't be read is left to binlogz, which says why.
        if [ -d "$file" ]; then
            echo "skipped $file: a folder"
        elif ! magic=$(head -c 4 -- "$file" 2>/dev/null | od -An -tx1 | tr -d ' \n') || [ "$magic" = fe62696e ]; then
            logs+=("$file")
        elif [ "$magic" = fd62696e ]; then
            echo "skipped $file: an encrypted log; \"binlogz compress --keyring FILE\" reads it"
        elif [[ $file = *.index ]]; then
            echo "skipped $file: the list of the logs"
        else
            echo "skipped $file: not a binary log"
        fi
    done
}

# there_and_back SHOWN FILE…: compress, expand, compare, verify.
there_and_back() {
    local shown=$1
    shift
    mkdir "$work"/{small,back,plain}
    say "compress --output small/ $shown"
    "$binlogz" compress --output "$work/small" "$@"
    say "expand --output back/ small/*"
    "$binlogz" expand --output "$work/back" "$work"/small/* >/dev/null
    "$binlogz" expand --output "$work/plain" "$@" >/dev/null
    identical "$work/back" "$work/plain" "every file came back, byte for byte"
    say "verify small/* back/*"
    (cd "$work" && "$binlogz" verify small/* back/* | sed -n '1,4p;$p')
    say "verify --same $shown -- small/*"
    "$binlogz" verify --same "$@" -- "$work"/small/*
    rm -r "$work"/{small,back,plain}
}

# as_the_server FILE…: files that a server compressed at level 3.
as_the_server() {
    mkdir "$work"/{plain,again,server}
    cp "$@" "$work/server"
    say "expand --output plain/ samples/compressed/binlog.*"
    "$binlogz" expand --output "$work/plain" "$@"
    say "compress --level 3 --output again/ plain/*"
    "$binlogz" compress --level 3 --output "$work/again" "$work"/plain/* >/dev/null
    identical "$work/server" "$work/again" "every file has the bytes that MySQL wrote"
    rm -r "$work"/{plain,again,server}
}

if [ $# -gt 0 ]; then
    keep_logs "$@"
    [ ${#logs[@]} -gt 0 ] || { echo "no binary log among them" >&2; exit 2; }
    there_and_back 'FILE…' "${logs[@]}"
else
    cd "$root"
    there_and_back 'samples/plain/binlog.*' samples/plain/binlog.*
    as_the_server samples/compressed/binlog.*
fi
