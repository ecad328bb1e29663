"""MySQL's binary logs: row changes from files, archives and servers, compressed transactions included.

    import binlogz

    for transaction in binlogz.open("/var/lib/mysql/binlog.000042"):
        for change in transaction.changes:
            print(transaction.gtid, change.operation, change.table_name, change.before, change.after)

See docs/reference/python.md.
"""

from __future__ import annotations

import datetime
import json
import os
import urllib.parse

from . import _native
from ._native import Change, Table

__all__ = ["open", "stats", "compress", "expand", "Change", "Log", "Table", "Transaction"]

_QUERY, _ROTATE, _XID, _ROWS_QUERY, _GTID, _ANONYMOUS_GTID, _XA_PREPARE, _TAGGED_GTID = 2, 4, 16, 29, 33, 34, 38, 42
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Transaction:
    """A transaction: what its GTID event and statements say, and its row changes."""

    __slots__ = (
        "gtid",
        "committed_at",
        "applied_at",
        "log",
        "position",
        "end_position",
        "server_id",
        "thread_id",
        "statements",
        "xid",
        "complete",
        "compressed",
        "_rows",
    )

    def __init__(self, log, position, server_id, content=None):
        #: The GTID; None if anonymous.
        self.gtid = None
        #: When it was committed first, and when on the server that wrote the log.
        self.committed_at = self.applied_at = None
        #: The log that it is in, and where it begins and ends there.
        self.log, self.position, self.end_position = log, position, None
        self.server_id, self.thread_id, self.xid = server_id, None, None
        #: Statements that were logged as such, and those that row changes were logged with.
        self.statements = []
        #: Whether its end was read.
        self.complete = False
        #: Whether it was in a payload.
        self.compressed = False
        self._rows = []
        if content is not None:
            self.gtid = content[0]
            self.applied_at, self.committed_at = _time(content[4]), _time(content[5])

    @property
    def changes(self):
        """Its row changes, in order. They are made anew each time."""
        for rows, timestamp, offset in self._rows:
            yield from rows.changes(self, timestamp, offset)

    def __repr__(self):
        return f"<Transaction {self.gtid or 'anonymous'} {self.log}:{self.position}>"


def _time(micros):
    return None if micros is None else _EPOCH + datetime.timedelta(microseconds=micros)


class Log:
    """The transactions of logs or of a server, in order. It can be iterated over once."""

    def __init__(self, stream):
        self._stream = stream
        self._transaction = None
        self._begun = False

    def __iter__(self):
        """Each transaction, with its rows in memory until it is dropped."""
        for _, done in self._pieces(True):
            if done is not None:
                yield done

    def changes(self):
        """Each row change, whatever the size of its transaction. `change.transaction` is as far as it was read."""
        for changes, _ in self._pieces(False):
            if changes is not None:
                yield from changes

    def arrow(self, table):
        """The row changes of a table, "schema.table", as an object with Arrow's C stream, __arrow_c_stream__: pyarrow, Polars and DuckDB
        take it. The columns are those of `binlogz sql`: gtid, operation, …, and before and after with a field for each column."""
        schema, dot, name = table.partition(".")
        if not dot:
            raise ValueError(f"table is {table!r}, expected schema.table")
        return _native.arrow_rows(self._stream, schema, name)

    def to_arrow(self, table):
        """The row changes of a table as a pyarrow.Table."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self.arrow(table)).read_all()

    def to_pandas(self, table):
        """The row changes of a table as a pandas.DataFrame; the columns of images are before.NAME and after.NAME."""
        return self.to_arrow(table).flatten().to_pandas()

    def close(self):
        """Ends the connection to a server."""
        self._stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _pieces(self, keep):
        """Changes of a transaction, or None; and a transaction that is whole, or None."""
        for batch in self._stream:
            for event in batch:
                kind, timestamp, server_id, _, _, end, _, log, offset, inside, content = event
                if kind in (_GTID, _ANONYMOUS_GTID, _TAGGED_GTID) and isinstance(content, tuple):
                    if self._transaction is not None:
                        yield None, self._transaction
                    self._transaction, self._begun = Transaction(log, offset, server_id, content), False
                    continue
                if kind not in _OF_TRANSACTIONS:
                    continue
                transaction = self._transaction
                if transaction is None:
                    transaction = self._transaction = Transaction(log, offset, server_id)
                transaction.end_position = end
                if inside:
                    transaction.compressed = True
                if isinstance(content, _native.Rows):
                    if keep:
                        transaction._rows.append((content, timestamp, offset))
                    else:
                        yield content.changes(transaction, timestamp, offset), None
                elif self._is_end(transaction, kind, content):
                    transaction.complete = True
                    self._transaction = None
                    yield None, transaction
        if self._transaction is not None:
            transaction, self._transaction = self._transaction, None
            yield None, transaction

    def _is_end(self, transaction, kind, content):
        if kind == _XID:
            transaction.xid = int.from_bytes(content[:8], "little")
            return True
        if kind == _XA_PREPARE:
            return True
        if kind == _ROWS_QUERY:
            transaction.statements.append(content[1:].decode("utf-8", "replace"))
            return False
        if kind != _QUERY:
            return False
        transaction.thread_id = content[0]
        statement = content[4]
        if statement == b"BEGIN" or statement.startswith(b"XA START"):
            self._begun = True
            return False
        if statement in (b"COMMIT", b"ROLLBACK"):
            return True
        transaction.statements.append(statement.decode("utf-8", "replace"))
        return not self._begun


#: Events that belong to transactions: statements, rows, their ends.
_OF_TRANSACTIONS = frozenset([_QUERY, _XID, _ROWS_QUERY, _XA_PREPARE, 20, 21, 22, 23, 24, 25, 30, 31, 32, 39])


def open(
    source,
    *,
    start_after=None,
    follow=False,
    server_id=None,
    log=None,
    position=None,
    options=None,
):
    """Opens logs: a path (a file, an archive, a log in one, or s3://bucket/archive), a list of paths, or a server as
    mysql://user:password@host:port.

    start_after: a GTID set; its transactions are left out. A server begins after them.
    Of servers only: follow waits at the end of the log; server_id is ours; log and position say where to begin; options are
    those of the mysql client, by their names: {"ssl-mode": "VERIFY_CA", "ssl-ca": "ca.pem"}.
    """
    if isinstance(source, str) and source.startswith("mysql://"):
        return Log(_open_server(source, start_after, follow, server_id, log, position, options))
    if follow or server_id is not None or log is not None or position is not None or options is not None:
        raise ValueError("follow, server_id, log, position and options are of servers, expected mysql://…")
    return Log(_native.open_logs(_paths(source), start_after))


def _open_server(url, start_after, follow, server_id, log, position, options):
    if (log is not None or position is not None) and start_after is not None:
        raise ValueError("start_after and log or position exclude each other")
    return _native.open_server(
        connection_options(url, options or {}),
        server_id=server_id if server_id is not None else (1 + os.getpid() % 0xFFFF if follow else 0),
        blocking=follow,
        log=log or "",
        position=4 if position is None else position,
        gtid_set=start_after,
        uuid=None,
        heartbeat_ms=0,
        host="",
        port=0,
        silence_s=None,
        unread=[],
    )


def connection_options(url, options):
    """The options of a connection, as the mysql client names them."""
    parts = urllib.parse.urlsplit(url)
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("URL goes on after the server, expected mysql://user:password@host:port")
    given = {"host": parts.hostname, "user": parts.username, "password": parts.password}
    pairs = [(name, urllib.parse.unquote(value)) for name, value in given.items() if value is not None]
    if parts.port is not None:
        pairs += [("port", str(parts.port)), ("protocol", "tcp")]
    return pairs + [(name, str(value)) for name, value in options.items()]


def _paths(source):
    if isinstance(source, (str, bytes, os.PathLike)):
        source = [source]
    return [os.fsdecode(path) for path in source]


def stats(source):
    """What logs hold: the document of `binlogz stats --format json`."""
    return json.loads(_native.stats(_paths(source)))


def compress(path, output, *, level=3, replace=False):
    """Writes a log with its transactions compressed. Returns how many were, and the bytes read and written."""
    return _native.compress(os.fspath(path), os.fspath(output), level, replace)


def expand(path, output, *, replace=False):
    """Writes a log with its transactions uncompressed. Returns how many were compressed, and the bytes read and written."""
    return _native.expand(os.fspath(path), os.fspath(output), replace)
