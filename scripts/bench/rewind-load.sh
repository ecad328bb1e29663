#!/usr/bin/env bash
# `binlogz undo --all --until` on a durable server (sync_binlog = 1, innodb_flush_log_at_trx_commit = 1) that goes on working: sysbench's oltp_read_write over ROWS rows and the
# queue of scripts/workloads-lib.sh write for SECONDS seconds since the moment, and during the first rewind. A second one, when they have ended, must leave the tables as they were at
# the moment. Beside it, what a scan of those tables takes.
#
# Of each prints the bytes of the logs since the moment, the changes, the net changes, the rows left as others have them, the seconds and in parentheses those of binlogz on a
# processor, its largest memory in KB, and the load of the machine before it.
#
# usage: rewind-load.sh             SECONDS_BACK=600 ROWS=100000 THREADS=2
# BINLOGZ names a program to try instead of a build.
set -euo pipefail
cd "$(dirname "$0")/../.."

back=${SECONDS_BACK:-600} rows=${ROWS:-100000} threads=${THREADS:-2}
. scripts/measure-lib.sh
binlogz=$(binlogz_program quick)
mysql=$(scripts/get-tool.sh mysql)
sysbench=$(scripts/get-tool.sh sysbench)
PATH=$mysql/bin:$mysql/sbin:$sysbench/bin:$PATH
. scripts/server-lib.sh
. scripts/workloads-lib.sh
begin_work

sums() { sql 'CHECKSUM TABLE w.jobs, w.counters, w.sessions, w.sbtest1, sb.sbtest1'; }
on_sysbench=(sysbench oltp_read_write --db-driver=mysql --mysql-socket="$work/sock" --mysql-user=root --mysql-db=sb --tables=1 --table-size="$rows")

initialize "$work/base"
serve "$work/base" 1 1
sql "$(changed_tables); CREATE DATABASE sb"
"${on_sysbench[@]}" prepare >/dev/null
sql 'FLUSH BINARY LOGS'
before=$(sums)
moment=$(sql 'SELECT @@GLOBAL.gtid_executed')
size() { sql 'SHOW BINARY LOGS' | awk '{ bytes += $2 } END { print bytes }'; }
first=$(size)

"${on_sysbench[@]}" --threads="$threads" --time=$((back + 3600)) run >"$work/sysbench.txt" 2>&1 &
sysbench_job=$!
changes queue 100000000 | mysql --no-defaults -uroot -S "$work/sock" >"$work/queue.txt" 2>&1 &
queue_job=$!
sleep "$back"

# rewound WHO: goes back to the moment.
rewound() {
    local load bytes code=0
    load=$(cut -d' ' -f1-2 /proc/loadavg)
    bytes=$(($(size) - first))
    /usr/bin/env time -f '%e %U %S %M' -o "$work/figures" \
        "$binlogz" undo --no-defaults -u root --server "$work/sock" --apply "$work/sock" --all --until "${moment%%:*}:${moment##*[:-]}" --execute >"$work/told" 2>"$work/errors" || code=$?
    [ "$code" -le 1 ] || { cat "$work/told" "$work/errors" >&2; exit 1; }
    sed 's/^/    /' "$work/told" | tail -n "${TOLD:-4}"
    printf '%-9s %11s bytes  exit code %s  %s  load %s\n' "$1" "$bytes" "$code" \
        "$(tail -n 1 "$work/figures" | awk '{ printf "%.2f s (%.2f), %d KB", $1, $2 + $3, $4 }')" "$load"
}
rewound writing
kill "$sysbench_job" "$queue_job"
wait "$sysbench_job" "$queue_job" 2>/dev/null || true
# What a killed client had sent may still run.
sleep 2
rewound quiet
[ "$(sums)" = "$before" ] || { echo "the tables differ from what they were" >&2; exit 1; }
echo "a scan of the tables: $(seconds sums) s"
