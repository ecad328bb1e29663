#!/usr/bin/env bash
# Ten questions to an archive, by `binlogz-sql`, and to the Parquet files that `binlogz-sql export` makes of it, by DuckDB's program: seconds of
# the clock and of the processors, of whole processes, and how many times as fast the archive answers. The logs are those of
# scripts/bench/large-logs.sh; they are archived and exported first, unless DIR/archive and DIR/lake are there. Both must give the same answer.
#
# usage: sql-duckdb.sh DIR [RUNS]      (3 runs, the fastest of each); BIN=DIR: programs that are built already
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${BIN:-$(realpath -m "${CARGO_TARGET_DIR:-target}")/release}
[[ -n ${BIN:-} ]] || cargo build --quiet --release --package binlogz --package binlogz-sql
logs=("$1"/binlog.0*)
[[ -d $1/archive ]] || "$bin/binlogz" archive create --quiet --to "$1/archive" "${logs[@]}"
[[ -d $1/lake ]] || "$bin/binlogz-sql" export --quiet --to "$1/lake" "$1/archive"
echo "$(cat "${logs[@]}" | wc -c) bytes of logs, archive of $(du -sb "$1/archive" | cut -f1), Parquet of $(du -sb "$1/lake" | cut -f1);" \
    "load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) cores"
"$(scripts/get-tool.sh lake)/bin/python" - "$bin/binlogz-sql" "$1" "${2:-3}" <<'END'
import csv, io, math, os, subprocess, sys, time

program, folder, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
duckdb = os.path.join(os.path.dirname(sys.executable), "duckdb")
TABLES = ["orders", "items", "visits", "numbers"]
NAMES = {name: (f"shop.{name}", f"read_parquet('{folder}/lake/shop/{name}/**/*.parquet', union_by_name = true)") for name in TABLES}
NAMES["transactions"] = ("transactions", f"read_parquet('{folder}/lake/_transactions/**/*.parquet', union_by_name = true)")

# A question is one statement for both, with {table}, or one for each.
counts = " UNION ALL ".join(f"SELECT count(*) AS rows, operation, '{name}' AS of FROM {{{name}}} GROUP BY 2" for name in TABLES)
QUESTIONS = [
    ("counts by table", ('SELECT count(*), operation, "table" FROM changes GROUP BY 2, 3 ORDER BY 3, 2', counts + " ORDER BY 3, 2")),
    ("one key", "SELECT operation, after.total FROM {orders} WHERE after.id = 100042 OR before.id = 100042 ORDER BY 1"),
    ("a range of 3,000 keys", "SELECT count(*), sum(after.total) FROM {orders} WHERE before.id BETWEEN 50000 AND 53000"),
    ("top transactions", "SELECT gtid, bytes FROM {transactions} ORDER BY bytes DESC, gtid LIMIT 20"),
    ("transactions per minute", "SELECT date_trunc('minute', committed_at) AS m, count(*), sum(inserted + updated + deleted) FROM {transactions} GROUP BY 1 ORDER BY 1"),
    ("changes per second", "SELECT date_trunc('second', committed_at) AS s, count(*) FROM {orders} GROUP BY 1 ORDER BY 1"),
    ("items of each thread", "SELECT t.thread_id, count(*), sum(i.after.pieces) FROM {items} i JOIN {transactions} t ON i.gtid = t.gtid GROUP BY 1 ORDER BY 1"),
    ("decimal difference", "SELECT count(*), sum(after.total - before.total) FROM {orders} WHERE operation = 'update'"),
    ("last change of each key", "SELECT count(*), sum(p) FROM (SELECT after.id AS id, max(position) AS p FROM {orders} WHERE after.id IS NOT NULL GROUP BY 1) k"),
    ("text", "SELECT max(after.page), count(after.agent) FROM {visits}"),
]


def ran(command):
    """Clock and processor seconds of the fastest run, and what it printed."""
    clock = processor = 1e9
    for _ in range(runs):
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        out = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        clock = min(clock, time.perf_counter() - begin)
        processor = min(processor, used.ru_utime + used.ru_stime)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"sql-duckdb.sh: {command}: exit code {process.returncode}")
    return clock, processor, out.decode()


def alike(text):
    """The values: moments without their zone, numbers as numbers."""
    def value(field):
        try:
            return round(float(field), 3)
        except ValueError:
            return field.replace("T", " ").removesuffix("Z").removesuffix("+00").removesuffix(".000000")
    return [[value(field) for field in row] for row in csv.reader(io.StringIO(text))][1:]


print(f"{'':28} {'sql':>8} {'DuckDB':>8} {'x':>6} {'cpu':>8} {'DuckDB':>8} {'x':>6}")
clocks, processors = [], []
for name, statement in QUESTIONS:
    pair = statement if isinstance(statement, tuple) else (statement, statement)
    ours, theirs = (text.format(**{table: names[side] for table, names in NAMES.items()}) for side, text in enumerate(pair))
    clock, processor, found = ran([program, "--quiet", "--format", "csv", ours, f"{folder}/archive"])
    clock_duckdb, processor_duckdb, expected = ran([duckdb, "-csv", "-nullvalue", "", "-c", f"SET TimeZone = 'UTC'; {theirs}"])
    if alike(found) != alike(expected):
        sys.exit(f"sql-duckdb.sh: {name}: {found[:500]} is not {expected[:500]}")
    clocks.append(clock_duckdb / clock)
    processors.append(processor_duckdb / processor)
    print(f"{name:28} {clock:8.3f} {clock_duckdb:8.3f} {clocks[-1]:6.2f} {processor:8.3f} {processor_duckdb:8.3f} {processors[-1]:6.2f}", flush=True)
mean = lambda values: math.exp(sum(map(math.log, values)) / len(values))
print(f"{'geometric mean':28} {'':17} {mean(clocks):6.2f} {'':17} {mean(processors):6.2f}")
END
