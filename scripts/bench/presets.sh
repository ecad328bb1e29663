#!/usr/bin/env bash
# The presets of `binlogz bench` at full scale on a private server: the tables of docs/bench.md.
#
# usage: presets.sh [PRESET…]          space and network without arguments
#
# SCALE (1), REPEAT (1), TIME (10: seconds of a timed step), OUT (target/bench-presets). A run that was ended is taken
# up again.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${OUT:-target/bench-presets}
if [ $# -eq 0 ]; then
    set -- space network
fi
cargo build --release --quiet --package binlogz
for preset in "$@"; do
    echo "== $preset, $(date --utc '+%F %T') UTC, load average $(cut -d ' ' -f 1 /proc/loadavg)"
    target/release/binlogz bench "$preset" --sandbox --scale "${SCALE:-1}" --repeat "${REPEAT:-1}" \
        --time "${TIME:-10}" --out "$out/$preset"
done
