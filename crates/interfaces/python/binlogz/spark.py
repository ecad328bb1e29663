"""Logs, archives and servers as a data source of Spark, from PySpark 4.1 on.

    from binlogz.spark import BinlogDataSource

    spark.dataSource.register(BinlogDataSource)
    orders = spark.read.format("binlogz").option("table", "shop.orders").load("s3://backup/db1")

Spark's driver divides the logs, its executors read the parts: all of them need this package, pyarrow, the paths and, for object
storage, the AWS_… variables. See docs/reference/python-spark.md.
"""

from __future__ import annotations

import inspect
import json

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from . import _native, connection_options
from ._conditions import Conditions
from .parts import PARTITION_SIZE, Part, are_told, columns_of, grouped, names_of, stream

__all__ = ["BinlogDataSource"]

_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_TYPES = {
    "tinyint": ByteType(),
    "smallint": ShortType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
    "binary": BinaryType(),
    "string": StringType(),
    "array<float>": ArrayType(FloatType()),
    "array<string>": ArrayType(StringType()),
}
_COMMON = (
    ("log", "string"),
    ("position", "bigint"),
    ("gtid", "string"),
    ("committed_at", "timestamp"),
    ("applied_at", "timestamp"),
    ("logged_at", "timestamp"),
    ("server_id", "bigint"),
)
_OF_ROWS = _COMMON + (("offset", "bigint"), ("row", "bigint"), ("operation", "string"))
_CHANGES = _OF_ROWS + (("schema", "string"), ("table", "string"), ("before", "string"), ("after", "string"))
_TRANSACTIONS = _COMMON + (
    ("thread_id", "bigint"),
    ("events", "bigint"),
    ("bytes", "bigint"),
    ("inserted", "bigint"),
    ("updated", "bigint"),
    ("deleted", "bigint"),
    ("tables", "array<string>"),
    ("statement", "string"),
)


def _type_of(name: str) -> DataType:
    if name.startswith("decimal("):
        precision, scale = name[len("decimal(") : -1].split(",")
        return DecimalType(int(precision), int(scale))
    return _TYPES[name]


def _struct_of(columns) -> StructType:
    return StructType([StructField(name, _type_of(kind)) for name, kind in columns])


def _size_of(text: str) -> int:
    number, unit = (text[:-1], _UNITS.get(text[-1:].lower())) if text[-1:].isalpha() else (text, 1)
    if unit is None or not number.isdigit() or int(number) == 0:
        raise ValueError(f"partitionSize is {text!r}, expected bytes, or a number with k, m or g")
    return int(number) * unit


class _Asked:
    """What the options of a source ask for."""

    def __init__(self, options):
        text = options.get("paths") or options.get("path")
        if not text:
            raise ValueError("no path, expected load(PATH): logs, an archive, s3://… or mysql://…")
        self.paths = json.loads(text) if options.get("paths") else [text]
        self.server = self.paths[0] if self.paths[0].startswith("mysql://") else None
        if self.server and len(self.paths) > 1:
            raise ValueError("several paths, expected one server alone")
        self.server_options = {
            name[len("mysql.") :]: value for name, value in options.items() if name.lower().startswith("mysql.")
        }
        self.table_name = options.get("table") or "changes"
        #: Database and name of a table; None: a table of all logs.
        self.table = names_of(self.table_name)
        self.are_transactions = self.table_name == "transactions"
        if self.server and self.are_transactions:
            raise ValueError("transactions of a server, expected logs or an archive; a server's changes have their GTIDs")
        self.partition_size = _size_of(options.get("partitionSize") or str(PARTITION_SIZE))
        self.has_others = _choice(options, "otherColumns", ("error", "ignore")) == "ignore"
        self.offsets = _choice(options, "offsets", ("gtids", "positions"))
        if self.server and self.offsets == "positions":
            raise ValueError("offsets are positions, expected gtids of a server")
        self.starting = options.get("startingOffsets") or "earliest"

    def columns(self):
        """The columns of the table's images, with Spark's names of their types."""
        if self.server:
            events = self.open_server(None, None)
            try:
                return _native.arrow_rows(events, *self.table).spark_columns()
            finally:
                events.close()
        return columns_of(self.paths, self.table)[0]

    def schema(self) -> StructType:
        if self.are_transactions:
            return _struct_of(_TRANSACTIONS)
        if self.table is None:
            return _struct_of(_CHANGES)
        image = _struct_of(self.columns())
        return StructType([*_struct_of(_OF_ROWS), StructField("before", image), StructField("after", image)])

    def known(self):
        """The columns that do not depend on the logs, with Spark's names of their types."""
        return dict(_TRANSACTIONS if self.are_transactions else _OF_ROWS if self.table else _CHANGES)

    def ask(self, variable):
        """A GTID set that a server knows."""
        options = connection_options(self.server, self.server_options)
        answer = _native.ask(options, f"SELECT @@GLOBAL.{variable} AS gtids")
        return answer[0]["gtids"].decode().replace("\n", "")

    def open_server(self, start_after, until):
        return _native.open_server(
            connection_options(self.server, self.server_options),
            server_id=0,
            blocking=False,
            log="",
            position=4,
            gtid_set=start_after,
            uuid=None,
            heartbeat_ms=0,
            host="",
            port=0,
            silence_s=None,
            unread=[],
            until=until,
        )


def _choice(options, name, choices):
    chosen = options.get(name) or choices[0]
    if chosen not in choices:
        raise ValueError(f"{name} is {chosen!r}, expected {' or '.join(choices)}")
    return chosen


class _Batches:
    """Rows as Spark's schema has them."""

    def __init__(self, asked: _Asked, schema: StructType):
        known = asked.known()
        image = None
        for field in schema:
            if field.name in ("before", "after") and asked.table:
                if not isinstance(field.dataType, StructType):
                    raise ValueError(f"column {field.name} has type {field.dataType.simpleString()}, expected a struct")
                if image is not None and image != field.dataType:
                    raise ValueError("before and after have different columns, expected the same")
                image = field.dataType
            elif known.get(field.name) != field.dataType.simpleString():
                expected = f"{known[field.name]}" if field.name in known else " or ".join(known)
                raise ValueError(f"column {field.name} {field.dataType.simpleString()}: expected {expected}")
        self.image = [(field.name, field.dataType.simpleString()) for field in image or ()]
        if "timezone" in inspect.signature(to_arrow_schema).parameters:
            self.schema = to_arrow_schema(schema, timezone="UTC")
        else:
            self.schema = to_arrow_schema(schema)

    def of(self, rows):
        for batch in pyarrow.RecordBatchReader.from_stream(rows):
            columns = [batch.column(field.name).cast(field.type) for field in self.schema]
            yield pyarrow.RecordBatch.from_arrays(columns, schema=self.schema)


class LogPartition(InputPartition):
    """Parts of logs that one task reads, and what it leaves out."""

    def __init__(self, logs, conditions):
        self.logs, self.conditions = logs, conditions


class ServerPartition(InputPartition):
    """What a server sends after some transactions, and only these."""

    def __init__(self, start_after, until):
        self.start_after, self.until = start_after, until


class _Reader:
    """Reads partitions, in an executor."""

    def __init__(self, asked: _Asked, schema: StructType):
        self.asked, self.batches = asked, _Batches(asked, schema)

    def read(self, partition):
        asked, image = self.asked, self.batches.image
        if isinstance(partition, ServerPartition):
            events = asked.open_server(partition.start_after, partition.until)
            try:
                needs_gtids = partition.until is not None
                rows = _native.arrow_stream(events, asked.table, image, asked.has_others, needs_gtids)
                yield from self.batches.of(rows)
            finally:
                events.close()
        elif isinstance(partition, LogPartition):
            part = Part(partition.logs, asked.table_name, image, partition.conditions)
            yield from self.batches.of(stream(part, asked.has_others))


class _Pushed:
    """`pushFilters` of a reader. Spark refuses a reader that has it where spark.sql.python.filterPushdown.enabled is off, since
    conditions could be lost there. Here Spark checks each row again, so that the reader works in both cases."""

    def __init__(self, conditions):
        self.conditions = conditions
        # By this Spark tells a method that isn't overridden.
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters):
        for condition in filters:
            self.conditions.take(condition)
        return filters


class BinlogReader(DataSourceReader):
    """Reads the logs that there are now."""

    def __init__(self, asked: _Asked, schema: StructType):
        self.reader = _Reader(asked, schema)
        self.conditions = Conditions(asked.table)
        self.pushFilters = _Pushed(self.conditions)

    def partitions(self):
        asked = self.reader.asked
        if asked.server:
            return [ServerPartition(None, None)]
        parts = [part for part in _native.divide(asked.paths, asked.partition_size) if self.conditions.may_have(part)]
        is_ordered = False
        if not asked.are_transactions:
            _, nameless, statements = _native.met_tables(asked.paths, asked.table)
            is_ordered = are_told(nameless, statements)
        conditions = self.conditions.asked(is_ordered=is_ordered)
        if is_ordered:
            # Statements of all logs, whatever is asked of their rows.
            logs = dict.fromkeys(part[0] for part in _native.divide(asked.paths, asked.partition_size))
            return [LogPartition([(log, None, None) for log in logs], conditions)]
        return [LogPartition(group, conditions) for group in grouped(parts, asked.partition_size)]

    def read(self, partition):
        return self.reader.read(partition)


class BinlogStreamReader(DataSourceStreamReader):
    """Reads what comes, each row once: an offset is a set of GTIDs that were read, or a log and a position."""

    def __init__(self, asked: _Asked, schema: StructType):
        self.reader = _Reader(asked, schema)
        self.conditions = Conditions(asked.table)
        #: What the logs so far say of columns without names.
        self.met, self.nameless, self.statements = set(), set(), set()

    def initialOffset(self):
        asked = self.reader.asked
        if asked.starting == "latest":
            return self.latestOffset()
        if asked.offsets == "positions":
            if asked.starting != "earliest":
                raise ValueError(f"startingOffsets is {asked.starting!r}, expected earliest or latest")
            return {"log": "", "position": 0}
        if asked.starting != "earliest":
            return {"gtids": _native.gtid_set([asked.starting], [])}
        # What a server has no more can't be read.
        return {"gtids": asked.ask("gtid_purged") if asked.server else ""}

    def latestOffset(self):
        asked = self.reader.asked
        if asked.server:
            return {"gtids": asked.ask("gtid_executed")}
        logs = self._logs()
        if asked.offsets == "positions":
            return {"log": _name(logs[-1][0]), "position": logs[-1][1]} if logs else {"log": "", "position": 0}
        named = [] if asked.starting in ("earliest", "latest") else [asked.starting]
        return {"gtids": _native.gtid_set([gtids[0] for *_, gtids in logs] + named, [])}

    def _logs(self):
        logs = _native.divide(self.reader.asked.paths, (1 << 63) - 1)
        for path, _, _, gtids in logs:
            if gtids is None:
                raise ValueError(f"{path}: is no log of an archive, expected an archive or a server to follow")
        return logs

    def partitions(self, start, end):
        asked = self.reader.asked
        if asked.server:
            new = _native.gtid_set([end["gtids"]], [start["gtids"]])
            return [ServerPartition(start["gtids"], end["gtids"])] if new else []
        logs = self._logs()
        by_position = asked.offsets == "positions"
        chosen = self._by_position(logs, start, end) if by_position else self._by_gtids(logs, start, end)
        is_ordered = not asked.are_transactions and self._are_told(logs)
        sets = {} if by_position else {"start_after": start["gtids"], "until": end["gtids"]}
        conditions = self.conditions.asked(is_ordered=is_ordered, **sets)
        if not chosen:
            return []
        if is_ordered:
            last = max(logs.index(log) for log, _ in chosen)
            offsets = {log[0]: bounds for log, bounds in chosen}
            # Logs that were read before give their statements, and no rows.
            parts = [(log[0], None, offsets.get(log[0], (0, 0))) for log in logs[: last + 1]]
            return [LogPartition(parts, conditions)]
        parts = []
        for part in _native.divide([log[0] for log, _ in chosen], asked.partition_size):
            bounds = next(bounds for log, bounds in chosen if log[0] == part[0])
            parts.append([(part[0], part[2], bounds)])
        return [LogPartition(part, conditions) for part in parts]

    def _by_gtids(self, logs, start, end):
        """The logs that have transactions between two offsets."""
        if start["gtids"] and logs:
            lost = _native.gtid_set([logs[0][3][1]], [start["gtids"]])
            if lost:
                raise ValueError(f"the archive begins with {_name(logs[0][0])}: {lost} were not read, and are in it no more")
        chosen = []
        for log in logs:
            gtids = log[3][0]
            later = _native.gtid_set([gtids], [end["gtids"]])
            # One without GTIDs may have transactions, which is an error where they are read.
            if not gtids or _native.gtid_set([gtids], [later, start["gtids"]] if later else [start["gtids"]]):
                chosen.append((log, None))
        return chosen

    def _by_position(self, logs, start, end):
        names = [_name(log[0]) for log in logs]
        if start["log"] and start["log"] not in names:
            raise ValueError(f"{start['log']} was read to {start['position']}, and is in the archive no more")
        first = names.index(start["log"]) if start["log"] else 0
        if end["log"] not in names:
            return []
        chosen = []
        for log, name in list(zip(logs, names))[first : names.index(end["log"]) + 1]:
            begin = start["position"] if name == start["log"] else 0
            stop = end["position"] if name == end["log"] else (1 << 63) - 1
            if begin < stop:
                chosen.append((log, (begin, stop)))
        return chosen

    def _are_told(self, logs):
        new = [log[0] for log in logs if log[0] not in self.met]
        if new:
            _, nameless, statements = _native.met_tables(new, self.reader.asked.table)
            self.nameless |= nameless
            self.statements |= statements
            self.met.update(new)
        return are_told(self.nameless, self.statements)

    def read(self, partition):
        return self.reader.read(partition)

    def commit(self, end):
        """Nothing waits for it: an archive and a server keep what was read."""


def _name(path):
    return str(path).rstrip("/").rpartition("/")[2]


class BinlogDataSource(DataSource):
    """Format "binlogz": row changes of a table, changes of all tables, transactions."""

    @classmethod
    def name(cls):
        return "binlogz"

    def schema(self):
        return _Asked(self.options).schema()

    def reader(self, schema):
        return BinlogReader(_Asked(self.options), schema)

    def streamReader(self, schema):
        return BinlogStreamReader(_Asked(self.options), schema)
