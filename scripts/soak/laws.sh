#!/usr/bin/env bash
# The laws at length: 100,000 mutated logs, every log of the corpus cut at every byte, logs of 512 MiB in bounded memory, law 7 over logs of
# 40 MB of every generation, with and without GTIDs, and over every log with each number of workers. SEED=N repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."

export BINLOGZ_SOAK=1 MUTATIONS=${MUTATIONS:-100000} GENERATIONS_MB=${GENERATIONS_MB:-40}
for law in mutations cuts lies bounded generations deterministic; do
    scripts/run-tests.sh --release --package binlogz-flow --test flow -- --nocapture "laws::$law"
done
