#!/usr/bin/env bash
# The store under simulated crashes: RUNS random runs (1,000) of four crashes each, and every operation failing once.
#
# usage: store.sh [RUNS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_CRASHES=${1:-1000} scripts/run-tests.sh --quiet --release --package binlogz-store --test store crash -- --nocapture
