#!/usr/bin/env bash
# `binlogz sql` over logs of some GB, as scripts/bench/large-logs.sh makes them, in an archive: seconds of the clock and of the
# processors, peak memory, blocks and bytes read. It archives the logs first, unless DIR/archive is there.
#
#   1. counts by table, over the archive and over one log as it is, beside `stats` and `mysqlbinlog -vvv | perl`
#   2. one key
#   3. one column of each table: MB of plain log a second, of all logs and of the table's share
#   4. queries over the archive beside DuckDB's over the exported Parquet (DIR/lake, unless it is there): both as programs, and
#      DuckDB's query alone, in a process that runs already
#   5. where `perf` is: their processor time, and how much of it is decoding; the program must have its symbols
#      (CARGO_PROFILE_RELEASE_STRIP=none)
#
# usage: sql-large.sh DIR [RUNS]      (3 runs, the fastest of each); BIN=DIR: programs that are built already
set -euo pipefail
cd "$(dirname "$0")/../.."

logs=("$1"/binlog.0*)
archive=$1/archive
runs=${2:-3}
bin=${BIN:-$(realpath -m "${CARGO_TARGET_DIR:-target}")/release}
[[ -n ${BIN:-} ]] || cargo build --quiet --release --package binlogz --package binlogz-sql
mysqlbinlog=$(scripts/get-tool.sh mysql)/bin/mysqlbinlog
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bytes=$(cat "${logs[@]}" | wc -c)

# measured NAME COMMAND…: prints a line of the fastest of the runs, and leaves its clock time in seconds.
measured() {
    local name=$1
    shift
    : >"$work/times"
    for ((run = 0; run < runs; run++)); do
        /usr/bin/time -a -o "$work/times" -f '%e %U %S %M' "$@" >"$work/out"
    done
    sort -n "$work/times" | awk -v name="$name" 'NR == 1 { printf "%-44s %8.2f %8.2f %8d", name, $1, $2 + $3, $4 / 1024 }'
    seconds=$(sort -n "$work/times" | awk 'NR == 1 { print $1 < 0.01 ? 0.01 : $1 }')
}
theirs() {
    "$mysqlbinlog" --no-defaults -vvv --base64-output=decode-rows "$1" |
        perl -ne '$count{"$2 $1"}++ if /^### (INSERT INTO|UPDATE|DELETE FROM) (\S+)/;
                  END { print "$count{$_} $_\n" for sort keys %count }'
}
export -f theirs
export mysqlbinlog
sql() { measured "$1" "$bin/binlogz-sql" --format csv "$2" "${@:3}"; }
# read_of STATEMENT: blocks and bytes that it reads of the archive.
read_of() {
    "$bin/binlogz-sql" --format csv "EXPLAIN ANALYZE $1" "$archive" |
        grep -oE '(blocks_(read|picked|told|skipped)|bytes_read)=[0-9.]+ ?[KMG]?' | tr '\n' ' '
}

echo "$bytes bytes in ${#logs[@]} logs; load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) cores"
printf '%-44s %8s %8s %8s\n' '' clock cpu MiB
if [[ ! -d $archive ]]; then
    runs=1 measured 'archive create' "$bin/binlogz" archive create --quiet --to "$archive" "${logs[@]}"
    awk -v bytes="$bytes" -v s="$seconds" 'BEGIN { printf " %8.0f MB/s\n", bytes / 1e6 / s }'
fi
echo "archive: $(du -sb "$archive" | cut -f1) bytes"

by_table='SELECT count(*), operation, schema, "table" FROM changes GROUP BY 2, 3, 4 ORDER BY 3, 4, 2'
sql 'counts by table, archive' "$by_table" "$archive"; echo
measured 'stats --by table, archive' "$bin/binlogz" stats --by table "$archive"; echo
sql 'counts by table, one log' "$by_table" "${logs[0]}"; echo
"$bin/binlogz" compress --quiet --output "$work/" "${logs[0]}" >/dev/null
sql 'the same, compressed' "$by_table" "$work/$(basename "${logs[0]}")"; echo
runs=1 measured 'mysqlbinlog -vvv | perl, that log' bash -c "theirs '${logs[0]}'"; echo

key='SELECT operation, after.total FROM "shop"."orders" WHERE after.id = 1000042 OR before.id = 1000042'
sql 'one key' "$key" "$archive"
echo " $(read_of "$key")"
for column in visits.took visits.page orders.total items.pieces items.price; do
    table=${column%.*} field=${column#*.}
    of=sum
    [[ $field != page ]] || of=max
    statement="SELECT $of(after.$field) FROM \"shop\".\"$table\""
    sql "$of(after.$field), $table" "$statement" "$archive"
    awk -v bytes="$bytes" -v s="$seconds" 'BEGIN { printf " %8.0f MB/s of all logs ", bytes / 1e6 / s }'
    read_of "$statement"; echo
done

if [[ ! -d $1/lake ]]; then
    runs=1 measured 'export of the archive' "$bin/binlogz-sql" export --quiet --to "$1/lake" "$archive"
    awk -v bytes="$bytes" -v s="$seconds" 'BEGIN { printf " %8.0f MB/s\n", bytes / 1e6 / s }'
fi
"$(scripts/get-tool.sh lake)/bin/python" - "$bin/binlogz-sql" "$archive" "$1/lake" "$runs" <<'END'
import os, re, shutil, subprocess, sys, tempfile, time
import duckdb

program, archive, lake, runs = sys.argv[1:]
duckdb_program = os.path.join(os.path.dirname(sys.executable), "duckdb")
duckdb.sql("SET TimeZone = 'UTC'")

def fastest(run):
    best = 1e9
    for _ in range(int(runs)):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best

DECODING = re.compile(r"pco|ppmd|PPM|ZSTD|HUF|FSE|crc32|codec::(numbers|strings|text)")

def decoding(command):
    """Milliseconds of the processor, and the percent of it that perf finds in decoding."""
    told = subprocess.run(["perf", "stat", "-x,", "-e", "task-clock", *command], check=True, capture_output=True, text=True).stderr
    clock = next(float(line.split(",")[0]) for line in told.splitlines() if "task-clock" in line)
    with tempfile.NamedTemporaryFile() as data:
        subprocess.run(["perf", "record", "-q", "-o", data.name, "-F", "4000", *command], check=True, capture_output=True)
        report = ["perf", "report", "-i", data.name, "--no-children", "--stdio"]
        told = subprocess.run(report, check=True, capture_output=True, text=True).stdout
    shares = re.findall(r"^\s+([\d.]+)%.*\[\.\] +(.*)$", told, re.M)
    return clock, sum(float(share) for share, name in shares if DECODING.search(name))

print(f"{'':60} {'sql':>8} {'DuckDB':>8} {'x':>6} {'query':>8} {'x':>6} {'cpu, ms':>8} {'decoding':>8}")
for table, columns in [
    ("visits", "sum(after.took)"), ("visits", "max(after.page)"), ("visits", "operation, avg(after.took)"),
    ("orders", "sum(after.total)"), ("orders", "CAST(date_part('hour', committed_at) AS BIGINT), sum(after.total)"),
    ("items", "sum(after.pieces)"), ("items", "count(*) FILTER (WHERE after.pieces > 3)"),
]:
    query = f"SELECT {columns} FROM {{}}" + (" GROUP BY 1" if ", " in columns and "FILTER" not in columns else "")
    ours = query.format(f"shop.{table}")
    theirs = query.format(f"read_parquet('{lake}/shop/{table}/**/*.parquet', union_by_name = true)")
    command = [program, "--quiet", "--format", "csv", ours, archive]
    sql = fastest(lambda: subprocess.run(command, check=True, capture_output=True))
    begun = [duckdb_program, "-csv", "-c", f"SET TimeZone = 'UTC'; {theirs}"]
    whole = fastest(lambda: subprocess.run(begun, check=True, capture_output=True))
    query = fastest(lambda: duckdb.sql(theirs).fetchall())
    clock, share = decoding(command) if shutil.which("perf") else (0, 0)
    print(f"{table + ': ' + columns:60} {sql:8.3f} {whole:8.3f} {whole / sql:6.2f} {query:8.3f} {query / sql:6.2f} "
          f"{clock:8.0f} {share:7.1f}%")
END
