"""Data files of an Iceberg table, and the properties that a commit leaves with them. What isn't pyiceberg's public interface is used
here alone."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional

import pyarrow
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table, Transaction
from pyiceberg.table.snapshots import ancestors_of

#: A property of a table, and of each snapshot that a run adds to it: the GTIDs whose rows are in the table.
GTIDS = "binlogz.gtids"
#: The number of the run that committed last, from 1 on.
RUN = "binlogz.run"
#: The identity of the ledger that a table belongs to.
LINEAGE = "binlogz.lineage"
#: Properties of each table that is made. A commit that meets another one is not tried again by pyiceberg, since the other one may have
#: appended the same rows.
TABLE_PROPERTIES = {"format-version": "2", "commit.retry.num-retries": "0", "write.parquet.compression-codec": "zstd"}
#: Bytes of rows in memory that become data files at once.
CHUNK_BYTES = 64 << 20


def covered(table: Table) -> str:
    """The GTIDs whose rows a table has.

    ValueError: the table was set back to an older snapshot, so that its rows and its properties tell different things.
    """
    told = table.properties.get(GTIDS, "")
    snapshot = table.current_snapshot()
    own: Optional[str] = None
    for ancestor in ancestors_of(snapshot, table.metadata):
        if ancestor.summary is not None and ancestor.summary.additional_properties.get(GTIDS) is not None:
            own = ancestor.summary.additional_properties[GTIDS]
            break
    # Without such a snapshot they are expired, and the property alone is left.
    if (own is not None and own != told) or (snapshot is None and told):
        name = ".".join(table.name())
        raise ValueError(f"{name}: its snapshot has the GTIDs {own or 'of no run'}, its property {told}; was it rolled back? expected the same")
    return told


class Commit:
    """New data files of a table, and files that they replace, which become one snapshot. Nothing of it is seen before `finish`."""

    def __init__(self, table: Table, gtids: str, run: int, replaces: bool) -> None:
        told = {GTIDS: gtids, RUN: str(run)}
        self._io = table.io
        self._transaction: Transaction = table.transaction()
        self._transaction.set_properties(told)
        update = self._transaction.update_snapshot(snapshot_properties=told)
        self._snapshot = update.overwrite() if replaces else update.merge_append()
        self._waiting: List[pyarrow.Table] = []
        self._bytes = 0
        self.rows = 0

    def add(self, rows: pyarrow.Table) -> None:
        """Takes rows with the columns of the table's schema; they are written once there are enough of them."""
        if rows.num_rows == 0:
            return
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        self.rows += rows.num_rows
        if self._bytes >= CHUNK_BYTES:
            self._write()

    def replace(self, file: DataFile) -> None:
        """Takes a file out of the table."""
        self._snapshot.delete_data_file(file)

    def finish(self) -> None:
        """Commits all of it at once. CommitFailedException: somebody else committed meanwhile."""
        self._write()
        self._snapshot.commit()
        self._transaction.commit_transaction()

    def _write(self) -> None:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        if not waiting:
            return
        rows = pyarrow.concat_tables(waiting)
        for file in _dataframe_to_data_files(table_metadata=self._transaction.table_metadata, df=rows, io=self._io):
            self._snapshot.append_data_file(file)


def tasks(table: Table) -> Iterator[FileScanTask]:
    """The data files of the table's current snapshot."""
    return iter(table.scan().plan_files())


def read(table: Table, task: FileScanTask) -> pyarrow.Table:
    """The rows of a data file, as the table's schema has them."""
    scan = ArrowScan(table_metadata=table.metadata, io=table.io, projected_schema=table.schema(), row_filter=AlwaysTrue())
    return scan.to_table(tasks=[task])


def properties_of(kind: str, lineage: str, **others: str) -> Dict[str, str]:
    """The properties of a table that is made. kind: transactions, changes or current."""
    return {**TABLE_PROPERTIES, LINEAGE: lineage, "binlogz.kind": kind, **{f"binlogz.{name}": value for name, value in others.items()}}
