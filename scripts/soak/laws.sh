#!/usr/bin/env bash
# The laws at length: 100,000 mutated logs, every log of the corpus cut at every byte, and law 7 over logs of 40 MB of every
# generation, with and without GTIDs. SEED=N repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."

export BINLOGZ_SOAK=1 MUTATIONS=${MUTATIONS:-100000} GENERATIONS_MB=${GENERATIONS_MB:-40}
for law in mutations cuts generations; do
    scripts/run-tests.sh --release --package binlogz-flow --test flow -- --nocapture "laws::$law"
done
