#!/usr/bin/env bash
# The presets of `binlogz bench` at full scale on a private server: the tables of lab/book/bench.md.
#
# usage: presets.sh [PRESET…]          space and network without arguments; options of one alone stand with its name:
#        presets.sh levels updates point-select 'insert --time 5 --threads 1,10,100,1000,5500'
#
# SCALE (1), REPEAT (1), TIME (10: seconds of a timed step), OUT (target/bench-presets), SETTINGS (all; 'off;level 3' are
# these two alone, others can follow), PLAN (1: print the plan and end), BINLOGZ (a binary, instead of building one).
# The plan is printed first, with estimates for a quiet machine. A run that was ended is taken up again by the same
# command; a preset that fails does not keep the next ones from being run.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${OUT:-target/bench-presets}
binlogz=${BINLOGZ:-target/release/binlogz}
if [ $# -eq 0 ]; then
    set -- space network
fi
if [ -z "${BINLOGZ:-}" ]; then
    cargo build --release --quiet --package binlogz --package binlogz-bench
fi

settings=()
IFS=';' read -ra names <<<"${SETTINGS:-}"
for name in "${names[@]}"; do
    settings+=(--setting "$name")
done

# bench PRESET-AND-OPTIONS ARGUMENT…
bench() {
    local words args
    read -ra words <<<"$1"
    args=(--sandbox --to "$out/${words[0]}" "${settings[@]}")
    [[ " $1 " == *" --scale "* ]] || args+=(--scale "${SCALE:-1}")
    [[ " $1 " == *" --repeat "* ]] || args+=(--repeat "${REPEAT:-1}")
    [[ " $1 " == *" --time "* ]] || args+=(--time "${TIME:-10}")
    if [ "${words[0]}" = point-select ]; then
        # 12 million rows are 3 GB: reads shall find them in memory, as the study's did.
        args+=(--sandbox-option innodb-buffer-pool-size=5G --sandbox-option innodb-redo-log-capacity=2G)
    fi
    "$binlogz" bench "${words[@]}" "${args[@]}" "${@:2}"
}

for preset in "$@"; do
    bench "$preset" --plan
done
[ -z "${PLAN:-}" ] || exit 0

failed=()
for preset in "$@"; do
    echo "== $preset, $(date --utc '+%F %T') UTC, load average $(cut -d ' ' -f 1 /proc/loadavg)"
    bench "$preset" || failed+=("$preset")
done
echo "== ended $(date --utc '+%F %T') UTC"
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}" >&2
    exit 1
fi
