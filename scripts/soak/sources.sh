#!/usr/bin/env bash
# One relay with many sources: REAL servers (8) and SIMULATED ones (92) that another relay serves from stored logs. Prints how
# long the start takes, threads, memory and processor time for each source, the delay of a quiet source alone and beside a noisy
# one; then kills the relay KILLS times (20) while all servers write, and compares the logs byte for byte.
#
# usage: sources.sh [REAL [SIMULATED [SECONDS [KILLS]]]]
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --quiet --release --package binlogz
cargo build --quiet --release --package binlogz-bench-programs --bin relay-sources
release=${CARGO_TARGET_DIR:-target}/release
"$release/relay-sources" "$release/binlogz" "${1:-8}" "${2:-92}" "${3:-20}" "${4:-20}"
