#!/usr/bin/env bash
# `dump --format debezium` beside Debezium's own engine for the same log: one transaction of ROWS (300000) rows, which the engine
# has from a private server as soon as it is committed. Prints rows per second of both, and the memory of ours with ten times
# the log. Fetches Debezium from Maven (44 MB).
#
# usage: changes.sh [ROWS]        BINLOGZ names the program.
set -euo pipefail
[ $# -le 1 ] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
cd "$(dirname "$0")/../.."
rows=${1:-300000}
[ -n "${BINLOGZ:-}" ] || { cargo build --quiet --release --package binlogz && BINLOGZ=$PWD/target/release/binlogz; }
mysql=$(scripts/get-tool.sh mysql)
debezium=$(scripts/get-tool.sh compat-debezium)
PATH=$PATH:/usr/sbin
bin() { if [ -x "$mysql/bin/$1" ]; then echo "$mysql/bin/$1"; else echo "$mysql/sbin/$1"; fi; }
work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

port=$((20000 + RANDOM % 20000))
common=("--no-defaults" "--datadir=$work/data" "--user=$(id -un)" --mysqlx=OFF --server-id=1 --secure-file-priv=)
"$(bin mysqld)" "${common[@]}" --initialize-insecure >"$work/init.log" 2>&1 || { cat "$work/init.log" >&2; exit 1; }
"$(bin mysqld)" "${common[@]}" --bind-address=127.0.0.1 --port=$port --socket="$work/sock" --pid-file="$work/pid" --log-bin=binlog \
    --gtid-mode=ON --enforce-gtid-consistency=ON --binlog-row-metadata=FULL --innodb-buffer-pool-size=256M >"$work/server.log" 2>&1 &
server=$!
client() { "$(bin mysql)" --no-defaults --socket="$work/sock" --user=root "$@"; }
for _ in $(seq 600); do
    client -e 'SELECT 1' >/dev/null 2>&1 && break
    sleep 0.1
done
client -e "CREATE USER record IDENTIFIED BY 'record'; GRANT ALL ON *.* TO record; CREATE DATABASE shop; CREATE TABLE shop.t (id BIGINT
    PRIMARY KEY, owner VARCHAR(50), balance DECIMAL(12,2), at DATETIME, note VARCHAR(200)); CREATE TABLE shop.end (id INT PRIMARY KEY)"
COUNT=1 "$debezium/bin/record" $port "$work/state" topic.prefix=bench snapshot.mode=no_data include.schema.changes=false \
    >"$work/debezium" 2>"$work/debezium.log" &
engine=$!
until [ "$(client -N -e "SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")" -gt 0 ]; do
    kill -0 $engine || { tail "$work/debezium.log" >&2; exit 1; }
    sleep 0.2
done
client -e "FLUSH BINARY LOGS; SET SESSION cte_max_recursion_depth = 100000000; INSERT INTO shop.t WITH RECURSIVE n AS (SELECT 1 AS i UNION
    ALL SELECT i + 1 FROM n WHERE i < $rows) SELECT i, CONCAT('owner ', i), i * 1.25, NOW(), REPEAT('x', 80) FROM n; INSERT INTO shop.end
    VALUES (1); FLUSH BINARY LOGS"
wait $engine
read -r count milliseconds <"$work/debezium"
log=$work/data/binlog.000002
begin=$(date +%s%N)
found=$("$BINLOGZ" dump --no-defaults --format debezium --with-key --topic-prefix bench "$log" | wc -l)
ours=$((($(date +%s%N) - begin) / 1000000))
[ "$found" = "$count" ] || { echo "$found lines, Debezium has $count messages" >&2; exit 1; }
echo "$count messages; Debezium $((count * 1000 / milliseconds)) a second, binlogz $((count * 1000 / ours)): $((milliseconds / ours)) times"
memory() { /usr/bin/env python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)' "$BINLOGZ" dump --no-defaults --format "$@"; }
for format in debezium maxwell canal; do
    once=$(memory $format "$log")
    # shellcheck disable=SC2046  # a list of logs
    often=$(memory $format $(printf "$log %.0s" $(seq 10)))
    echo "$format: $once MiB, of ten times the log $often MiB"
done
