#!/usr/bin/env bash
# Over a thousand random transactions of 9.7, plain ones and XA ones that are prepared, committed and rolled back in any order, over
# rotations, through one relay to fourteen replicas: MySQL 5.6, 8.0 and 9.7, MariaDB 10.1, 10.2, 10.5, 10.11, 11.4 and 11.8, by GTID and by
# position. Relay and replicas are killed meanwhile, the source is restarted, and twice it is killed and another server takes its place: each
# replica has the source's rows in the end. Replicas that can't be had are named and left out.
#
# Once with checksums, and once without.
#
# usage: xa.sh; SEED=N repeats the statements, RELAY_XA_STEPS=N makes more of them, RELAY_XA_REPLICAS="mariadb-10.1" has these replicas alone
set -euo pipefail
cd "$(dirname "$0")/../.."

for tool in mysql mysql-8.0 mysql-5.6 mysql-5.6.14 mariadb mariadb-10.1 mariadb-10.2 mariadb-10.5 mariadb-11.4 mariadb-11.8; do
    scripts/get-tool.sh $tool >/dev/null || true
done
for checksum in CRC32 NONE; do
    RELAY_XA_CHECKSUM=$checksum scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored --nocapture a_thousand_transactions_with_xa
done
