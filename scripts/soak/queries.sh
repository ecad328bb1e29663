#!/usr/bin/env bash
# The queries of crates/interfaces/sql-cli/tests/sql/queries.sql give equal answers from plain logs, compressed twins, an archive in a folder and
# in S3, DuckDB over our Parquet files, and, for some, a Python reading of `mysqlbinlog -v`.
# Prints how many each engine passed. The count by table is compared with what `mysqlbinlog -vvv | perl` counts, too.
#
# usage: queries.sh      BINLOGZ_BIN names a folder of built binlogz and binlogz-sql
set -euo pipefail
cd "$(dirname "$0")/../.."

logs=(samples/plain/*)
schema=crates/interfaces/sql-cli/tests/sql/samples.sql
python=$(scripts/get-tool.sh lake)/bin/python
mysqlbinlog=$(scripts/get-tool.sh mysql)/bin/mysqlbinlog
if [ -z "${BINLOGZ_BIN:-}" ]; then
    cargo build --quiet --package binlogz --package binlogz-sql
    BINLOGZ_BIN=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug
fi
work=$(mktemp -d)
server=
end_work() {
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap end_work EXIT

# An S3 server with an empty bucket.
versitygw=$(scripts/get-tool.sh versitygw)/bin/versitygw
s3_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir -p "$work/data/bucket" "$work/meta"
"$versitygw" --access tester --secret tester-secret --quiet --port "127.0.0.1:$s3_port" posix --sidecar "$work/meta" "$work/data" >/dev/null 2>&1 &
server=$!
for ((tries = 0; tries < 300; tries++)); do
    ! (exec 3<>"/dev/tcp/127.0.0.1/$s3_port") 2>/dev/null || break
    sleep 0.1
done
s3_settings=(AWS_ACCESS_KEY_ID=tester AWS_SECRET_ACCESS_KEY=tester-secret AWS_REGION=us-east-1 "AWS_ENDPOINT_URL=http://127.0.0.1:$s3_port")

mkdir "$work/twins"
"$BINLOGZ_BIN/binlogz" compress --quiet --output "$work/twins" "${logs[@]}" >/dev/null
"$BINLOGZ_BIN/binlogz" archive create --quiet --to "$work/archive" "${logs[@]}" >/dev/null
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
             "archive in S3": [[], ["s3://bucket/archive"]]},
 "environment": {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "tester-secret", "AWS_REGION": "us-east-1",
                 "AWS_ENDPOINT_URL": "http://127.0.0.1:$s3_port"},
 "export": "$work/lake", "mysqlbinlog": "$mysqlbinlog", "logs": $(list "${logs[@]}"),
 "printed": $(list "${printed[@]}")}
END
"$python" scripts/soak/queries.py "$work/config.json"

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
