#!/usr/bin/env bash
# The C library and the Python package used wrongly and over damaged logs, as their tests do, for longer: more mutations (MUTANTS, 3,000), and
# the C programs a second time under valgrind, if it is here.
#
# usage: [SEED=N] [MUTANTS=N] bindings.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

export MUTANTS=${MUTANTS:-3000}
scripts/run-tests.sh --quiet --package binlogz-capi --test languages attack
scripts/run-tests.sh --quiet --package binlogz-python --test python nothing_crashes
if valgrind=$(command -v valgrind); then
    # It takes twenty to fifty times as long.
    MUTANTS=$((MUTANTS / 30)) VALGRIND=$valgrind scripts/run-tests.sh --quiet --package binlogz-capi --test languages attack
else
    echo 'SKIPPED: valgrind is not here'
fi
