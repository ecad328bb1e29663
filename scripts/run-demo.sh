#!/usr/bin/env bash
# The main job on real binlogs: compress, expand back, verify both, print what it saves.
#
# usage: run-demo.sh [FILE…]      samples/ without FILEs; they are only read
#
# What was compressed must expand to the very bytes that the file itself expands to (a file without compressed
# transactions: its own); what a server compressed at level 3 must, expanded and compressed again, be its bytes.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

cargo build --quiet --release --manifest-path "$root/Cargo.toml" --package binlogz
binlogz=$(realpath "${CARGO_TARGET_DIR:-$root/target}/release/binlogz")
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
    (cd "$work" && "$binlogz" verify small/* back/* | sed -n '1,2p;$p')
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
    there_and_back 'FILE…' "$@"
else
    cd "$root"
    there_and_back 'samples/plain/binlog.*' samples/plain/binlog.*
    as_the_server samples/compressed/binlog.*
fi
