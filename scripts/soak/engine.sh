#!/usr/bin/env bash
# The engine at length: the five workloads at full scale, plain and at levels 1, 3 and 19, give the server's files to the
# byte; then kill -9 with 50 committers: KILLS (50) under each flush policy, each after up to 8 seconds.
#
# usage: engine.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_SCALE=1 scripts/run-tests.sh --quiet --release --package binlogz-engine --test engine -- --nocapture a_servers_transactions
BINLOGZ_KILLS=${1:-50} BINLOGZ_KILL_MILLIS=${BINLOGZ_KILL_MILLIS:-8000} \
	scripts/run-tests.sh --quiet --release --package binlogz-engine --test engine -- --nocapture kill::
