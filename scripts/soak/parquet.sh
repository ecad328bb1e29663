#!/usr/bin/env bash
# `binlogz export` read by DuckDB, pyarrow, pandas and Spark (if there is a java): statements give what `binlogz sql` gives over the logs, and types are right
# (parquet.py, spark.py). Then runs are killed at random KILLS times (30); after each kill all files that are seen can be read, and in the
# end the rows are there once. Without logs: those of samples/. SEED=N begins at N. BINLOGZ_SQL names a program that is built.
#
# usage: parquet.sh [KILLS [SCHEMA.sql LOG...]]
set -euo pipefail
cd "$(dirname "$0")/../.."

kills=${1:-30}
schema=${2:-crates/interfaces/sql-cli/tests/sql/samples.sql}
logs=("${@:3}")
[ ${#logs[@]} -gt 0 ] || logs=(samples/plain/*)
RANDOM=${SEED:-$$}
python=$(scripts/get-tool.sh lake)/bin/python
if [ -z "${BINLOGZ_SQL:-}" ]; then
    cargo build --quiet --package binlogz-sql
    BINLOGZ_SQL=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug/binlogz-sql
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compare() { "$python" scripts/soak/parquet.py "$BINLOGZ_SQL" "$1" "$schema" "${logs[@]}"; }

# Spark over what pyarrow reads, and over a table that changed.
if command -v java >/dev/null; then
    spark=$(scripts/get-tool.sh spark)/bin/python
    "$BINLOGZ_SQL" export --to "$work/spark" --schema "$schema" "${logs[@]}" >/dev/null
    "$python" scripts/soak/spark-expected.py "$work/spark" >"$work/expected.json"
    "$spark" scripts/soak/spark.py "$work/spark" "$work/expected.json"
else
    echo 'SKIPPED: Spark: no java'
fi

for partition in day month none; do
    # Log by log, then all again.
    for log in "${logs[@]}"; do
        "$BINLOGZ_SQL" export --to "$work/$partition" --partition "$partition" --schema "$schema" "$log" >/dev/null
    done
    [ "$("$BINLOGZ_SQL" export --to "$work/$partition" --schema "$schema" "${logs[@]}")" = 'nothing is new' ]
    compare "$work/$partition"
done

# How long a whole run takes, in milliseconds.
begin=${EPOCHREALTIME/./}
"$BINLOGZ_SQL" export --to "$work/whole" --schema "$schema" "${logs[@]}" >/dev/null
whole=$(((${EPOCHREALTIME/./} - begin) / 1000 + 1))
died=0
for ((kill = 0; kill < kills; kill++)); do
    "$BINLOGZ_SQL" export --to "$work/killed" --schema "$schema" "${logs[@]:0:$((RANDOM % ${#logs[@]} + 1))}" >/dev/null &
    sleep "$(printf '0.%03d' $((RANDOM % (whole < 999 ? whole : 999))))"
    if kill -KILL $! 2>/dev/null; then died=$((died + 1)); fi
    wait $! 2>/dev/null || true
    "$python" - "$work/killed" <<'END'
import pathlib, sys, pyarrow.parquet
for path in pathlib.Path(sys.argv[1]).glob("**/*.parquet"):
    if "_binlogz" not in path.parts:
        pyarrow.parquet.read_table(path)
END
done
"$BINLOGZ_SQL" export --to "$work/killed" --schema "$schema" "${logs[@]}"
compare "$work/killed"
echo "$died of $kills runs were killed, a whole one takes $whole ms"
