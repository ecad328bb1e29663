#!/usr/bin/env bash
# Archives of every real log, and of MUTATIONS (10,000) mutated logs and objects: all come back, none panics. And one of a large
# transaction of text, whose blocks take long to pack, within the memory promised.
#
# usage: archive.sh [MUTATIONS]
set -euo pipefail
cd "$(dirname "$0")/../.."

ARCHIVE_MUTATIONS=${1:-10000} ARCHIVE_LOG_SIZE_MAX=2000000000 \
    scripts/run-tests.sh --quiet --release --package binlogz-archive --test archive -- --nocapture restore::

scripts/run-tests.sh --quiet --release --package binlogz --test memory -- --ignored
