#!/usr/bin/env bash
# The relay's receiving beside mysqlbinlog --raw, and its serving beside the source's, on the disk that $TMPDIR is on.
#
# usage: relay.sh [CLIENTS]
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --quiet --release --package binlogz
cargo build --quiet --release --package binlogz-bench-programs --bin relay-speed
release=${CARGO_TARGET_DIR:-target}/release
"$release/relay-speed" "$release/binlogz" "${1:-8}"
