#!/usr/bin/env bash
# Records how Debezium and Alibaba canal print the log of a workload: the fixtures that crates/cli/tests/dump/changes.rs compares
# `binlogz dump --format debezium|canal` with. Runs a private MySQL and both programs from Maven; two minutes.
#
# usage: make-changes.sh [FOLDER]        by default crates/cli/tests/dump/changes
set -euo pipefail
[ $# -le 1 ] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
cd "$(dirname "$0")/.."
workload=$PWD/crates/cli/tests/dump/changes/workload.sql
folder=${1:-crates/cli/tests/dump/changes}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

mysql=$(scripts/get-tool.sh mysql)
debezium=$(scripts/get-tool.sh compat-debezium)
canal=$(scripts/get-tool.sh compat-canal)
PATH=$PATH:/usr/sbin
bin() { if [ -x "$mysql/bin/$1" ]; then echo "$mysql/bin/$1"; else echo "$mysql/sbin/$1"; fi; }

work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
export TZ=UTC
port=$((20000 + RANDOM % 20000))
# --user: mysqld refuses to run as root otherwise.
common=("--no-defaults" "--datadir=$work/data" "--user=$(id -un)" --mysqlx=OFF --server-id=1 --secure-file-priv=)
"$(bin mysqld)" "${common[@]}" --initialize-insecure >"$work/init.log" 2>&1 || { cat "$work/init.log" >&2; exit 1; }
"$(bin mysqld)" "${common[@]}" --bind-address=127.0.0.1 --port=$port --socket="$work/sock" --pid-file="$work/pid" \
    --log-bin=binlog --gtid-mode=ON --enforce-gtid-consistency=ON --binlog-row-metadata=FULL \
    --innodb-buffer-pool-size=32M >"$work/server.log" 2>&1 &
server=$!
client() { "$(bin mysql)" --no-defaults --socket="$work/sock" --user=root --default-character-set=utf8mb4 "$@"; }
for _ in $(seq 600); do
    client -e 'SELECT 1' >/dev/null 2>&1 && break
    kill -0 $server || { cat "$work/server.log" >&2; exit 1; }
    sleep 0.1
done
# The log begins with the workload, but for one transaction: Debezium needs a GTID to begin with.
client -e "CREATE USER record IDENTIFIED BY 'record'; GRANT ALL ON *.* TO record; RESET BINARY LOGS AND GTIDS; CREATE DATABASE first"

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
    followers=$(client -N -e "SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'" 2>/dev/null)
    [ "$followers" -lt ${#records[@]} ] || break
    sleep 0.1
done
client <"$workload"
for record in "${records[@]}"; do wait "$record"; done
client -e 'FLUSH BINARY LOGS'
cp "$work/data/binlog.000001" "$folder/changes.binlog"
chmod 644 "$folder/changes.binlog"
