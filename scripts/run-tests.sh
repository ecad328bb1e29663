#!/usr/bin/env bash
# Runs `cargo test` with the arguments given, and fails if no test ran: cargo itself succeeds when a filter matches nothing.
#
# usage: run-tests.sh ARGUMENTS OF cargo test
set -euo pipefail

said=$(mktemp)
trap 'rm -f "$said"' EXIT
cargo test "$@" | tee "$said"
# One line for each test program: "test result: ok. 3 passed; 0 failed; 1 ignored; …"
count=$(sed -n 's/.*test result: ok\. \([0-9]*\) passed.*/\1/p' "$said" | awk '{ count += $1 } END { print count + 0 }')
if [ "$count" = 0 ]; then
    echo "run-tests: cargo test $*: no test ran, expected one or more" >&2
    exit 1
fi
