#!/usr/bin/env bash
# What may leave, at length: accounts of `binlogz sql serve` with each policy, over logs of MySQL and MariaDB; all bytes that the server sends
# are searched for planted values. Masked replicas follow a source through the relay, with each policy, while relay and replicas are killed;
# then one for SECONDS (3600), with the source's joins each minute. All that they received is searched, too, and so are masked copies of archives;
# such copies are killed.
#
# usage: exits.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

for tool in mysql mariadb; do scripts/get-tool.sh $tool >/dev/null; done
BINLOGZ_REQUIRE_SERVERS=1 scripts/run-tests.sh --quiet --package binlogz-sql --test sql -- --ignored --nocapture exits_served::
BINLOGZ_REQUIRE_SERVERS=1 BINLOGZ_EXITS_SECONDS=${1:-3600} \
    scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored --nocapture --test-threads=1 exits::
BINLOGZ_REQUIRE_SERVERS=1 scripts/run-tests.sh --quiet --package binlogz --test archive -- --ignored --nocapture exits::
BINLOGZ_REQUIRE_SERVERS=1 scripts/run-tests.sh --quiet --package binlogz --test dump -- --ignored --nocapture exits_search::
