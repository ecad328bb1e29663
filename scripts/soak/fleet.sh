#!/usr/bin/env bash
# A drill, ROUNDS times (1): three sources, one relay, their archives in S3 (versitygw). One source is lost with its disk. A new server is
# built from a dump and the archive, up to the last restorable moment that `binlogz fleet` showed; its tables have equal checksums.
#
# usage: fleet.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/get-tool.sh versitygw >/dev/null
for ((round = 0; round < ${1:-1}; round++)); do
    scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored fleet::
done
