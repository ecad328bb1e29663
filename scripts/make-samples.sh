#!/usr/bin/env bash
# Makes samples/ and the frozen corpus's files of every level anew on a real MySQL server (see get-tool.sh).
# The files differ from the ones before in times and identities. Run it when the recipe changes, never in CI:
# the corpus is frozen so that the laws stay testable when the packaged server moves on.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$("$(scripts/get-tool.sh mysql)/bin/mysqld" --version | sed -n 's/.* Ver \([0-9.]*\).*/\1/p')
corpus=lab/testkit/corpus/mysql-$version
cargo run --quiet --package binlogz-bench-programs --bin make-samples -- samples "$corpus"
chmod 644 samples/*/binlog.* "$corpus"/levels.*
du --bytes --summarize samples "$corpus"
