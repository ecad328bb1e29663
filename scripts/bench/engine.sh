#!/usr/bin/env bash
# Commits to the log alone (the engine) beside inserts into the real mysqld, by committers and flush policy, on the
# disk that $TMPDIR is on; last the figures of the published study, which `bench commit` prints in its last column.
#
# usage: engine.sh [SECONDS_EACH]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-5}

cargo build --quiet --release --package binlogz --package binlogz-bench
cargo build --quiet --release --package binlogz-bench-programs --bin oltp-insert
release=${CARGO_TARGET_DIR:-target}/release
ulimit -n "$(ulimit -H -n)" || true
"$release/binlogz" bench commit --dir "${TMPDIR:-/tmp}" --time "$seconds"
"$release/oltp-insert" "$seconds"
