"""An export as Spark reads it: rows, types and sums are what pyarrow found, and a table that changed has the columns of all of its
files (mergeSchema).

usage: spark.py EXPORT EXPECTED.json
"""

import json
import pathlib
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

export, expected = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text())
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.memory", "1g")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
trouble = []


def check(what, found, wanted):
    if found != wanted:
        trouble.append(f"{what}: found {found}, expected {wanted}")


def quoted(path):
    return ".".join(f"`{name.replace('`', '``')}`" for name in path.split(".", 1))


left_out = 0
for folder, wanted in expected.items():
    name = "/".join(pathlib.Path(folder).parts[-2:])
    # Spark skips what begins with "_": the files themselves are named.
    files = [str(path) for path in pathlib.Path(folder).glob("**/*.parquet")]
    try:
        frame = spark.read.option("mergeSchema", "true").parquet(*files)
        types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    except Exception as error:  # the wide decimals of a table
        if "DECIMAL" not in str(error).upper() and "precision" not in str(error):
            raise
        left_out += 1
        print(f"{name}: Spark has no decimals above 38 digits: {str(error).splitlines()[0][:120]}")
        continue
    check(f"{name}: rows", frame.count(), wanted["rows"])
    for column, kind in wanted["columns"].items():
        check(f"{name}.{column}: type", types.get(column), kind)
    sums = list(wanted["sums"])
    if sums:
        asked = [f.sum(f.col(quoted(path)).cast("decimal(38,0)")) for path in sums] + [f.count(f.col(quoted(path))) for path in sums]
        row = frame.agg(*asked).first()
        for number, path in enumerate(sums):
            total, count = wanted["sums"][path]
            check(f"{name}: sum of {path}", str(row[number] if row[number] is not None else 0), total)
            check(f"{name}: values of {path}", row[len(sums) + number], count)
spark.stop()
if trouble:
    sys.exit("\n".join(["spark.py: differs", *trouble[:20]]))
print(f"Spark {spark.version} reads {len(expected) - left_out} of {len(expected)} data sets with the types, rows and sums that pyarrow reads")
