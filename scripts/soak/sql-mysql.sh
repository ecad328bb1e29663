#!/usr/bin/env bash
# Connector/J asks `binlogz-sql serve --mysql` over the samples, with TLS, without, and compressed: lists of databases, tables, columns,
# keys and indexes, prepared statements on both sides, a limit of rows, errors. Needs java; the driver comes with get-tool.sh compat-java.
#
# usage: sql-mysql.sh        BINLOGZ_SQL names a program that is built
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/sql-lib.sh

begin_work
build_sql
drivers=$(scripts/get-tool.sh compat-java)/lib
mysql_port=${BINLOGZ_MYSQL_PORT:-33970}

serve_samples --tls-dir "$work/tls" --mysql "127.0.0.1:$mysql_port"
until grep -q mysql: "$work/out"; do sleep 0.1; done
for options in sslMode=REQUIRED 'sslMode=REQUIRED&useServerPrepStmts=true' sslMode=DISABLED 'sslMode=DISABLED&useCompression=true'; do
    java -cp "$drivers/*" scripts/soak/SqlMysql.java "jdbc:mysql://127.0.0.1:$mysql_port/employees?$options" reader s3cret
done
end_server
