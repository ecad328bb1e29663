"""The change log of a table: a row for each row change, appended once. Its columns are those of `binlogz sql`; it is divided by the day
of the commit, in UTC."""

from __future__ import annotations

import pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform
from pyiceberg.types import NestedField, StructType

from .columns import Columns, columns_of, of_spark
from .files import Commit
from .rows import CHANGE_COLUMNS, shaped

_COMMITTED_AT = "committed_at"
#: The columns that have a row's columns.
IMAGES = ("before", "after")


def schema_of(columns: Columns) -> Schema:
    """The schema of a change log."""
    told = [NestedField(-1, name, of_spark(kind), required=False) for name, kind in CHANGE_COLUMNS]
    images = [NestedField(-1, name, columns.struct(), required=False) for name in IMAGES]
    return assign_fresh_schema_ids(Schema(*told, *images))


def by_day(schema: Schema) -> PartitionSpec:
    """A partition for each day of the commit."""
    source = schema.find_field(_COMMITTED_AT).field_id
    return PartitionSpec(PartitionField(source_id=source, field_id=1000, transform=DayTransform(), name="committed_day"))


def columns_there(table: Table) -> Columns:
    """The columns of the images that a change log has."""
    image = table.schema().find_field("after").field_type
    assert isinstance(image, StructType)
    return columns_of(image.fields)


class ChangeLog:
    """Row changes that a commit adds to a change log."""

    def __init__(self, table: Table, gtids: str, run: int) -> None:
        self._commit = Commit(table, gtids, run, replaces=False)
        self._schema = table.schema().as_arrow()

    def take(self, batch: pyarrow.RecordBatch) -> None:
        self._commit.add(shaped(batch, self._schema))

    def finish(self) -> int:
        """Commits them; how many there were."""
        self._commit.finish()
        return self._commit.rows
