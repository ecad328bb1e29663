"""Compares an export with what `binlogz sql` says of the logs: counts, sums and values, as DuckDB, pyarrow and pandas read it.

usage: parquet.py BINLOGZ_SQL EXPORT SCHEMA INPUT...
"""

import csv
import io
import pathlib
import subprocess
import sys

import duckdb
import pandas
import pyarrow.dataset

program, export, schema, *inputs = sys.argv[1:]
base = ["--schema", schema] if schema else []
lake = duckdb.connect()
lake.execute("SET TimeZone = 'UTC'")
lake.execute(pathlib.Path(export, "views.sql").read_text())


def ours(statement):
    """The rows that binlogz sql gives, as texts."""
    run = [program, "--format", "csv", *base, statement, *inputs]
    text = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    return list(csv.reader(io.StringIO(text)))[1:]


def shown(value):
    """A value as binlogz sql prints it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return str(value)


def theirs(statement):
    return [[shown(value) for value in row] for row in lake.execute(statement).fetchall()]


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def same(what, one, other):
    one, other = ([[number(cell) for cell in row] for row in rows] for rows in (one, other))
    if one != other:
        sys.exit(f"parquet.py: {what}: binlogz sql has {one[:5]}, the export {other[:5]}")


tables = lake.execute(
    "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema <> 'main' ORDER BY 1, 2"
).fetchall()
everything = " UNION ALL ".join(
    f"""SELECT '{schema}' AS schema, '{table}' AS "table", * EXCLUDE (before, after) FROM "{schema}"."{table}" """
    for schema, table in tables
)
lake.execute(f"CREATE VIEW changes AS {everything}")

STATEMENTS = [
    'SELECT schema, "table", operation, count(*) FROM changes GROUP BY 1, 2, 3 ORDER BY 1, 2, 3',
    "SELECT count(*), count(DISTINCT gtid) FROM changes",
    "SELECT log, count(*) FROM changes GROUP BY log ORDER BY log",
    "SELECT count(*), sum(inserted), sum(updated), sum(deleted), sum(uncompressed_bytes) FROM transactions",
    "SELECT log, count(*), sum(inserted + updated + deleted) FROM transactions GROUP BY log ORDER BY log",
    "SELECT gtid, inserted + updated + deleted AS n FROM transactions ORDER BY n DESC, gtid LIMIT 5",
    "SELECT not_compressed, count(*) FROM transactions GROUP BY 1 ORDER BY 1 NULLS LAST",
    "SELECT log, statement FROM transactions WHERE statement LIKE 'CREATE TABLE%' ORDER BY log, position LIMIT 10",
    "SELECT t.thread_id IS NOT NULL, count(*) FROM changes c JOIN transactions t ON t.gtid = c.gtid GROUP BY 1",
    "SELECT count(*) FROM (SELECT gtid, count(*) AS n FROM changes GROUP BY gtid) c JOIN transactions t USING (gtid) "
    "WHERE c.n <> t.inserted + t.updated + t.deleted",
    "SELECT sum(server_id), sum(position), sum(\"offset\"), sum(\"row\"), sum(inside) FROM changes",
    "SELECT floor(extract(epoch FROM max(committed_at))), floor(extract(epoch FROM min(logged_at))) "
    "FROM changes",
]
SAMPLES = [
    "SELECT operation, count(*), sum(after.salary), min(after.salary), max(before.salary) FROM employees.salaries "
    "GROUP BY operation ORDER BY operation",
    "SELECT DISTINCT after.salary - before.salary FROM employees.salaries WHERE operation = 'update' ORDER BY 1 LIMIT 20",
    "SELECT after.title, count(*) FROM employees.titles GROUP BY 1 ORDER BY 1 NULLS LAST",
    "SELECT id, row_number() OVER (ORDER BY n DESC, id) FROM (SELECT after.emp_no AS id, count(*) AS n "
    "FROM employees.salaries GROUP BY 1) t ORDER BY 2 LIMIT 10",
    "SELECT after.id, after.ti, after.tu, after.si, after.su, after.mi, after.mu, after.ii, after.iu, after.bi, after.bu, "
    "after.d1, after.d3, after.b1, after.b64 FROM mix.numbers ORDER BY 1",
    "SELECT after.id, after.y, after.d, after.t0, after.t6 FROM mix.times ORDER BY 1",
    "SELECT floor(extract(epoch FROM after.ts6)), floor(extract(epoch FROM after.dt0)) FROM mix.times "
    "ORDER BY after.id",
    "SELECT after.id, after.c, after.v, after.bn, after.tx, after.l1, after.sj, after.u16, after.e, after.s FROM mix.strings "
    "WHERE after.id IS NOT NULL ORDER BY 1, 2",
    "SELECT after.id, after.j, after.p FROM mix.others WHERE after.id IS NOT NULL ORDER BY 1, \"row\"",
]
statements = STATEMENTS + (SAMPLES if ("mix", "numbers") in tables else [])
for statement in statements:
    same(statement, ours(statement), theirs(statement))
for schema_name, table in tables:
    folder = next(
        path
        for path in pathlib.Path(export).glob("[!_.]*/*")
        if [part.replace("%20", " ") for part in path.parts[-2:]] == [schema_name, table]
    )
    rows = lake.execute(f'SELECT count(*) FROM "{schema_name}"."{table}"').fetchone()[0]
    by_arrow = pyarrow.dataset.dataset(folder, partitioning="hive")
    frame = pandas.read_parquet(folder)
    if not by_arrow.count_rows() == len(frame) == rows:
        sys.exit(f"parquet.py: {table}: DuckDB {rows} rows, pyarrow {by_arrow.count_rows()}, pandas {len(frame)}")
    if str(frame["committed_at"].dtype) not in ("datetime64[us, UTC]", "datetime64[us, +00:00]", "datetime64[ns, UTC]"):
        sys.exit(f"parquet.py: {table}: committed_at is {frame['committed_at'].dtype} in pandas")
print(f"{len(statements)} statements equal, {len(tables)} tables read by DuckDB, pyarrow and pandas")
