#!/usr/bin/env bash
# Tables as they were at MOMENTS random moments (200) of a random workload, asked by `binlogz-sql --base`: each has the rows that the server
# had then. SEED=N is the workload's.
#
# usage: sql-as-of.sh [MOMENTS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_MOMENTS=${1:-200} scripts/run-tests.sh --quiet --release --package binlogz-sql --test sql at_random_moments -- --nocapture
