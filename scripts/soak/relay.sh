#!/usr/bin/env bash
# The relay under KILLS kill -9 (20) while its source is written to, and under CUTS of the network (200) after random numbers of
# bytes: its files must equal the source's. Then 10,000 connections of clients that never log in: others are served.
#
# usage: relay.sh [KILLS [CUTS]]
set -euo pipefail
cd "$(dirname "$0")/../.."

export BINLOGZ_RELAY_KILLS=${1:-20} BINLOGZ_RELAY_CUTS=${2:-200} BINLOGZ_RELAY_CONNECTIONS=10000
cargo test --quiet --release --package binlogz --test relay kills -- --nocapture
cargo test --quiet --release --package binlogz --test relay_receive network -- --nocapture
cargo test --quiet --release --package binlogz --test relay_ops hostile -- --nocapture
