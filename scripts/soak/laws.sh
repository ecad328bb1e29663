#!/usr/bin/env bash
# The laws at length: 100,000 mutated logs, and every log of the corpus cut at every byte. SEED=N repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."

export BINLOGZ_SOAK=1 MUTATIONS=${MUTATIONS:-100000}
for law in mutations cuts; do
    scripts/run-tests.sh --release --package binlogz-flow --test flow -- --nocapture "laws::$law"
done
