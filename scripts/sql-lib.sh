#!/usr/bin/env bash
# For scripts whose clients ask `binlogz-sql serve` over the samples: sourced, not run. `begin_work` comes first: the server ends
# with the script, by its own number.

# Builds binlogz-sql (debug), unless BINLOGZ_SQL names a program.
build_sql() {
    if [ -z "${BINLOGZ_SQL:-}" ]; then
        cargo build --quiet --package binlogz-sql
        BINLOGZ_SQL=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug/binlogz-sql
    fi
}

# Makes the folder $work, which goes with the script.
begin_work() {
    work=$(mktemp -d)
    server=
    trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
}

# serve_samples [OPTION…]: on $port of 127.0.0.1, for the user reader with the password s3cret.
serve_samples() {
    BINLOGZ_SQL_PASSWORD=s3cret "$BINLOGZ_SQL" serve --listen 127.0.0.1:0 --user reader \
        --schema crates/interfaces/sql-cli/tests/sql/samples.sql "$@" samples/plain/* >"$work/out" &
    server=$!
    until grep -q listening "$work/out"; do
        kill -0 "$server" || return 1
        sleep 0.1
    done
    port=$(sed 's/.*://' "$work/out")
}

# Ends the server as Ctrl-C does; it has to end well.
end_server() {
    kill -INT "$server"
    wait "$server"
    server=
}
