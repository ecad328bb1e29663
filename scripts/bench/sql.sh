#!/usr/bin/env bash
# `binlogz sql` side by side with what people use today. For lab/book/sql.md. One run prints:
#
#   1. rows by table and operation: `mysqlbinlog -vvv | perl`, then `sql` over the log as it is, compressed and archived, and
#      `stats` over the archive
#   2. one column of the largest table of each log: `sql` over the archive, in MB of plain log a second, beside DuckDB over the
#      exported Parquet, for four queries
#   3. all logs in one archive: what a filter on one table, a key and a count read of it
#
# usage: sql.sh [SCALE [RUNS [ARCHIVE TABLE KEY]]]      (by default 1 and 3; the logs of `workloads --of more-shapes`)
#   ARCHIVE TABLE KEY   a larger archive of your own, and a condition on a key of one of its tables: for part 3
#   MEASURE=cpu         seconds of processor time instead of clock time, for a machine that does other things
set -euo pipefail
cd "$(dirname "$0")/../.."

scale=${1:-1}
runs=${2:-3}
# BIN=DIR: programs that are built already, workloads among them.
release=${BIN:-$(realpath -m "${CARGO_TARGET_DIR:-target}")/release}
mysqlbinlog=$(scripts/get-tool.sh mysql)/bin/mysqlbinlog
python=$(scripts/get-tool.sh lake)/bin/python
[[ -n ${BIN:-} ]] || cargo build --quiet --release --package binlogz --package binlogz-sql --package binlogz-bench-programs
mapfile -t logs < <("$release/workloads" --scale "$scale" --setting plain --of more-shapes | grep -o '/[^ ]*$')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/compressed" "$work/archives"
echo "scale $scale, $runs runs, the fastest of each, seconds of the ${MEASURE:-clock}; load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) cores"

# seconds COMMAND…: the fastest of the runs; what the last one prints stands in out.
measure=${MEASURE:-clock}
seconds() {
    local best=
    local TIMEFORMAT='%R %U %S'
    for ((run = 0; run < runs; run++)); do
        { time "$@" >"$work/out" 2>"$work/error"; } 2>"$work/time" || { cat "$work/error" >&2; return 1; }
        best=$(awk -v best="${best:-1e9}" -v measure="$measure" \
            '{ time = measure == "cpu" ? $2 + $3 : $1; printf "%.3f\n", time < best ? time : best }' "$work/time")
    done
    echo "$best"
}
theirs() {
    "$mysqlbinlog" --no-defaults -vvv --base64-output=decode-rows "$1" |
        perl -ne '$count{"$2 $1"}++ if /^### (INSERT INTO|UPDATE|DELETE FROM) (\S+)/;
                  END { print "$count{$_} $_\n" for sort keys %count }'
}
ask() { "$release/binlogz-sql" --format csv "$@"; }
by_table='SELECT count(*), operation, schema, "table" FROM changes GROUP BY 2, 3, 4 ORDER BY 3, 4, 2'
# Row changes in what was printed: the first column's sum.
rows() { awk -F '[ ,]' '{ count += $1 } END { print count + 0 }' "$work/out"; }
# metric NAME: the sum of a metric in the plan that was printed. Numbers may be short: 1.5 K.
metric() {
    grep -o "$1=[0-9.]* \?[KMGT]\?" "$work/out" | awk -F= '{ n = $2 + 0; if ($2 ~ /K/) n *= 1e3; if ($2 ~ /M/) n *= 1e6;
        if ($2 ~ /G/) n *= 1e9; sum += n } END { printf "%.0f\n", sum }'
}

echo; echo '1. rows by table and operation, seconds of whole processes; × against mysqlbinlog, and of the archive against stats'
printf '%-24s %9s %11s %8s %6s %10s %6s %8s %8s %6s\n' log rows mysqlbinlog plain × compressed × archive stats ×
for log in "${logs[@]}"; do
    name=$(basename "$log")
    "$release/binlogz" compress --quiet --output "$work/compressed/" "$log" >/dev/null
    "$release/binlogz" archive create --quiet --to "$work/archives/$name" "$log" >/dev/null
    times=("$(seconds theirs "$log")")
    expected=$(rows)
    for input in "$log" "$work/compressed/$name" "$work/archives/$name"; do
        times+=("$(seconds ask "$by_table" "$input")")
        [[ $(rows) == "$expected" ]] || { echo "sql.sh: $input: $(rows) rows, mysqlbinlog has $expected" >&2; exit 1; }
    done
    times+=("$(seconds "$release/binlogz" stats --by table "$work/archives/$name")")
    awk -v name="$name" -v rows="$expected" -v t="${times[*]}" 'BEGIN { split(t, s, " ");
        printf "%-24s %9d %11.3f %8.3f %6.1f %10.3f %6.1f %8.3f %8.3f %6.1f\n", name, rows, s[1], s[2], s[1] / s[2], s[3], s[1] / s[3],
        s[4], s[5], s[5] / s[4] }'
done
printf '%-24s %9s %11s %8.3f: SELECT 1, no input to read\n' start '' '' "$(seconds ask 'SELECT 1' "$work/archives/$name")"

echo; echo '2. one column of the largest table: MB of plain log a second out of the archive; seconds of whole processes; × against DuckDB'
cat >"$work/duck.py" <<'PYTHON'
import sys, time
import duckdb
lake = duckdb.connect()
lake.execute("SET threads = 2")
begin = time.monotonic()
lake.execute(sys.argv[1]).fetchall()
print(time.monotonic() - begin)
PYTHON
duck() { "$python" "$work/duck.py" "$1"; }
printf '%-24s %-30s %8s %8s %9s %14s %6s\n' log query sql MB/s duckdb 'duckdb, query' ×
for log in "${logs[@]}"; do
    name=$(basename "$log")
    size=$(stat -c %s "$log")
    archive=$work/archives/$name
    table=$(ask 'SELECT schema, "table" FROM changes GROUP BY 1, 2 ORDER BY count(*) DESC, 1, 2 LIMIT 1' "$archive" | sed -n 2p)
    database=${table%,*} table=${table#*,}
    column=$(ask "SELECT data_type FROM information_schema.columns WHERE table_schema = '$database' AND table_name = '$table' AND \
        column_name = 'after'" "$archive" | grep -oE '[@A-Za-z_0-9]+"*: *(nullable )?(U?Int(32|64)|Decimal|Float64)' | sed -n '$p' | sed 's/"*:.*//') || true
    [[ -n $column ]] || { printf '%-24s no column of numbers\n' "$name"; continue; }
    rm -rf "$work/lake"
    "$release/binlogz-sql" export --to "$work/lake" "$archive" >/dev/null 2>&1
    files="read_parquet('$work/lake/$database/$table/**/*.parquet', union_by_name = true)"
    for query in "sum(after['$column'])" "min(after['$column']), max(before['$column'])" \
        "count(*) WHERE after['$column'] > 1000" "operation, avg(after['$column']) GROUP BY operation"; do
        what=${query%% WHERE*}
        what=${what%% GROUP*}
        rest=${query#"$what"}
        ours=$(seconds ask "SELECT $what FROM \"$database\".\"$table\"$rest" "$archive")
        theirs=$(seconds duck "SELECT $what FROM $files$rest")
        inside=$(cat "$work/out")
        awk -v name="$name" -v query="$query" -v ours="$ours" -v size="$size" -v theirs="$theirs" -v inside="$inside" 'BEGIN {
            printf "%-24s %-30.30s %8.3f %8.1f %9.3f %14.3f %6.2f\n", name, query, ours, size / 1e6 / ours, theirs, inside, theirs / ours }'
    done
done

echo; echo '3. all logs in one archive: what is read of it'
"$release/binlogz" archive create --quiet --to "$work/all" "${logs[@]}" >/dev/null
inputs=("$work/all")
[[ $# -lt 3 ]] || inputs+=("$3")
printf '%-40s %8s %8s %8s %8s %8s %10s %14s\n' query seconds read picked told skipped KiB 'bytes read'
show() {
    local time kib
    time=$(seconds ask "$2" "$1")
    kib=$(command time -f '%M' "$release/binlogz-sql" --format csv "$2" "$1" 2>&1 >/dev/null | tail -1)
    ask "EXPLAIN ANALYZE $2" "$1" >"$work/out"
    printf '%-40.40s %8s %8s %8s %8s %8s %10s %14s\n' "$2" "$time" "$(metric blocks_read)" "$(metric blocks_picked)" "$(metric blocks_told)" \
        "$(metric blocks_skipped)" "$kib" "$(metric bytes_read)"
}
for archive in "${inputs[@]}"; do
    du -sb "$archive" | awk '{ print $2 ": " $1 " bytes" }'
    show "$archive" "$by_table"
    ask 'SELECT schema, "table" FROM changes GROUP BY 1, 2 ORDER BY count(*) DESC, 1, 2 LIMIT 3' "$archive" | sed 1d >"$work/tables"
    while IFS=, read -r database table; do
        show "$archive" "SELECT count(before), count(after) FROM \"$database\".\"$table\""
        show "$archive" "SELECT count(gtid) FROM \"$database\".\"$table\""
    done <"$work/tables"
done
[[ $# -lt 5 ]] || show "$3" "SELECT * FROM $4 WHERE $5"
