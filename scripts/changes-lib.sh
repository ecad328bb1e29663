#!/usr/bin/env bash
# For the scripts that record change formats: sourced, not run. A script sets `mysql` to the server's folder, calls `begin_recording`,
# starts its private servers, and lets programs follow them while they run $workload. What it records goes to $folder.

# usage_of SCRIPT: its first lines, and the end.
usage_of() {
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$1" >&2
    exit 2
}
# begin_recording [FOLDER]: makes $work, a folder that goes with the script, and so do the servers.
begin_recording() {
    workload=$PWD/crates/interfaces/cli/tests/dump/changes/workload.sql
    folder=${1:-crates/interfaces/cli/tests/dump/changes}
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    work=$(mktemp -d)
    servers=()
    trap finish_recording EXIT
    export TZ=UTC
}
finish_recording() {
    for server in "${servers[@]}"; do { kill "$server" && wait "$server"; } 2>/dev/null || true; done
    rm -rf "$work"
}
# bin PROGRAM: where the server's programs are differs.
bin() { if [ -x "$mysql/bin/$1" ]; then echo "$mysql/bin/$1"; else echo "$mysql/sbin/$1"; fi; }
# client SERVER [ARGUMENT…]: the mysql client.
client() { "$(bin mysql)" --no-defaults --socket="$work/$1/sock" --user=root --default-character-set=utf8mb4 "${@:2}"; }
# serve SERVER PORT [OPTION…]: starts a private server.
serve() {
    local name=$1 port=$2 common
    mkdir "$work/$name"
    # --user: mysqld refuses to run as root otherwise.
    common=("--no-defaults" "--datadir=$work/$name/data" "--user=$(id -un)" --mysqlx=OFF "--server-id=$port" --secure-file-priv=)
    "$(bin mysqld)" "${common[@]}" --initialize-insecure >"$work/$name/log" 2>&1 || { cat "$work/$name/log" >&2; exit 1; }
    "$(bin mysqld)" "${common[@]}" --bind-address=127.0.0.1 --port="$port" --socket="$work/$name/sock" --pid-file="$work/$name/pid" \
        --log-bin=binlog --gtid-mode=ON --enforce-gtid-consistency=ON --binlog-row-metadata=FULL \
        --innodb-buffer-pool-size=32M "${@:3}" >"$work/$name/log" 2>&1 &
    servers+=($!)
    for _ in $(seq 600); do
        client "$name" -e 'SELECT 1' >/dev/null 2>&1 && break
        kill -0 "${servers[-1]}" || { cat "$work/$name/log" >&2; exit 1; }
        sleep 0.1
    done
}
# followers SERVER: how many programs follow it.
followers() {
    client "$1" -N -e "SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'" 2>/dev/null
}
# keep_log SERVER FILE: closes its first log, which is copied to $folder.
keep_log() {
    client "$1" -e 'FLUSH BINARY LOGS'
    cp "$work/$1/data/binlog.000001" "$folder/$2"
    chmod 644 "$folder/$2"
}
