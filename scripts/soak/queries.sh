#!/usr/bin/env bash
# The queries of crates/interfaces/sql-cli/tests/sql/queries.sql give equal answers from plain logs, compressed twins, an archive in a folder and
# in S3, a cluster of two executors over S3, DuckDB over our Parquet files, and, for some, a Python reading of `mysqlbinlog -v`.
# Prints how many each engine passed. The count by table is compared with what `mysqlbinlog -vvv | perl` counts, too.
#
# usage: queries.sh      BINLOGZ_BIN names a folder of built binlogz and binlogz-sql
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/cluster-lib.sh

logs=(samples/plain/*)
schema=crates/interfaces/sql-cli/tests/sql/samples.sql
python=$(scripts/get-tool.sh lake)/bin/python
mysqlbinlog=$(scripts/get-tool.sh mysql)/bin/mysqlbinlog
build_programs
begin_work
start_s3
start_scheduler
start_executor 1
start_executor 2

mkdir "$work/twins"
"$BINLOGZ_BIN/binlogz" compress --quiet --output "$work/twins" "${logs[@]}" >/dev/null
"$BINLOGZ_BIN/binlogz" archive create --quiet --to "$work/archive" "${logs[@]}" >/dev/null
# Several objects: each executor gets some.
for log in "${logs[@]}"; do
    env "${s3_settings[@]}" "$BINLOGZ_BIN/binlogz" archive create --quiet --to s3://bucket/archive "$log" >/dev/null
done
"$BINLOGZ_BIN/binlogz-sql" export --to "$work/lake" --schema "$schema" "${logs[@]}" >/dev/null

# mysqlbinlog -v gives up at a row with a GEOMETRY, and leaves out the rest of its event.
printed=()
for log in "${logs[@]}"; do
    "$mysqlbinlog" --no-defaults -vvv --base64-output=decode-rows "$log" >"$work/text"
    grep -aq "!! Don't know how to handle" "$work/text" || printed+=("$log")
done

list() { "$python" -c 'import json, sys; print(json.dumps(sys.argv[1:]))' "$@"; }
cat >"$work/config.json" <<END
{"program": "$BINLOGZ_BIN/binlogz-sql", "queries": "crates/interfaces/sql-cli/tests/sql/queries.sql", "schema": "$schema",
 "engines": {"plain logs": [[], $(list "${logs[@]}")],
             "compressed twins": [[], $(list "$work"/twins/*)],
             "archive in a folder": [[], ["$work/archive"]],
             "archive in S3": [[], ["s3://bucket/archive"]],
             "cluster over S3": [["--cluster", "127.0.0.1:$scheduler_port", "--task-size", "1", "--partitions", "2"],
                                 ["s3://bucket/archive"]]},
 "environment": {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "tester-secret", "AWS_REGION": "us-east-1",
                 "AWS_ENDPOINT_URL": "http://127.0.0.1:$s3_port"},
 "export": "$work/lake", "mysqlbinlog": "$mysqlbinlog", "logs": $(list "${logs[@]}"),
 "printed": $(list "${printed[@]}")}
END
"$python" scripts/soak/queries.py "$work/config.json"
for executor in 1 2; do
    tasks=$(grep -c 'read .* rows in' "$work/executor-$executor.log" || true)
    [ "$tasks" -gt 0 ] || { echo "queries.sh: executor $executor read nothing" >&2; exit 1; }
    echo "executor $executor ran $tasks readings"
done

# The published count by table.
for log in "${printed[@]}"; do
    "$mysqlbinlog" --no-defaults -vvv --base64-output=decode-rows "$log"
done | perl -ne '$count{"$2 $1"}++ if /^### (INSERT INTO|UPDATE|DELETE FROM) (\S.*)/;
          END { print "$count{$_} $_\n" for sort keys %count }' >"$work/perl"
"$BINLOGZ_BIN/binlogz-sql" --format csv "SELECT count(*) || ' \`' || schema || '\`.\`' || replace(\"table\", '\`', '\`\`') || '\` ' ||
    CASE operation WHEN 'insert' THEN 'INSERT INTO' WHEN 'update' THEN 'UPDATE' ELSE 'DELETE FROM' END AS line
    FROM changes GROUP BY schema, \"table\", operation" "${printed[@]}" | tail -n +2 >"$work/ours"
diff <(sort "$work/perl") <(sort "$work/ours") || { echo "queries.sh: the count by table differs from perl's" >&2; exit 1; }
echo "$(wc -l <"$work/ours") counts by table and operation equal to those of mysqlbinlog -vvv | perl"
