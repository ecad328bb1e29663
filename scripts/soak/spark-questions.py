"""Questions to Spark over the data source of binlogz, on two executors: the answers are those of `binlogz sql`, also when an executor is
killed in the middle of one.

usage: spark-questions.py CONFIG.json
"""

import collections
import datetime
import decimal
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

from binlogz.spark import BinlogDataSource
from pyspark.sql import SparkSession

config = json.loads(pathlib.Path(sys.argv[1]).read_text())
trouble = []

# In both dialects; names in braces are the tables, and {t} is the column "table".
QUESTIONS = """
SELECT schema, {t}, operation, count(*) AS n FROM {changes} GROUP BY schema, {t}, operation
SELECT count(*) AS n, sum(inserted) AS i, sum(updated) AS u, sum(deleted) AS d, sum(bytes) AS b, sum(events) AS e FROM {transactions}
SELECT log, count(*) AS n, min(position) AS first, max(position) AS last FROM {transactions} GROUP BY log
SELECT count(*) AS n, count(after.id) AS a, count(before.id) AS b FROM {orders}
SELECT operation, sum(after.total) AS total, min(after.total) AS low, max(after.total) AS high FROM {orders} GROUP BY operation
SELECT sum(after.total - before.total) AS delta FROM {orders} WHERE operation = 'update'
SELECT after.state AS state, count(*) AS n FROM {orders} WHERE operation <> 'delete' GROUP BY after.state
SELECT gtid, after.id AS id, after.total AS total FROM {orders} WHERE after.id = 4242
SELECT gtid, after.id AS id FROM {orders} WHERE after.id IN (1, 77, 9000, 11999) AND operation = 'insert'
SELECT count(*) AS n FROM {orders} WHERE after.id > 11900
SELECT count(*) AS n FROM {orders} WHERE after.id BETWEEN 300 AND 350 AND operation = 'insert'
SELECT after.id AS id, after.placed AS placed, after.changed AS changed, after.took AS took FROM {orders} WHERE after.id < 20
SELECT after.id AS id, after.large AS large, after.flags AS flags, after.share AS share, after.year_of AS y FROM {orders} WHERE after.id = 777
SELECT max(after.placed) AS last, min(after.placed) AS first FROM {orders}
SELECT after.name AS name, after.born AS born, after.kind AS kind, after.tags AS tags FROM {customers} WHERE operation = 'insert' AND after.id < 100300
SELECT after.note AS note, after.picture AS picture FROM {customers} WHERE after.id = 200020
SELECT kinds.kind AS kind, count(*) AS n FROM (SELECT after.kind AS kind FROM {customers} WHERE operation = 'insert') kinds GROUP BY kinds.kind
SELECT operation, count(*) AS n FROM {customers} WHERE before.rating IS NOT NULL GROUP BY operation
SELECT after.product AS product, count(*) AS n, sum(after.price) AS price FROM {items} GROUP BY after.product
SELECT operation, count(*) AS n, count(before.line) AS l FROM {items} GROUP BY operation
SELECT count(*) AS n FROM {items} WHERE after.price IS NULL AND operation = 'insert'
SELECT c.name AS name, count(*) AS n, sum(o.total) AS total FROM (SELECT after.customer AS customer, after.total AS total FROM {orders} WHERE operation = 'insert') o JOIN (SELECT after.id AS id, after.name AS name FROM {customers} WHERE operation = 'insert') c ON c.id = o.customer GROUP BY c.name
SELECT count(*) AS n FROM {plain}
SELECT after.note AS note, count(*) AS n FROM {plain} GROUP BY after.note
SELECT count(*) AS n FROM {changes} WHERE schema = 'shop' AND {t} = 'items' AND operation = 'delete'
SELECT operation, after, before FROM {changes} WHERE {t} = 'customers' AND position < 20000
SELECT t.log AS log, count(*) AS n FROM {transactions} t JOIN {orders} o ON o.gtid = t.gtid WHERE t.deleted > 0 GROUP BY t.log
SELECT thread_id, count(*) AS n FROM {transactions} GROUP BY thread_id
SELECT statement FROM {transactions} WHERE statement LIKE 'CREATE TABLE%'
SELECT log, min(committed_at) AS first, max(committed_at) AS last, min(logged_at) AS l FROM {transactions} WHERE inserted > 0 GROUP BY log
SELECT DISTINCT server_id FROM {changes}
SELECT gtid, committed_at, applied_at, logged_at FROM {transactions} WHERE log = '{log}' AND position < 9000
""".strip().splitlines()
TABLES = ["orders", "customers", "items", "plain"]


def started(master):
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.authenticate.socketTimeout", "300s")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.task.maxFailures", "8")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(BinlogDataSource)
    return spark


def canonical(value):
    if isinstance(value, str):
        if re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", value):
            return canonical(decimal.Decimal(value))
        moment = re.fullmatch(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00)?", value)
        if moment:
            return f"{moment[1]} {moment[2]}.{((moment[3] or '.')[1:] + '000000')[:6]}"
        return value
    if isinstance(value, (int, decimal.Decimal, float)) and not isinstance(value, bool):
        # Both write the shortest text that is the same number.
        number = decimal.Decimal(repr(value) if isinstance(value, float) else value)
        return f"{number.normalize(decimal.Context(prec=80)):f}"
    if isinstance(value, datetime.datetime):
        return canonical(value.replace(tzinfo=None).isoformat(" "))
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, list):
        return tuple(canonical(item) for item in value)
    return None if value is None else str(value)


def rows(found):
    """Rows in any order, without what is NULL."""
    return collections.Counter(
        tuple(sorted((name, canonical(value)) for name, value in row.items() if value is not None)) for row in found
    )


def by_sql(text):
    names = {name: f'"shop"."{name}"' for name in TABLES}
    names.update(changes="changes", transactions="transactions", t='"table"', log=log)
    command = [config["program"], "--format", "json", text.format(**names), config["archive"]]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return rows(json.loads(line, parse_float=decimal.Decimal) for line in answer.splitlines())


def by_spark(text):
    names = {name: name for name in TABLES}
    names.update(changes="changes", transactions="transactions", t="`table`", log=log)
    return rows(row.asDict() for row in spark.sql(text.format(**names)).collect())


def executors():
    """The processes of our executors."""
    application = spark.sparkContext.applicationId
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if application.encode() in words and any(b"CoarseGrainedExecutorBackend" in word for word in words):
                found.append(int(folder.name))
    return found


def tasks():
    """How many tasks each executor that lives has done."""
    listed = spark.sparkContext._jsc.sc().statusStore().executorList(True)
    done = {}
    for number in range(listed.length()):
        one = listed.apply(number)
        if one.id() != "driver":
            done[one.id()] = one.completedTasks()
    return done


log = sorted(path.name for path in pathlib.Path(config["data"]).glob("binlog.0*"))[1]
spark = started("local-cluster[2,1,1024]")
for name in [*TABLES, "changes", "transactions"]:
    source = spark.read.format("binlogz").option("table", f"shop.{name}" if name in TABLES else name)
    source.option("partitionSize", "1m").load(config["archive"]).createOrReplaceTempView(name)

for text in QUESTIONS:
    expected, found = by_sql(text), by_spark(text)
    if expected != found or not expected:
        trouble.append(f"{text}\n  only binlogz sql: {list((expected - found).items())[:2]}\n  only Spark: {list((found - expected).items())[:2]}")
print(f"{len(QUESTIONS) - len(trouble)} of {len(QUESTIONS)} questions equal; tasks of each executor: {tasks()}")
if len(tasks()) < 2 or min(tasks().values()) == 0:
    trouble.append(f"an executor did nothing: {tasks()}")

JOIN = """SELECT a.operation AS operation, count(*) AS pairs, sum(a.row + b.row) AS total FROM {changes} a JOIN {changes} b ON a.{t} = b.{t}
    AND a.operation = b.operation AND a.offset % 911 = b.offset % 911 GROUP BY a.operation"""
expected = by_sql(JOIN.replace("a.row + b.row", 'a."row" + b."row"').replace("a.offset", 'a."offset"').replace("b.offset", 'b."offset"'))
begun = time.time()
if by_spark(JOIN) != expected:
    trouble.append("the join differs")
whole = time.time() - begun
print(f"a join with nobody killed: {whole:.1f} s")
killed = 0
for kill in range(config["kills"]):
    answer = []
    asking = threading.Thread(target=lambda: answer.append(by_spark(JOIN)))
    asking.start()
    time.sleep(whole * (kill + 1) / (config["kills"] + 1))
    victims = executors()
    if victims and asking.is_alive():
        os.kill(victims[0], signal.SIGKILL)
        killed += 1
    asking.join()
    if answer != [expected]:
        trouble.append(f"kill {kill}: the join differs")
print(f"{killed} executors killed in the middle of {config['kills']} joins")
if killed == 0:
    trouble.append("no executor was killed")
spark.stop()

if trouble:
    sys.exit("\n".join(["spark-questions.py: differs", *trouble[:20]]))
