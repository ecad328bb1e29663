#!/usr/bin/env bash
# The life of an archive in a folder and in S3: for SECONDS (600), runs that create, merge, prune and copy are killed at random moments, or
# meet faults of the service and of the network, one of 12 requests: status 500 and 503, connections that break in mid-body or are
# reset, requests that time out, answers that are lost though it was done. The archive and its copy are whole after each, restores meanwhile end undisturbed,
# and what is left comes back byte for byte.
#
# usage: archive-life.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_LIFE_SECONDS=${1:-600} \
    scripts/run-tests.sh --quiet --release --package binlogz --test archive -- --nocapture life::runs_that_are_killed
