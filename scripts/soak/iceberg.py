"""Tables of Iceberg beside `binlogz sql` over the same logs, as pyiceberg and DuckDB read them; runs that are killed.

usage: iceberg.py CONFIG.json
       iceberg.py run FOLDER LOG...      appends to the catalog in a folder
"""

import csv
import io
import json
import pathlib
import random
import signal
import subprocess
import sys
import time
import warnings

import pyarrow.parquet
from pyiceberg.catalog import load_catalog

from binlogz.iceberg import LakeWarning, append

warnings.simplefilter("ignore", LakeWarning)


def load(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    return load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")


def tables(catalog, kind):
    for namespace in catalog.list_namespaces():
        for identifier in catalog.list_tables(namespace):
            table = catalog.load_table(identifier)
            if table.properties["binlogz.kind"] == kind:
                yield (table.properties.get("binlogz.database"), table.properties.get("binlogz.table")), table


def ours(statement):
    """The rows that binlogz sql gives, as texts."""
    run = [config["program"], "--format", "csv", "--schema", config["schema"], statement, *logs]
    ran = subprocess.run(run, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"iceberg.py: {statement}: {ran.stderr}")
    return list(csv.reader(io.StringIO(ran.stdout)))[1:]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def text(value):
    return "'" + value.replace("'", "''") + "'"


def figures(table):
    """A statement over a change log, as {changes}: a row with figures of all of its columns."""
    asked = ["count(*)", "count(DISTINCT gtid)", *(f"sum({quoted(name)})" for name in ("position", "offset", "row", "server_id"))]
    asked += [f"count(CASE operation WHEN '{word}' THEN 1 END)" for word in ("insert", "update", "delete")]
    asked += ["count(CASE WHEN committed_at >= '2026-01-01' THEN 1 END)", "count(before)", "count(after)"]
    for column in table.schema().find_field("after").field_type.fields:
        for value in (f"{image}[{text(column.name)}]" for image in ("before", "after")):
            asked.append(f"count({value})")
            if str(column.field_type) in ("int", "long"):
                asked.append(f"sum({value})")
            elif str(column.field_type) == "string":
                asked.append(f"sum(character_length({value}))")
            elif str(column.field_type) == "date":
                asked += [f"min({value})", f"max({value})"]
    texts = ", ".join(f"coalesce(CAST({one} AS VARCHAR), '-')" for one in asked)
    return f"SELECT concat_ws(' ', {texts}) FROM {{changes}}"


def of_all(statements):
    """What binlogz sql says to statements of one value, by what they are for."""
    parts = [f"SELECT {number} AS number, v.* FROM ({statement}) v" for number, statement in enumerate(statements.values())]
    rows = ours(" UNION ALL ".join(parts)) if parts else []
    return {list(statements)[int(number)]: value for number, value in rows}


def compare(folder):
    """Figures of each change log by DuckDB, over what it reads by its own extension and over what pyiceberg reads."""
    jobs, asked = [], {}
    for (database, name), table in tables(load(folder), "changes"):
        statement = figures(table)
        asked[(database, name)] = statement.format(changes=f"{quoted(database)}.{quoted(name)}")
        rows = folder / f"rows{len(jobs)}.parquet"
        pyarrow.parquet.write_table(table.scan().to_arrow(), rows)
        jobs.append({"name": f"{database}.{name}", "metadata": table.metadata_location, "rows": str(rows), "statement": statement})
    expected = of_all(asked)
    for job, key in zip(jobs, asked):
        job["expected"] = expected[key]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    subprocess.run([config["duckdb"], "scripts/soak/iceberg-duckdb.py", str(folder / "jobs.json"), config["extensions"]], check=True)
    return len(jobs)


def last_rows(folder, emptied):
    """There are as many current rows as keys have a last row in binlogz sql, of tables that no statement emptied."""
    asked, found = {}, {}
    for (database, name), table in tables(load(folder), "current"):
        if f"{database}.{name}" in emptied:
            continue
        target = f"{quoted(database)}.{quoted(name)}"
        keys = [text(field.name) for field in table.schema().fields if field.required]
        # A row whose key changes ends under the one and begins under the other.
        sides = []
        for image, rank, is_there in (("before", 0, "0"), ("after", 1, "1")):
            parts = ", ".join(f"{image}[{key}] AS k{number}" for number, key in enumerate(keys))
            sides.append(f'SELECT {parts}, log, "offset", "row", {rank} AS r, {is_there} AS is_there FROM {target} WHERE {image} IS NOT NULL')
        names = ", ".join(f"k{number}" for number in range(len(keys)))
        ranked = f'SELECT is_there, row_number() OVER (PARTITION BY {names} ORDER BY log DESC, "offset" DESC, "row" DESC, r DESC) AS n FROM ({" UNION ALL ".join(sides)})'
        asked[(database, name)] = f"SELECT CAST(count(*) AS VARCHAR) FROM ({ranked}) WHERE n = 1 AND is_there = 1"
        found[(database, name)] = str(table.scan().to_arrow().num_rows)
    expected = of_all(asked)
    if found != expected:
        sys.exit(f"iceberg.py: last rows: binlogz sql has {expected}, Iceberg {found}")
    return len(found)


def kill_runs(folder, kills, seed):
    """Runs that are killed after some time, log by log; then one that ends."""
    chosen, died = random.Random(seed), 0
    begin = time.monotonic()
    subprocess.run([sys.executable, __file__, "run", str(work / "whole"), *logs], check=True)
    whole = time.monotonic() - begin
    for number in range(kills):
        some = logs[: 1 + number * len(logs) // kills]
        run = subprocess.Popen([sys.executable, __file__, "run", str(folder), *some])
        time.sleep(chosen.uniform(0.1, 0.9) * whole * max(1, len(some)) / len(logs))
        if run.poll() is None:
            run.send_signal(signal.SIGKILL)
            died += 1
        run.wait()
    subprocess.run([sys.executable, __file__, "run", str(folder), *logs], check=True)
    gtids = load(folder).load_table(("binlogz", "transactions")).scan().to_arrow()["gtid"].to_pylist()
    if len(set(gtids)) != len(gtids):
        sys.exit("iceberg.py: a transaction is there twice")
    return died, whole


if sys.argv[1] == "run":
    append(sys.argv[3:], load(sys.argv[2]))
    sys.exit()

config = json.loads(pathlib.Path(sys.argv[1]).read_text())
logs, work = config["logs"], pathlib.Path(config["work"])
seed = config["seed"]
done = append(logs, load(work / "plain"))
emptied = {note.partition(": emptied by ")[0] for note in done.notes if ": emptied by " in note}
told = compare(work / "plain")
print(f"{told} change logs have the figures that binlogz sql has, by DuckDB's own extension and by pyiceberg")
print(f"{last_rows(work / 'plain', emptied)} tables have as many current rows as binlogz sql has last rows")
died, whole = kill_runs(work / "killed", config["kills"], seed)
after = dict(tables(load(work / "killed"), "changes"))
for name, one in tables(load(work / "plain"), "changes"):
    other = after[name]
    if one.scan().to_arrow().num_rows != other.scan().to_arrow().num_rows:
        sys.exit(f"iceberg.py: {name}: {other.scan().to_arrow().num_rows} rows after kills, expected {one.scan().to_arrow().num_rows}")
print(f"SEED={seed}: {died} of {config['kills']} runs were killed, a whole one takes {whole:.1f} s; ", end="")
compare(work / "killed")
print("then each row is there once")
