#!/usr/bin/env bash
# For scripts that measure beside one MySQL server after another: sourced, not run. A script starts a server on the socket
# $work/sock with its log in $work/log.txt, sets `running` to its process, and calls `wait_for_server`.

# Makes $work, a folder that goes with the script, and so does the server.
begin_work() {
    work=$(mktemp -d)
    running=
    trap 'stop; rm -rf "$work"' EXIT
}
# stop: ends the server that runs.
stop() {
    [ -z "$running" ] || { kill "$running" && wait "$running" || true; }
    running=
}
# wait_for_server: until it answers.
wait_for_server() {
    until mysqladmin --no-defaults -uroot -S "$work/sock" --silent ping >/dev/null 2>&1; do
        kill -0 "$running" || { cat "$work/log.txt" >&2; exit 1; }
        sleep 0.1
    done
}
# initialize FOLDER: makes a data directory.
initialize() {
    mysqld --no-defaults --initialize-insecure --secure-file-priv= --datadir="$1" --log-error="$work/log.txt" --user="$(id -un)"
}
# serve FOLDER ID SYNC OPTION…: starts a server with binary logs on a data directory; with a SYNC of 1 it is durable.
serve() {
    mysqld --no-defaults --datadir="$1" --socket="$work/sock" --skip-networking=ON --log-error="$work/log.txt" \
        --log-bin=binlog --relay-log=relay --gtid-mode=ON --enforce-gtid-consistency=ON --server-id="$2" \
        --sync-binlog="$3" --innodb-flush-log-at-trx-commit="$3" --max-binlog-size=1G --loose-mysqlx=OFF \
        --secure-file-priv= --tmpdir="$work" --user="$(id -un)" "${@:4}" &
    running=$!
    wait_for_server
}
# sql STATEMENTS: their rows, without a heading.
sql() { mysql --no-defaults -uroot -S "$work/sock" -BN -e "$1"; }
