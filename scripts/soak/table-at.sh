#!/usr/bin/env bash
# Tables with all column types as they were at MOMENTS GTIDs (100) of a random workload, while other changes go on: each has the
# checksum that it had then. SEED=N is the workload's.
#
# usage: table-at.sh [MOMENTS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_TABLE_AT_MOMENTS=${1:-100} scripts/run-tests.sh --quiet --release --package binlogz --test row_changes as_it_was -- --nocapture
