#!/usr/bin/env bash
# For scripts that try `binlogz advise` under load: sourced, not run. A script ends its loops with `quiet` when it ends.

loops=()
# quiet: ends the loops.
quiet() {
    [ ${#loops[@]} -eq 0 ] || kill "${loops[@]}" 2>/dev/null || true
    [ ${#loops[@]} -eq 0 ] || wait "${loops[@]}" 2>/dev/null || true
    loops=()
}
# busy COUNT: so many loops that do nothing but run.
busy() {
    local loop
    quiet
    for ((loop = 0; loop < $1; loop++)); do
        while :; do :; done &
        loops+=($!)
    done
}
# plain_logs SCALE KIND…: name and path of the uncompressed log of each workload of these kinds, with a tab between them.
# WORKLOADS names a program that makes the logs; otherwise it is built.
plain_logs() {
    local scale=$1 kind program=(cargo run --quiet --package binlogz-bench-programs --bin workloads --)
    [ -z "${WORKLOADS:-}" ] || program=("$WORKLOADS")
    for kind in "${@:2}"; do
        "${program[@]}" --of "$kind" --scale "$scale" --setting plain | cut -f 2,4
    done
}
