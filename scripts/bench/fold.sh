#!/usr/bin/env bash
# `binlogz recover --fold`, and `binlogz fold` with its log through `mysqlbinlog | mysql`, beside the logs themselves through `mysqlbinlog | mysql` and `binlogz recover`: applied to
# copies of one server, with the same durability (sync_binlog = 1, innodb_flush_log_at_trx_commit = 1, its own binary log on), in turn. The tables must be equal.
#
# The logs, of about EVENTS transactions of one row each, are queue, counters or sessions, as scripts/workloads-lib.sh makes them.
# Prints bytes, seconds and the factors, and the load of the machine before each.
#
# usage: fold.sh               EVENTS=20000 WORKERS=4 KINDS="queue counters sessions" WAYS="mysqlbinlog recover fold recover-fold"
# Factors are those of recover to the other ways.
# BINLOGZ names a program to try instead of a build.
set -euo pipefail
cd "$(dirname "$0")/../.."

events=${EVENTS:-20000} workers=${WORKERS:-4} kinds=${KINDS:-queue counters sessions}
ways=${WAYS:-mysqlbinlog recover fold recover-fold}
. scripts/measure-lib.sh
binlogz=$(binlogz_program quick)
mysql=$(scripts/get-tool.sh mysql)
PATH=$mysql/bin:$mysql/sbin:$PATH
. scripts/server-lib.sh
. scripts/workloads-lib.sh
begin_work

sums() { sql 'CHECKSUM TABLE w.jobs, w.counters, w.sessions'; }
# now: seconds.
now() { date +%s.%N; }

initialize "$work/base"
serve "$work/base" 1 0
sql "RESET BINARY LOGS AND GTIDS; $(changed_tables); FLUSH BINARY LOGS"
declare -A logs equal
for kind in $kinds; do
    stop
    cp -a "$work/base" "$work/before-$kind"
    serve "$work/base" 1 0
    changes "$kind" "$events" | mysql --no-defaults -uroot -S "$work/sock"
    sql 'FLUSH BINARY LOGS'
    mkdir "$work/$kind"
    logs[$kind]=$work/$kind/$(sql 'SHOW BINARY LOGS' | tail -2 | head -1 | cut -f1)
    cp "$work/base/$(basename "${logs[$kind]}")" "${logs[$kind]}"
    equal[$kind]=$(sums)
done
mysqldump --no-defaults -uroot -S "$work/sock" --no-data --databases w >"$work/schema.sql"
stop
rm -r "$work/base"

# applied KIND HOW: seconds that it takes to apply the log to the server as it was before.
applied() {
    local kind=$1 log=${logs[$1]} begin end
    cp -a "$work/before-$kind" "$work/now"
    rm "$work/now/auto.cnf"
    serve "$work/now" 2 1
    begin=$(now)
    case $2 in
        mysqlbinlog) mysqlbinlog --no-defaults "$log" | mysql --no-defaults -uroot -S "$work/sock" ;;
        recover)
            "$binlogz" recover --no-defaults --workers "$workers" --work-dir "$work" --from "$log" --to "root@$work/sock" >&2
            ;;
        recover-fold)
            "$binlogz" recover --fold --no-defaults --schema "$work/schema.sql" --workers "$workers" --work-dir "$work" --from "$log" --to "root@$work/sock" >&2
            ;;
        fold)
            "$binlogz" fold --no-defaults --force --schema "$work/schema.sql" --to "$work/folded" "$log" >&2
            mysqlbinlog --no-defaults --skip-gtids "$work/folded" | mysql --no-defaults -uroot -S "$work/sock"
            ;;
    esac
    end=$(now)
    [ "$(sums)" = "${equal[$kind]}" ] || { echo "$kind by $2: the tables differ" >&2; exit 1; }
    stop
    rm -r "$work/now"
    echo "$begin $end" | awk '{ printf "%.2f\n", $2 - $1 }'
}

printf '%-9s %12s %-13s %10s %8s %s\n' log bytes way seconds factor load
for kind in $kinds; do
    recover=
    for way in $ways; do
        load=$(cut -d' ' -f1-2 /proc/loadavg)
        took=$(applied "$kind" "$way")
        [ "$way" != recover ] || recover=$took
        printf '%-9s %12s %-13s %10s %8s %s\n' "$kind" "$(stat -c %s "${logs[$kind]}")" "$way" "$took" \
            "$([ -z "$recover" ] || echo "$recover $took" | awk '{ printf "%.1f", $1 / $2 }')" "$load"
    done
done
