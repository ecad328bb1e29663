"""Statements over tables of Iceberg, as DuckDB reads them by its own extension and over rows that pyiceberg read: both give what is
expected.

usage: iceberg-duckdb.py JOBS.json FOLDER      FOLDER has the extensions avro and iceberg
"""

import json
import pathlib
import sys

import duckdb

lake = duckdb.connect(config={"allow_unsigned_extensions": "true"})
for name in ("avro", "iceberg"):
    lake.execute(f"LOAD '{next(pathlib.Path(sys.argv[2]).glob(f'**/{name}.duckdb_extension'))}'")
lake.execute("SET TimeZone = 'UTC'")
trouble = []
for job in json.loads(pathlib.Path(sys.argv[1]).read_text()):
    lake.execute(f"CREATE OR REPLACE VIEW by_extension AS SELECT * FROM iceberg_scan('{job['metadata']}')")
    lake.execute(f"CREATE OR REPLACE VIEW by_pyiceberg AS SELECT * FROM read_parquet('{job['rows']}')")
    for view in ("by_extension", "by_pyiceberg"):
        found = lake.execute(job["statement"].format(changes=view)).fetchone()[0]
        if found != job["expected"]:
            trouble.append(f"{job['name']} {view}: found {found}, expected {job['expected']}")
if trouble:
    sys.exit("\n".join(["iceberg-duckdb.py:", *trouble[:20]]))
