#!/usr/bin/env bash
# Records how Debezium and Alibaba canal print the log of a workload: the fixtures that crates/interfaces/cli/tests/dump/changes.rs compares
# `binlogz dump --format debezium|canal` with. Runs a private MySQL and both programs from Maven; two minutes.
#
# usage: make-changes.sh [FOLDER]        by default crates/interfaces/cli/tests/dump/changes
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/changes-lib.sh
[ $# -le 1 ] || usage_of "scripts/make-changes.sh"

mysql=$(scripts/get-tool.sh mysql)
debezium=$(scripts/get-tool.sh compat-debezium)
canal=$(scripts/get-tool.sh compat-canal)
PATH=$PATH:/usr/sbin
begin_recording "$@"
port=$((20000 + RANDOM % 20000))
serve source $port --server-id=1
# The log begins with the workload, but for one transaction: Debezium needs a GTID to begin with.
client source -e "CREATE USER record IDENTIFIED BY 'record'; GRANT ALL ON *.* TO record; RESET BINARY LOGS AND GTIDS; CREATE DATABASE first"

# They learn the tables from the log, so they follow before there are any.
records=()
# record NAME PROGRAM [ARGUMENT…]
record() {
    local name=$1
    shift
    timeout 300 "$@" >"$folder/$name" 2>"$work/$name.log" || { tail -20 "$work/$name.log" >&2; exit 1; } &
    records+=($!)
}
# debezium NAME SETTING=VALUE…
debezium() {
    local name=$1
    shift
    record "$name" "$debezium/bin/record" $port "$work/$name" topic.prefix=shop1 snapshot.mode=no_data skipped.operations=none \
        include.schema.changes=false value.converter.replace.null.with.default=false key.converter.replace.null.with.default=false "$@"
}
debezium debezium.txt
debezium debezium-modes.txt decimal.handling.mode=string bigint.unsigned.handling.mode=precise tombstones.on.delete=false
debezium debezium-transactions.txt provide.transaction.metadata=true
record canal.jsonl "$canal/bin/record" $port binlog.000001
for _ in $(seq 600); do
    [ "$(followers source)" -lt ${#records[@]} ] || break
    sleep 0.1
done
client source <"$workload"
for record in "${records[@]}"; do wait "$record"; done
keep_log source changes.binlog
