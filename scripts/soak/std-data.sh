#!/usr/bin/env bash
# `binlogz dump` beside mysqlbinlog over the logs that the server's own test suite ships (MySQL 5.0 to 9.0): the same
# stdout wherever mysqlbinlog reads a log to its end. BINLOGZ_STD_DATA names a folder that holds them (std_data of
# Debian's mysql-testsuite, a download of 338 MB); without it nothing is done.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${BINLOGZ_STD_DATA:-}" ]; then
    echo "SKIPPED: std-data: BINLOGZ_STD_DATA names no folder with the server's std_data"
    exit 0
fi
cargo build --quiet --release --package binlogz
binlogz=${CARGO_TARGET_DIR:-target}/release/binlogz
mysqlbinlog=$(scripts/get-tool.sh mysql)/bin/mysqlbinlog
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compared=0 differ=0
while IFS= read -r log; do
    [ "$(head -c 4 "$log" | od -An -tx1 | tr -d ' ')" = fe62696e ] || continue
    for options in "" "-vv" "-v --base64-output=decode-rows"; do
        for program in theirs ours; do rm -rf "${work:?}/$program"; mkdir "$work/$program"; done
        ln -sfn "$work/theirs" "$work/load"
        # shellcheck disable=SC2086
        "$mysqlbinlog" --no-defaults $options --local-load="$work/load" "$log" >"$work/theirs.txt" 2>/dev/null || continue
        ln -sfn "$work/ours" "$work/load"
        # shellcheck disable=SC2086
        "$binlogz" dump --no-defaults $options --local-load="$work/load" "$log" >"$work/ours.txt" 2>"$work/told" || true
        compared=$((compared + 1))
        # A GEOMETRY is where both differ on purpose: docs/dump.md.
        if ! cmp -s "$work/theirs.txt" "$work/ours.txt" && ! grep -q "Don't know how to handle column type=255" "$work/theirs.txt"; then
            differ=$((differ + 1))
            echo "differs: $log $options $(head -1 "$work/told")"
        fi
    done
done < <(find "$BINLOGZ_STD_DATA" -type f | sort)
echo "$compared runs compared, $differ differ"
[ "$compared" -gt 0 ] && [ "$differ" -eq 0 ]
