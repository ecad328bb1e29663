#!/usr/bin/env bash
# A relay whose source is a group of three servers (Group Replication), ROUNDS times (1): its member is killed under load, then another
# leaves the group, then the relay is killed. Its replica has every transaction once. About a minute a round.
#
# usage: group.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

for ((round = 0; round < ${1:-1}; round++)); do
    scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored group_replication::
done
