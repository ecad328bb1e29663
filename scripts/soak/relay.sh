#!/usr/bin/env bash
# The relay at length, on real servers: KILLS kill -9 (200) under sysbench, the source waiting for acknowledgements without
# time-out; CUTS of the network (200) after random numbers of bytes; the five workloads at SCALE (0.1) to replicas of every
# form; transactions of 200 MB to each of them and MariaDB; 20 kills while files come back from the archive; 10,000
# connections of clients that never log in. Before, CRASHES (1,000) runs on a disk that loses what was not synced, and one for
# each call of a disk that fails. Then 200 replicas at once, within their memory.
#
# usage: relay.sh [KILLS [CUTS [SCALE [CRASHES]]]]
set -euo pipefail
cd "$(dirname "$0")/../.."

export BINLOGZ_RELAY_KILLS=${1:-200} BINLOGZ_RELAY_CUTS=${2:-200} BINLOGZ_RELAY_CONNECTIONS=10000
export BINLOGZ_RELAY_SCALE=${3:-0.1} BINLOGZ_CRASHES=${4:-1000}
export BINLOGZ_RELAY_REPLICAS=200
run() { scripts/run-tests.sh --quiet --release --package "$@" -- --nocapture; }

run binlogz-relay --lib crashes
BINLOGZ_FAULTS=1 run binlogz-relay --lib faults
run binlogz --test relay end_to_end::kills
run binlogz --test relay receive::a_network
run binlogz --test relay forms::the_five_workloads
BINLOGZ_RELAY_MEGABYTES=200 run binlogz --test relay large::
BINLOGZ_RELAY_KILLS=20 run binlogz --test relay archive::a_kill
run binlogz --test relay ops::hostile
run binlogz --test relay serving::
