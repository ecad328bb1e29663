"""Statements over tables of Iceberg as Spark reads them, out of the catalog in SQLite that pyiceberg made: all give what is expected.

usage: iceberg-spark.py JOBS.json PREFIX FOLDER      PREFIX/jars has Iceberg's runtime and SQLite's driver, FOLDER the catalog
"""

import json
import pathlib
import sys

from pyspark.sql import SparkSession

jobs = json.loads(pathlib.Path(sys.argv[1]).read_text())
prefix, folder = map(pathlib.Path, sys.argv[2:])
settings = {
    "spark.jars": ",".join(map(str, (prefix / "jars").glob("*.jar"))),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "jdbc",
    "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}/catalog.db",
    "spark.sql.catalog.lake.warehouse": f"file://{folder}",
    "spark.sql.catalog.lake.jdbc.schema-version": "V1",
}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
trouble = []
for job in jobs:
    # Spark's type of texts of any length.
    statement = job["statement"].format(changes=f"lake.{job['table']}").replace("AS VARCHAR", "AS STRING")
    found = spark.sql(statement).collect()[0][0]
    if found != job["expected"]:
        trouble.append(f"{job['name']}: found {found}, expected {job['expected']}")
spark.stop()
if trouble:
    sys.exit("\n".join(["iceberg-spark.py:", *trouble[:20]]))
