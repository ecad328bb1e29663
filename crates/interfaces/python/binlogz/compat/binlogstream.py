"""python-mysql-replication's BinLogStreamReader over the native module."""

from __future__ import annotations

import uuid as uuids

from .. import _native
from . import event, row_event

#: Events by their types. Payloads are opened before.
_CLASSES = {
    2: event.QueryEvent,
    3: event.StopEvent,
    4: event.RotateEvent,
    5: event.IntvarEvent,
    13: event.RandEvent,
    14: event.UserVarEvent,
    15: event.FormatDescriptionEvent,
    16: event.XidEvent,
    17: event.BeginLoadQueryEvent,
    18: event.ExecuteLoadQueryEvent,
    19: row_event.TableMapEvent,
    23: row_event.WriteRowsEvent,
    24: row_event.UpdateRowsEvent,
    25: row_event.DeleteRowsEvent,
    27: event.HeartbeatLogEvent,
    29: event.RowsQueryLogEvent,
    30: row_event.WriteRowsEvent,
    31: row_event.UpdateRowsEvent,
    32: row_event.DeleteRowsEvent,
    33: event.GtidEvent,
    35: event.PreviousGtidsEvent,
    38: event.XAPrepareEvent,
    39: row_event.PartialUpdateRowsEvent,
    42: event.GtidEvent,
}
#: All but those that python-mysql-replication leaves out unless they are asked for.
_ALL = frozenset(_CLASSES.values()) - {event.IntvarEvent} | {event.NotImplementedEvent}
_ROTATE, _FORMAT_DESCRIPTION, _TABLE_MAP = 4, 15, 19
_ALWAYS_READ = frozenset([_ROTATE, _FORMAT_DESCRIPTION, _TABLE_MAP])
#: Where the events of a log begin.
_LOG_BEGINNING = 4

#: Settings of PyMySQL's that a connection has by other names.
_SETTINGS = {
    "host": "host",
    "port": "port",
    "user": "user",
    "passwd": "password",
    "password": "password",
    "unix_socket": "socket",
    "bind_address": "bind-address",
    "connect_timeout": "connect-timeout",
    "ssl_ca": "ssl-ca",
    "ssl_cert": "ssl-cert",
    "ssl_key": "ssl-key",
    "server_public_key": "server-public-key-path",
}
#: Settings that mean nothing to a reader of logs.
_WITHOUT_MEANING = frozenset(
    "charset collation use_unicode db database cursorclass autocommit write_timeout init_command sql_mode "
    "local_infile max_allowed_packet conv client_flag defer_connect program_name".split()
)


class BinLogStreamReader:
    """Reads a server's log, event by event. Options and attributes are python-mysql-replication's."""

    def __init__(
        self,
        connection_settings,
        server_id,
        ctl_connection_settings=None,
        resume_stream=False,
        blocking=False,
        only_events=None,
        log_file=None,
        log_pos=None,
        end_log_pos=None,
        filter_non_implemented_events=True,
        ignored_events=None,
        auto_position=None,
        only_tables=None,
        ignored_tables=None,
        only_schemas=None,
        ignored_schemas=None,
        freeze_schema=False,
        skip_to_timestamp=None,
        report_slave=None,
        slave_uuid=None,
        pymysql_wrapper=None,
        slave_heartbeat=None,
        is_mariadb=False,
        annotate_rows_event=False,
        ignore_decode_errors=False,
        verify_checksum=False,
        enable_logging=True,
        use_column_name_cache=False,
    ):
        for name, value in (
            ("pymysql_wrapper", pymysql_wrapper),
            ("is_mariadb", is_mariadb),
            ("annotate_rows_event", annotate_rows_event),
            ("use_column_name_cache", use_column_name_cache),
        ):
            if value:
                raise ValueError(f"binlogz.compat has no option {name}; see docs/reference/python.md")
        # Tables come from the log, checksums are always compared, and text that can't be decoded stays bytes.
        del ctl_connection_settings, ignore_decode_errors, verify_checksum, enable_logging
        self._options, self._silence = _connection_options(connection_settings)
        self._server_id, self._resume, self._blocking = server_id, resume_stream, blocking
        self._allowed = _allowed(only_events, ignored_events, filter_non_implemented_events)
        self._only_tables, self._ignored_tables = only_tables, ignored_tables
        self._only_schemas, self._ignored_schemas = only_schemas, ignored_schemas
        self._filters = any(names is not None for names in (only_tables, ignored_tables, only_schemas, ignored_schemas))
        self._freeze_schema = freeze_schema
        self._replica = _replica(report_slave, slave_uuid, slave_heartbeat)
        self.log_file, self.log_pos, self.end_log_pos = log_file, log_pos, end_log_pos
        self.is_past_end_log_pos = False
        self.auto_position, self.skip_to_timestamp = auto_position, skip_to_timestamp
        self.report_slave, self.slave_uuid, self.slave_heartbeat = report_slave, slave_uuid, slave_heartbeat
        self.is_mariadb, self.dbms = False, "mysql"
        self.mysql_version = (0, 0, 0)
        self.table_map = {}
        self._tables = {}
        self._stream, self._batch = None, iter(())

    def close(self):
        """Ends the connection."""
        if self._stream is not None:
            self._stream.close()
        self._stream, self._batch = None, iter(())

    def __iter__(self):
        return iter(self.fetchone, None)

    def fetchone(self):
        """The next event; None at the end of the log, unless `blocking`."""
        while not (self.end_log_pos and self.is_past_end_log_pos):
            raw = next(self._batch, None)
            if raw is None:
                if not self._next_batch():
                    return None
                continue
            found = self._take(raw)
            if found is not None:
                return found
        return None

    def _next_batch(self):
        if self._stream is None:
            self._connect()
        try:
            batch = next(self._stream, None)
        except ConnectionResetError:
            if not self._blocking:
                raise
            # As python-mysql-replication does: the connection is asked for again, where the log was.
            self.close()
            self._resume = True
            return True
        if batch is None:
            self.close()
            return False
        self._batch = iter(batch)
        return True

    def _connect(self):
        if not self.auto_position and (self.log_file is None or self.log_pos is None):
            self.log_file, self.log_pos = _end_of_log(self._options)
        self._stream = _native.open_server(
            self._options,
            server_id=self._server_id,
            blocking=self._blocking,
            log="" if self.auto_position else self.log_file,
            position=self.log_pos if self._resume and not self.auto_position else _LOG_BEGINNING,
            gtid_set=self.auto_position or None,
            silence_s=self._silence,
            unread=self._unread(),
            **self._replica,
        )

    def _unread(self):
        """Types of events of which only the position is looked at."""
        if self.end_log_pos:
            return []
        return [
            kind
            for kind in range(1, 256)
            if kind not in _ALWAYS_READ and _CLASSES.get(kind, event.NotImplementedEvent) not in self._allowed
        ]

    def _take(self, raw):
        """The event, unless it is filtered out."""
        kind, timestamp, log_pos = raw[0], raw[1], raw[5]
        if kind == _ROTATE:
            rotate = event.RotateEvent(event.BinLogPacketWrapper(raw), self)
            self.log_pos, self.log_file = rotate.position, rotate.next_binlog
            if timestamp:
                # Numbers of tables begin anew when a server restarts.
                self.table_map.clear()
        elif log_pos:
            self.log_pos = log_pos
        if self.end_log_pos and self.log_pos >= self.end_log_pos:
            self.is_past_end_log_pos = True
        cls = _CLASSES.get(kind, event.NotImplementedEvent)
        if kind == _FORMAT_DESCRIPTION:
            self.mysql_version = event.FormatDescriptionEvent(event.BinLogPacketWrapper(raw), self).mysql_version
        if self.skip_to_timestamp and timestamp < self.skip_to_timestamp:
            return None
        content = raw[10]
        if kind == _TABLE_MAP:
            if self._is_filtered(content[1]) or self._freeze_schema and content[0] in self.table_map:
                return None
            self.table_map[content[0]] = self._table(*content)
        elif self._filters and isinstance(content, _native.Rows) and self._is_filtered(content.table):
            return None
        if cls not in self._allowed:
            return None
        packet = event.BinLogPacketWrapper(raw)
        packet.event = cls(packet, self)
        return packet.event

    def _is_filtered(self, table):
        if not self._filters:
            return False
        if self._only_tables is not None and table.table not in self._only_tables:
            return True
        if self._ignored_tables is not None and table.table in self._ignored_tables:
            return True
        if self._only_schemas is not None and table.schema not in self._only_schemas:
            return True
        return self._ignored_schemas is not None and table.schema in self._ignored_schemas

    def _table(self, table_id, native):
        """The table of this number, as the log describes it."""
        known = self._tables.get(table_id)
        if known is None or known[0] is not native:
            known = self._tables[table_id] = (native, row_event.Table(table_id, native))
        return known[1]


def _allowed(only_events, ignored_events, filter_non_implemented_events):
    allowed = set(_ALL if only_events is None else only_events)
    allowed.difference_update(ignored_events or ())
    unknown = [cls for cls in allowed if not (isinstance(cls, type) and issubclass(cls, event.BinLogEvent))]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no event of binlogz.compat: import it from binlogz.compat.event or .row_event")
    if filter_non_implemented_events:
        allowed.discard(event.NotImplementedEvent)
    return frozenset(allowed)


def _replica(report_slave, slave_uuid, slave_heartbeat):
    """How we introduce ourselves: as a replica only if that is asked for."""
    host, port = "", 0
    if isinstance(report_slave, dict):
        host, port = report_slave.get("hostname", ""), int(report_slave.get("port", 0))
    elif isinstance(report_slave, (tuple, list)):
        host, port = report_slave[0], int(report_slave[3]) if len(report_slave) > 3 else 0
    elif report_slave:
        host = report_slave
    is_replica = bool(report_slave or slave_uuid or slave_heartbeat)
    return {
        "uuid": str(slave_uuid or uuids.uuid4()) if is_replica else None,
        "heartbeat_ms": int((slave_heartbeat or 0) * 1000),
        "host": host,
        "port": port,
    }


def _connection_options(settings):
    """PyMySQL's settings as options of the mysql client; and the seconds without a byte that we wait."""
    options, silence = {}, None
    for name, value in settings.items():
        if name in _SETTINGS:
            if value is not None:
                options[_SETTINGS[name]] = value.decode() if isinstance(value, bytes) else str(value)
        elif name == "read_timeout":
            silence = None if value is None else int(value)
        elif name == "ssl_disabled":
            if value:
                options["ssl-mode"] = "DISABLED"
        elif name in ("ssl_verify_cert", "ssl_verify_identity"):
            if value and options.get("ssl-mode") != "VERIFY_IDENTITY":
                options["ssl-mode"] = "VERIFY_IDENTITY" if name.endswith("identity") else "VERIFY_CA"
        elif name == "ssl":
            options.update(_tls(value))
        elif name not in _WITHOUT_MEANING:
            raise ValueError(f"binlogz.compat has no connection setting {name}; see docs/reference/python.md")
    if "socket" not in options:
        # PyMySQL takes TCP, also to localhost.
        options["protocol"] = "tcp"
    options["get-server-public-key"] = "1"
    return list(options.items()), silence


def _tls(ssl):
    if not ssl:
        return {}
    if not isinstance(ssl, dict):
        raise ValueError("the connection setting ssl is no dict; name files: {'ca': …, 'cert': …, 'key': …}")
    options = {"ssl-mode": "REQUIRED"}
    for name, value in ssl.items():
        if name in ("ca", "capath", "cert", "key", "cipher"):
            options[f"ssl-{name}"] = value
            if name in ("ca", "capath"):
                options["ssl-mode"] = "VERIFY_IDENTITY" if ssl.get("check_hostname", True) else "VERIFY_CA"
        elif name not in ("check_hostname", "verify_mode"):
            raise ValueError(f"the connection setting ssl has {name}, expected ca, capath, cert, key, cipher, check_hostname")
    return options


def _end_of_log(options):
    try:
        status = _native.ask(options, "SHOW BINARY LOG STATUS")
    except OSError:
        # Servers before 8.2.
        status = _native.ask(options, "SHOW MASTER STATUS")
    if not status:
        raise ValueError("the server writes no binary log")
    return status[0]["File"].decode(), int(status[0]["Position"])
