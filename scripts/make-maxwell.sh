#!/usr/bin/env bash
# Records how Maxwell prints the log of a workload: the fixture that crates/interfaces/cli/tests/dump/changes.rs compares `binlogz dump --format maxwell`
# with. Maxwell 1.22.6, the newest that Maven has, asks in words that MySQL 8.4 no longer knows: so the log is one of MySQL 8.0.33. A second
# server keeps what Maxwell writes for itself. Two minutes.
#
# usage: make-maxwell.sh [FOLDER]        by default crates/interfaces/cli/tests/dump/changes
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/changes-lib.sh
[ $# -le 1 ] || usage_of "scripts/make-maxwell.sh"

mysql=$(scripts/get-tool.sh mysql-8.0)
maxwell=$(scripts/get-tool.sh compat-maxwell)
begin_recording "$@"
port=$((20000 + RANDOM % 20000))
# Maxwell has an account in each.
for server in "source $port" "own $((port + 1))"; do
    read -r name server_port <<<"$server"
    serve "$name" "$server_port" --default-authentication-plugin=mysql_native_password
    client "$name" -e "CREATE USER maxwell IDENTIFIED BY 'maxwell'; GRANT ALL ON *.* TO maxwell; RESET MASTER"
done

timeout 120 "$maxwell/bin/record" $port $((port + 1)) >"$folder/maxwell.txt" 2>"$work/maxwell.log" &
recorder=$!
for _ in $(seq 600); do
    [ "$(followers source)" -lt 1 ] || break
    kill -0 $recorder 2>/dev/null || break
    sleep 0.1
done
# Up to where Maxwell stops reading, without words that its grammar of SQL doesn't have.
sed '/^CREATE TABLE vectors/,$d; s/ SRID 4326//; s/ INVISIBLE//; /^CREATE TABLE copied/d; /^DROP TABLE copied/d; /^XA /d' "$workload" | client source
wait $recorder || { tail -40 "$work/maxwell.log" >&2; exit 1; }
keep_log source maxwell.binlog
