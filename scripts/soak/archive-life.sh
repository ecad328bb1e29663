#!/usr/bin/env bash
# The life of an archive in a folder and in S3: runs that create, merge, prune and copy are killed at random moments for SECONDS
# (600); the archive and its copy are whole after each, and what is left comes back byte for byte.
#
# usage: archive-life.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_LIFE_SECONDS=${1:-600} \
    scripts/run-tests.sh --quiet --release --package binlogz --test archive -- --nocapture life::runs_that_are_killed
