#!/usr/bin/env bash
# Archives of every real log, and of MUTATIONS (10,000) mutated logs and objects: all come back, none panics. As many manifests, parts
# and indexes that lie with right checksums. Every bit of a small encrypted archive, flipped. And an archive of a large
# transaction of text, whose blocks take long to pack, within the memory promised.
#
# usage: archive.sh [MUTATIONS]
set -euo pipefail
cd "$(dirname "$0")/../.."

ARCHIVE_MUTATIONS=${1:-10000} ARCHIVE_LOG_SIZE_MAX=2000000000 \
    scripts/run-tests.sh --quiet --release --package binlogz-archive --test archive -- --nocapture --include-ignored restore:: lies:: encrypted::

scripts/run-tests.sh --quiet --release --package binlogz --test memory -- --ignored
