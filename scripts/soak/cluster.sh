#!/usr/bin/env bash
# A cluster of two executors over an archive in S3: equal answers; then an executor is killed with -9 in mid-query, which goes on or
# fails with one line and works when repeated; then the scheduler, after which a new one takes over. What the page on clusters says
# of failures is what happens here. KILLS times each (3).
#
# usage: cluster.sh [KILLS]      BINLOGZ_BIN names a folder of built binlogz and binlogz-sql
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/cluster-lib.sh

# The cluster is behind a feature, so `make lint test` leaves it out.
cargo clippy --quiet --package binlogz-cluster --package binlogz-sql --features binlogz-sql/cluster --all-targets -- --deny warnings
scripts/run-tests.sh --quiet --package binlogz-sql --features cluster --test cluster
scripts/run-tests.sh --quiet --package binlogz-sql --features cluster --test sql docs::

kills=${1:-3}
build_programs
begin_work
start_s3
start_scheduler
start_executor 1
start_executor 2
for log in samples/plain/*; do
    env "${s3_settings[@]}" "$BINLOGZ_BIN/binlogz" archive create --quiet --to s3://bucket/archive "$log" >/dev/null
done

# Each row of one join with each of another: seconds of work after the logs are read.
query='SELECT a."table", count(*) AS pairs, sum(a."row" + b."row") AS rows FROM changes a JOIN changes b ON a.schema = b.schema
    AND a.operation = b.operation AND a."offset" % 7 = b."offset" % 7 GROUP BY 1 ORDER BY 1'
ask() {
    env "${s3_settings[@]}" "$BINLOGZ_BIN/binlogz-sql" --format csv --cluster "127.0.0.1:$scheduler_port" --task-size 1 --partitions 4 \
        "$query" s3://bucket/archive
}
begin=${EPOCHREALTIME/./}
ask >"$work/expected"
whole=$(((${EPOCHREALTIME/./} - begin) / 1000))
"$BINLOGZ_BIN/binlogz-sql" --format csv "$query" samples/plain/* | diff - "$work/expected"
for executor in 1 2; do
    grep -q 'read .* rows in' "$work/executor-$executor.log" || { echo "cluster.sh: executor $executor did nothing" >&2; exit 1; }
done
echo "two executors: equal, $whole ms, both read"

went_on=0 repeated=0
# drill WHAT: a query with a kill in its middle.
drill() {
    ask >"$work/answer" 2>"$work/error" &
    local asking=$!
    sleep "$(printf '%d.%03d' $((whole * (RANDOM % 60 + 20) / 100000)) $((whole * (RANDOM % 60 + 20) / 100 % 1000)))"
    "$@"
    if wait "$asking"; then
        diff "$work/answer" "$work/expected"
        went_on=$((went_on + 1))
    else
        [ "$(wc -l <"$work/error")" = 1 ] || { cat "$work/error" >&2; exit 1; }
        ask | diff - "$work/expected"
        repeated=$((repeated + 1))
    fi
}
kill_executor() {
    kill -KILL "${executors[2]}"
    wait "${executors[2]}" 2>/dev/null || true
    start_executor 2
}
kill_scheduler() {
    kill -KILL "$scheduler"
    wait "$scheduler" 2>/dev/null || true
    start_scheduler
    for name in 1 2; do
        kill -KILL "${executors[$name]}" 2>/dev/null || true
        wait "${executors[$name]}" 2>/dev/null || true
        start_executor "$name"
    done
}
for ((kill = 0; kill < kills; kill++)); do drill kill_executor; done
echo "executor killed $kills times: $went_on queries went on, $repeated failed with one line and worked when repeated"
went_on=0 repeated=0
for ((kill = 0; kill < kills; kill++)); do drill kill_scheduler; done
echo "scheduler killed $kills times: $went_on queries went on, $repeated failed with one line and worked when repeated"
