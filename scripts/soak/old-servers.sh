#!/usr/bin/env bash
# Old servers at length: replicas of before 8.0 under load, payloads of older versions of libzstd, and what needs
# MySQL 8.0.33 (550 MB to load, 400 MB kept).
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/get-tool.sh mysql-8.0 >/dev/null
scripts/run-tests.sh --quiet --package binlogz-testkit --test testkit -- --ignored old_servers
for tool in mysql mysql-5.6 mysql-5.6.14 mariadb mariadb-10.1 mariadb-10.2 mariadb-10.5 mariadb-11.4 mariadb-11.8 sysbench; do
    scripts/get-tool.sh $tool >/dev/null
done
OLD_REPLICAS_EVENTS=5000 OLD_REPLICAS_ROWS=20000 scripts/run-tests.sh --quiet --package binlogz --test relay -- --nocapture older_replicas
scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored old_sources
scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored old_replica_guide
scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored an_old_receiver
scripts/run-tests.sh --quiet --package binlogz-stats --test stats -- --ignored
scripts/run-tests.sh --quiet --package binlogz --test archive -- --ignored --nocapture codecs
