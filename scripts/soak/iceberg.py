"""Tables of Iceberg beside `binlogz sql` over the same logs, as pyiceberg, DuckDB and Spark read them; runs and compactions that are
killed; files of an export that are added to tables.

usage: iceberg.py CONFIG.json
       iceberg.py run FOLDER LOG...      appends to the catalog in a folder
       iceberg.py compact FOLDER         joins its files
"""

import csv
import io
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import warnings

import pyarrow.parquet
from pyiceberg.catalog import load_catalog
from pyiceberg.transforms import DayTransform

from binlogz.iceberg import LakeWarning, append, compact
from binlogz.iceberg.files import by_partition

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


def compare(folder, there, by_spark=True):
    """Figures of each change log, by database and name, as DuckDB finds them in what it reads by its own extension and in what pyiceberg
    reads, and Spark in what it reads."""
    jobs, asked = [], {}
    for (database, name), table in there:
        statement = figures(table)
        asked[(database, name)] = statement.format(changes=f"{quoted(database)}.{quoted(name)}")
        rows = folder / f"rows{len(jobs)}.parquet"
        pyarrow.parquet.write_table(table.scan().to_arrow(), rows)
        identifier = ".".join(quoted(part) for part in table.name())
        jobs.append({"name": f"{database}.{name}", "table": identifier, "metadata": table.metadata_location, "rows": str(rows), "statement": statement})
    expected = of_all(asked)
    for job, key in zip(jobs, asked):
        job["expected"] = expected[key]
    ask_others(folder, jobs, by_spark)
    return len(jobs)


def ask_others(folder, jobs, by_spark):
    (folder / "jobs.json").write_text(json.dumps(jobs))
    subprocess.run([config["duckdb"], "scripts/soak/iceberg-duckdb.py", str(folder / "jobs.json"), config["extensions"]], check=True)
    if by_spark and config["spark"]:
        # Spark and its jars know nothing of this interpreter.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        spark = config["spark"]
        subprocess.run([f"{spark}/bin/python", "scripts/soak/iceberg-spark.py", str(folder / "jobs.json"), spark, str(folder)], check=True, env=environment)


def data_sets(folder):
    """The tables of an export in two runs, each with its files added to a table of Iceberg; the names of those with a type that Iceberg
    hasn't."""
    lake = folder / "export"
    for some in (logs[: len(logs) // 2], logs):
        run = [config["program"], "export", "--quiet", "--to", str(lake), "--schema", config["schema"], *some]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    catalog = load(folder)
    catalog.create_namespace("added")
    names = {}
    for manifest in sorted(lake.glob("_binlogz/*.json")):
        names.update(json.loads(manifest.read_text())["data_sets"])
    added, refused = [], []
    for number, (data_set, name) in enumerate(sorted(names.items())):
        files = sorted(map(str, (lake / data_set).glob("**/*.parquet")), key=lambda path: path.rpartition("/")[2])
        schema = pyarrow.parquet.read_schema(files[-1])
        if "decimal256" in str(schema):
            refused.append(".".join(name))
            continue
        table = catalog.create_table(("added", f"t{number}"), schema=schema)
        with table.update_spec() as update:
            update.add_field("committed_at", DayTransform(), "day")
        table.add_files(files)
        added.append((tuple(name), table))
    return added, refused


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
    """Runs that are killed after some time, log by log, each beside a compaction that is killed too; then one of both that ends."""
    chosen, died = random.Random(seed), 0
    begin = time.monotonic()
    subprocess.run([sys.executable, __file__, "run", str(work / "whole"), *logs], check=True)
    whole = time.monotonic() - begin
    for number in range(kills):
        some = logs[: 1 + number * len(logs) // kills]
        # One of both may be refused where the other one commits, or before there is a first run.
        calls = [["run", str(folder), *some], ["compact", str(folder)]]
        started = [subprocess.Popen([sys.executable, __file__, *call], stderr=subprocess.DEVNULL) for call in calls]
        for process in started:
            time.sleep(chosen.uniform(0.1, 0.6) * whole * max(1, len(some)) / len(logs))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                died += 1
            process.wait()
    subprocess.run([sys.executable, __file__, "run", str(folder), *logs], check=True)
    subprocess.run([sys.executable, __file__, "compact", str(folder)], check=True)
    gtids = load(folder).load_table(("binlogz", "transactions")).scan().to_arrow()["gtid"].to_pylist()
    if len(set(gtids)) != len(gtids):
        sys.exit("iceberg.py: a transaction is there twice")
    return died, whole


def files_of(folder):
    return sum(len(files) for kind in ("changes", "current") for _, table in tables(load(folder), kind) for files in by_partition(table))


if sys.argv[1] == "run":
    append(sys.argv[3:], load(sys.argv[2]))
    sys.exit()
if sys.argv[1] == "compact":
    compact(load(sys.argv[2]))
    sys.exit()

config = json.loads(pathlib.Path(sys.argv[1]).read_text())
logs, work = config["logs"], pathlib.Path(config["work"])
seed = config["seed"]
readers = "DuckDB's own extension, pyiceberg and Spark" if config["spark"] else "DuckDB's own extension and pyiceberg"
emptied = set()
for count in (len(logs) // 3, 2 * len(logs) // 3, len(logs)):
    if count:
        done = append(logs[:count], load(work / "plain"))
        emptied |= {note.partition(": emptied by ")[0] for note in done.notes if ": emptied by " in note}
for what in ("as three runs leave them", "after a compaction"):
    before = files_of(work / "plain")
    told = compare(work / "plain", tables(load(work / "plain"), "changes"))
    print(f"{what}: {before} files; {told} change logs have the figures that binlogz sql has, by {readers}", flush=True)
    print(f"{last_rows(work / 'plain', emptied)} tables have as many current rows as binlogz sql has last rows", flush=True)
    compact(load(work / "plain"))
died, whole = kill_runs(work / "killed", config["kills"], seed)
after = dict(tables(load(work / "killed"), "changes"))
for name, one in tables(load(work / "plain"), "changes"):
    other = after[name]
    if one.scan().to_arrow().num_rows != other.scan().to_arrow().num_rows:
        sys.exit(f"iceberg.py: {name}: {other.scan().to_arrow().num_rows} rows after kills, expected {one.scan().to_arrow().num_rows}")
print(f"SEED={seed}: {died} of {2 * config['kills']} runs and compactions were killed, a whole run takes {whole:.1f} s; ", end="")
compare(work / "killed", tables(load(work / "killed"), "changes"), by_spark=False)
print("then each row is there once", flush=True)
(work / "added").mkdir()
added, refused = data_sets(work / "added")
# Spark refuses unsigned numbers of 64 bits, which the files have.
compare(work / "added", added, by_spark=False)
print(f"add_files: {len(added)} data sets of an export have the figures that binlogz sql has; of a type that Iceberg hasn't: {', '.join(refused) or 'none'}")
