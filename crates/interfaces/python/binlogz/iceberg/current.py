"""The rows of a table as the last changes in the logs left them: for each key the row after its last change, unless that deleted it.
Rows that no change in the logs touched aren't there; TRUNCATE, DROP TABLE and DROP DATABASE take all of them.

A run replaces only the data files that have a key which it touches, and joins small ones with them.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

import pyarrow
import pyarrow.compute
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, FloatType, IntegerType, LongType, StringType

from .columns import Columns, columns_of
from .files import CHUNK_BYTES, Commit, read, tasks
from .rows import shaped
from .statements import Statement

#: A data file of fewer bytes is written anew with each run's rows, so that runs don't leave ever more small ones.
_SMALL_BYTES = 8 << 20

Key = Tuple[object, ...]


def schema_of(columns: Columns, key: Sequence[str]) -> Schema:
    """The schema of current rows. The columns of the key are required, and Iceberg's identifiers where it lets them be."""
    schema = assign_fresh_schema_ids(Schema(*columns.fields(key)))
    own = [field for field in schema.fields if field.required]
    can_identify = not any(isinstance(field.field_type, (FloatType, DoubleType)) for field in own)
    return Schema(*schema.fields, identifier_field_ids=[field.field_id for field in own] if can_identify else [])


def columns_there(table: Table) -> Columns:
    """The columns that current rows have."""
    return columns_of(table.schema().fields)


class CurrentRows:
    """Row changes that become the current rows of a table. emptied: statements that took all rows, in the logs' order; logs: the logs'
    names in their order."""

    def __init__(
        self, table: Table, key: Sequence[str], gtids: str, run: int, emptied: Sequence[Statement], logs: Sequence[str]
    ) -> None:
        self._table, self._key = table, list(key)
        self._commit = Commit(table, gtids, run, replaces=True)
        self._schema = table.schema().as_arrow()
        self._order = {name: number for number, name in enumerate(logs)}
        self._emptied = [(self._order[statement.log], statement.offset) for statement in emptied]
        self._replaces_all = False
        #: By key, the last row: which of the kept tables, and where in it; None: deleted.
        self._last: Dict[Key, Optional[Tuple[int, int]]] = {}
        self._kept: List[pyarrow.Table] = []
        self._bytes = 0

    def take(self, batch: pyarrow.RecordBatch) -> None:
        """Takes row changes, in the logs' order."""
        befores, afters = self._keys(batch, "before"), self._keys(batch, "after")
        logs, offsets = batch.column("log").to_pylist(), batch.column("offset").to_pylist()
        number = len(self._kept)
        after = batch.column("after")
        image = pyarrow.RecordBatch.from_arrays(after.flatten(), names=[field.name for field in after.type])
        self._kept.append(pyarrow.Table.from_batches([image]))
        self._bytes += image.nbytes
        for row in range(batch.num_rows):
            while self._emptied and self._emptied[0] < (self._order[logs[row]], offsets[row]):
                self._empty()
            before, new = befores[row], afters[row]
            if before is not None:
                self._last[before] = None
            if new is not None:
                self._last[new] = (number, row)
        if self._bytes > CHUNK_BYTES:
            self._compact()

    def finish(self) -> int:
        """Commits the rows that are left; how many keys the changes touched."""
        while self._emptied:
            self._empty()
        touched = self._touched()
        for task in tasks(self._table):
            if self._replaces_all:
                self._commit.replace(task.file)
            elif touched.num_rows and self._may_have(task.file, touched) or task.file.file_size_in_bytes < _SMALL_BYTES:
                self._rewrite(task.file, read(self._table, task), touched)
        self._compact()
        for kept in self._kept:
            for batch in kept.to_batches():
                self._commit.add(shaped(batch, self._schema))
        self._commit.finish()
        return len(self._last)

    def _rewrite(self, file: DataFile, rows: pyarrow.Table, touched: pyarrow.Table) -> None:
        left = _without(rows, touched, self._key)
        if left.num_rows < rows.num_rows or file.file_size_in_bytes < _SMALL_BYTES:
            self._commit.replace(file)
            for batch in left.to_batches():
                self._commit.add(shaped(batch, self._schema))

    def _empty(self) -> None:
        self._emptied.pop(0)
        self._replaces_all = True
        self._last, self._bytes = {}, 0
        # A batch that is being taken keeps its number.
        self._kept = [kept.slice(0, 0) for kept in self._kept[:-1]] + self._kept[-1:]

    def _keys(self, batch: pyarrow.RecordBatch, image: str) -> List[Optional[Key]]:
        rows = batch.column(image)
        there = {rows.type.field(index).name: index for index in range(rows.type.num_fields)}
        columns = [rows.field(there[name]).to_pylist() for name in self._key]
        keys: List[Optional[Key]] = list(zip(*columns))
        if rows.null_count:
            keys = [key if is_there else None for key, is_there in zip(keys, rows.is_valid().to_pylist())]
        return keys

    def _compact(self) -> None:
        """Keeps only the last row of each key."""
        wanted: Dict[int, List[Tuple[int, Key]]] = {}
        for key, place in self._last.items():
            if place is not None:
                wanted.setdefault(place[0], []).append((place[1], key))
        parts: List[pyarrow.Table] = []
        row = 0
        for number in sorted(wanted):
            chosen = sorted(wanted[number], key=_place)
            parts.append(self._kept[number].take([place for place, _ in chosen]))
            for _, key in chosen:
                self._last[key] = (0, row)
                row += 1
        self._kept = [pyarrow.concat_tables(parts)] if parts else []
        self._bytes = self._kept[0].nbytes // 2 if parts else 0

    def _touched(self) -> pyarrow.Table:
        """The keys that changes touched."""
        columns = list(zip(*self._last)) if self._last else [()] * len(self._key)
        fields = [self._schema.field(name) for name in self._key]
        return pyarrow.Table.from_arrays(
            [pyarrow.array(column, field.type) for column, field in zip(columns, fields)],
            schema=pyarrow.schema([pyarrow.field(name, field.type) for name, field in zip(self._key, fields)]),
        )

    def _may_have(self, file: DataFile, touched: pyarrow.Table) -> bool:
        """Whether a data file may have one of these keys, by the bounds of the key's first column."""
        field = self._table.schema().find_field(self._key[0])
        low, high = (file.lower_bounds or {}).get(field.field_id), (file.upper_bounds or {}).get(field.field_id)
        if low is None or high is None:
            return True
        keys = touched.column(0).to_pylist()
        if isinstance(field.field_type, (IntegerType, LongType)):
            first, last = (int.from_bytes(bound, "little", signed=True) for bound in (low, high))
            return bool(first <= max(keys) and min(keys) <= last)
        if isinstance(field.field_type, StringType):
            return bool(low <= max(keys).encode() and min(keys).encode() <= high)
        return True


def _place(chosen: Tuple[int, Key]) -> int:
    return chosen[0]


def _without(rows: pyarrow.Table, touched: pyarrow.Table, key: Sequence[str]) -> pyarrow.Table:
    """The rows without those of some keys, in their order."""
    if touched.num_rows == 0:
        return rows
    names = [f"k{number}" for number in range(len(key))]
    columns = [rows.column(name) for name in key]
    numbered = pyarrow.table([*columns, pyarrow.array(range(rows.num_rows), pyarrow.int64())], names=[*names, "row"])
    others = pyarrow.table([touched.column(name).cast(numbered.column(own).type) for name, own in zip(key, names)], names=names)
    left = numbered.join(others, keys=names, join_type="left anti").column("row")
    return rows if len(left) == rows.num_rows else rows.take(left.take(pyarrow.compute.sort_indices(left)))
