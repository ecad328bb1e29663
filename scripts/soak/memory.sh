#!/usr/bin/env bash
# Law 5 at length: a transaction of 1 GiB through compress and expand in 64 MiB, and 512 MiB in a few kilobytes through every command.
# Needs 5 GB of temporary space.
#
# usage: memory.sh [MEGABYTES]
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --quiet --release --package binlogz
cargo build --quiet --release --package binlogz-bench-programs --bin large-transaction
release=${CARGO_TARGET_DIR:-target}/release
"$release/large-transaction" "$release/binlogz" "$@"
BINLOGZ_SOAK=1 scripts/run-tests.sh --quiet --release --package binlogz --test memory -- few_kilobytes
