#!/usr/bin/env bash
# How long after its commit a transaction reaches a replica, from the source and through the relay, on the disk that $TMPDIR
# is on.
#
# usage: relay-latency.sh [TRANSACTIONS_A_SECOND] [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --quiet --release --package binlogz
cargo build --quiet --release --package binlogz-bench-programs --bin relay-latency
release=${CARGO_TARGET_DIR:-target}/release
for options in "--store received" "--store compressed"; do
  echo "relay run $options"
  # shellcheck disable=SC2086 # two words
  "$release/relay-latency" "$release/binlogz" "${1:-1000}" "${2:-20}" $options
done
