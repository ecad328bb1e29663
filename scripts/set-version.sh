#!/usr/bin/env bash
# Gives all crates and packages a version, and the changelog's "Unreleased" its number and the date of today (UTC). Commits nothing.
#
# usage: set-version.sh 0.2.0
set -euo pipefail
cd "$(dirname "$0")/.."

new=${1:-}
[[ $new =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { sed -n '4p' "$0" | sed 's/^# //' >&2; exit 2; }
old=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
[[ $new != "$old" ]] || { echo "set-version: the version is $old already" >&2; exit 2; }
grep --quiet '^## Unreleased$' CHANGELOG.md || { echo "set-version: CHANGELOG.md has no \"## Unreleased\"" >&2; exit 2; }
dots=${old//./\\.}

# The workspace's version, and what its crates ask of each other.
sed -i "s/^version = \"$dots\"/version = \"$new\"/; s/^\(binlogz-[a-z-]* = { version = \"\)$dots\"/\1$new\"/" Cargo.toml
# Lock files name the crates of the workspace with their version, and no checksum; a crate of its own beside the workspace keeps its version.
crates=$(grep --files-with-matches '^version.workspace = true' crates/*/*/Cargo.toml lab/*/Cargo.toml | xargs sed -n 's/^name = "\(binlogz.*\)"/\1/p')
for lock in $(git ls-files '*Cargo.lock'); do
    for crate in $crates; do
        sed -i "/^name = \"$crate\"\$/{n;s/^version = \"$dots\"\$/version = \"$new\"/}" "$lock"
    done
done
sed -i "s/^## Unreleased\$/## $new ($(date --utc +%F))/; s/^What changed for users\. binlogz has not been released yet.*/What changed for users./" CHANGELOG.md

cargo metadata --locked --format-version 1 >/dev/null
git diff --stat
