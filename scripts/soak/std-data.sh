#!/usr/bin/env bash
# The logs that the server's own test suite ships (MySQL 5.0 to 9.0; std_data of Debian's mysql-testsuite, a download
# of 338 MB that get-tool.sh keeps):
# - `binlogz dump` beside mysqlbinlog: the same stdout, exit code and files of LOAD DATA. Where mysqlbinlog gives up
#   (row events of version 1) and where we do (logs of an alpha of 5.1), one text is the begin of the other.
# - an archive gives each back byte for byte.
# - the tests of crates that need these logs.
# BINLOGZ_STD_DATA names another folder that holds them, BINLOGZ a program to try instead of a release build.
set -euo pipefail
cd "$(dirname "$0")/../.."

BINLOGZ_STD_DATA=${BINLOGZ_STD_DATA:-$(scripts/get-tool.sh std-data)/root}
export BINLOGZ_STD_DATA
. scripts/measure-lib.sh
binlogz=$(binlogz_program)
mysqlbinlog=$(scripts/get-tool.sh mysql)/bin/mysqlbinlog
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# dump PROGRAM... : runs it over $log with $options; text, complaint, exit code and files in $work/$name.
dump() {
    local name=$1 code=0
    shift
    rm -rf "${work:?}/$name"
    mkdir "$work/$name"
    # The text names the folder, which is the same for both.
    ln -sfn "$work/$name" "$work/load"
    # shellcheck disable=SC2086
    "$@" --no-defaults $options --local-load="$work/load" "$log" >"$work/$name.txt" 2>"$work/$name.told" || code=$?
    echo "$code" >"$work/$name.code"
}

# body NAME: the text without what stands behind the events.
body() {
    local around='added by mysqlbinlog|^DELIMITER ;|^# End of log file|COMPLETION_TYPE|PSEUDO_SLAVE_MODE'
    tac "$work/$1.txt" | awk -v around="$around" 'behind || $0 !~ around { behind = 1; print }' | tac
}

# begins NAME OTHER: the text of the one is the begin of that of the other.
begins() {
    body "$1" >"$work/body"
    cmp --silent --bytes "$(stat -c %s "$work/body")" "$work/body" "$work/$2.txt"
}

differ=0 logs=0 compared=0 v1=0 alpha=0
differs() {
    differ=$((differ + 1))
    echo "differs: $log $*"
}

compare_dumps() {
    for options in "" "-vv" "-v --base64-output=decode-rows" "-H" "-s" "--print-table-metadata" "--database=test"; do
        dump theirs "$mysqlbinlog"
        dump ours "$binlogz" dump
        compared=$((compared + 1))
        if cmp -s "$work/theirs.txt" "$work/ours.txt" && cmp -s "$work/theirs.code" "$work/ours.code" &&
            diff -rq "$work/theirs" "$work/ours" >/dev/null; then
            continue
        fi
        # What follows are rows of docs/reference/dump.md.
        if grep -q 'Found invalid event' "$work/theirs.told"; then
            if begins theirs ours && [ "$(cat "$work/ours.code")" = 0 ]; then
                v1=$((v1 + 1))
                continue
            elif [[ $log == *wl2325* ]] && begins ours theirs && [ "$(cat "$work/ours.code")" = 1 ]; then
                alpha=$((alpha + 1))
                continue
            fi
        fi
        differs "[$options] exit codes $(cat "$work/theirs.code") and $(cat "$work/ours.code"): $(head -1 "$work/ours.told")"
    done
}

compare_restored() {
    rm -rf "$work/archive" "$work/restored"
    if ! "$binlogz" archive create --to "$work/archive" "$log" >"$work/told" 2>&1 ||
        ! "$binlogz" archive restore --to "$work/restored" "$work/archive" >"$work/told" 2>&1; then
        differs "archive: $(tail -1 "$work/told")"
    elif ! cmp --silent "$log" "$work/restored/$(basename "$log")"; then
        differs "archive: other bytes came back"
    fi
}

while IFS= read -r log; do
    [ "$(head -c 4 "$log" | od -An -tx1 | tr -d ' ')" = fe62696e ] || continue
    logs=$((logs + 1))
    compare_dumps
    compare_restored
done < <(find "$BINLOGZ_STD_DATA" -type f | sort)
echo "$logs logs: $compared dumps compared ($v1 of logs with row events of version 1, $alpha of an alpha's)," \
    "$logs archives restored; $differ differ"
[ "$logs" -gt 0 ] && [ "$differ" -eq 0 ]

scripts/run-tests.sh --quiet --package binlogz-binlog --test binlog -- --include-ignored std_data
scripts/run-tests.sh --quiet --package binlogz-encryption --test encryption -- --include-ignored std_data
scripts/run-tests.sh --quiet --package binlogz-print --test print -- --include-ignored rows::logs_of_older_servers
