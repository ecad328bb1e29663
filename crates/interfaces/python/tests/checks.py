"""The package binlogz beside python-mysql-replication, on the server at PORT. Run by python.rs."""

import contextlib
import datetime
import decimal
import glob
import io
import json
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import pymysql
import pymysqlreplication
import pymysqlreplication.row_event

import binlogz
import binlogz.compat
import binlogz.compat.event
import binlogz.compat.row_event

PORT, DATADIR = int(os.environ["PORT"]), os.environ["DATADIR"]
ROWS = 16_000
# Several row events: a server cuts them at 8 KiB.
ROWS_A_TRANSACTION = 2_000
ACCOUNT = {"host": "127.0.0.1", "port": PORT, "user": "python", "passwd": "p:/@s"}
URL = f"mysql://python:p%3A%2F%40s@127.0.0.1:{PORT}"

TABLE = """CREATE TABLE types (
  id INT PRIMARY KEY, tiny TINYINT, utiny TINYINT UNSIGNED, small SMALLINT, medium MEDIUMINT, umedium MEDIUMINT UNSIGNED,
  ubig BIGINT UNSIGNED, big BIGINT, f FLOAT, d DOUBLE, n DECIMAL(30, 10), n0 DECIMAL(5, 0), b BIT(12), y YEAR, da DATE,
  ti TIME, ti3 TIME(3), dt DATETIME, dt6 DATETIME(6), ts TIMESTAMP NULL, ts2 TIMESTAMP(2) NULL, c CHAR(10),
  latin VARCHAR(300) CHARACTER SET latin1, v VARCHAR(20), bin BINARY(4), vb VARBINARY(9), te TEXT, bl BLOB,
  e ENUM('x', 'ü'), s SET('p', 'q', 'r'), j JSON, g GEOMETRY)"""
CHANGES = [
    """INSERT INTO types VALUES (1, -1, 255, -2, -3, 16777215, 18446744073709551615, -9, 1.5, -2.25, -12345.6789012345,
       -77, b'101010101010', 2024, '2020-02-29', '-12:34:56', '01:02:03.211', '2020-01-02 03:04:05',
       '2020-01-02 03:04:05.123456', '2020-01-02 03:04:05', '2020-01-02 03:04:05.12', 'chår', 'lätin', 'v\\nü', X'01000002',
       X'00ff', 'text 😀', X'626c6f62', 'ü', 'p,r', '{"a": [1, "x", null, 1.5, true, {"b": -3}], "k": 18446744073709551615}',
       ST_GeomFromText('POINT(1 2)'))""",
    "INSERT INTO types (id) VALUES (2)",
    "INSERT INTO types (id, da, dt, s, j, ts) VALUES (3, '0000-00-00', '2020-00-00 00:00:00', '', '[]', NULL)",
    """INSERT INTO types (id, j) VALUES (4, JSON_OBJECT('d', CAST('1.50' AS DECIMAL(4,2)), 'dt',
       CAST('2020-01-02 03:04:05' AS DATETIME)))""",
    "UPDATE types SET v = 'new', j = '\"text\"', n = 0, ti3 = '-838:59:59' WHERE id = 1",
    "DELETE FROM types WHERE id = 2",
]


def twin(connection, compressed):
    """A log with the changes, and rows."""
    connection.query(f"SET SESSION binlog_transaction_compression = {compressed}, sql_mode = '', time_zone = '+00:00'")
    connection.query(f"SET SESSION binlog_rows_query_log_events = ON, timestamp = 1700000000")
    connection.query("FLUSH BINARY LOGS")
    with connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOG STATUS")
        log = cursor.fetchone()[0]
        cursor.execute("DROP TABLE IF EXISTS types, many")
        cursor.execute(TABLE)
        cursor.execute("CREATE TABLE many (id INT PRIMARY KEY, name VARCHAR(20))")
        for statement in CHANGES:
            cursor.execute(statement)
        cursor.execute("SET SESSION binlog_row_image = MINIMAL")
        cursor.execute("UPDATE types SET v = 'least', s = NULL WHERE id = 3")
        cursor.execute("SET SESSION binlog_row_image = FULL")
        for first in range(0, ROWS, ROWS_A_TRANSACTION):
            values = ", ".join(f"({number}, 'name {number}')" for number in range(first, first + ROWS_A_TRANSACTION))
            cursor.execute(f"INSERT INTO many VALUES {values}")
    return log


def grown(connection):
    """A log with a table whose columns change."""
    connection.query("FLUSH BINARY LOGS")
    with connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOG STATUS")
        log = cursor.fetchone()[0]
        cursor.execute("CREATE TABLE grown (id INT PRIMARY KEY, n TINYINT)")
        cursor.execute("INSERT INTO grown VALUES (1, 7)")
        cursor.execute("ALTER TABLE grown MODIFY n BIGINT, ADD COLUMN late VARCHAR(9)")
        cursor.execute("INSERT INTO grown VALUES (2, 7000000000, 'late')")
    return log


def setUpModule():
    with pymysql.connect(unix_socket=os.environ["SOCKET"], user="root", autocommit=True) as connection:
        connection.query("CREATE USER python IDENTIFIED BY 'p:/@s'")
        connection.query("GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO python")
        connection.query("CREATE DATABASE d")
        connection.select_db("d")
        global COMPRESSED, PLAIN
        other = grown(connection)
        COMPRESSED = twin(connection, "ON")
        PLAIN = twin(connection, "OFF")
        # For arrow.py, which another interpreter runs.
        names = {"compressed": COMPRESSED, "plain": PLAIN, "grown": other}
        pathlib.Path(os.environ["NAMES"]).write_text(json.dumps(names))


def events(library, log, **options):
    """The events of one log as this library reads them."""
    stream = library.BinLogStreamReader(
        connection_settings=dict(ACCOUNT), server_id=4711, log_file=log, log_pos=4, resume_stream=True, **options
    )
    for event in stream:
        if stream.log_file != log:
            break
        yield event
    stream.close()


def rows(library, log):
    writes = [library.row_event.WriteRowsEvent]
    return sum(len(event.rows) for event in events(library, log, only_events=writes, only_tables=["many"]))


ARTIFICIAL = 0x20
HEADER = ["timestamp", "event_type", "event_size", "formatted_timestamp"]
ATTRIBUTES = {
    "RotateEvent": ["position", "next_binlog"],
    "FormatDescriptionEvent": [
        "binlog_version", "mysql_version", "mysql_version_str", "created", "common_header_len", "post_header_len",
        "server_version_split", "number_of_event_types", "checksum_algorithm",
    ],
    "PreviousGtidsEvent": ["_previous_gtids"],
    "GtidEvent": ["gtid", "sid", "gno", "lt_type", "commit_flag", "last_committed", "sequence_number"],
    "QueryEvent": [
        "slave_proxy_id", "execution_time", "schema_length", "error_code", "status_vars_length", "schema", "query",
        "flags2", "sql_mode", "character_set_client", "collation_connection", "collation_server", "catalog_nz_code",
        "default_collation_for_utf8mb4_number",
    ],
    "RowsQueryLogEvent": ["query"],
    "TableMapEvent": ["table_id", "schema", "table", "schema_length", "table_length", "column_count", "null_bitmask"],
    "XidEvent": ["xid"],
}  # fmt: skip
ROWS_ATTRIBUTES = ["table_id", "schema", "table", "primary_key", "number_of_columns", "flags", "columns_present_bitmap", "rows"]
for name in ("WriteRowsEvent", "UpdateRowsEvent", "DeleteRowsEvent"):
    ATTRIBUTES[name] = ROWS_ATTRIBUTES
COLUMN = ["type", "name", "unsigned", "is_primary", "enum_values", "set_values"]
SIZES = ["max_length", "size", "fsp", "length_size", "precision", "decimals", "bits", "bytes"]


def told(event):
    """All that a program sees of an event."""
    name = type(event).__name__
    packet = {name: getattr(event.packet, name) for name in ("log_pos", "server_id", "flags")}
    if not event.packet.flags & ARTIFICIAL:
        # What the sender makes may come to us without a checksum.
        packet["event_size"] = event.packet.event_size
    fields = {name: getattr(event, name) for name in HEADER + ATTRIBUTES[name]}
    if hasattr(event, "columns"):
        fields["columns"] = [
            [getattr(column, name) for name in COLUMN] + [getattr(column, name, None) for name in SIZES]
            for column in event.columns
        ]
    return name, packet, fields


def dumped(event):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        event.dump()
    # How far it was read is no field of the event; the description of a table's metadata is not ours.
    lines = [line for line in out.getvalue().splitlines() if not line.startswith("Read bytes")]
    return lines[:8] if type(event).__name__ == "TableMapEvent" else lines


class Compat(unittest.TestCase):
    maxDiff = None

    def test_compressed_rows_arrive(self):
        self.assertEqual(rows(pymysqlreplication, COMPRESSED), 0)
        self.assertEqual(rows(binlogz.compat, COMPRESSED), ROWS)
        self.assertEqual(rows(binlogz.compat, PLAIN), ROWS)

    def test_events_of_an_uncompressed_log_are_equal(self):
        theirs, ours = (list(events(library, PLAIN)) for library in (pymysqlreplication, binlogz.compat))
        self.assertEqual([type(event).__name__ for event in ours], [type(event).__name__ for event in theirs])
        for our, their in zip(ours, theirs):
            self.assertEqual(told(our), told(their))
            if getattr(our, "table", None) != "many":
                self.assertEqual(dumped(our), dumped(their))
        self.assertEqual(sum(type(event).__name__ == "GtidEvent" for event in ours), 4 + len(CHANGES) + ROWS // ROWS_A_TRANSACTION)

    def test_compressed_events_are_those_of_the_uncompressed_twin(self):
        def told_of(log):
            kinds = ["WriteRowsEvent", "UpdateRowsEvent", "DeleteRowsEvent", "RowsQueryLogEvent", "XidEvent"]
            for event in events(binlogz.compat, log):
                if type(event).__name__ in kinds:
                    yield type(event).__name__, getattr(event, "rows", None), getattr(event, "query", None), event.timestamp

        self.assertEqual(list(told_of(COMPRESSED)), list(told_of(PLAIN)))

    def test_a_position_inside_a_payload_loses_no_row(self):
        seen, writes = set(), [binlogz.compat.row_event.WriteRowsEvent]
        options = dict(server_id=4711, only_events=writes, only_tables=["many"], log_file=COMPRESSED)
        position, rounds = 4, 0
        while len(seen) < ROWS and rounds < 10:
            rounds += 1
            stream = binlogz.compat.BinLogStreamReader(dict(ACCOUNT), log_pos=position, resume_stream=True, **options)
            for event in stream:
                if stream.log_file != COMPRESSED:
                    break
                seen.update(row["values"]["id"] for row in event.rows)
                # The program ends after some events, and goes on at the place that it was told.
                if len(seen) > rounds * ROWS / 5:
                    break
            position = stream.log_pos
            stream.close()
        self.assertEqual(seen, set(range(ROWS)))

    def test_the_position_passes_events_that_are_not_asked_for(self):
        ends = []
        for library in (pymysqlreplication, binlogz.compat):
            writes = [library.row_event.WriteRowsEvent]
            stream = library.BinLogStreamReader(
                dict(ACCOUNT), 4711, log_file=PLAIN, log_pos=4, resume_stream=True, only_events=writes
            )
            places = [(stream.log_file, stream.log_pos) for _ in stream]
            ends.append((places, stream.log_file, stream.log_pos))
            stream.close()
        self.assertEqual(ends[1], ends[0])
        self.assertGreater(ends[0][2], ends[0][0][-1][1])

    def test_gtid_sets_filters_and_refusals(self):
        gtids = [event.gtid for event in events(binlogz.compat, COMPRESSED, only_events=[binlogz.compat.event.GtidEvent])]
        source, _, last = gtids[-1].rpartition(":")
        stream = binlogz.compat.BinLogStreamReader(
            dict(ACCOUNT), 4711, auto_position=f"{source}:1-{int(last) - 1}", only_events=[binlogz.compat.event.GtidEvent]
        )
        self.assertEqual(next(iter(stream)).gtid, gtids[-1])
        stream.close()
        none = events(binlogz.compat, PLAIN, only_schemas=["other"])
        self.assertFalse([event for event in none if hasattr(event, "rows")])
        for options in ({"is_mariadb": True}, {"only_events": [pymysqlreplication.row_event.WriteRowsEvent]}):
            with self.assertRaises(ValueError):
                binlogz.compat.BinLogStreamReader(dict(ACCOUNT), 4711, **options)
        with self.assertRaises(ValueError):
            binlogz.compat.BinLogStreamReader({**ACCOUNT, "unheard_of": 1}, 4711)
        with self.assertRaises(OSError):
            next(iter(binlogz.compat.BinLogStreamReader({**ACCOUNT, "passwd": "wrong"}, 4711)))


class Open(unittest.TestCase):
    def test_files_and_servers_give_the_same_and_go_on_after_gtids(self):
        path = os.path.join(DATADIR, COMPRESSED)
        transactions = list(binlogz.open(path))
        changes = [change for transaction in transactions for change in transaction.changes]
        self.assertEqual(sum(change.table_name == "many" for change in changes), ROWS)
        self.assertTrue(all(transaction.complete for transaction in transactions))
        self.assertTrue(transactions[-1].compressed and transactions[-1].statements[0].startswith("INSERT INTO many"))
        self.assertEqual(sum(1 for _ in binlogz.open([path]).changes()), len(changes))

        def told(transaction):
            changes = [(change.operation, change.before, change.after) for change in transaction.changes]
            return transaction.gtid, transaction.position, transaction.end_position, transaction.committed_at, changes

        of_server = [transaction for transaction in binlogz.open(URL, log=COMPRESSED) if transaction.log == COMPRESSED]
        self.assertEqual([told(of) for of in of_server], [told(of) for of in transactions])

        source, _, first = transactions[0].gtid.rpartition(":")
        before = f"{source}:1-{int(first) + 4}"
        left = list(binlogz.open(path, start_after=before))
        self.assertEqual([of.gtid for of in left], [of.gtid for of in transactions[5:]])
        self.assertEqual(next(iter(binlogz.open(URL, start_after=before))).gtid, transactions[5].gtid)

    def test_values(self):
        changes = list(binlogz.open(os.path.join(DATADIR, PLAIN)).changes())
        row, zero = changes[0].after, changes[2].after
        self.assertEqual(changes[0].table.primary_key, ["id"])
        self.assertEqual(row["n"], decimal.Decimal("-12345.6789012345"))
        self.assertEqual((row["b"], row["s"], row["e"], row["bin"]), (0b101010101010, "p,r", "ü", b"\x01\0\0\x02"))
        self.assertEqual(row["j"], {"a": [1, "x", None, 1.5, True, {"b": -3}], "k": 18446744073709551615})
        self.assertEqual(row["ts2"], datetime.datetime(2020, 1, 2, 3, 4, 5, 120000, datetime.timezone.utc))
        self.assertEqual((zero["da"], zero["dt"], zero["s"], zero["ts"]), ("0000-00-00", "2020-00-00 00:00:00", "", None))
        update = next(change for change in changes if change.operation == "update")
        self.assertEqual((update.before["v"], update.after["v"]), ("v\nü", "new"))
        least = [change for change in changes if change.operation == "update"][-1]
        self.assertEqual((least.before, least.after), ({"id": 3}, {"v": "least", "s": None}))
        self.assertEqual(update.after["ti3"], -datetime.timedelta(hours=838, minutes=59, seconds=59))

    def test_whole_logs(self):
        path = os.path.join(DATADIR, COMPRESSED)
        with tempfile.TemporaryDirectory() as folder:
            plain, again = os.path.join(folder, "plain"), os.path.join(folder, "again")
            count, _, size = binlogz.expand(path, plain)
            self.assertEqual((count > 0, os.path.getsize(plain)), (True, size))
            binlogz.compress(plain, again)
            with open(path, "rb") as one, open(again, "rb") as other:
                self.assertEqual(one.read(), other.read())
            with self.assertRaises(OSError):
                binlogz.expand(path, plain)
        self.assertEqual(binlogz.stats(path)["files"][0]["transactions"], count + 3)

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "not a binary log"):
            list(binlogz.open(glob.glob(os.path.join(DATADIR, "auto.cnf"))))
        with self.assertRaisesRegex(OSError, "nowhere"):
            list(binlogz.open("/nowhere"))
        with self.assertRaises(ValueError):
            binlogz.open("binlog.000001", follow=True)
        with self.assertRaises(ValueError):
            binlogz.open("binlog.000001", start_after="no GTID set")

    def test_archives_give_what_their_logs_gave(self):
        def told(source, **options):
            for transaction in binlogz.open(source, **options):
                changes = [(change.operation, change.before, change.after, change.offset) for change in transaction.changes]
                yield transaction.gtid, transaction.log, transaction.position, transaction.end_position, changes

        log = os.environ["ARCHIVED"]
        expected = list(told(log))
        self.assertGreater(sum(len(changes) for *_, changes in expected), 0)
        archives = [os.environ["ARCHIVE"], os.environ.get("S3_ARCHIVE")]
        for archive in filter(None, archives):
            self.assertEqual(list(told(archive)), expected)
            self.assertEqual(list(told(f"{archive}/{os.path.basename(log)}")), expected)
            first = expected[0][0]
            self.assertEqual(list(told(archive, start_after=first)), expected[1:])
            with self.assertRaisesRegex(OSError, "not in the archive"):
                list(told(f"{archive}/binlog.999999"))


def root():
    return pymysql.connect(unix_socket=os.environ["SOCKET"], user="root", autocommit=True, database="d")


def dumps(connection):
    """The connections to which the server sends its log: their ids, and how each is connected."""
    with connection.cursor() as cursor:
        cursor.execute("""SELECT processlist_id, connection_type FROM performance_schema.threads
            WHERE processlist_user = 'python' AND processlist_command LIKE 'Binlog Dump%'""")
        return cursor.fetchall()


def kill(connection, number):
    """Ends a connection; whether it was still there."""
    try:
        connection.query(f"KILL {number}")
        return True
    except pymysql.err.OperationalError as error:
        if error.args[0] != pymysql.constants.ER.NO_SUCH_THREAD:
            raise
        return False


class Cutting:
    """Stands before the server, and ends a connection after so many bytes of it."""

    def __init__(self, size, by_reset=False):
        self.size, self.by_reset, self.passed = size, by_reset, 0

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def serve(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(("127.0.0.1", PORT))
        asking = threading.Thread(target=self.ask, args=(client, server), daemon=True)
        asking.start()
        left = self.size
        with contextlib.suppress(OSError):
            while left != 0 and (data := server.recv(min(left or 65536, 65536))):
                self.passed += len(data)
                left = left if left is None else left - len(data)
                client.sendall(data)
            if self.by_reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                # A socket that another thread reads isn't closed.
                client.shutdown(socket.SHUT_RD)
                asking.join()
            else:
                client.shutdown(socket.SHUT_RDWR)
        client.close()
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def ask(client, server):
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)


class Connections(unittest.TestCase):
    def setUp(self):
        # A server ends a dump when it next sends something: other tests' may still be there.
        with root() as connection:
            for number, _ in dumps(connection):
                kill(connection, number)
            self.wait_for_none(connection)

    def wait_for_none(self, connection):
        for _ in range(300):
            if not dumps(connection):
                return
            time.sleep(0.1)
        self.fail("the connection is not closed")

    def connected(self, **options):
        """How a server says that we are connected."""
        with root() as connection:
            with binlogz.open(URL, follow=True, log=PLAIN, options=options) as log:
                self.assertTrue(next(iter(log)).gtid)
                ((number, kind),) = dumps(connection)
            kill(connection, number)
            self.wait_for_none(connection)
            return kind

    def test_tls(self):
        ca = os.path.join(DATADIR, "ca.pem")
        self.assertEqual(self.connected(), "SSL/TLS")
        self.assertEqual(self.connected(**{"ssl-mode": "VERIFY_CA", "ssl-ca": ca}), "SSL/TLS")
        self.assertEqual(self.connected(**{"ssl-mode": "DISABLED", "get-server-public-key": 1}), "TCP/IP")
        # Another authority; and a certificate without the server's name.
        other = os.path.join(DATADIR, "client-cert.pem")
        for wrong in ({"ssl-mode": "VERIFY_CA", "ssl-ca": other}, {"ssl-mode": "VERIFY_IDENTITY", "ssl-ca": ca}):
            with self.subTest(**wrong), self.assertRaisesRegex(OSError, "(?i)certificate"):
                next(iter(binlogz.open(URL, log=PLAIN, options=wrong)))

    def lost(self, follow):
        """Rows are written, and the connection is killed between them: all of them, those that `follow` collects, and the kills."""
        count, kills, ended = 60, [], threading.Event()
        with root() as connection:
            connection.query("FLUSH BINARY LOGS")
            connection.query("DROP TABLE IF EXISTS lost")
            connection.query("CREATE TABLE lost (id INT PRIMARY KEY)")
            with connection.cursor() as cursor:
                cursor.execute("SELECT @@gtid_executed")
                done = cursor.fetchone()[0].replace("\n", "")

        def write():
            with root() as connection:
                for number in range(count):
                    while number % 20 == 10 and not ended.is_set():
                        # Once it is there.
                        killed = [of for of, _ in dumps(connection) if of not in kills]
                        if killed and kill(connection, killed[0]):
                            kills.append(killed[0])
                            break
                        time.sleep(0.05)
                    connection.query(f"INSERT INTO lost VALUES ({number})")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            return list(range(count)), follow(done, count), kills
        finally:
            ended.set()
            writer.join()

    def test_a_lost_connection_is_an_error_after_which_a_program_goes_on_by_gtid(self):
        breaks = []

        def follow(done, count):
            seen = []
            while len(seen) < count:
                try:
                    for transaction in binlogz.open(URL, follow=True, start_after=done):
                        seen += [change.after["id"] for change in transaction.changes if change.table_name == "lost"]
                        done += f",{transaction.gtid}"
                        if len(seen) == count:
                            break
                except ConnectionResetError as error:
                    breaks.append(str(error))
            return seen

        written, seen, kills = self.lost(follow)
        self.assertEqual(seen, written)
        self.assertEqual((len(kills), len(breaks)), (3, 3))
        self.assertIn(f"127.0.0.1:{PORT}", breaks[0])

    def test_a_connection_that_is_cut_at_any_byte_is_an_error_after_what_came(self):
        """Between us and the server, after each of some numbers of bytes: by an end, or by a reset."""
        seed = int(os.environ.get("SEED", time.time()))
        chance = random.Random(seed)

        def rows(port):
            url = URL.replace(str(PORT), str(port))
            with binlogz.open(url, log=COMPRESSED) as log:
                for change in log.changes():
                    yield change.operation, change.table_name, change.after

        whole = list(rows(PORT))
        with Cutting(None) as proxy:
            self.assertEqual(list(rows(proxy.port)), whole)
        for _ in range(25):
            # Half of them in the beginning: the login. None in the last bytes: the session is over before them.
            size = chance.randrange(proxy.passed * 9 // 10 if chance.random() < 0.5 else 8192)
            with self.subTest(seed=seed, size=size), Cutting(size, chance.random() < 0.5) as proxy_that_cuts:
                seen = []
                with self.assertRaises(OSError):
                    seen.extend(rows(proxy_that_cuts.port))
                self.assertEqual(seen, whole[: len(seen)])
                self.assertLess(len(seen), len(whole))

    def test_the_drop_in_asks_again_by_itself(self):
        def follow(done, count):
            stream = binlogz.compat.BinLogStreamReader(
                dict(ACCOUNT), 4711, blocking=True, only_events=[binlogz.compat.row_event.WriteRowsEvent],
                only_tables=["lost"], auto_position=done,
            )  # fmt: skip
            seen = []
            for event in stream:
                seen += [row["values"]["id"] for row in event.rows if row["values"]["id"] not in seen]
                if len(seen) == count:
                    break
            stream.close()
            return seen

        written, seen, kills = self.lost(follow)
        self.assertEqual((seen, len(kills)), (written, 3))


class Examples(unittest.TestCase):
    """Programs for python-mysql-replication, unchanged but for the import."""

    maxDiff = None

    def printed(self, name, module, **variables):
        program = (pathlib.Path(__file__).parent / "examples" / name).read_text()
        changed = program.replace("from pymysqlreplication", f"from {module}")
        self.assertEqual(program.count("from pymysqlreplication"), changed.count(f"from {module}"))
        # The order in which a set is printed.
        environment = {**os.environ, "PYTHONHASHSEED": "0", **variables}
        folder = os.path.dirname(os.environ["NAMES"])
        ran = subprocess.run([sys.executable, "-c", changed], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""), name)
        lines = ran.stdout.splitlines()
        self.assertTrue(lines, name)
        return [line for line in lines if not line.startswith("Read bytes")]

    def same(self, ours, theirs, name):
        """Tells the first difference: all of them, of so many lines, would be drawn for minutes."""
        self.assertEqual(len(ours), len(theirs), name)
        for our, their in zip(ours, theirs):
            self.assertEqual(our, their, name)

    def test_they_print_the_same_and_the_rows_of_compressed_transactions(self):
        for name, least in [("dump_events.py", ROWS), ("redis_commands.py", ROWS), ("json_lines.py", ROWS), ("threaded.py", 1)]:
            theirs = self.printed(name, "pymysqlreplication", LOG=PLAIN)
            self.assertGreaterEqual(len(theirs), least)
            self.same(self.printed(name, "binlogz.compat", LOG=PLAIN), theirs, name)
            compressed = self.printed(name, "binlogz.compat", LOG=COMPRESSED)
            if name == "dump_events.py":
                # Positions and GTIDs are others.
                compressed = [line for line in compressed if line.startswith("*")]
                theirs = [line for line in theirs if line.startswith("*")]
            self.same(compressed, theirs, name)
        self.assertEqual(theirs, [f"{ROWS} rows, their ids {ROWS * (ROWS - 1) // 2}"])

    def test_one_that_follows_by_gtids(self):
        gtids = events(binlogz.compat, PLAIN, only_events=[binlogz.compat.event.GtidEvent])
        last = [event.gtid for event in gtids][-1]
        source, _, number = last.rpartition(":")
        # The last transactions of the log that both libraries can read.
        variables = {"GTIDS": f"{source}:1-{int(number) - 2}", "ROWS": str(2 * ROWS_A_TRANSACTION)}
        theirs = self.printed("follow_gtids.py", "pymysqlreplication", **variables)
        self.assertEqual(theirs, [f"{2 * ROWS_A_TRANSACTION} rows, the last of {last}"])
        self.assertEqual(self.printed("follow_gtids.py", "binlogz.compat", **variables), theirs)


if __name__ == "__main__":
    unittest.main()
