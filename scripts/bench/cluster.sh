#!/usr/bin/env bash
# What a node of a cluster does and costs, for the plan in lab/book/sql.md: executors with one task at once over
# an archive in S3. It prints, for three queries, the MB of plain log that a core reads a second (an executor's own processor time, so
# other load on the machine does not count), what the scheduler and the client spend for a task, and what S3 is asked for.
#
# usage: cluster.sh [COPIES [LOG]]     the archive holds LOG (else a log of shapes that is generated) so often (16)
#   TASK_SIZE=MIB   what a task reads (64): smaller ones tell what a task costs the scheduler
#   BINLOGZ_BIN names a folder of built binlogz and binlogz-sql, release ones
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/cluster-lib.sh

copies=${1:-16}
if [ -z "${BINLOGZ_BIN:-}" ]; then
    cargo build --quiet --release --package binlogz --package binlogz-sql
    BINLOGZ_BIN=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release
fi
log=${2:-$("$BINLOGZ_BIN/workloads" --scale 1 --setting plain --of shapes | grep -o '/[^ ]*$' | head -n 1)}
begin_work
start_s3
for ((copy = 1; copy <= copies; copy++)); do
    ln -s "$(realpath "$log")" "$work/$(printf 'binlog.%06d' "$copy")"
done
env "${s3_settings[@]}" "$BINLOGZ_BIN/binlogz" archive create --quiet --to s3://bucket/archive "$work"/binlog.0* >/dev/null
size=$(($(stat -Lc %s "$log") * copies))
archive=$(du -sb "$work/data/bucket" | cut -f 1)
start_scheduler
executor_jobs=1
start_executor 1
start_executor 2
echo "$copies logs, $((size / 1000000)) MB, archive $((archive / 1000000)) MB; load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) cores"

ticks=$(getconf CLK_TCK)
# spent PID…: seconds of processor time.
spent() {
    for pid in "$@"; do cut -d')' -f2 "/proc/$pid/stat"; done | awk -v ticks="$ticks" '{ sum += $12 + $13 } END { print sum / ticks }'
}
printf '%-46s %8s %12s %14s %16s %13s\n' query seconds 'MB/s of core' 'scheduler, ms' 'client CPU, ms' 'tasks'
ask() {
    local executors_before scheduler_before tasks_before
    executors_before=$(spent "${executors[@]}") scheduler_before=$(spent "$scheduler")
    tasks_before=$(cat "$work"/executor-*.log | grep -c ' rows in' || true)
    local TIMEFORMAT='%R %U %S'
    { time env "${s3_settings[@]}" "$BINLOGZ_BIN/binlogz-sql" --format csv --cluster "127.0.0.1:$scheduler_port" --partitions 2 --task-size "${TASK_SIZE:-64}" \
        "$2" s3://bucket/archive >"$work/answer"; } 2>"$work/time"
    awk -v name="$1" -v size="$size" -v executors="$(spent "${executors[@]}") - 0" -v a="$executors_before" -v b="$(spent "${executors[@]}")" \
        -v c="$scheduler_before" -v d="$(spent "$scheduler")" \
        -v tasks="$(($(cat "$work"/executor-*.log | grep -c ' rows in') - tasks_before))" \
        '{ printf "%-46s %8.1f %12.0f %14.0f %16.0f %13d\n", name, $1, size / 1e6 / (b - a), (d - c) * 1000, ($2 + $3) * 1000, tasks }' "$work/time"
}
ask 'rows by table and operation' 'SELECT schema, "table", operation, count(*) FROM changes GROUP BY 1, 2, 3'
ask 'bytes of transactions by hour' "SELECT date_trunc('hour', committed_at), count(*), sum(bytes) FROM transactions GROUP BY 1"
ask 'transactions with rows beyond a number' 'SELECT gtid, inserted + updated + deleted AS rows FROM transactions ORDER BY rows DESC LIMIT 10'
