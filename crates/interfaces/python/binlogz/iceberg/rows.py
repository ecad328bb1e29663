"""Rows of a table as its Iceberg schema has them."""

from __future__ import annotations

from typing import Iterator, List, Optional, Sequence, Tuple

import pyarrow

from .. import _native
from ..parts import conditions

#: The columns of row changes, with Spark's names of their types; `before` and `after` follow.
CHANGE_COLUMNS: Tuple[Tuple[str, str], ...] = (
    ("log", "string"),
    ("position", "bigint"),
    ("gtid", "string"),
    ("committed_at", "timestamp"),
    ("applied_at", "timestamp"),
    ("logged_at", "timestamp"),
    ("server_id", "bigint"),
    ("offset", "bigint"),
    ("row", "bigint"),
    ("operation", "string"),
)
#: Those of transactions, but for `tables`.
TRANSACTION_COLUMNS: Tuple[Tuple[str, str], ...] = CHANGE_COLUMNS[:7] + (
    ("thread_id", "bigint"),
    ("events", "bigint"),
    ("bytes", "bigint"),
    ("inserted", "bigint"),
    ("updated", "bigint"),
    ("deleted", "bigint"),
    ("statement", "string"),
)


class Source:
    """The logs of a run, and which of their transactions it takes."""

    def __init__(self, logs: Sequence[Tuple[str, str]], until: str) -> None:
        #: Paths, each with the GTIDs of its whole transactions.
        self.logs = logs
        self.until = until

    def new(self, covered: str) -> str:
        """The transactions that the run takes, without those that are covered."""
        return str(_native.gtid_set([self.until], [covered]))

    def changes(
        self, table: Tuple[str, str], columns: List[Tuple[str, str]], covered: str, is_told: bool
    ) -> Iterator[pyarrow.RecordBatch]:
        """The row changes of a table in the transactions that aren't covered. is_told: statements of all logs tell its columns."""
        asked = conditions(is_told, start_after=covered, until=self.until, schemas=[table[0]], tables=[table[1]])
        rows = _native.arrow_parts(self._parts(covered, is_told), False, table, columns, False, asked)
        return iter(pyarrow.RecordBatchReader.from_stream(rows))

    def transactions(self, covered: str) -> Iterator[pyarrow.RecordBatch]:
        """The transactions that aren't covered."""
        asked = conditions(False, start_after=covered, until=self.until)
        rows = _native.arrow_parts(self._parts(covered, False), True, None, [], False, asked)
        return iter(pyarrow.RecordBatchReader.from_stream(rows))

    def _parts(self, covered: str, is_told: bool) -> List[Tuple[str, None, None]]:
        new = self.new(covered)
        has = [path for path, gtids in self.logs if is_told or _native.gtid_set([gtids], [_native.gtid_set([gtids], [new])])]
        return [(path, None, None) for path in has]


def _column(field: pyarrow.Field, found: Optional[pyarrow.Array], count: int) -> pyarrow.Array:
    """A column of a field's type: what was found, by the names of its fields if it is a struct; without, NULL."""
    if found is None:
        return pyarrow.nulls(count, field.type)
    if not pyarrow.types.is_struct(field.type):
        return found.cast(field.type)
    there = {found.type.field(index).name: index for index in range(found.type.num_fields)}
    parts = [_column(part, found.field(there[part.name]) if part.name in there else None, count) for part in field.type]
    return pyarrow.StructArray.from_arrays(parts, fields=list(field.type), mask=found.is_null())


def shaped(batch: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.Table:
    """A batch with the columns of a schema, in its types.

    ArrowInvalid: a NULL in a column that has none.
    """
    names = set(batch.schema.names)
    columns = [_column(field, batch.column(field.name) if field.name in names else None, batch.num_rows) for field in schema]
    return pyarrow.Table.from_arrays(columns, schema=schema)
