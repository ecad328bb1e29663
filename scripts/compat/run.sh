#!/usr/bin/env bash
# Who follows a MySQL source, directly and through the relay in each form: servers as replicas and sources, and
# clients. Writes lab/book/compatibility.md; an hour. Fetches MySQL 8.0.33 (550 MB), ten other servers and packages of npm;
# what can't be had is not tried, and the page says so.
# PARTS="clients sql" runs these parts of replicas, replicas-8.0, newer (what a replica may not know), large, failover, ways (acknowledgements and channels), links, clients, forwarding, tls, maxwell, sql and
# sources; the page's others stay as they are. In newer, large, failover, ways and links each cell is every row or a reason, else it fails. PAGE names another page. COMPAT_PATIENCE=120 waits that many seconds for each replica or client (40). BINLOGZ_COMPAT_REPLICAS="mysql-5.5 mariadb-10.5" runs these replicas, and leaves the rows of others. BINLOGZ_COMPAT_CLIENTS=NAME does so with clients that have NAME in their names.
set -euo pipefail
[ $# -eq 0 ] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
cd "$(dirname "$0")/../.."

parts=" ${PARTS:-replicas replicas-8.0 newer large failover ways links clients forwarding tls maxwell sql sources} "
tools=mysql
[[ ! $parts =~ \ (replicas|replicas-8.0|newer|large|failover|ways|links|sources)\  ]] ||
    tools+=' mysql-8.0 mysql-5.6 mysql-5.6.14 mysql-5.5 mariadb mariadb-10.1 mariadb-10.2 mariadb-10.5 mariadb-11.4 mariadb-11.8'
[[ $parts != *" clients "* && $parts != *" forwarding "* && $parts != *" tls "* && $parts != *" sql "* ]] ||
    tools+=' openssl cdc mysqld-exporter mydumper percona-toolkit compat-java compat-debezium compat-flink compat-canal compat-rust compat-go'
[[ $parts != *" maxwell "* ]] || tools+=' compat-maxwell-own'
for tool in $tools; do
    scripts/get-tool.sh "$tool" >/dev/null || true
done
export BINLOGZ_COMPAT_PAGE=${PAGE:-$PWD/lab/book/compatibility.md}
mkdir -p "$(dirname "$BINLOGZ_COMPAT_PAGE")"
scripts/run-tests.sh --package binlogz --test compat -- --ignored --nocapture
