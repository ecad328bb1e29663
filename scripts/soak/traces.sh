#!/usr/bin/env bash
# Spans of a relay, sent to a collector on the loopback: the tests of the feature otel, which is built in a target of its own.
#
# usage: traces.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/run-tests.sh --package binlogz --features otel --target-dir "${OTEL_TARGET:-target/otel}" --test relay -- traces::
