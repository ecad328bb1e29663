#!/usr/bin/env bash
# What changed in the crates' interfaces since a release, and whether their version says so: cargo-semver-checks. It builds the
# documentation of every crate twice, and the tool itself once, so it is a step of a release (RELEASING.md) and no part of `make lint`.
#
# usage: check-semver.sh TAG [--with-sql]      TAG is the release to compare with. --with-sql: the crates over DataFusion too, which take
#                                              a quarter of an hour more each time
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $# -ge 1 ]] || { sed -n '5,6p' "$0" | sed 's/^# //' >&2; exit 2; }
tag=$1
git rev-parse --quiet --verify "$tag^{commit}" >/dev/null || { echo "check-semver: no such commit: $tag" >&2; exit 2; }
prefix=$(scripts/get-tool.sh cargo-semver-checks)
PATH=$prefix/bin:$PATH

# Libraries that are published and were so then; programs have no interface of this kind.
crates=()
for manifest in crates/*/*/Cargo.toml lab/*/Cargo.toml; do
    [[ -f $(dirname "$manifest")/src/lib.rs ]] || continue
    ! grep --quiet '^publish = false' "$manifest" || continue
    [[ ${2:-} = --with-sql ]] || ! grep --quiet '^rust-version = "' "$manifest" || continue
    git cat-file -e "$tag:$manifest" 2>/dev/null || continue
    crates+=(--package "$(sed -n 's/^name = "\(.*\)"/\1/p' "$manifest" | head -1)")
done
cargo semver-checks --baseline-rev "$tag" "${crates[@]}"
