#!/usr/bin/env bash
# Checks that every shell script parses and, where shellcheck is installed, that it finds nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
for script in "${scripts[@]}"; do
    bash -n "$script"
    [ -x "$script" ] || { echo "$script is not executable" >&2; exit 1; }
done
if command -v shellcheck >/dev/null; then
    shellcheck "${scripts[@]}"
else
    echo "lint-scripts: shellcheck isn't installed here: scripts were only parsed" >&2
fi
