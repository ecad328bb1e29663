#!/usr/bin/env bash
# A smoke run of every fuzz target on this toolchain, and of that of SQL in the test program that has DataFusion already. With cargo
# fuzz: cargo +nightly fuzz run TARGET, cargo +nightly fuzz run --features sql sql.
#
# usage: fuzz.sh [RUNS of each target] [RUNS of SQL]
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo run --quiet --release --manifest-path lab/fuzz/Cargo.toml --no-default-features --bin smoke -- "${1:-200000}"
SEED=${SEED:-$RANDOM} SQL_FUZZ_RUNS=${2:-20000} scripts/run-tests.sh --release --package binlogz-sql --test sql -- --exact --nocapture \
    fuzz::no_statement_of_a_fuzzer_ends_the_process_grows_in_it_or_has_no_end
