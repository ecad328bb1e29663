#!/usr/bin/env bash
# The Python package beside python-mysql-replication: rows a second and memory, of logs without compression, from a private server. For
# lab/book/python.md.
#
# usage: python.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --quiet --release --package binlogz-python
module=$(realpath "${CARGO_TARGET_DIR:-target}")/release/libbinlogz_python.so
MODULE=$module cargo test --quiet --package binlogz-python --test python speed -- --ignored --nocapture
