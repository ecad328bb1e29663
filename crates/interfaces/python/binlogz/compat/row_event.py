"""The events of python-mysql-replication's module `row_event`."""

from __future__ import annotations

from .event import BinLogEvent


class Column:
    """A column of a table. Names of character sets and collations are not here: `collation_id` is its number."""

    def __init__(self, definition):
        self.type, self.name, self.unsigned, self.is_primary, self.collation_id, members, metadata, self.nullable = definition
        self.enum_values = [""] + members if self.type == 247 and members is not None else None
        self.set_values = members if self.type == 248 else None
        high, low = metadata >> 8, metadata & 0xFF
        if self.type in (247, 248):
            self.size = low
        elif self.type == 15:
            self.max_length = metadata
        elif self.type in (253, 254):
            self.max_length = ((metadata >> 4 & 0x300) ^ 0x300) + low
        elif self.type in (4, 5):
            self.size = metadata
        elif self.type in (17, 18, 19):
            self.fsp = metadata
        elif self.type in (245, 252, 255):
            self.length_size = metadata
        elif self.type == 246:
            self.precision, self.decimals = high, low
        elif self.type == 16:
            self.bits = high * 8 + low
            self.bytes = (self.bits + 7) // 8

    @property
    def data(self):
        return dict(self.__dict__)

    def __eq__(self, other):
        return self.data == other.data


class Table:
    """A table."""

    def __init__(self, table_id, native):
        self.table_id, self.schema, self.table = table_id, native.schema, native.table
        self.columns = [Column(definition) for definition in native.definitions]
        key = [column.name for column in self.columns if column.is_primary]
        self.primary_key = "" if not key else key[0] if len(key) == 1 else tuple(key)
        self.column_name_flag = any(column.name is not None for column in self.columns)

    @property
    def data(self):
        return dict(self.__dict__)

    def __eq__(self, other):
        return self.data == other.data


class TableMapEvent(BinLogEvent):
    """The table of the row events that follow."""

    def __init__(self, packet, reader):
        self.table_id, native = packet.content
        self.table_obj = reader._table(self.table_id, native)
        super().__init__(packet, reader)

    def _read(self, content):
        table = self.table_obj
        self.schema, self.table, self.columns = table.schema, table.table, table.columns
        self.schema_length, self.table_length = len(self.schema.encode()), len(self.table.encode())
        self.column_count = len(self.columns)

    @property
    def null_bitmask(self):
        bits = sum(1 << index for index, column in enumerate(self.columns) if column.nullable)
        return bits.to_bytes((self.column_count + 7) // 8, "little")

    def get_table(self):
        return self.table_obj

    def _dump(self):
        print(f"Table id: {self.table_id}")
        print(f"Schema: {self.schema}")
        print(f"Table: {self.table}")
        print(f"Columns: {self.column_count}")


class RowsEvent(BinLogEvent):
    """Rows of a table. They are made when they are asked for."""

    def __init__(self, packet, reader):
        rows = packet.content
        self.table_id, self.flags, self.number_of_columns, self.columns_present_bitmap, after = rows.head
        if after is not None:
            self.columns_present_bitmap2 = after
        table = reader._table(self.table_id, rows.table)
        self.schema, self.table, self.primary_key, self.columns = table.schema, table.table, table.primary_key, table.columns
        self._native, self._rows = rows, None
        self._column_name_flag = table.column_name_flag
        super().__init__(packet, reader)

    @property
    def rows(self):
        if self._rows is None:
            self._rows = self._native.compat()
        return self._rows

    def _dump(self):
        print(f"Table: {self.schema}.{self.table}")
        print(f"Affected columns: {self.number_of_columns}")
        print(f"Changed rows: {len(self.rows)}")
        print(f"Column Name Information Flag: {self._column_name_flag}")


def _dump_values(event):
    print("Values:")
    for row in event.rows:
        print("--")
        for key, value in row["values"].items():
            source = row["none_sources"].get(key)
            print(f"* {key} : {value} ({source})" if source else f"* {key} : {value}")


class WriteRowsEvent(RowsEvent):
    """Inserted rows: each a dict with `values` and `none_sources`."""

    def _dump(self):
        super()._dump()
        _dump_values(self)


class DeleteRowsEvent(RowsEvent):
    """Deleted rows: each a dict with `values` and `none_sources`."""

    def _dump(self):
        super()._dump()
        _dump_values(self)


class UpdateRowsEvent(RowsEvent):
    """Updated rows: each a dict with `before_values` and `after_values`, and their `…_none_sources`."""

    def _dump(self):
        super()._dump()
        print("Values:")
        for row in self.rows:
            print("--")
            for key, before in row["before_values"].items():
                after = row["after_values"][key]
                if key in row["before_none_sources"]:
                    before = (f"{before} ", f"{row['before_none_sources'][key]} ")
                if key in row["after_none_sources"]:
                    after = (f"{after} ", f"{row['after_none_sources'][key]} ")
                print(f"*{key}:{before}=>{after}")


class PartialUpdateRowsEvent(UpdateRowsEvent):
    """Updated rows whose documents were logged as differences; here they are whole."""
