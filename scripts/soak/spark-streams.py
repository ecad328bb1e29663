"""Streams of Spark from an archive that grows and from a server. The process that runs one is killed with -9 and begun again with the
same checkpoint: in the end each row is in the output once.

usage: spark-streams.py CONFIG.json                          tests both
       spark-streams.py PLACE TABLE OUT CHECKPOINT [once]    a stream, until it is killed; `once`: until all is read
"""

import collections
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time


def stream(place, table, out, checkpoint, once):
    from binlogz.spark import BinlogDataSource
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.authenticate.socketTimeout", "300s")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(BinlogDataSource)
    source = spark.readStream.format("binlogz").option("table", table).option("partitionSize", "256k").load(place)
    writer = source.select("log", "offset", "row", "gtid", "operation", "after.id").writeStream.format("parquet")
    writer = writer.option("path", out).option("checkpointLocation", checkpoint)
    query = writer.trigger(processingTime="1 second").start()
    print("begun", flush=True)
    if once:
        query.processAllAvailable()
        query.stop()
    else:
        query.awaitTermination()


def read(out):
    import pyarrow.parquet

    # Spark's own list of the files that count.
    listed = {}
    folder = pathlib.Path(out, "_spark_metadata")
    for entry in sorted(folder.iterdir(), key=lambda path: path.name) if folder.exists() else []:
        if entry.name.startswith("."):
            continue
        for line in entry.read_text().splitlines()[1:]:
            listed[json.loads(line)["path"]] = None
    rows = collections.Counter()
    for path in listed:
        for row in pyarrow.parquet.read_table(path.removeprefix("file://").removeprefix("file:")).to_pylist():
            rows[(row["log"], row["offset"], row["row"], row["gtid"], row["operation"], row["id"])] += 1
    return rows


def expected_rows(config, inputs):
    text = 'SELECT log, "offset", "row", gtid, operation, after.id AS id FROM "shop"."orders"'
    answer = subprocess.run(
        [config["program"], "--format", "json", text, *inputs], check=True, capture_output=True, text=True
    ).stdout
    rows = collections.Counter()
    for line in answer.splitlines():
        row = json.loads(line)
        rows[(row["log"], row["offset"], row["row"], row["gtid"], row["operation"], row["id"])] += 1
    return rows


def logs(config):
    return sorted(str(path) for path in pathlib.Path(config["data"]).glob("binlog.0*"))


#: Parts of the workload that ran beside the streams: each has keys of its own.
PARTS = itertools.count(50)


def more(config):
    """More transactions, in a log of their own."""
    text = f"CALL work({next(PARTS)}, 300); FLUSH BINARY LOGS"
    subprocess.run([*config["mysql"], "--database=shop", "--execute", text], check=True)


def archive(config):
    closed = logs(config)[:-1]
    subprocess.run([config["binlogz"], "archive", "create", "--quiet", "--to", config["archive"], *closed], check=True, stdout=subprocess.DEVNULL)


def drill(config, name, place):
    out, checkpoint = f"{config['work']}/{name}-out", f"{config['work']}/{name}-checkpoint"
    words = [sys.executable, __file__, place, "shop.orders", out, checkpoint]
    killed = batches = 0
    for kill in range(config["kills"]):
        running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        running.stdout.readline()
        offsets = pathlib.Path(checkpoint, "offsets")
        before = len(list(offsets.glob("[0-9]*"))) if offsets.exists() else 0
        for _ in range(600):
            if running.poll() is not None or (offsets.exists() and len(list(offsets.glob("[0-9]*"))) > before):
                break
            time.sleep(0.1)
        more(config)
        archive(config)
        # Somewhere in a batch: the offset is written, its rows perhaps.
        time.sleep(0.3 + 1.1 * kill)
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            killed += 1
        running.wait()
        more(config)
        archive(config)
    last = subprocess.run([*words, "once"], capture_output=True, text=True, timeout=600)
    if last.returncode != 0:
        sys.exit(f"{name}: {last.stderr[-3000:]}")
    batches = len(list(pathlib.Path(checkpoint, "commits").glob("[0-9]*")))
    inputs = [config["archive"]] if name == "archive" else logs(config)
    found, wanted = read(out), expected_rows(config, inputs)
    if found != wanted or not wanted:
        sys.exit(f"{name}: {sum(found.values())} rows, expected {sum(wanted.values())}; twice or too many {list((found - wanted))[:3]}, lacking {list((wanted - found))[:3]}")
    print(f"stream of {name}: killed {killed} times, {batches} batches, {sum(found.values())} rows, each once")
    return killed


def main():
    if len(sys.argv) == 2:
        config = json.loads(pathlib.Path(sys.argv[1]).read_text())
        killed = drill(config, "archive", config["archive"]) + drill(config, "server", config["server"])
        if killed == 0:
            sys.exit("spark-streams.py: no stream was killed")
    else:
        stream(*sys.argv[1:5], once="once" in sys.argv[5:])


main()
