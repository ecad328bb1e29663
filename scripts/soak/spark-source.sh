#!/usr/bin/env bash
# Logs, an archive and a server as Spark's data source (binlogz.spark), on two executors: 30 questions give what `binlogz sql` gives;
# an executor is killed with -9 in mid-query, KILLS times (3), and answers are equal; a stream over an archive that grows and one
# from a server are killed with -9 and go on from their checkpoints, and each row is there once. Fetches PySpark (850 MB); it needs java.
#
# usage: spark-source.sh [KILLS [questions|streams]]      BINLOGZ_BIN names a folder of built binlogz and binlogz-sql, MODULE the built native module
set -euo pipefail
cd "$(dirname "$0")/../.."

kills=${1:-3}
# The questions ask for some of so many.
orders=2000
[ "${2:-}" != streams ] || orders=300
command -v java >/dev/null || { echo 'SKIPPED: no java'; exit 0; }
spark=$(scripts/get-tool.sh spark)/bin/python
mysql=$(scripts/get-tool.sh mysql)/bin
if [ -z "${BINLOGZ_BIN:-}" ]; then
    cargo build --quiet --package binlogz --package binlogz-sql --package binlogz-python
    BINLOGZ_BIN=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug
fi
MODULE=${MODULE:-$BINLOGZ_BIN/libbinlogz_python.so}

work=$(mktemp -d)
server=
end_work() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap end_work EXIT

# The package as a wheel has it.
mkdir "$work/package"
cp -r crates/interfaces/python/binlogz "$work/package"
cp "$MODULE" "$work/package/binlogz/_native.abi3.so"

# A server, whose logs have names of columns.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$mysql/mysqld" --no-defaults --user="$(id -un)" --initialize-insecure --secure-file-priv= --datadir="$work/data" --log-error="$work/init.log"
"$mysql/mysqld" --no-defaults --user="$(id -un)" --datadir="$work/data" --socket="$work/mysql.sock" --port="$port" --bind-address=127.0.0.1 --mysqlx=OFF --secure-file-priv= \
    --log-error="$work/server.log" --log-bin=binlog --server-id=1 --gtid-mode=ON --enforce-gtid-consistency=ON \
    --binlog-row-metadata=FULL --binlog-rows-query-log-events=ON --sync-binlog=0 --innodb-flush-log-at-trx-commit=0 &
server=$!
ask() { "$mysql/mysql" --no-defaults --socket="$work/mysql.sock" --user=root --batch --skip-column-names "$@"; }
for ((tries = 0; tries < 600; tries++)); do
    ! ask --execute 'SELECT 1' >"$work/up" 2>&1 || break
    sleep 0.1
done
[ "$(cat "$work/up")" = 1 ] || { cat "$work/server.log" >&2; exit 1; }
ask <scripts/soak/spark-source.sql
for number in 1 2 3 4 5 6; do
    ask --database=shop --execute "SET SESSION binlog_transaction_compression = ($number > 3); CALL work($number, $orders); FLUSH BINARY LOGS"
done
mapfile -t logs < <(find "$work/data" -name 'binlog.0*' | sort)
# The last one is in use.
unset 'logs[-1]'
"$BINLOGZ_BIN/binlogz" archive create --quiet --to "$work/archive" "${logs[@]}" >/dev/null

cat >"$work/config.json" <<END
{"program": "$BINLOGZ_BIN/binlogz-sql", "binlogz": "$BINLOGZ_BIN/binlogz", "archive": "$work/archive", "work": "$work", "kills": $kills,
 "server": "mysql://root@127.0.0.1:$port", "mysql": ["$mysql/mysql", "--no-defaults", "--socket=$work/mysql.sock", "--user=root"],
 "data": "$work/data"}
END
export PYTHONPATH=$work/package PYTHONDONTWRITEBYTECODE=1 PYSPARK_PYTHON=$spark SPARK_LOCAL_IP=127.0.0.1 TZ=UTC
for part in "${@:2}"; do [[ $part = questions || $part = streams ]] || { echo "spark-source.sh: no part $part" >&2; exit 2; }; done
for part in ${2:-questions streams}; do "$spark" "scripts/soak/spark-$part.py" "$work/config.json"; done
