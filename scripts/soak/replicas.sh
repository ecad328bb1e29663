#!/usr/bin/env bash
# One relay with REPLICAS (1000) replicas, which are our own client: memory for each, processor time and context switches while all
# are idle for SECONDS (20), delay and cost of a transaction, and the time in which all catch up after the relay was killed. Each
# replica checks that its log goes on where it ended. In each FORM ("received uncompressed").
#
# usage: replicas.sh [REPLICAS [SECONDS [FORM...]]]; PROFILE=release by default
set -euo pipefail
cd "$(dirname "$0")/../.."

profile=${PROFILE:-release}
cargo build --quiet --profile "$profile" --package binlogz
cargo build --quiet --profile "$profile" --package binlogz-bench-programs --bin relay-replicas
folder=${CARGO_TARGET_DIR:-target}/${profile/#dev/debug}
# A socket each, on both sides.
ulimit -n "$(ulimit -H -n)"
replicas=${1:-1000} seconds=${2:-20}
shift $(($# < 2 ? $# : 2))
forms=("$@")
((${#forms[@]} > 0)) || forms=(received uncompressed)
for form in "${forms[@]}"; do
    "$folder/relay-replicas" "$folder/binlogz" "$replicas" "$seconds" "$form"
done
