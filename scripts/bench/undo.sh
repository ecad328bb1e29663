#!/usr/bin/env bash
# `binlogz undo` beside a Python client: one transaction that deletes ROWS rows, on a server that compresses it and on one
# that doesn't. Both write the INSERT statements that bring the rows back. The Python client reads the uncompressed log from
# the server, as binlog2sql --flashback does and with the same library (mysql-replication, which scripts/get-tool.sh fetches),
# and writes them a line each, last first.
#
# Prints seconds and peak memory of each, the load before it, and whether the rows are back once binlogz's output is replayed
# (CHECKSUM TABLE; REPLAY=0 leaves that out).
#
# usage: undo.sh               ROWS=1000000 REPLAY=1 PYTHON_ROWS=ROWS
# PYTHON_ROWS: the client stops after so many rows, and its time is that of these.
# BINLOGZ names a program to try instead of a release build.
set -euo pipefail
cd "$(dirname "$0")/../.."

rows=${ROWS:-1000000} replay=${REPLAY:-1}
python_rows=${PYTHON_ROWS:-$rows}
. scripts/measure-lib.sh
binlogz=$(binlogz_program)
mysql=$(scripts/get-tool.sh mysql)
PATH=$mysql/bin:$mysql/sbin:$PATH
python=$(scripts/get-tool.sh cdc)/bin/python
. scripts/server-lib.sh
begin_work

mysqld --no-defaults --initialize-insecure --secure-file-priv= --datadir="$work/data" --log-error="$work/log.txt" --user="$(id -un)"
mysqld --no-defaults --datadir="$work/data" --socket="$work/sock" --skip-networking=ON \
    --log-error="$work/log.txt" --log-bin=binlog --gtid-mode=ON --enforce-gtid-consistency=ON --server-id=1 \
    --binlog-row-metadata=FULL --innodb-buffer-pool-size=512M --max-binlog-size=1G --binlog-transaction-compression-level-zstd=3 \
    --loose-mysqlx=OFF --secure-file-priv= --tmpdir="$work" --user="$(id -un)" &
running=$!
wait_for_server
sums() { sql 'CHECKSUM TABLE shop.orders'; }

sql "SET cte_max_recursion_depth = $rows; CREATE DATABASE shop; USE shop;
    CREATE TABLE orders (id INT PRIMARY KEY, customer INT NOT NULL, state ENUM('new','paid','sent'), total DECIMAL(10,2),
        placed DATETIME(6), note VARCHAR(100), KEY (customer));
    INSERT INTO orders WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $rows)
        SELECT i, i * 7919 % 100003, 1 + i % 3, i % 100000 / 100, '2026-01-01' + INTERVAL i SECOND, CONCAT('order ', SHA2(i, 224)) FROM n"
before=$(sums)

cat >"$work/client.py" <<'PYTHON'
import sys
from pymysql.converters import escape_item
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent

socket, log, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
stream = BinLogStreamReader(
    connection_settings={"unix_socket": socket, "user": "root", "passwd": ""},
    server_id=999, log_file=log, log_pos=4, only_events=[DeleteRowsEvent], blocking=False)
lines = []
for event in stream:
    for row in event.rows:
        values = row["values"]
        names = ", ".join("`%s`" % name for name in values)
        literals = ", ".join(escape_item(value, "utf8mb4") for value in values.values())
        lines.append("INSERT INTO `%s`.`%s`(%s) VALUES (%s);" % (event.schema, event.table, names, literals))
    if len(lines) >= most:
        break
for line in reversed(lines):
    print(line)
PYTHON

# measured NAME COMMAND…: runs it with its output in $work/NAME.sql, and prints a line.
declare -A seconds
measured() {
    local name=$1 load
    shift
    load=$(cut -d' ' -f1-2 /proc/loadavg)
    /usr/bin/env time -f '%e %M' -o "$work/figures" "$@" >"$work/$name.sql"
    read -r seconds["$name"] memory <"$work/figures"
    printf '%-14s %10s s %8s MiB %12s bytes  load %s\n' "$name" "${seconds[$name]}" $((memory / 1024)) \
        "$(stat -c %s "$work/$name.sql")" "$load"
}

for compression in OFF ON; do
    sql 'FLUSH BINARY LOGS'
    log=$(sql 'SHOW BINARY LOGS' | tail -1 | cut -f1)
    sql "SET binlog_transaction_compression = $compression; DELETE FROM shop.orders"
    sql 'FLUSH BINARY LOGS'
    name=$([ "$compression" = ON ] && echo compressed || echo plain)
    printf '%s: %s bytes\n' "$name" "$(stat -c %s "$work/data/$log")"
    measured "$name" "$binlogz" undo "$work/data/$log"
    if [ "$compression" = OFF ]; then
        measured server "$binlogz" undo --no-defaults -u root --server "$work/sock" "$log"
        measured python "$python" "$work/client.py" "$work/sock" "$log" "$python_rows"
        echo "${seconds[python]} ${seconds[plain]} $rows $python_rows" |
            awk '{ printf "factor: %.1f\n", $1 / $4 / ($2 / $3) }'
    fi
    [ "$replay" = 1 ] || { sql 'RESET BINARY LOGS AND GTIDS'; continue; }
    mysql --no-defaults -uroot -S "$work/sock" <"$work/$name.sql"
    [ "$(sums)" = "$before" ] || { echo "$name: the rows are not back" >&2; exit 1; }
    echo "$name: replayed, the table is as it was"
done
