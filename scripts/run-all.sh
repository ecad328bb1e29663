#!/usr/bin/env bash
# Runs every script of a folder, in order of name, and says which failed.
#
# usage: run-all.sh FOLDER [NAME…]      only scripts whose names contain one of NAMEs
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:?usage: run-all.sh FOLDER [NAME…]}
shift
failed=()
ran=0
for script in "$folder"/*.sh; do
    [ -e "$script" ] || continue
    wanted=$((!$#))
    for name in "$@"; do
        case $script in *"$name"*) wanted=1 ;; esac
    done
    [ "$wanted" = 1 ] || continue
    ran=$((ran + 1))
    echo "== $script"
    "$script" || failed+=("$script")
done
echo
echo "$((ran - ${#failed[@]})) passed, ${#failed[@]} failed"
[ ${#failed[@]} -eq 0 ] || printf 'failed: %s\n' "${failed[@]}"
[ "$ran" -gt 0 ] && [ ${#failed[@]} -eq 0 ]
