"""Parts of logs that several processes read: together they have what the whole logs have. Run by python.rs with pyarrow."""

import collections
import os
import pickle
import unittest

import pyarrow

import binlogz
from binlogz import _native
from binlogz.parts import conditions, partitions, read

LOGS = os.environ["LOGS"].split(os.pathsep)
ARCHIVE = os.environ["ARCHIVE"]
ARCHIVES = [ARCHIVE] + [os.environ[name] for name in ("S3_ARCHIVE",) if name in os.environ]
#: With names of columns.
NAMED = os.environ["NAMED"]
SIZE = 32 << 10


def together(parts):
    """The rows of all parts, each read as another process would."""
    return [row for part in parts for row in read(pickle.loads(pickle.dumps(part))).to_pylist()]


def rows(logs, table, columns=(), **asked):
    """Rows of whole logs, and of nothing else that conditions leave out."""
    names = tuple(table.split(".")) if "." in table else None
    given = {"is_ordered": False, **asked}
    stream = _native.arrow_parts([(log, None, None) for log in logs], table == "transactions", names, list(columns), False, conditions(**given))
    return pyarrow.RecordBatchReader.from_stream(stream).read_all().to_pylist()


def whole(place, table):
    """The rows of whole logs, with DECIMALs of more than 38 digits as text: Spark has none."""
    found = binlogz.open(place).to_arrow(table)
    large = [field.name for field in found.schema.field("after").type if pyarrow.types.is_decimal256(field.type)]
    rows = found.to_pylist()
    for image in (row[side] for row in rows for side in ("before", "after") if row[side]):
        image.update((name, f"{image[name]:f}") for name in large if image[name] is not None)
    return rows


class Parts(unittest.TestCase):
    maxDiff = 2000

    def test_parts_have_the_rows_of_the_whole_in_order(self):
        for place in (LOGS, [ARCHIVE]):
            for table in ("employees.salaries", "mix.entry", "mix.strings", "mix.times", "mix.others", "mix.numbers"):
                found = together(partitions(place, table, partition_size=SIZE))
                self.assertTrue(found == whole(place, table), table)

    def test_logs_with_names_are_divided_at_blocks(self):
        parts = partitions(NAMED, "wide.rows", partition_size=SIZE)
        self.assertGreater(len(parts), 3)
        self.assertGreater(sum(read(part).num_rows > 0 for part in parts), 3)
        self.assertTrue(together(parts) == whole(NAMED, "wide.rows"))

    def test_names_that_statements_tell_are_those_of_the_place(self):
        parts = partitions(ARCHIVE, "mix.entry", partition_size=SIZE)
        self.assertEqual(len(parts), 1)
        self.assertEqual(set(together(parts)[0]["after"]), {"id", "account_id", "amount", "at"})
        # One part of many would not know them: so it is one.
        self.assertGreater(len(partitions(ARCHIVE, "transactions", partition_size=SIZE)), 9)

    def test_changes_and_transactions(self):
        counts = collections.Counter()
        for change in binlogz.open(LOGS).changes():
            counts[change.schema, change.table_name, change.operation] += 1
        transactions = [transaction.gtid for transaction in binlogz.open(LOGS)]
        for place in (LOGS, *ARCHIVES):
            changes = together(partitions(place, partition_size=SIZE))
            self.assertEqual(collections.Counter((row["schema"], row["table"], row["operation"]) for row in changes), counts)
            found = together(partitions(place, "transactions", partition_size=SIZE))
            self.assertEqual([row["gtid"] for row in found], transactions)
            self.assertEqual(
                [sum(row[name] for row in found) for name in ("inserted", "updated", "deleted")],
                [sum(count for (*_, word), count in counts.items() if word == operation) for operation in ("insert", "update", "delete")],
            )

    def test_a_stream_has_each_transaction_once_whatever_its_offsets(self):
        logs = [str(part[0]) for part in _native.divide([ARCHIVE], 1 << 40)]
        gtids = [row["gtid"] for row in rows(logs, "transactions")]
        ends = [_native.gtid_set(gtids[:number], []) for number in (0, 3, 3, 100, 400, len(gtids))]
        for table in ("transactions", "changes"):
            found = []
            for start, end in zip(ends, ends[1:]):
                found += rows(logs, table, start_after=start, until=end)
            self.assertTrue(found == rows(logs, table), table)

    def test_a_condition_leaves_out_blocks_and_no_row_that_meets_it(self):
        log = [NAMED]
        columns, _, _ = _native.met_tables(log, ("wide", "rows"))
        parts = _native.divide(log, 1 << 40)
        logs = [str(part[0]) for part in parts]
        everything = rows(logs, "wide.rows", columns)
        asked = {"schemas": ["wide"], "tables": ["rows"]}
        middle = everything[len(everything) // 2]
        key = int(middle["after"]["id"])
        found = rows(logs, "wide.rows", columns, keys=[("id", [(key, key, None)])], **asked)
        self.assertIn(middle, found)
        self.assertLess(len(found), len(everything) / 2)
        found = rows(logs, "wide.rows", columns, gtids=middle["gtid"], **asked)
        self.assertIn(middle, found)
        self.assertLess(len(found), len(everything) / 2)
        self.assertEqual(rows(logs, "wide.rows", columns, operations=["delete"], **asked), [])
        self.assertEqual(rows(logs, "wide.rows", columns, committed_at=(None, 1_000_000), **asked), [])
        self.assertEqual(len(rows(logs, "wide.rows", columns, committed_at=(1_000_000, None), **asked)), len(everything))

    def test_what_is_not_known_is_an_error(self):
        for ask, told in [
            (lambda: partitions(LOGS, "orders"), "table is 'orders', expected schema.table, changes or transactions"),
            (lambda: partitions(LOGS, "no.such"), "the logs have no row change of no.such"),
            (lambda: rows(LOGS, "employees.titles", [("@1", "int")]), "column @2 of employees.titles is another one"),
            (lambda: rows(LOGS, "employees.titles", [("@1", "boolean")]), "column @1 has type boolean, expected"),
        ]:
            with self.assertRaises(Exception) as raised:
                ask()
            self.assertIn(told, str(raised.exception))
        parts = partitions(NAMED, "transactions", partition_size=SIZE)
        path, blocks, _ = parts[-1].logs[0]
        parts[-1].logs[0] = (path, (blocks[0], blocks[1], blocks[2] ^ 1), None)
        with self.assertRaisesRegex(Exception, "was packed anew since it was divided: ask again"):
            read(parts[-1])


unittest.main()
