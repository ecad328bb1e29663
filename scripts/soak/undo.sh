#!/usr/bin/env bash
# Random changes of tables with all column types, undone and redone on a real server as SQL, as a binary log and by --apply, and rewound
# (undo --all): SEEDS seeds (200), each to equal checksums. SEED=N begins at N. Then what InnoDB's cascades did, on 5.6 and 8.0.33 (550 MB to load),
# and the whole way of the guides on 8.0.33.
#
# usage: undo.sh [SEEDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_UNDO_SEEDS=${1:-200} scripts/run-tests.sh --quiet --release --package binlogz --test row_changes round_trip -- --nocapture
# Everything back to any moment, as table-at has it.
BINLOGZ_REWIND_SEEDS=${1:-200} scripts/run-tests.sh --quiet --release --package binlogz --test row_changes everything_goes_back -- --nocapture
# Conditions of --where, beside the server's answers.
BINLOGZ_CONDITIONS=10000 scripts/run-tests.sh --quiet --release --package binlogz --test row_changes conditions_choose -- --nocapture
scripts/get-tool.sh mysql-8.0 >/dev/null
scripts/run-tests.sh --quiet --package binlogz --test row_changes -- --ignored cascades
scripts/run-tests.sh --quiet --package binlogz --test row_changes -- --ignored fold::
scripts/run-tests.sh --quiet --package binlogz --test row_changes -- --ignored rows_that_go_with
scripts/run-tests.sh --quiet --package binlogz --test row_changes -- --ignored a_rewind_on_8_0
scripts/run-tests.sh --quiet --package binlogz --test row_changes -- --ignored ordinary_8_0
scripts/run-tests.sh --quiet --package binlogz --test docs -- --ignored ordinary_8_0
scripts/run-tests.sh --quiet --package binlogz-sql --test sql -- --ignored ordinary_8_0
# And the defaults that INSERTs leave out.
DEFAULTS_SERVER=8.0 scripts/run-tests.sh --quiet --package binlogz --test row_changes what_inserts_leave_out
# What MariaDB's REPLACE gives defaults to.
for version in 10.11 11.4; do
    REPLACE_SERVER=$version REPLACE_SEEDS=100 scripts/run-tests.sh --quiet --package binlogz --test row_changes what_a_replace_left
done
