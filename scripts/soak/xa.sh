#!/usr/bin/env bash
# Over a thousand random transactions of 9.7, plain ones and XA ones that are prepared, committed and rolled back in any order, over rotations,
# through one relay to MySQL 5.6 by GTID and by position and to MariaDB 10.11 and 11.4, while the relay is killed and replicas
# stop and go on: each has the source's rows in the end.
#
# usage: xa.sh; SEED=N repeats the statements
set -euo pipefail
cd "$(dirname "$0")/../.."

for tool in mysql mysql-5.6 mariadb mariadb-11.4; do scripts/get-tool.sh $tool >/dev/null; done
scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored --nocapture a_thousand_transactions_with_xa
