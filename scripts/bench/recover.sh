#!/usr/bin/env bash
# `binlogz recover` beside `mysqlbinlog | mysql`: the same logs applied to copies of one server, with the same durability
# (sync_binlog = 1, innodb_flush_log_at_trx_commit = 1, its own binary log on), in turn, ROUNDS times. The tables must be equal.
#
# The logs: sysbench's prepare (TABLES tables of ROWS rows), and a run of EVENTS transactions of oltp_write_only by 4 threads.
# Prints seconds, transactions a second and the factor, and the load of the machine before each.
#
# usage: recover.sh            ROUNDS=1 TABLES=4 ROWS=50000 EVENTS=20000 WORKERS=4
# BINLOGZ names a program to try instead of a build: the server does the work, so a quick build is as good.
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${ROUNDS:-1} tables=${TABLES:-4} rows=${ROWS:-50000} events=${EVENTS:-20000} workers=${WORKERS:-4}
. scripts/measure-lib.sh
binlogz=$(binlogz_program quick)
mysql=$(scripts/get-tool.sh mysql)
sysbench=$(scripts/get-tool.sh sysbench)
PATH=$mysql/bin:$mysql/sbin:$sysbench/bin:$PATH
. scripts/server-lib.sh
begin_work
pool=--innodb-buffer-pool-size=256M

bench() {
    sysbench oltp_write_only --mysql-socket="$work/sock" --mysql-user=root --mysql-db=sbtest --tables="$tables" \
        --table-size="$rows" --threads=4 --events="$events" --time=0 "$@" >"$work/sysbench" || { cat "$work/sysbench"; exit 1; }
}
sums() {
    local all
    all=$(for ((table = 1; table <= tables; table++)); do printf 'sbtest.sbtest%s,' "$table"; done)
    sql "CHECKSUM TABLE ${all%,}"
}
# now: seconds.
now() { date +%s.%N; }

initialize "$work/base"
serve "$work/base" 1 1 "$pool"
sql 'RESET BINARY LOGS AND GTIDS; CREATE DATABASE sbtest'
declare -A logs equal
for kind in prepare run; do
    stop
    cp -a "$work/base" "$work/before-$kind"
    serve "$work/base" 1 1 "$pool"
    bench "$kind"
    sql 'FLUSH BINARY LOGS'
    mkdir "$work/$kind"
    # The last but one: the one that was open meanwhile.
    logs[$kind]=$work/$kind/$(sql 'SHOW BINARY LOGS' | tail -2 | head -1 | cut -f1)
    cp "$work/base/$(basename "${logs[$kind]}")" "${logs[$kind]}"
    equal[$kind]=$(sums)
done
stop
rm -r "$work/base"

# applied KIND HOW: seconds that it takes to apply the log to the server as it was before.
applied() {
    local kind=$1 log=${logs[$1]} begin end
    cp -a "$work/before-$kind" "$work/now"
    rm "$work/now/auto.cnf"
    serve "$work/now" 2 1 "$pool"
    begin=$(now)
    case $2 in
        mysqlbinlog) mysqlbinlog --no-defaults "$log" | mysql --no-defaults -uroot -S "$work/sock" ;;
        recover)
            "$binlogz" recover --no-defaults --workers "$workers" --work-dir "$work" --from "$log" --to "root@$work/sock" >&2
            ;;
    esac
    end=$(now)
    [ "$(sums)" = "${equal[$kind]}" ] || { echo "$kind by $2: the tables differ" >&2; exit 1; }
    stop
    rm -r "$work/now"
    echo "$begin $end" | awk '{ printf "%.1f\n", $2 - $1 }'
}

printf '%-8s %12s %12s %12s %8s %s\n' log bytes mysqlbinlog recover factor load
for ((round = 0; round < rounds; round++)); do
    for kind in prepare run; do
        load=$(cut -d' ' -f1-2 /proc/loadavg)
        one=$(applied "$kind" mysqlbinlog)
        two=$(applied "$kind" recover)
        factor=$(echo "$one $two" | awk '{ printf "%.1f", $1 / $2 }')
        printf '%-8s %12s %10s s %10s s %8s %s\n' "$kind" "$(stat -c %s "${logs[$kind]}")" "$one" "$two" "$factor" "$load"
    done
done
