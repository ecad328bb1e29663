#!/usr/bin/env bash
# A smoke run of every fuzz target on this toolchain. With cargo fuzz: cargo +nightly fuzz run TARGET.
#
# usage: fuzz.sh [RUNS of each target]
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo run --quiet --release --manifest-path lab/fuzz/Cargo.toml --no-default-features --bin smoke -- "${1:-200000}"
