#!/usr/bin/env bash
# JDBC's driver of Flight SQL asks `binlogz-sql serve` over the samples, with TLS and without: login, listings, parameters, a large
# result, errors, several at once. Needs mvn and java; the driver comes with Maven (40 MB).
#
# usage: sql-jdbc.sh        BINLOGZ_SQL names a program that is built
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/sql-lib.sh

begin_work
build_sql
version=${BINLOGZ_JDBC_VERSION:-18.3.0}
mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
    -Dartifact="org.apache.arrow:flight-sql-jdbc-driver:$version" -DoutputDirectory="$work"

# try URL_OPTIONS [OPTION…]: serves with these options, and runs the client with those of its URL.
try() {
    serve_samples "${@:2}"
    java --add-opens=java.base/java.nio=ALL-UNNAMED -cp "$work/flight-sql-jdbc-driver-$version.jar" scripts/soak/SqlJdbc.java \
        "jdbc:arrow-flight-sql://localhost:$port?$1" reader s3cret
    end_server
}
try useEncryption=false
try "useEncryption=true&tlsRootCerts=$work/tls/sql-cert.pem" --tls-dir "$work/tls"
