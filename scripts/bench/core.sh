#!/usr/bin/env bash
# Compress and expand side by side with zstd on the five workloads at full scale; laws 1 and 2 over the same files.
# What the figures mean: lab/book/core.md.
#
# usage: core.sh [speed|laws]…
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --quiet --release --package binlogz
cargo build --quiet --release --package binlogz-bench-programs --bin bench-core
release=${CARGO_TARGET_DIR:-target}/release
"$release/bench-core" "$release/binlogz" "$@"
