#!/usr/bin/env bash
# `binlogz recover --fold`, and `binlogz fold` with its log through `mysqlbinlog | mysql`, beside the logs themselves through `mysqlbinlog | mysql` and `binlogz recover`: applied to
# copies of one server, with the same durability (sync_binlog = 1, innodb_flush_log_at_trx_commit = 1, its own binary log on), in turn. The tables must be equal.
#
# The logs, of about EVENTS changes of one row each, are queue, counters, sessions, oltp or bulk, as scripts/workloads-lib.sh makes them.
# Prints bytes, seconds, those of the clients and of the server on a processor, the factors by the clock and by all processors, and the load of the machine before each.
#
# usage: fold.sh               EVENTS=20000 WORKERS=4 KINDS="queue counters sessions oltp bulk" WAYS="mysqlbinlog recover fold recover-fold"
# Factors are those of recover to the other ways.
# BINLOGZ names a program to try instead of a build.
set -euo pipefail
cd "$(dirname "$0")/../.."

events=${EVENTS:-20000} workers=${WORKERS:-4} kinds=${KINDS:-queue counters sessions oltp bulk}
ways=${WAYS:-mysqlbinlog recover fold recover-fold}
. scripts/measure-lib.sh
binlogz=$(binlogz_program quick)
mysql=$(scripts/get-tool.sh mysql)
PATH=$mysql/bin:$mysql/sbin:$PATH
. scripts/server-lib.sh
. scripts/workloads-lib.sh
begin_work

sums() { sql 'CHECKSUM TABLE w.jobs, w.counters, w.sessions, w.sbtest1'; }
# server_time: seconds of the server on a processor so far.
server_time() { awk -v hz="$(getconf CLK_TCK)" '{ printf "%.2f", ($14 + $15) / hz }' "/proc/$running/stat"; }

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

# apply KIND HOW: the log to the server.
apply() {
    local log=${logs[$1]}
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
}

# applied KIND HOW: seconds that it takes to apply the log to the server as it was before: by the clock, of the clients and of the server.
applied() {
    local kind=$1 before TIMEFORMAT='%R %U %S'
    cp -a "$work/before-$kind" "$work/now"
    rm "$work/now/auto.cnf"
    serve "$work/now" 2 1
    before=$(server_time)
    { time apply "$kind" "$2" 2>&3; } 3>&2 2>"$work/took"
    echo "$(cat "$work/took") $before $(server_time)" | awk '{ printf "%.2f %.2f %.2f\n", $1, $2 + $3, $5 - $4 }'
    [ "$(sums)" = "${equal[$kind]}" ] || { echo "$kind by $2: the tables differ" >&2; exit 1; }
    stop
    rm -r "$work/now"
}

printf '%-9s %12s %-13s %8s %8s %8s %12s %s\n' log bytes way seconds clients server factors load
for kind in $kinds; do
    recover=
    for way in $ways; do
        load=$(cut -d' ' -f1-2 /proc/loadavg)
        took=$(applied "$kind" "$way")
        [ "$way" != recover ] || recover=$took
        read -r clock clients server <<<"$took"
        printf '%-9s %12s %-13s %8s %8s %8s %12s %s\n' "$kind" "$(stat -c %s "${logs[$kind]}")" "$way" "$clock" "$clients" "$server" \
            "$([ -z "$recover" ] || echo "$recover $took" | awk '{ printf "%.1f (%.1f)", $1 / $4, ($2 + $3) / ($5 + $6) }')" "$load"
    done
done
