#!/usr/bin/env bash
# Makes crates/format/binlog/src/charset/differences.rs anew: asks MySQL for the character of every code of the East Asian
# character sets, and keeps where the web's encodings differ.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/get-tool.sh mysql >/dev/null
UPDATE_CHARSETS=1 scripts/run-tests.sh --package binlogz-binlog --test binlog -- charsets::every_code
cargo fmt --package binlogz-binlog
