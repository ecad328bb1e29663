"""Row changes as Arrow's tables, beside the same as Python's values. Run by python.rs after checks.py, with pyarrow."""

import datetime
import decimal
import json
import os
import pathlib
import unittest

import pyarrow

import binlogz

NAMES = json.loads(pathlib.Path(os.environ["NAMES"]).read_text())
DATADIR = os.environ["DATADIR"]
URL = f"mysql://python:p%3A%2F%40s@127.0.0.1:{os.environ['PORT']}"
DOCUMENTS, TIMES = {"j"}, {"ti", "ti3"}


def path(name):
    return os.path.join(DATADIR, NAMES[name])


def image(values):
    """A row of Python's values as Arrow has it."""
    if values is None:
        return None
    made = {}
    for name, value in values.items():
        if name in DOCUMENTS and value is not None:
            value = json.dumps(value, default=lambda member: float(member) if isinstance(member, decimal.Decimal) else f"{member}.000000")
        if isinstance(value, str) and value.startswith(("0000-00-00", "2020-00-00")):
            # In no calendar.
            value = None
        made[name] = value
    return made


def read(values):
    """A row of Arrow's, without the columns that the event doesn't have."""
    if values is None:
        return None
    made = {}
    for name, value in values.items():
        if name in DOCUMENTS and value is not None:
            value = json.dumps(json.loads(value))
        if name in TIMES and value is not None:
            sign = -1 if value.startswith("-") else 1
            hours, minutes, seconds = value.lstrip("-").split(":")
            value = sign * datetime.timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))
        made[name] = value
    return made


class Arrow(unittest.TestCase):
    maxDiff = None

    def compared(self, table, name, log):
        """A table in a log, by both ways."""
        found = log.to_arrow(f"d.{table}")
        rows = [row for row in found.to_pylist() if row["log"] == NAMES[name]]
        changes = [change for change in binlogz.open(path(name)).changes() if change.table_name == table]
        self.assertEqual(len(rows), len(changes))
        for row, change in zip(rows, changes):
            transaction = change.transaction
            self.assertEqual(
                (row["gtid"], row["log"], row["position"], row["committed_at"], row["applied_at"], row["server_id"]),
                (transaction.gtid, transaction.log, transaction.position, transaction.committed_at, transaction.applied_at, transaction.server_id),
            )
            self.assertEqual((row["operation"], row["offset"]), (change.operation, change.offset))
            self.assertEqual(row["logged_at"].timestamp(), change.timestamp)
            for side in ("before", "after"):
                theirs, ours = image(getattr(change, side)), read(row[side])
                if theirs is None:
                    self.assertIsNone(ours)
                else:
                    # A column that an image lacks is NULL.
                    self.assertEqual(ours, {**dict.fromkeys(ours), **theirs})
        return found

    def test_every_type_of_column_in_both_forms_from_files_and_a_server(self):
        for name in ("plain", "compressed"):
            for log in (binlogz.open(path(name)), binlogz.open(URL, log=NAMES[name])):
                found = self.compared("types", name, log)
        kinds = {field.name: field.type for field in found.schema.field("after").type}
        expected = {
            "id": pyarrow.int32(), "utiny": pyarrow.uint8(), "ubig": pyarrow.uint64(), "f": pyarrow.float32(),
            "n": pyarrow.decimal128(30, 10), "b": pyarrow.uint64(), "y": pyarrow.uint16(), "da": pyarrow.date32(),
            "dt6": pyarrow.timestamp("us"), "ts": pyarrow.timestamp("us", "+00:00"), "ti": pyarrow.string(),
            "latin": pyarrow.string(), "bin": pyarrow.binary(), "e": pyarrow.string(), "j": pyarrow.string(), "g": pyarrow.binary(),
        }  # fmt: skip
        self.assertEqual({name: kinds[name] for name in expected}, expected)

    def test_many_rows_come_in_batches(self):
        stream = pyarrow.RecordBatchReader.from_stream(binlogz.open(path("compressed")).arrow("d.many"))
        batches = list(stream)
        self.assertGreater(len(batches), 1)
        self.assertEqual(sum(batch.num_rows for batch in batches), 16_000)
        ids = [number for batch in batches for number in batch.column("after").field("id").to_pylist()]
        # A comparison of so many that fails would be drawn for minutes.
        self.assertTrue(ids == list(range(16_000)))

    def test_archives(self):
        archived = os.environ["ARCHIVED"]
        tables = {}
        for change in binlogz.open(archived).changes():
            name = f"{change.schema}.{change.table_name}"
            tables[name] = tables.get(name, 0) + 1
        self.assertTrue(tables)
        for archive in filter(None, [os.environ["ARCHIVE"], os.environ.get("S3_ARCHIVE")]):
            for name, count in tables.items():
                found, expected = (binlogz.open(of).to_arrow(name) for of in (archive, archived))
                self.assertEqual(found.num_rows, count)
                self.assertTrue(found.equals(expected), name)

    def test_columns_that_change(self):
        found = binlogz.open(path("grown")).to_arrow("d.grown")
        rows = [row["after"] for row in found.to_pylist()]
        self.assertEqual(rows, [{"id": 1, "n": 7, "late": None}, {"id": 2, "n": 7_000_000_000, "late": "late"}])
        # A server is read once, so that its columns have to stay.
        stream = pyarrow.RecordBatchReader.from_stream(binlogz.open(URL, log=NAMES["grown"]).arrow("d.grown"))
        self.assertEqual(stream.read_next_batch().column("after").to_pylist(), [{"id": 1, "n": 7}])
        with self.assertRaisesRegex(ValueError, "column n of d.grown is another one from .*:[0-9]+ on"):
            stream.read_next_batch()

    def test_a_server_sends_rows_while_they_are_made(self):
        log = binlogz.open(URL, follow=True, log=NAMES["plain"])
        stream = pyarrow.RecordBatchReader.from_stream(log.arrow("d.many"))
        rows = 0
        while rows < 16_000:
            rows += stream.read_next_batch().num_rows
        self.assertEqual(rows, 16_000)

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "no row change of d.nothing"):
            binlogz.open(path("plain")).to_arrow("d.nothing")
        with self.assertRaisesRegex(ValueError, "expected schema.table"):
            binlogz.open(path("plain")).to_arrow("nothing")
        log = binlogz.open(path("plain"))
        taken = log.arrow("d.many")
        with self.assertRaisesRegex(ValueError, "read before"):
            log.arrow("d.many")
        pyarrow.RecordBatchReader.from_stream(taken)
        with self.assertRaisesRegex(ValueError, "taken before"):
            pyarrow.RecordBatchReader.from_stream(taken)
        # Rows before a damaged event, and then the error.
        with open(path("plain"), "rb") as file:
            damaged = bytearray(file.read())
        damaged[-3000] ^= 1
        bad = os.path.join(os.path.dirname(os.environ["NAMES"]), "damaged")
        pathlib.Path(bad).write_bytes(damaged)
        stream, rows = pyarrow.RecordBatchReader.from_stream(binlogz.open(bad).arrow("d.many")), 0
        with self.assertRaisesRegex(ValueError, "damaged at [0-9]+.*checksum"):
            while True:
                rows += stream.read_next_batch().num_rows
        self.assertTrue(8_000 < rows < 16_000, rows)

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            print("SKIPPED: to_pandas: no pandas here; scripts/soak/python.sh has it")
            return
        frame = binlogz.open(path("plain")).to_pandas("d.types")
        self.assertIsInstance(frame, pandas.DataFrame)
        first = frame.iloc[0]
        self.assertEqual((first["operation"], first["after.id"], first["after.e"]), ("insert", 1, "ü"))
        self.assertEqual(first["after.n"], decimal.Decimal("-12345.6789012345"))
        self.assertEqual(first["after.ts"], pandas.Timestamp("2020-01-02 03:04:05", tz="UTC"))
        self.assertTrue(pandas.isna(first["before.id"]))


if __name__ == "__main__":
    unittest.main()
