#!/usr/bin/env bash
# The engine under kill -9 with 50 committers: KILLS (50) under each flush policy, each after up to 8 seconds.
#
# usage: engine.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_KILLS=${1:-50} BINLOGZ_KILL_MILLIS=${BINLOGZ_KILL_MILLIS:-8000} \
	cargo test --quiet --release --package binlogz-engine --test kill -- --nocapture
