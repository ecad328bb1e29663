#!/usr/bin/env bash
# `binlogz stats --values` side by side with programs over other libraries that decode every row value, on the five
# workloads at full scale, plain and at level 3. Medians of RUNS alternating runs, then the geometric mean of the ratios.
#
# usage: stats.sh            RUNS=5
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/measure-lib.sh

runs=${RUNS:-5}
release=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release
cargo build --quiet --release --package binlogz
cargo build --quiet --release --manifest-path lab/bench-peers/Cargo.toml --target-dir "$release/../bench-peers"
peers=$release/../bench-peers/release

mapfile -t files < <(cargo run --quiet --release --package binlogz-bench-programs --bin workloads -- \
    --scale 1 --setting plain --setting level3 | grep -o '/[^ ]*$')

printf '%-8s %-24s %9s %9s %14s %16s %7s %7s\n' \
    setting file '2 cores' '1 core' mysql_common connector-rust 'x m_c' 'x c-r'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in "${files[@]}"; do
    : >"$work/two"; : >"$work/one"; : >"$work/common"; : >"$work/connector"
    for ((run = 0; run < runs; run++)); do
        seconds "$release/binlogz" stats --values --jobs 2 "$file" >>"$work/two"
        seconds "$peers/mysql_common_rows" "$file" >>"$work/common"
        seconds taskset -c 0 "$release/binlogz" stats --values --jobs 1 "$file" >>"$work/one"
        seconds "$peers/connector_rust_rows" "$file" >>"$work/connector"
    done
    echo "$(basename "$(dirname "$file")") $(basename "$file") $(median <"$work/two") $(median <"$work/one")" \
        "$(median <"$work/common") $(median <"$work/connector")"
done | awk '{
    printf "%-8s %-24s %9.3f %9.3f %14.3f %16.3f %7.1f %7.1f\n", $1, $2, $3, $4, $5, $6, $5 / $3, $6 / $3
    n++; two += log($5 / $3); one += log($5 / $4); two_c += log($6 / $3); one_c += log($6 / $4); scale += log($4 / $3)
} END {
    printf "geometric mean: %.1f x mysql_common and %.1f x connector-rust on 2 cores, %.1f x and %.1f x on one; 2 cores %.2f x one\n",
        exp(two / n), exp(two_c / n), exp(one / n), exp(one_c / n), exp(scale / n)
}'
