#!/usr/bin/env bash
# Recoveries of which the command and the server are killed amid transactions, at random ones, ROUNDS times (5, which are ten
# kills or more), each to equal checksums. SEED=N begins at N. Then from S3 over TLS, and a server of 8.0.33 (550 MB to load), by `--fold` too.
#
# usage: recover.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

seed=${SEED:-$RANDOM}
for ((round = 0; round < ${1:-5}; round++)); do
    SEED=$((seed + round)) scripts/run-tests.sh --quiet --package binlogz --test relay recovery::what_is_killed -- --nocapture
done
scripts/get-tool.sh mysql-8.0 >/dev/null
scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored recovery_far recovery_folded
