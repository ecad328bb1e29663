#!/usr/bin/env bash
# A cron archives the logs of a real server every second, which writes all the time, rotates, and purges as it is told: for
# SECONDS (300) with and without --include-active. In the end every log is in the archive, byte for byte.
#
# usage: archive-cron.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_CRON_SECONDS=${1:-300} \
    scripts/run-tests.sh --quiet --release --package binlogz --test archive -- --nocapture growing::a_cron
