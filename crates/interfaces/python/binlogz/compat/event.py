"""The events of python-mysql-replication's module `event`."""

from __future__ import annotations

import datetime
import json
import struct


class BinLogPacketWrapper:
    """The header of an event. `log_pos` is where a reader that has the event may begin again: of an event inside a compressed
    transaction it is where that begins, and of its last one where it ends."""

    __slots__ = (
        "event_type", "timestamp", "server_id", "event_size", "body_size", "log_pos", "flags", "log_file", "offset", "is_in_payload",
        "content", "event",
    )  # fmt: skip

    def __init__(self, event):
        (
            self.event_type,
            self.timestamp,
            self.server_id,
            self.event_size,
            self.body_size,
            self.log_pos,
            self.flags,
            self.log_file,
            self.offset,
            self.is_in_payload,
            self.content,
        ) = event

    @property
    def read_bytes(self):
        return self.body_size


class BinLogEvent:
    """What all events have."""

    complete = True
    dbms = "mysql"
    _processed = True

    def __init__(self, packet, reader):
        self.packet = packet
        self.table_map = reader.table_map
        self.event_type = packet.event_type
        self.timestamp = packet.timestamp
        self.event_size = packet.body_size
        self.mysql_version = reader.mysql_version
        self._read(packet.content)

    def _read(self, content):
        """Takes the fields from what the native module made of the body."""

    @property
    def formatted_timestamp(self) -> str:
        time = datetime.datetime.fromtimestamp(self.timestamp, datetime.timezone.utc)
        return time.replace(tzinfo=None).isoformat()

    def dump(self):
        print(f"=== {self.__class__.__name__} ===")
        print(f"Date: {self.formatted_timestamp}")
        print(f"Log position: {self.packet.log_pos}")
        print(f"Event size: {self.event_size}")
        print(f"Read bytes: {self.packet.read_bytes}")
        self._dump()
        print()

    def to_dict(self) -> dict:
        return {
            "timestamp": self.formatted_timestamp,
            "log_pos": self.packet.log_pos,
            "event_size": self.event_size,
            "read_bytes": self.packet.read_bytes,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    def _dump(self):
        pass


class GtidEvent(BinLogEvent):
    """A transaction begins. One with a tag, which python-mysql-replication does not know, is one too."""

    lt_type = 2

    def _read(self, content):
        self._gtid, self.commit_flag, self.last_committed, self.sequence_number, _, _ = content
        source, _, number = self._gtid.rpartition(":")
        self.sid = bytes.fromhex(source.partition(":")[0].replace("-", ""))
        self.gno = int(number)

    @property
    def gtid(self):
        return self._gtid

    def _dump(self):
        print(f"Commit: {self.commit_flag}")
        print(f"GTID_NEXT: {self.gtid}")
        print(f"last_committed: {self.last_committed}")
        print(f"sequence_number: {self.sequence_number}")

    def __repr__(self):
        return f'<GtidEvent "{self.gtid}">'


class PreviousGtidsEvent(BinLogEvent):
    """The GTIDs of the logs before."""

    def _read(self, content):
        (count,) = struct.unpack_from("<q", content)
        at, gtids = 8, []
        # A set with tags has another form.
        for _ in range(count if count < 1 << 32 else 0):
            nibbles, (intervals,) = content[at : at + 16].hex(), struct.unpack_from("<Q", content, at + 16)
            at += 24
            listed = []
            for _ in range(intervals):
                listed.append("%d-%d" % struct.unpack_from("<qQ", content, at))
                at += 16
            source = "-".join([nibbles[:8], nibbles[8:12], nibbles[12:16], nibbles[16:20], nibbles[20:], ""])
            gtids.append(f"{source}:{listed}")
        self._n_sid, self._gtids, self._previous_gtids = count, gtids, ",".join(gtids)

    def _dump(self):
        print(f"previous_gtids: {self._previous_gtids}")

    def __repr__(self):
        return f'<PreviousGtidsEvent "{self._previous_gtids}">'


class RotateEvent(BinLogEvent):
    """Another log follows."""

    def _read(self, content):
        (self.position,) = struct.unpack_from("<Q", content)
        self.next_binlog = content[8:].decode()

    def dump(self):
        print(f"=== {self.__class__.__name__} ===")
        print(f"Position: {self.position}")
        print(f"Next binlog file: {self.next_binlog}")
        print()


class XAPrepareEvent(BinLogEvent):
    """An XA transaction is prepared."""

    def _read(self, content):
        one_phase, self.xid_format_id, gtrid, bqual = struct.unpack_from("<BIII", content)
        self.one_phase = one_phase != 0
        self.xid_gtrid, self.xid_bqual = content[13 : 13 + gtrid], content[13 + gtrid : 13 + gtrid + bqual]

    @property
    def xid(self):
        return self.xid_gtrid.decode() + self.xid_bqual.decode()

    def _dump(self):
        print(f"One phase: {self.one_phase}")
        print(f"XID formatID: {self.xid_format_id}")
        print(f"XID: {self.xid}")


class FormatDescriptionEvent(BinLogEvent):
    """A log begins."""

    def _read(self, content):
        self.binlog_version = struct.unpack_from("<H", content)
        self.mysql_version_str = content[2:52].rstrip(b"\0").decode()
        self.mysql_version = tuple(map(int, self.mysql_version_str.split("-")[0].split(".")))
        self.created, self.common_header_len = struct.unpack_from("<IB", content, 52)
        has_checksum = self.mysql_version >= (5, 6)
        self.post_header_len = tuple(content[57 : len(content) - 1 if has_checksum else None])
        self.checksum_algorithm = content[-1] if has_checksum else None
        self.server_version_split = self.mysql_version[:3]
        self.number_of_event_types = len(self.post_header_len)

    def _dump(self):
        print(f"Binlog version: {self.binlog_version}")
        print(f"mysql version: {self.mysql_version_str}")
        print(f"Created: {self.created}")
        print(f"Common header length: {self.common_header_len}")
        print(f"Post header length: {self.post_header_len}")
        print(f"Server version split: {self.server_version_split}")
        print(f"Number of event types: {self.number_of_event_types}")


class StopEvent(BinLogEvent):
    """The server stopped."""


class XidEvent(BinLogEvent):
    """A transaction commits."""

    def _read(self, content):
        (self.xid,) = struct.unpack_from("<Q", content)

    def _dump(self):
        print(f"Transaction ID: {self.xid}")


class HeartbeatLogEvent(BinLogEvent):
    """Nothing happened for a while."""

    def _read(self, content):
        self.ident = content.decode()

    def _dump(self):
        print(f"Current binlog: {self.ident}")


#: Status variables of a statement by their numbers: the attributes, and their layout.
_STATUS_VARIABLES = {
    0x00: (("flags2",), "<I"),
    0x01: (("sql_mode",), "<Q"),
    0x03: (("auto_increment_increment", "auto_increment_offset"), "<HH"),
    0x04: (("character_set_client", "collation_connection", "collation_server"), "<HHH"),
    0x07: (("lc_time_names_number",), "<H"),
    0x08: (("charset_database_number",), "<H"),
    0x09: (("table_map_for_update",), "<Q"),
    0x10: (("explicit_defaults_ts",), "<B"),
    0x11: (("ddl_xid",), "<Q"),
    0x12: (("default_collation_for_utf8mb4_number",), "<H"),
    0x13: (("sql_require_primary_key",), "<B"),
    0x14: (("default_table_encryption",), "<B"),
}


class QueryEvent(BinLogEvent):
    """A statement. Its status variables are read when one is asked for."""

    def _read(self, content):
        self.slave_proxy_id, self.execution_time, self.error_code, self.schema, statement, self._status = content
        self.schema_length, self.status_vars_length = len(self.schema), len(self._status)
        self.query = statement.decode("utf-8", errors="backslashreplace")

    def __getattr__(self, name):
        if name.startswith("_") or "_status" not in self.__dict__:
            raise AttributeError(name)
        self.__dict__.update(_status_variables(self.__dict__.pop("_status")))
        if name not in self.__dict__:
            raise AttributeError(f"{self.__class__.__name__} has no attribute {name!r}")
        return self.__dict__[name]

    def _dump(self):
        print(f"Schema: {self.schema}")
        print(f"Execution time: {self.execution_time}")
        print(f"Query: {self.query}")


def _status_variables(data):
    found, at = {}, 0

    def text():
        nonlocal at
        size = data[at]
        at += 1 + size
        return data[at - size : at]

    while at < len(data):
        key = data[at]
        at += 1
        if key in _STATUS_VARIABLES:
            names, layout = _STATUS_VARIABLES[key]
            found.update(zip(names, struct.unpack_from(layout, data, at)))
            at += struct.calcsize(layout)
        elif key in (0x05, 0x06):
            value = text()
            if value:
                found["time_zone" if key == 0x05 else "catalog_nz_code"] = value
        elif key == 0x0B:
            for name in ("user", "host"):
                value = text()
                if value:
                    found[name] = value
        elif key == 0x0C:
            count = data[at]
            at += 1
            if count != 254:
                names = []
                for _ in range(count):
                    end = data.index(0, at)
                    names.append(data[at:end])
                    at = end + 1
                found["mts_accessed_db_names"] = names
        elif key == 0x0D:
            found["microseconds"] = int.from_bytes(data[at : at + 3], "little")
            at += 3
        else:
            # Its length is not known, so nothing after it can be read.
            break
    return found


class BeginLoadQueryEvent(BinLogEvent):
    """The first block of a file."""

    def _read(self, content):
        (self.file_id,) = struct.unpack_from("<I", content)
        self.block_data = content[4:]

    def _dump(self):
        print(f"File id: {self.file_id}")
        print(f"Block data: {self.block_data}")


class ExecuteLoadQueryEvent(BinLogEvent):
    """A file is loaded."""

    def _read(self, content):
        fields = struct.unpack_from("<IIBHHIIIB", content)
        self.slave_proxy_id, self.execution_time, self.schema_length, self.error_code = fields[:4]
        self.status_vars_length, self.file_id, self.start_pos, self.end_pos, self.dup_handling_flags = fields[4:]

    def _dump(self):
        print(f"Slave proxy id: {self.slave_proxy_id}")
        print(f"Execution time: {self.execution_time}")
        print(f"Schema length: {self.schema_length}")
        print(f"Error code: {self.error_code}")
        print(f"Status vars length: {self.status_vars_length}")
        print(f"File id: {self.file_id}")
        print(f"Start pos: {self.start_pos}")
        print(f"End pos: {self.end_pos}")
        print(f"Dup handling flags: {self.dup_handling_flags}")


class IntvarEvent(BinLogEvent):
    """A value for AUTO_INCREMENT."""

    def _read(self, content):
        self.type, self.value = struct.unpack_from("<BI", content)

    def _dump(self):
        print(f"type: {self.type}")
        print(f"Value: {self.value}")


class RandEvent(BinLogEvent):
    """The seeds of RAND()."""

    def _read(self, content):
        self.seed1, self.seed2 = struct.unpack_from("<QQ", content)

    def _dump(self):
        print(f"seed1: {self.seed1}")
        print(f"seed2: {self.seed2}")


class UserVarEvent(BinLogEvent):
    """A user variable of the next statement; its value as the log has it, in bytes."""

    def _read(self, content):
        (self.name_len,) = struct.unpack_from("<I", content)
        at = 4 + self.name_len
        self.name, self.is_null = content[4:at].decode(), content[at]
        self.type = self.charset = self.value = None
        if not self.is_null:
            self.type, self.charset, self.value_len = struct.unpack_from("<BII", content, at + 1)
            self.value = content[at + 10 : at + 10 + self.value_len]

    def _dump(self):
        print(f"User variable name: {self.name}")
        print(f"Value: {self.value}")


class RowsQueryLogEvent(BinLogEvent):
    """The statement that row changes come from."""

    def _read(self, content):
        self.query = content[1:].decode("utf-8")

    def dump(self):
        print(f"=== {self.__class__.__name__} ===")
        print(f"Query: {self.query}")


class NotImplementedEvent(BinLogEvent):
    """Any other event."""
