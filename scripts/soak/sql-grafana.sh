#!/usr/bin/env bash
# What Grafana's data source for Flight SQL asks, sent to `binlogz-sql serve` over the samples with the library that it is written with.
# Needs Go, which fetches 60 MB.
#
# usage: sql-grafana.sh        BINLOGZ_SQL names a program that is built
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${BINLOGZ_SQL:-}" ]; then
    cargo build --quiet --package binlogz-sql
    BINLOGZ_SQL=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug/binlogz-sql
fi
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
cp scripts/soak/sql_grafana.go "$work"
(
    cd "$work"
    printf 'module sql_grafana\n\ngo 1.24\n\nrequire github.com/apache/arrow-go/v18 %s\n' "${BINLOGZ_ARROW_GO_VERSION:-v18.8.0}" >go.mod
    GOFLAGS=-mod=mod go build -o client .
)
export BINLOGZ_SQL_PASSWORD=s3cret
"$BINLOGZ_SQL" serve --listen 127.0.0.1:0 --user reader --schema crates/sql-cli/tests/sql/samples.sql samples/plain/* >"$work/out" &
server=$!
until grep -q listening "$work/out"; do sleep 0.1; done
"$work/client" "127.0.0.1:$(sed 's/.*://' "$work/out")" reader s3cret
kill -INT "$server"
wait "$server"
server=
