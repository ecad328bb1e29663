#!/usr/bin/env bash
# JDBC's driver of Flight SQL asks `binlogz-sql serve` over the samples, with TLS and without: login, listings, parameters, a large
# result, errors, several at once. Needs mvn and java; the driver comes with Maven (40 MB).
#
# usage: sql-jdbc.sh        BINLOGZ_SQL names a program that is built
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${BINLOGZ_SQL:-}" ]; then
    cargo build --quiet --package binlogz-sql
    BINLOGZ_SQL=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug/binlogz-sql
fi
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
version=${BINLOGZ_JDBC_VERSION:-18.3.0}
mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
    -Dartifact="org.apache.arrow:flight-sql-jdbc-driver:$version" -DoutputDirectory="$work"
export BINLOGZ_SQL_PASSWORD=s3cret

# Serves with these options, and runs the client with these of its URL.
try() {
    "$BINLOGZ_SQL" serve --listen 127.0.0.1:0 --user reader --schema crates/sql-cli/tests/sql/samples.sql $1 samples/plain/* >"$work/out" &
    server=$!
    until grep -q listening "$work/out"; do sleep 0.1; done
    port=$(sed 's/.*://' "$work/out")
    java --add-opens=java.base/java.nio=ALL-UNNAMED -cp "$work/flight-sql-jdbc-driver-$version.jar" scripts/soak/SqlJdbc.java \
        "jdbc:arrow-flight-sql://localhost:$port?$2" reader s3cret
    kill -INT "$server"
    wait "$server"
    server=
}
try '' useEncryption=false
try "--tls-dir $work/tls" "useEncryption=true&tlsRootCerts=$work/tls/sql-cert.pem"
