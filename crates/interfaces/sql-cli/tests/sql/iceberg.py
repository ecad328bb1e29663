"""Adds the files of data sets to tables of Iceberg, by day, and compares what pyiceberg reads of them.

usage: iceberg.py FOLDER [DATA_SET EXPECTED.parquet]...      FOLDER is for the catalog
"""

import datetime
import pathlib
import sys

import pyarrow.parquet
from pyiceberg.catalog import load_catalog
from pyiceberg.transforms import DayTransform

folder, *pairs = sys.argv[1:]
catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/iceberg")
catalog.create_namespace("lake")


def rows(table):
    return sorted(table.to_pylist(), key=lambda row: (row["log"], row["position"], row["offset"], row["row"], repr(row)))


for number, (data_set, expected) in enumerate(zip(pairs[::2], pairs[1::2])):
    # The newest file has all columns.
    files = sorted(map(str, pathlib.Path(data_set).glob("**/*.parquet")), key=lambda path: path.rpartition("/")[2])
    table = catalog.create_table(("lake", f"t{number}"), schema=pyarrow.parquet.read_schema(files[-1]))
    with table.update_spec() as update:
        update.add_field("committed_at", DayTransform(), "day")
    table.add_files(files)
    for task in table.scan().plan_files():
        day = datetime.date(1970, 1, 1) + datetime.timedelta(days=task.file.partition[0])
        if f"/day={day}/" not in task.file.file_path:
            sys.exit(f"{task.file.file_path}: is in the partition of {day}")
    found, wanted = rows(table.scan().to_arrow()), rows(pyarrow.parquet.read_table(expected))
    if not wanted or found != wanted:
        sys.exit(f"{data_set}: found {len(found)} rows, expected {len(wanted)}: {found[:1]} {wanted[:1]}")
