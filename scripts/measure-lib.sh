#!/usr/bin/env bash
# For scripts that run binlogz and take the time: sourced, not run.

# binlogz_program [PROFILE]: prints the path of the program to run, which BINLOGZ names; otherwise it is built, as for a release by default.
binlogz_program() {
    local program=${BINLOGZ:-} profile=${1:-release}
    if [ -z "$program" ]; then
        cargo build --quiet --profile "$profile" --package binlogz || return 1
        program=${CARGO_TARGET_DIR:-target}/$profile/binlogz
    fi
    realpath "$program"
}
# seconds COMMAND…: how long it takes, its output thrown away.
seconds() {
    local begin=$EPOCHREALTIME
    "$@" >/dev/null 2>&1
    awk -v begin="$begin" -v end="$EPOCHREALTIME" 'BEGIN { printf "%.4f\n", end - begin }'
}
# median: of the numbers on standard input.
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
