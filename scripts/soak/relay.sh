#!/usr/bin/env bash
# The relay under KILLS kill -9 (20) while its source is written to: its files must equal the source's.
#
# usage: relay.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_RELAY_KILLS=${1:-20} cargo test --quiet --release --package binlogz --test relay kills -- --nocapture
