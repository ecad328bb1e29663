#!/usr/bin/env bash
# `binlogz.iceberg` over logs: DuckDB (its own extension), pyiceberg and, if there is a java, Spark read what `binlogz sql` has, current rows are the last of each
# key, and KILLS runs (10) that are killed at random beside compactions that are killed at random leave each row once. Then the files of `binlogz export` as `add_files` takes
# them, by DuckDB and pyiceberg. Without logs: those of samples/. Fetches DuckDB with two of its extensions (70 MB) and Spark (580 MB). SEED=N repeats the kills.
#
# usage: iceberg.sh [KILLS [SCHEMA.sql LOG...]]      BINLOGZ_BIN names a folder of a built binlogz-sql, MODULE the built native module
set -euo pipefail
cd "$(dirname "$0")/../.."

kills=${1:-10}
schema=${2:-crates/interfaces/sql-cli/tests/sql/samples.sql}
logs=("${@:3}")
[ ${#logs[@]} -gt 0 ] || logs=(samples/plain/*)
python=$(scripts/get-tool.sh flight-sql)/bin/python
duckdb=$(scripts/get-tool.sh duckdb-iceberg)
if [ -z "${BINLOGZ_BIN:-}" ]; then
    cargo build --quiet --package binlogz-sql --package binlogz-python
    BINLOGZ_BIN=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug
fi
MODULE=${MODULE:-$BINLOGZ_BIN/libbinlogz_python.so}
spark=
if command -v java >/dev/null; then
    spark=$(scripts/get-tool.sh spark-iceberg)
else
    echo 'SKIPPED: Spark: no java'
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The package as a wheel has it.
mkdir "$work/package"
cp -r crates/interfaces/python/binlogz "$work/package"
cp "$MODULE" "$work/package/binlogz/_native.abi3.so"
"$python" - "$work" "$kills" "${SEED:-$$}" "$BINLOGZ_BIN/binlogz-sql" "$duckdb" "$spark" "$schema" "${logs[@]}" >"$work/config.json" <<'END'
import json, os, sys
work, kills, seed, program, duckdb, spark, schema, *logs = sys.argv[1:]
print(json.dumps({"work": work, "kills": int(kills), "seed": int(seed), "program": program, "duckdb": f"{duckdb}/bin/python", "extensions": duckdb, "spark": spark,
                  "schema": schema, "logs": [os.path.abspath(log) for log in logs]}))
END
PYTHONPATH=$work/package PYTHONDONTWRITEBYTECODE=1 "$python" scripts/soak/iceberg.py "$work/config.json"
