#!/usr/bin/env bash
# Runs the test of Maxwell 1 with its own connector, whose only host is the relay. It downloads 50 MB on its first run; then half a minute.
#
# usage: maxwell.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -eq 0 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored maxwell::
