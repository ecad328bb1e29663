#!/usr/bin/env bash
# The relay on a sick machine: ROUNDS (300) of sysbench beside one fault each, by a seed: calls of the system that fail
# (EIO, ENOSPC, EMFILE, short writes), a full disk, no descriptors, no threads, slow syncs, kill -9, a process that stands
# still, flipped bits in stored files, 200 hostile connections. After each, relay and replicas (MySQL, MariaDB) have what the
# source has, or said why not. Before, the shim below it.
#
# usage: chaos.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/run-tests.sh --quiet --release --package binlogz-testkit --test testkit faults::
BINLOGZ_CHAOS=${1:-300} scripts/run-tests.sh --quiet --release --package binlogz --test relay_chaos -- --nocapture
