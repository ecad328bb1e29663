#!/usr/bin/env bash
# What Grafana's data source for Flight SQL asks, sent to `binlogz-sql serve` over the samples with the library that it is written
# with. Needs Go, which fetches it.
#
# usage: sql-grafana.sh        BINLOGZ_SQL names a program that is built
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/sql-lib.sh

begin_work
build_sql
cp scripts/soak/sql_grafana.go "$work"
(
    cd "$work"
    printf 'module sql_grafana\n\ngo 1.24\n\nrequire github.com/apache/arrow-go/v18 %s\n' "${BINLOGZ_ARROW_GO_VERSION:-v18.8.0}" >go.mod
    GOFLAGS=-mod=mod go build -o client .
)
serve_samples
"$work/client" "127.0.0.1:$port" reader s3cret
end_server
