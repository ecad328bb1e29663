#!/usr/bin/env bash
# Records how Maxwell prints the log of a workload: the fixture that crates/cli/tests/dump/changes.rs compares `binlogz dump --format maxwell`
# with. Maxwell 1.22.6, the newest that Maven has, asks in words that MySQL 8.4 no longer knows: so the log is one of MySQL 8.0.33. A second
# server keeps what Maxwell writes for itself. Two minutes.
#
# usage: make-maxwell.sh [FOLDER]        by default crates/cli/tests/dump/changes
set -euo pipefail
[ $# -le 1 ] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
cd "$(dirname "$0")/.."
workload=$PWD/crates/cli/tests/dump/changes/workload.sql
folder=${1:-crates/cli/tests/dump/changes}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

mysql=$(scripts/get-tool.sh mysql-8.0)
maxwell=$(scripts/get-tool.sh compat-maxwell)
bin() { if [ -x "$mysql/bin/$1" ]; then echo "$mysql/bin/$1"; else echo "$mysql/sbin/$1"; fi; }

work=$(mktemp -d)
servers=()
finish() {
    for server in "${servers[@]}"; do { kill "$server" && wait "$server"; } 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
export TZ=UTC
port=$((20000 + RANDOM % 20000))

client() { "$(bin mysql)" --no-defaults --socket="$work/$1/sock" --user=root --default-character-set=utf8mb4 "${@:2}"; }
# serve NAME PORT: a private server, in which Maxwell has an account.
serve() {
    local name=$1 common
    mkdir "$work/$name"
    # --user: mysqld refuses to run as root otherwise.
    common=("--no-defaults" "--datadir=$work/$name/data" "--user=$(id -un)" --mysqlx=OFF "--server-id=$2" --secure-file-priv=)
    "$(bin mysqld)" "${common[@]}" --initialize-insecure >"$work/$name/log" 2>&1 || { cat "$work/$name/log" >&2; exit 1; }
    "$(bin mysqld)" "${common[@]}" --bind-address=127.0.0.1 --port="$2" --socket="$work/$name/sock" --pid-file="$work/$name/pid" \
        --log-bin=binlog --gtid-mode=ON --enforce-gtid-consistency=ON --binlog-row-metadata=FULL \
        --default-authentication-plugin=mysql_native_password --innodb-buffer-pool-size=32M >"$work/$name/log" 2>&1 &
    servers+=($!)
    for _ in $(seq 600); do
        client "$name" -e 'SELECT 1' >/dev/null 2>&1 && break
        kill -0 "${servers[-1]}" || { cat "$work/$name/log" >&2; exit 1; }
        sleep 0.1
    done
    client "$name" -e "CREATE USER maxwell IDENTIFIED BY 'maxwell'; GRANT ALL ON *.* TO maxwell; RESET MASTER"
}
serve source $port
serve own $((port + 1))

timeout 120 "$maxwell/bin/record" $port $((port + 1)) >"$folder/maxwell.txt" 2>"$work/maxwell.log" &
recorder=$!
for _ in $(seq 600); do
    followers=$(client source -N -e "SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
    [ "$followers" -lt 1 ] || break
    kill -0 $recorder 2>/dev/null || break
    sleep 0.1
done
# Up to where Maxwell stops reading, without words that its grammar of SQL doesn't have.
sed '/^CREATE TABLE vectors/,$d; s/ SRID 4326//; s/ INVISIBLE//; /^CREATE TABLE copied/d; /^DROP TABLE copied/d; /^XA /d' "$workload" | client source
wait $recorder || { tail -40 "$work/maxwell.log" >&2; exit 1; }
client source -e 'FLUSH BINARY LOGS'
cp "$work/source/data/binlog.000001" "$folder/maxwell.binlog"
chmod 644 "$folder/maxwell.binlog"
