#!/usr/bin/env bash
# Tables as they were at MOMENTS random moments (200) of a random workload, asked by `binlogz-sql --base`: each has the rows that the server
# had then, and half as many pairs of moments differ as they did there. On MySQL 9.7.4 and 8.0.33. SEED=N is the workload's.
#
# usage: sql-as-of.sh [MOMENTS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_MOMENTS=${1:-200} scripts/run-tests.sh --quiet --release --package binlogz-sql --test sql random_moments -- --nocapture --include-ignored
