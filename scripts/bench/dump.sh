#!/usr/bin/env bash
# `binlogz dump` side by side with mysqlbinlog on the five workloads at full scale, plain and at level 3: rows as text
# (-v --base64-output=decode-rows) and the default, on two cores and on one. Medians of RUNS alternating runs, output
# thrown away on both sides, then the geometric mean of the ratios.
#
# usage: dump.sh            RUNS=5
set -euo pipefail
cd "$(dirname "$0")/../.."

runs=${RUNS:-5}
release=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release
cargo build --quiet --release --package binlogz
mysqlbinlog=$(scripts/get-tool.sh mysql)/bin/mysqlbinlog

mapfile -t files < <(cargo run --quiet --release --package binlogz-testkit --bin workloads -- \
    --scale 1 --setting plain --setting level3 | grep -o '/[^ ]*$')

# seconds COMMAND…: how long it takes, its output thrown away.
seconds() {
    local begin=$EPOCHREALTIME
    "$@" >/dev/null 2>&1
    awk -v begin="$begin" -v end="$EPOCHREALTIME" 'BEGIN { printf "%.4f\n", end - begin }'
}

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for options in "-v --base64-output=decode-rows" ""; do
    echo "dump ${options:-(default)}"
    printf '%-8s %-24s %12s %9s %9s %9s %9s\n' setting file mysqlbinlog '2 cores' '1 core' 'x on 2' 'x on 1'
    for file in "${files[@]}"; do
        : >"$work/two"; : >"$work/one"; : >"$work/theirs"
        for ((run = 0; run < runs; run++)); do
            # The options are words of their own.
            # shellcheck disable=SC2086
            seconds "$mysqlbinlog" --no-defaults $options "$file" >>"$work/theirs"
            # shellcheck disable=SC2086
            seconds "$release/binlogz" dump --no-defaults --jobs=2 $options "$file" >>"$work/two"
            # shellcheck disable=SC2086
            seconds taskset -c 0 "$release/binlogz" dump --no-defaults --jobs=1 $options "$file" >>"$work/one"
        done
        echo "$(basename "$(dirname "$file")") $(basename "$file") $(median <"$work/theirs")" \
            "$(median <"$work/two") $(median <"$work/one")"
    done | awk '{
        printf "%-8s %-24s %12.3f %9.3f %9.3f %9.1f %9.1f\n", $1, $2, $3, $4, $5, $3 / $4, $3 / $5
        n++; two += log($3 / $4); one += log($3 / $5)
    } END { printf "geometric mean: %.1f x mysqlbinlog on 2 cores, %.1f x on one\n\n", exp(two / n), exp(one / n) }'
done
