#!/usr/bin/env bash
# `binlogz sql` beside `mysqlbinlog | perl`: rows by table and operation, over a log as it is, compressed and archived, and `stats` over
# the archive. For docs/internals/measurements/sql.md.
#
# usage: sql.sh [SCALE [RUNS]]      (by default 1 and 3; the logs of `workloads --of more-shapes`)
set -euo pipefail
cd "$(dirname "$0")/../.."

scale=${1:-1}
runs=${2:-3}
release=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release
mysqlbinlog=$(scripts/get-tool.sh mysql)/bin/mysqlbinlog
cargo build --quiet --release --package binlogz --package binlogz-sql
mapfile -t logs < <(cargo run --quiet --release --package binlogz-bench-programs --bin workloads -- --scale "$scale" \
    --setting plain --of more-shapes | grep -o '/[^ ]*$')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# seconds COMMAND…: how long it takes; what it prints stands in out.
seconds() {
    local begin=$EPOCHREALTIME
    "$@" >"$work/out"
    awk -v begin="$begin" -v end="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", end - begin }'
}
theirs() {
    "$mysqlbinlog" --no-defaults -vvv --base64-output=decode-rows "$1" |
        perl -ne '$count{"$2 $1"}++ if /^### (INSERT INTO|UPDATE|DELETE FROM) (\S+)/;
                  END { print "$count{$_} $_\n" for sort keys %count }'
}
ours() {
    "$release/binlogz-sql" --format csv \
        'SELECT count(*), operation, schema, "table" FROM changes GROUP BY 2, 3, 4 ORDER BY 3, 4, 2' "$1"
}
# Row changes in what was printed: the first column's sum.
rows() { awk -F '[ ,]' '{ count += $1 } END { print count + 0 }' "$work/out"; }

printf '%-24s %9s %12s %9s %11s %9s %14s\n' log rows 'mysqlbinlog' plain compressed archive 'stats, archive'
for log in "${logs[@]}"; do
    name=$(basename "$log")
    "$release/binlogz" compress --quiet --output "$work/compressed" "$log" >/dev/null
    "$release/binlogz" archive create --quiet --to "$work/archive" "$log" >/dev/null
    for ((run = 0; run < runs; run++)); do
        line=$(seconds theirs "$log")
        expected=$(rows)
        for input in "$log" "$work/compressed" "$work/archive"; do
            line+=" $(seconds ours "$input")"
            [[ $(rows) == "$expected" ]] || { echo "sql.sh: $input: $(rows) rows, mysqlbinlog has $expected" >&2; exit 1; }
        done
        line+=" $(seconds "$release/binlogz" stats --by table "$work/archive")"
        read -r -a times <<<"$line"
        printf '%-24s %9s %12s %9s %11s %9s %14s\n' "$name" "$expected" "${times[@]}"
    done
    rm -rf "$work/archive" "$work/compressed"
done
