#!/usr/bin/env bash
# For scripts that need a cluster, an S3 server and the programs: sourced, not run. `begin_work` comes first: what is started ends
# with the script, by its own number.

# Builds binlogz and binlogz-sql (debug), unless BINLOGZ_BIN names their folder.
build_programs() {
    if [ -z "${BINLOGZ_BIN:-}" ]; then
        cargo build --quiet --package binlogz --package binlogz-sql --features binlogz-sql/cluster
        BINLOGZ_BIN=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug
    fi
}

# Makes $work, a folder that goes with the script.
begin_work() {
    work=$(mktemp -d)
    started=()
    trap end_work EXIT
}
end_work() {
    for pid in ${started[@]+"${started[@]}"}; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
# wait_for_port PORT: until something listens there.
wait_for_port() {
    for ((tries = 0; tries < 300; tries++)); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return 0; fi
        sleep 0.1
    done
    tail -n 5 "$work"/*.log >&2 || true
    echo "nothing listens on port $1" >&2
    return 1
}

# An S3 server with an empty bucket: its port is $s3_port. A command reaches it by env "${s3_settings[@]}" COMMAND….
start_s3() {
    local versitygw
    versitygw=$(scripts/get-tool.sh versitygw)/bin/versitygw
    s3_port=$(free_port)
    mkdir -p "$work/data/bucket" "$work/meta"
    "$versitygw" --access tester --secret tester-secret --quiet --port "127.0.0.1:$s3_port" posix --sidecar "$work/meta" "$work/data" \
        >/dev/null 2>&1 &
    started+=($!)
    wait_for_port "$s3_port"
    s3_settings=(AWS_ACCESS_KEY_ID=tester AWS_SECRET_ACCESS_KEY=tester-secret AWS_REGION=us-east-1
        "AWS_ENDPOINT_URL=http://127.0.0.1:$s3_port")
}

# A scheduler on $scheduler_port: its number is $scheduler. A second one takes the same port.
start_scheduler() {
    scheduler_port=${scheduler_port:-$(free_port)}
    "$BINLOGZ_BIN/binlogz-sql" scheduler --listen "127.0.0.1:$scheduler_port" 2>>"$work/scheduler.log" &
    scheduler=$!
    started+=("$scheduler")
    wait_for_port "$scheduler_port"
}
# start_executor NAME [OPTION…]: an executor of $executor_jobs tasks at once (2) that tells in $work/executor-NAME.log; its number is ${executors[NAME]}.
declare -A executors
start_executor() {
    local name=$1 port
    port=$(free_port)
    env "${s3_settings[@]}" "$BINLOGZ_BIN/binlogz-sql" executor --scheduler "127.0.0.1:$scheduler_port" --port "$port" --task-port "$(free_port)" \
        --jobs "${executor_jobs:-2}" "${@:2}" 2>>"$work/executor-$name.log" &
    executors[$name]=$!
    started+=($!)
    wait_for_port "$port"
}
