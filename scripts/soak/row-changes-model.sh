#!/usr/bin/env bash
# The model: SEEDS seeds (1000) of random tables, DDL and changes; `undo` in its three forms, `redo`, `table-at`, `rows`, `recover` and `fold` lead to states that
# the server had, or say that they don't know. MODEL_SERVER=8.0 takes MySQL 8.0.33, MODEL_ONLY=fold checks `fold` alone, MODEL_PROGRAM=FILE takes the commands of a build that is there already. SEED=N begins at N. Each seed that differs is printed, and can be run alone (where sessions ran side by side, in another order of commits):
#
#     SEED=N MODEL_KEEP=FOLDER row-changes-model.sh 1
#
# leaves its workload, and what the commands said, in FOLDER/N.
#
# usage: row-changes-model.sh [SEEDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

# Most of a seed's time was once spent waiting for disks.
[ -w /dev/shm ] && export TMPDIR="${TMPDIR:-/dev/shm}"
# The commands take the time; the test itself may be a debug build.
release=--release
[ -n "${MODEL_PROGRAM:-}" ] && release=
MODEL_SEEDS=${1:-1000} scripts/run-tests.sh --quiet $release --package binlogz --test row_changes model -- --nocapture
