#!/usr/bin/env bash
# `binlogz undo --all --until` beside `binlogz undo` of the same transactions, each change for itself: both applied in place (`--apply --execute`) to copies of one server that
# is durable (sync_binlog = 1, innodb_flush_log_at_trx_commit = 1). The tables must be as they were before the workload.
#
# The workloads are those of scripts/workloads-lib.sh, about EVENTS changes each. Prints the bytes of the log, the changes and what is left of them as net changes, then of a dry run,
# of the rewind and of the undo the seconds and in parentheses those of binlogz on a processor, the factors of undo and rewind, and the load of the machine before each.
#
# usage: rewind.sh             EVENTS=20000 KINDS="queue counters sessions oltp"
# BINLOGZ names a program to try instead of a build.
set -euo pipefail
cd "$(dirname "$0")/../.."

events=${EVENTS:-20000} kinds=${KINDS:-queue counters sessions oltp}
. scripts/measure-lib.sh
binlogz=$(binlogz_program quick)
mysql=$(scripts/get-tool.sh mysql)
PATH=$mysql/bin:$mysql/sbin:$PATH
. scripts/server-lib.sh
. scripts/workloads-lib.sh
begin_work

sums() { sql 'CHECKSUM TABLE w.jobs, w.counters, w.sessions, w.sbtest1'; }
executed() { sql 'SELECT @@GLOBAL.gtid_executed'; }

initialize "$work/base"
serve "$work/base" 1 0
sql "RESET BINARY LOGS AND GTIDS; $(changed_tables); FLUSH BINARY LOGS"
before=$(sums) last=$(executed)
stop

# timed FOLDER ARGUMENT…: leaves in $work/seconds those that undo takes on a copy of a server, which it changes if one of them is --execute, and those on a processor.
timed() {
    local folder=$1
    shift
    cp -a "$folder" "$work/now"
    serve "$work/now" 1 1
    /usr/bin/env time -f '%e %U %S' -o "$work/figures" \
        "$binlogz" undo --no-defaults -u root --server "$work/sock" --apply "$work/sock" "$@" >"$work/told"
    if [[ " $* " = *" --execute "* ]] && [ "$(sums)" != "$before" ]; then
        echo "undo $*: the tables differ from what they were" >&2
        exit 1
    fi
    stop
    rm -r "$work/now"
    awk '{ printf "%.2f %.2f\n", $1, $2 + $3 }' "$work/figures" >"$work/seconds"
}

printf '%-9s %10s %8s %8s %16s %16s %16s %14s %s\n' log bytes changes net dry rewind undo factors load
for kind in $kinds; do
    cp -a "$work/base" "$work/$kind"
    serve "$work/$kind" 1 0
    changes "$kind" "$events" | mysql --no-defaults -uroot -S "$work/sock"
    now=$(executed)
    bytes=$(sql 'SHOW BINARY LOGS' | tail -1 | cut -f2)
    stop
    uuid=${last%%:*} first=$((${last##*[:-]} + 1))
    load=$(cut -d' ' -f1-2 /proc/loadavg)
    timed "$work/$kind" --all --until "$uuid:${last##*[:-]}"
    read -r dry dry_cpu <"$work/seconds"
    read -r changes net < <(sed -n 's/.* with \([0-9,]*\) row changes\? since then, \([0-9,]*\) net changes\?$/\1 \2/p' "$work/told")
    timed "$work/$kind" --all --until "$uuid:${last##*[:-]}" --execute
    read -r rewind rewind_cpu <"$work/seconds"
    timed "$work/$kind" --gtids "$uuid:$first-${now##*[:-]}" --execute
    read -r undo undo_cpu <"$work/seconds"
    printf '%-9s %10s %8s %8s %16s %16s %16s %14s %s\n' "$kind" "$bytes" "$changes" "$net" "$dry ($dry_cpu)" "$rewind ($rewind_cpu)" "$undo ($undo_cpu)" \
        "$(echo "$undo $rewind $undo_cpu $rewind_cpu" | awk '{ printf "%.1f (%.1f)", $1 / $2, $3 / $4 }')" "$load"
    rm -r "${work:?}/$kind"
done
