#!/usr/bin/env bash
# The Python package's tables as pandas has them: the test of `make test` that has pyarrow alone, with pandas beside it. Fetches 420 MB.
#
# usage: python.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

prefix=$(scripts/get-tool.sh lake)
PYTHON_WITH_PANDAS=$prefix/bin/python scripts/run-tests.sh --quiet --package binlogz-python --test python the_package
