#!/usr/bin/env bash
# What may leave, at length: accounts of `binlogz sql serve` with each policy, over logs of MySQL and MariaDB; all bytes that the server sends
# are searched for planted values.
set -euo pipefail
cd "$(dirname "$0")/../.."

for tool in mysql mariadb; do scripts/get-tool.sh $tool >/dev/null; done
BINLOGZ_REQUIRE_SERVERS=1 scripts/run-tests.sh --quiet --package binlogz-sql --test sql -- --ignored --nocapture exits_served::
