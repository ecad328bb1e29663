#!/usr/bin/env bash
# Are the crates that we use what deny.toml allows: licences, sources, banned crates; does none of them need a newer Rust than ours say; and has
# none of them a known vulnerability?
#
# usage: check-dependencies.sh
#
# The list of vulnerabilities is a git repository, which is fetched where there is a network. Without it the rest is still checked, and a line
# says so. BINLOGZ_REQUIRE_ADVISORIES=1: that is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/check-msrv.py
if prefix=$(scripts/get-tool.sh cargo-deny); then
    PATH=$prefix/bin:$PATH
elif ! command -v cargo-deny >/dev/null; then
    echo "check-dependencies: cargo-deny isn't here and can't be fetched: deny.toml was not checked" >&2
    exit 0
fi

# Those that no build here needs as well: cargo-deny asks for all that Cargo.lock has.
cargo fetch --locked --quiet
cargo deny --log-level error --offline check licenses bans sources
if ! told=$(cargo deny --log-level error check advisories 2>&1); then
    if [[ ${BINLOGZ_REQUIRE_ADVISORIES:-} = 1 || $told != *"failed to fetch advisory database"* ]]; then
        printf '%s\n' "$told" >&2
        exit 1
    fi
    echo "check-dependencies: the list of vulnerabilities can't be fetched here: advisories were not checked" >&2
fi
