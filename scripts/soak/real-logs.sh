#!/usr/bin/env bash
# Logs of real servers (MySQL 5.6 without GTIDs, 8.0.33, 9.7; MariaDB 10.11 and 11.4): every column type with values at its
# bounds, under every row image and row metadata, compressed and not. Every reader delivers all rows or names what it
# doesn't. ROUNDS (3) seeds, from SEED on.
set -euo pipefail
cd "$(dirname "$0")/../.."

for tool in mysql mysql-5.6 mysql-8.0 mariadb mariadb-11.4; do scripts/get-tool.sh $tool >/dev/null; done
export REAL_LOGS=all
seed=${SEED:-$RANDOM}
for ((round = 0; round < ${ROUNDS:-3}; round++)); do
    echo "SEED=$((seed + round))"
    SEED=$((seed + round)) scripts/run-tests.sh --quiet --package binlogz --test dump -- --include-ignored --nocapture real::
    # SQL is a program of its own.
    SEED=$((seed + round)) scripts/run-tests.sh --quiet --package binlogz-sql --test sql -- --include-ignored --nocapture real::
done
