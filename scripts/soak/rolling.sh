#!/usr/bin/env bash
# A rolling upgrade of a relay, there and back: an earlier binlogz and this one take turns on one directory, killed under load ROUNDS
# times (6), with two replicas and two readers by position. No replica is lost, no transaction is missing or comes twice.
#
# REF is a commit to build the earlier one from, in the cache outside the checkout. By default the one before the last that changed
# the code of a state file. BINLOGZ_EARLIER names a program to use instead.
#
# usage: rolling.sh [REF [ROUNDS]]
set -euo pipefail
cd "$(dirname "$0")/../.."

state_files=(
    ':(glob)crates/**/store/src/files/**'
    ':(glob)crates/**/relay/src/log/**'
    ':(glob)crates/**/relay-log/src/**'
    ':(glob)crates/**/relay/src/serve/**/pins.rs'
    ':(glob)crates/**/relay/src/serve/**/last_served.rs'
    ':(glob)crates/**/relay/src/receive/identity.rs'
    ':(glob)crates/**/relay/src/receive/source_variables.rs'
    ':(glob)crates/**/client-sql/src/variables/source.rs'
)
if [ -z "${BINLOGZ_EARLIER:-}" ]; then
    reference=${1:-$(git log --format=%H --skip=1 --max-count=1 -- "${state_files[@]}")}
    commit=$(git rev-parse --verify --short=12 "$reference^{commit}")
    cache=${BINLOGZ_CACHE:-$HOME/.cache/binlogz}/earlier/$commit
    BINLOGZ_EARLIER=$cache/target/quick/binlogz
    if [ ! -x "$BINLOGZ_EARLIER" ]; then
        echo "rolling: building $(git log --max-count=1 --format='%h %s' "$commit")"
        mkdir -p "$cache/source"
        git archive "$commit" | tar -x -C "$cache/source"
        (cd "$cache/source" && cargo build --quiet --profile quick --no-default-features --package binlogz --target-dir "$cache/target")
        rm -rf "$cache/source"
    fi
fi
export BINLOGZ_EARLIER BINLOGZ_ROUNDS=${2:-6}
scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored --nocapture rolling::
