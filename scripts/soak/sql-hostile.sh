#!/usr/bin/env bash
# An hour of hostile clients of `binlogz sql serve`, by seed, over logs of which some are damaged anew all the time (bits that flip, cuts, lengths
# that lie): it stays alive and within its memory, and an honest client's SELECT 1 takes less than a second throughout. The test beside the
# others runs for seconds.
#
# usage: sql-hostile.sh [SECONDS]      (3600 by default); SEED=N repeats a run
set -euo pipefail
cd "$(dirname "$0")/../.."

export SQL_SOAK_SECONDS=${1:-3600} SEED=${SEED:-$RANDOM}
scripts/run-tests.sh --release --package binlogz-sql --test sql -- --exact --nocapture \
    flight::an_honest_client_is_answered_among_hostile_ones
