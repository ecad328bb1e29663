"""Tables of Iceberg, beside the server whose logs they are of. Run by python.rs, with pyarrow and pyiceberg; the server has
binlog_row_metadata=FULL."""

import glob
import os
import pathlib
import sys
import tempfile
import unittest
import warnings

import pyarrow
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException

import binlogz
from binlogz import _native
from binlogz.iceberg import LakeWarning, append, compact, current
from binlogz.iceberg.files import Commit, FileJoins, by_partition
from binlogz.iceberg.names import given
from binlogz.iceberg.statements import Statement, emptied, is_harmless

OPTIONS = [("user", "root"), ("socket", os.environ["SOCKET"])]
ROW = ("log", "position", "offset", "row")


def ask(*statements):
    for statement in statements:
        answer = _native.ask(OPTIONS, statement)
    return answer


def logs():
    return sorted(glob.glob(os.path.join(os.environ["DATADIR"], "binlog.0*")))


def here():
    """The last log, newly begun: what stands before isn't of a test."""
    ask("FLUSH BINARY LOGS")
    return len(logs()) - 1


def plain(value):
    """A value by its moment alone, whatever names its zone."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return value.timestamp() if getattr(value, "tzinfo", None) is not None else value


def sorted_rows(table):
    return sorted((repr(plain(row)) for row in table.to_pylist()))


class Lake(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore", LakeWarning)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.catalog = self.load()
        self.first = here()

    def load(self):
        return load_catalog("t", type="sql", uri=f"sqlite:///{self.folder}/catalog.db", warehouse=f"file://{self.folder}")

    def append(self, **options):
        return append(logs()[self.first :], self.catalog, **options)

    def rows(self, *identifier):
        return self.load().load_table(identifier).scan().to_arrow()

    def check_changes(self, schema, table, *identifier):
        """A change log has what the logs have."""
        stream = _native.arrow_rows(binlogz.open(logs()[self.first :])._stream, schema, table)
        theirs = pyarrow.RecordBatchReader.from_stream(stream).read_all()
        ours = self.rows(*identifier)
        self.assertEqual(sorted_rows(ours), sorted_rows(theirs.select(ours.schema.names)))

    def check_current(self, schema, table, *identifier):
        """Current rows are those of the server."""
        found = [{name: value for name, value in row.items()} for row in self.rows(*identifier).to_pylist()]
        names = self.rows(*identifier).schema.names
        columns = ", ".join(f"`{name}`" for name in names)
        expected = [
            [None if value is None else value.decode() for value in row.values()] for row in ask(f"SELECT {columns} FROM `{schema}`.`{table}`")
        ]
        told = [[None if row[name] is None else str(row[name]) for name in names] for row in found]
        self.assertEqual(sorted(told, key=repr), sorted(expected, key=repr))

    def test_each_run_appends_what_is_new_and_current_rows_are_the_servers(self):
        ask("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT, part INT, note VARCHAR(20), total DECIMAL(8,2), PRIMARY KEY (id, part))")
        ask("CREATE TABLE shop.nokey (a INT)")
        runs = [
            ["INSERT INTO shop.orders VALUES (1, 1, 'a', 1.5), (1, 2, NULL, 2), (2, 1, 'c', NULL)", "INSERT INTO shop.nokey VALUES (1), (1)"],
            ["UPDATE shop.orders SET part = 3 WHERE id = 1 AND part = 2", "DELETE FROM shop.orders WHERE id = 2", "ALTER TABLE shop.orders ADD COLUMN later INT", "INSERT INTO shop.orders VALUES (2, 1, 'again', 3, 7)"],
            ["INSERT INTO shop.orders VALUES (8, 8, '', 8, 8)", "DELETE FROM shop.orders WHERE id = 8"],
            ["TRUNCATE shop.orders"],
            ["TRUNCATE TABLE shop.orders", "INSERT INTO shop.orders VALUES (6, 6, 'f', 6, 6)", "INSERT INTO shop.nokey VALUES (NULL)"],
        ]
        for number, statements in enumerate(runs, 1):
            ask(*statements)
            done = self.append()
            self.assertEqual(done.run, number)
            self.check_changes("shop", "orders", "shop", "orders_changes")
            self.check_current("shop", "orders", "shop", "orders")
        self.assertEqual(self.append().run, None)
        self.check_changes("shop", "nokey", "shop", "nokey_changes")
        self.assertEqual(sorted(name for _, name in self.catalog.list_tables("shop")), ["nokey_changes", "orders", "orders_changes"])
        transactions = self.rows("binlogz", "transactions")
        self.assertEqual(len(set(transactions["gtid"].to_pylist())), transactions.num_rows)
        table = self.catalog.load_table(("shop", "orders_changes"))
        self.assertEqual([str(part.transform) for part in table.spec().fields], ["day"])
        told = table.current_snapshot().summary.additional_properties["binlogz.gtids"]
        self.assertEqual(_native.gtid_set(transactions["gtid"].to_pylist(), [told]), "")
        # Files that a run leaves are joined by the next.
        self.assertEqual(len(list(self.catalog.load_table(("shop", "orders")).scan().plan_files())), 1)
        self.assertTrue(any("TRUNCATE TABLE shop.orders" in note for note in done.notes), done.notes)
        ask("DROP DATABASE shop")
        self.append()
        self.assertEqual(self.rows("shop", "orders").num_rows, 0)

    def test_a_run_that_ends_anywhere_is_gone_on_with(self):
        ask("CREATE DATABASE cut", "CREATE TABLE cut.a (id INT PRIMARY KEY, v INT)", "CREATE TABLE cut.b (id INT PRIMARY KEY)")
        ask("INSERT INTO cut.a VALUES (1, 1), (2, 2)", "INSERT INTO cut.b VALUES (1)")
        commits = 0
        for is_after in (False, True):
            for number in (1, 2, 4, 5) if is_after else (2, 3, 5):
                ask(f"INSERT INTO cut.a VALUES ({10 + commits}, 1)", "UPDATE cut.a SET v = v + 1", f"INSERT INTO cut.b VALUES ({10 + commits})")
                commits += 1
                self.assertEqual(self.ended(number, is_after), 9)
        self.append()
        for table in ("a", "b"):
            self.check_changes("cut", table, "cut", f"{table}_changes")
            self.check_current("cut", table, "cut", table)
        transactions = self.rows("binlogz", "transactions")
        self.assertEqual(len(set(transactions["gtid"].to_pylist())), transactions.num_rows)
        ask("DROP DATABASE cut")

    def ended(self, number, is_after):
        """Runs in a process that ends at a commit, before or after it."""
        sys.stdout.flush()
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        left, finish = [number], Commit.finish

        def end(commit):
            left[0] -= 1
            if left[0] == 0 and not is_after:
                commit._write()
                os._exit(9)
            finish(commit)
            if left[0] == 0:
                os._exit(9)

        Commit.finish = end
        try:
            append(logs()[self.first :], self.load())
        finally:
            os._exit(1)

    def test_types_change_as_iceberg_lets_them(self):
        ask("CREATE DATABASE kinds", "CREATE TABLE kinds.t (id INT PRIMARY KEY, n INT, f FLOAT, d DECIMAL(6,2), c VARCHAR(9))")
        ask("INSERT INTO kinds.t VALUES (1, 1, 0.5, 1.25, '7')")
        self.append(as_text=["kinds.t.e"])
        ids = [field.field_id for field in self.catalog.load_table(("kinds", "t")).schema().fields]
        ask("ALTER TABLE kinds.t MODIFY n BIGINT, MODIFY f DOUBLE, MODIFY d DECIMAL(20,2), ADD COLUMN e INT")
        ask("INSERT INTO kinds.t VALUES (2, 5000000000, 0.1, 123456789012345.25, 'x', 4)")
        self.append(as_text=["kinds.t.e"])
        schema = self.catalog.load_table(("kinds", "t")).schema()
        self.assertEqual([str(field.field_type) for field in schema.fields], ["int", "long", "double", "decimal(20, 2)", "string", "string"])
        self.assertEqual([field.field_id for field in schema.fields][:5], ids)
        self.check_current("kinds", "t", "kinds", "t")
        before = self.rows("kinds", "t_changes").num_rows
        ask("UPDATE kinds.t SET c = '8'", "ALTER TABLE kinds.t MODIFY c INT", "INSERT INTO kinds.t VALUES (3, 1, 1, 1, 9, 1)")
        with self.assertRaisesRegex(ValueError, "kinds.t: column c is string and becomes int; Iceberg allows .* Rename the column of kinds.t_changes"):
            self.append(as_text=["kinds.t.e"])
        self.assertEqual(self.rows("kinds", "t_changes").num_rows, before)
        # What was before that goes in; then the old column gets another name.
        gtids = ask("SELECT @@GLOBAL.gtid_executed AS g")[0]["g"].decode().replace("\n", "")
        last = int(gtids.rsplit("-", 1)[1])
        self.append(as_text=["kinds.t.e"], until=f"{gtids.rsplit('-', 1)[0]}-{last - 2}")
        for name, path in (("t_changes", ("before", "c")), ("t_changes", ("after", "c")), ("t", ("c",))):
            with self.catalog.load_table(("kinds", name)).update_schema() as update:
                update.rename_column(path, "c_text")
        self.append(as_text=["kinds.t.e"])
        self.assertEqual([row["c"] for row in sorted(self.rows("kinds", "t").to_pylist(), key=str)], [None, None, 9])
        ask("DROP DATABASE kinds")

    def test_names_that_clash_are_told_apart(self):
        ask("CREATE DATABASE temp", "CREATE DATABASE `a.b`", "CREATE TABLE temp.`t` (`x.y` INT PRIMARY KEY)", "CREATE TABLE temp.`T` (`x.y` INT PRIMARY KEY)")
        ask("CREATE TABLE temp.t_changes (id INT PRIMARY KEY, `a b` INT)", "CREATE TABLE `a.b`.`c/../d` (`@1` INT PRIMARY KEY)")
        ask("INSERT INTO temp.t VALUES (1)", "INSERT INTO temp.T VALUES (2)", "INSERT INTO temp.t_changes VALUES (3, 4)", "INSERT INTO `a.b`.`c/../d` VALUES (5)")
        self.append()
        found = {}
        for namespace in self.catalog.list_namespaces():
            for identifier in self.catalog.list_tables(namespace):
                table = self.catalog.load_table(identifier)
                told = table.properties
                if told["binlogz.kind"] == "current":
                    found[(told["binlogz.database"], told["binlogz.table"])] = table.scan().to_arrow().to_pylist()
        self.assertEqual(
            found,
            {
                ("temp", "t"): [{"x.y": 1}],
                ("temp", "T"): [{"x.y": 2}],
                ("temp", "t_changes"): [{"id": 3, "a b": 4}],
                ("a.b", "c/../d"): [{"@1": 5}],
            },
        )
        spaces = [name for (name,) in self.catalog.list_namespaces()]
        self.assertNotIn("temp", spaces)
        self.assertTrue(all(name.isidentifier() for name in spaces), spaces)
        ask("DROP DATABASE temp", "DROP DATABASE `a.b`")

    def test_what_cannot_be_is_an_error_by_name(self):
        ask("CREATE DATABASE odd", "CREATE TABLE odd.t (id INT PRIMARY KEY, v INT)", "INSERT INTO odd.t VALUES (1, 1)")
        self.assertEqual(self.append(tables=["odd.t", "odd.u"]).notes, ["odd.u: the logs so far have no row change of it"])
        with self.assertRaisesRegex(ValueError, r"tables is None, but the first run had \['odd.t', 'odd.u'\]"):
            self.append()
        self.first = here()
        ask("FLUSH BINARY LOGS", "INSERT INTO odd.t VALUES (2, 2)")
        kept = self.first
        self.first += 1
        self.append(tables=["odd.t", "odd.u"])
        ask("INSERT INTO odd.t VALUES (3, 3)", "FLUSH BINARY LOGS", "INSERT INTO odd.t VALUES (4, 4)")
        self.first = len(logs()) - 1
        with self.assertRaisesRegex(ValueError, "begins after .*, which neither the logs before it nor earlier runs have"):
            self.append(tables=["odd.t", "odd.u"])
        self.first = kept
        self.append(tables=["odd.t", "odd.u"])
        self.check_current("odd", "t", "odd", "t")
        ask("ALTER TABLE odd.t DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)", "INSERT INTO odd.t VALUES (4, 5)")
        with self.assertRaisesRegex(ValueError, "odd.t: its key is id, v, by which odd.t can't go on; expected id, or odd.t dropped"):
            self.append(tables=["odd.t", "odd.u"])
        self.catalog.drop_table(("odd", "t"))
        done = self.append(tables=["odd.t", "odd.u"])
        self.assertIn("odd.t: odd.t was dropped, and isn't made again", done.notes)
        self.assertEqual(done.rows, {"odd.t_changes": 1})
        table = self.catalog.load_table(("odd", "t_changes"))
        with table.manage_snapshots() as snapshots:
            snapshots.rollback_to_snapshot(table.current_snapshot().parent_snapshot_id)
        ask("INSERT INTO odd.t VALUES (9, 9)")
        with self.assertRaisesRegex(ValueError, "odd.t_changes: its snapshot has the GTIDs .*; was it rolled back"):
            self.append(tables=["odd.t", "odd.u"])
        with self.assertRaisesRegex(ValueError, "is a server, expected logs or an archive"):
            append("mysql://root@localhost", self.catalog)
        ask("DROP DATABASE odd")

    def test_of_two_runs_at_once_one_counts(self):
        ask("CREATE DATABASE twice", "CREATE TABLE twice.t (id INT)", "INSERT INTO twice.t VALUES (1)")
        self.append()
        ask("INSERT INTO twice.t VALUES (2)")
        finish, others = Commit.finish, []

        def finish_after_another(commit):
            if not others:
                others.append(True)
                append(logs()[self.first :], self.load())
            finish(commit)

        Commit.finish = finish_after_another
        try:
            with self.assertRaises(CommitFailedException):
                self.append()
        finally:
            Commit.finish = finish
        self.catalog = self.load()
        self.append()
        self.check_changes("twice", "t", "twice", "t_changes")
        ask("DROP DATABASE twice")

    def few_rows(self, name, runs):
        """A table with a key and one without, of which each run leaves a file."""
        # Runs would join the files of current rows themselves.
        small, current._SMALL_BYTES = current._SMALL_BYTES, 0
        self.addCleanup(setattr, current, "_SMALL_BYTES", small)
        ask(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v VARCHAR(9))", f"CREATE TABLE {name}.n (a INT)")
        for run in range(runs, 0, -1):
            ask(f"INSERT INTO {name}.t VALUES ({run}, 'a'), ({run + 20}, NULL)", f"UPDATE {name}.t SET v = 'b' WHERE id = {run}", f"INSERT INTO {name}.n VALUES (1), (1)")
            self.append()

    def check_compacted(self, name, is_one_each=True):
        for table, kind in (("t", "t_changes"), ("n", "n_changes")):
            self.check_changes(name, table, name, kind)
        self.check_current(name, "t", name, "t")
        transactions = self.rows("binlogz", "transactions")
        self.assertEqual(len(set(transactions["gtid"].to_pylist())), transactions.num_rows)
        if is_one_each:
            for identifier in ((name, "t_changes"), (name, "n_changes"), (name, "t"), ("binlogz", "transactions")):
                files = [len(files) for files in by_partition(self.load().load_table(identifier))]
                self.assertEqual(set(files), {1}, identifier)

    def test_small_files_are_joined_and_runs_go_on(self):
        self.few_rows("pack", 3)
        gtids = self.catalog.load_table(("pack", "t")).properties["binlogz.gtids"]
        self.assertEqual(compact(self.catalog, target_bytes=1), {})
        self.assertEqual(set(compact(self.catalog, tables=["pack.n"])), {"pack.n_changes"})
        joined = compact(self.catalog)
        self.assertEqual(set(joined), {"binlogz.transactions", "pack.t", "pack.t_changes"})
        self.assertEqual(joined["pack.t"], (3, 1))
        self.check_compacted("pack")
        self.assertEqual(self.rows("pack", "t")["id"].to_pylist(), [1, 2, 3, 21, 22, 23])
        places = self.rows("pack", "t_changes").select(["log", "position", "offset"]).to_pylist()
        self.assertEqual(places, sorted(places, key=lambda row: (row["log"], row["position"], row["offset"])))
        table = self.catalog.load_table(("pack", "t"))
        self.assertEqual(table.current_snapshot().summary.operation.value, "replace")
        self.assertEqual(table.properties["binlogz.gtids"], gtids)
        self.assertEqual(table.current_snapshot().summary["binlogz.gtids"], gtids)
        self.assertEqual(compact(self.catalog), {})
        ask("ALTER TABLE pack.t ADD COLUMN w INT", "UPDATE pack.t SET w = id", "INSERT INTO pack.n VALUES (2)")
        self.assertEqual(self.append().rows, {"pack.n_changes": 1, "pack.t_changes": 6})
        # Files of an older schema are joined with those of a newer one.
        self.assertEqual(set(compact(self.catalog)), {"binlogz.transactions", "pack.n_changes", "pack.t_changes"})
        self.check_compacted("pack")
        with self.assertRaisesRegex(ValueError, "pack.x: no run has appended to it, expected one of pack.n, pack.t"):
            compact(self.catalog, tables=["pack.x"])
        with self.assertRaisesRegex(ValueError, "other_binlogz.transactions isn't in the catalog"):
            compact(self.catalog, prefix="other_")
        ask("DROP DATABASE pack")

    def test_a_compaction_that_ends_anywhere_leaves_each_row_once(self):
        self.few_rows("broken", 2)
        commit = FileJoins._try
        for number, is_after in ((1, False), (2, True)):
            left = [number]

            def end(joins):
                left[0] -= 1
                if left[0] == 0 and not is_after:
                    os._exit(9)
                commit(joins)
                if left[0] == 0:
                    os._exit(9)

            self.assertEqual(self.in_child(compact, FileJoins, "_try", end), 9)
            ask(f"INSERT INTO broken.t VALUES ({40 + number}, 'c')", "INSERT INTO broken.n VALUES (3)")
            self.append()
        self.check_compacted("broken", is_one_each=False)
        compact(self.catalog)
        self.check_compacted("broken")
        ask("DROP DATABASE broken")

    def in_child(self, call, owner, name, replacement):
        """Calls with a catalog, and something replaced, in another process."""
        sys.stdout.flush()
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        setattr(owner, name, replacement)
        try:
            call(self.load())
        finally:
            os._exit(1)

    def meanwhile(self, owner, name, before):
        """Has something done once, before a commit of each table."""
        commit, met = getattr(owner, name), set()

        def commit_late(one):
            table = one._table.name() if owner is FileJoins else one._transaction._table.name()
            if table not in met:
                met.add(table)
                setattr(owner, name, commit)
                before()
                setattr(owner, name, commit_late)
            commit(one)

        setattr(owner, name, commit_late)
        self.addCleanup(setattr, owner, name, commit)
        return met

    def test_a_compaction_commits_beside_runs(self):
        self.few_rows("beside", 2)
        number = [50]

        def run():
            number[0] += 1
            ask(f"INSERT INTO beside.t VALUES ({number[0]}, 'd')", f"UPDATE beside.t SET v = '{number[0]}' WHERE id = 2", "INSERT INTO beside.n VALUES (4)")
            append(logs()[self.first :], self.load())

        met = self.meanwhile(FileJoins, "_try", run)
        joined = compact(self.catalog)
        self.assertEqual(met, {("beside", "n_changes"), ("beside", "t_changes"), ("beside", "t"), ("binlogz", "transactions")})
        # The run replaced a file of current rows, so that those are left as they are.
        self.assertEqual(set(joined), {"binlogz.transactions", "beside.n_changes", "beside.t_changes"})
        self.check_compacted("beside", is_one_each=False)
        files = {path.name for path in pathlib.Path(self.folder, "beside", "t").glob("data/**/*.parquet")}
        snapshots = self.load().load_table(("beside", "t")).inspect.all_data_files()["file_path"].to_pylist()
        self.assertEqual(files, {path.rpartition("/")[2] for path in snapshots}, "files without a snapshot")
        ask("DROP DATABASE beside")

    def test_a_run_commits_beside_compactions(self):
        self.few_rows("meets", 2)
        ask("UPDATE meets.t SET v = 'f'", "INSERT INTO meets.n VALUES (5)")
        met = self.meanwhile(Commit, "finish", lambda: compact(self.load()))
        self.assertEqual(self.append().rows, {"meets.n_changes": 1, "meets.t_changes": 4})
        self.assertEqual(len(met), 4)
        compact(self.catalog)
        self.check_compacted("meets")
        ask("DROP DATABASE meets")

    def test_a_transaction_is_taken_once_its_end_is_there(self):
        ask("CREATE DATABASE half", "CREATE TABLE half.t (id INT PRIMARY KEY, v TEXT)", "INSERT INTO half.t VALUES (1, 'a')")
        ask("INSERT INTO half.t VALUES (2, 'b')")
        whole = pathlib.Path(logs()[-1]).read_bytes()
        copy = pathlib.Path(self.folder, "copy", "binlog.000001")
        copy.parent.mkdir()
        copy.write_bytes(whole[:-20])
        done = append(copy, self.catalog)
        self.assertEqual((done.incomplete, done.rows), (1, {"half.t_changes": 1}))
        copy.write_bytes(whole)
        self.assertEqual(append(copy, self.catalog).rows, {"half.t_changes": 1})
        self.check_current("half", "t", "half", "t")
        ask("DROP DATABASE half")


class Words(unittest.TestCase):
    def test_statements_that_empty_tables(self):
        for text, expected in [
            ("TRUNCATE t", [("d", "t")]),
            ("truncate table `a``b`.`c`", [("a`b", "c")]),
            ("DROP TABLE IF EXISTS `t`,x.`u` /* generated by server */", [("d", "t"), ("x", "u")]),
            ("DROP TABLE t CASCADE", [("d", "t")]),
            ("DROP DATABASE `e`", [("e", None)]),
            ("drop schema if exists e", [("e", None)]),
            ("DROP TEMPORARY TABLE t", None),
            ("DROP TABLE /*!40000 IF EXISTS */ t", None),
            ("ALTER TABLE t TRUNCATE PARTITION p", None),
            ("TRUNCATE", None),
        ]:
            self.assertEqual(emptied(Statement("l", 4, "g", "d", text)), expected, text)
        for text in ("ALTER TABLE t DROP COLUMN c", "RENAME TABLE t TO u", "LOAD DATA INFILE 'x' INTO TABLE t", "CREATE OR REPLACE TABLE t (a INT)"):
            self.assertFalse(is_harmless(Statement("l", 4, "g", "d", text)), text)
        for text in ("CREATE TABLE t (a INT)", "DROP INDEX i ON t", "ANALYZE TABLE t"):
            self.assertTrue(is_harmless(Statement("l", 4, "g", "d", text)), text)

    def test_names_are_given_once(self):
        self.assertEqual(given([("orders", "a"), ("orders_changes", "b")], []), ["orders", "orders_changes"])
        wanted = ["T", "t", "temp", "ok", "a/b", "a_0123abcd"]
        marked = given([(name, name) for name in wanted], ["OK"], ["temp"])
        self.assertEqual(len({name.lower() for name in marked}), len(wanted))
        self.assertTrue(all(name[-9] == "_" for name in marked), marked)


unittest.main()
