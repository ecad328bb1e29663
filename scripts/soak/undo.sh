#!/usr/bin/env bash
# Random changes of tables with all column types, undone and redone on a real server as SQL, as a binary log and by --apply:
# SEEDS seeds (200), each to equal checksums. SEED=N begins at N.
#
# usage: undo.sh [SEEDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_UNDO_SEEDS=${1:-200} scripts/run-tests.sh --quiet --release --package binlogz --test recover round_trip -- --nocapture
