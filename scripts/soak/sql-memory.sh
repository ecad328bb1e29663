#!/usr/bin/env bash
# All of queries.sql, and four statements that have to spill, over large logs with a bound for --memory: the peak of each process
# stays below it, as the page on SQL says of the default; of a smaller one below it and what reading takes. Logs are those of
# `workloads --of more-shapes`, kept in the cache.
#
# usage: sql-memory.sh [SCALE [MEMORY_MIB [READING_MIB]]]      (by default 1, 1024 and 0)
#   BINLOGZ_SQL=PROGRAM   one that is built
#   LOGS="LOG…"           logs of your own, as scripts/bench/large-logs.sh makes them
#   VERBOSE=1             a line for each statement
#   SECONDS_MAX=N         a statement that takes longer is ended, and its peak until then counts
set -euo pipefail
cd "$(dirname "$0")/../.."

scale=${1:-1}
memory=${2:-1024}
reading=${3:-0}
if [ -z "${BINLOGZ_SQL:-}" ]; then
    cargo build --quiet --release --package binlogz-sql
    BINLOGZ_SQL=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release/binlogz-sql
fi
if [ -n "${LOGS:-}" ]; then
    read -r -a logs <<<"$LOGS"
else
    mapfile -t logs < <(cargo run --quiet --package binlogz-bench-programs --bin workloads -- --scale "$scale" --setting plain \
        --of more-shapes | grep -o '/[^ ]*$')
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "$(cat "${logs[@]}" | wc -c) bytes of logs, --memory $memory"
# The statements that no bound of memory holds as they are: a sort, groups of all rows, and joins with a small and with a large table.
cat >"$work/large.sql" <<'END'
SELECT count(*) FROM (SELECT log, "offset", inside, "row", after FROM changes ORDER BY after, key LIMIT 100000000);
SELECT count(*) FROM (SELECT after, count(*) AS rows FROM changes GROUP BY after);
SELECT count(*) FROM changes a JOIN transactions t ON a.gtid = t.gtid AND a.log = t.log;
SELECT count(*) FROM changes a JOIN changes b ON a.log = b.log AND a."offset" = b."offset" AND a.row = b.row;
END
failed=0 passed=0 ended=0 peak_max=0
# run STATEMENT: over the logs. Tables of the samples are not in these: "no such table" is an answer too.
run() {
    local code=0 peak begin=$SECONDS
    /usr/bin/time -f %M -o "$work/time" timeout --foreground "${SECONDS_MAX:-0}" "$BINLOGZ_SQL" --format csv --memory "$memory" --schema crates/interfaces/sql-cli/tests/sql/samples.sql \
        "$1" "${logs[@]}" >"$work/out" 2>"$work/error" || code=$?
    peak=$(($(tail -n 1 "$work/time") / 1024))
    [ -z "${VERBOSE:-}" ] || echo "$((SECONDS - begin)) s, $peak MiB, code $code: ${1:0:120}"
    [ "$peak" -le "$peak_max" ] || peak_max=$peak
    if [ "$peak" -gt $((memory + reading)) ]; then
        echo "sql-memory.sh: $peak MiB, above $memory + $reading: $1" >&2
        failed=$((failed + 1))
    elif [ "$code" = 124 ]; then
        ended=$((ended + 1))
    elif [ "$code" != 0 ] && ! grep -qi 'not found\|no table\|table .* not\|No field named' "$work/error"; then
        echo "sql-memory.sh: ended with $code: $1: $(cat "$work/error")" >&2
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}
while IFS= read -r line; do
    case $line in
        '' | --*) ;;
        'CREATE VIEW'*) view=$line ;;
        *raises*) run "$view $line" ;;
        *) run "$line" ;;
    esac
done < <(cat crates/interfaces/sql-cli/tests/sql/queries.sql "$work/large.sql")
echo "$passed statements passed, $ended were ended, $failed failed; the largest process took $peak_max MiB"
[ "$failed" = 0 ]
