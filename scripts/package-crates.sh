#!/usr/bin/env bash
# Packs the crates that are published, into target/package, as `cargo publish` would upload them, and builds each from its
# package.
#
# usage: package-crates.sh [--no-verify]      --no-verify packs them and looks at their manifests only: seconds
set -euo pipefail
cd "$(dirname "$0")/.."

# What only we run, and what goes to PyPI: never published here.
private=(binlogz-testkit binlogz-bench-programs binlogz-python binlogz-capi)

rm -rf "${CARGO_TARGET_DIR:-target}/package"
cargo package --quiet --workspace "${private[@]/#/--exclude=}" "$@"
