"""Data files of an Iceberg table, and the properties that a commit leaves with them. What isn't pyiceberg's public interface is used
here alone."""

from __future__ import annotations

import itertools
import re
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar

import pyarrow
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files
from pyiceberg.manifest import DataFile, ManifestEntry
from pyiceberg.table import FileScanTask, Table, Transaction
from pyiceberg.table.snapshots import Operation, Summary, ancestors_of
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT

#: What an append returns.
Rows = TypeVar("Rows")
#: A property of a table, and of each snapshot that a run adds to it: the GTIDs whose rows are in the table.
GTIDS = "binlogz.gtids"
#: The number of the run that committed last, from 1 on.
RUN = "binlogz.run"
#: A property of a snapshot that only joins files.
JOINED = "binlogz.joined"
#: The identity of the ledger that a table belongs to.
LINEAGE = "binlogz.lineage"
#: Properties of each table that is made. A commit that meets another one is not tried again by pyiceberg, since the other one may have
#: appended the same rows.
TABLE_PROPERTIES = {"format-version": "2", "commit.retry.num-retries": "0", "write.parquet.compression-codec": "zstd"}
#: How often a commit is tried where a compaction, or for a compaction a run, commits at the same time.
COMMITS_MAX = 8
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


def appended(table: Table, append: Callable[[], Rows]) -> Rows:
    """Appends to a table, again where `compact` committed meanwhile.

    CommitFailedException: another run committed, or compactions again and again.
    """
    had = covered(table)
    for left in reversed(range(COMMITS_MAX)):
        try:
            return append()
        except CommitFailedException:
            table.refresh()
            if not left or covered(table) != had:
                raise
    raise AssertionError("the last try returns or raises")


class Commit:
    """New data files of a table, and files that they replace, which become one snapshot. Nothing of it is seen before `finish`."""

    def __init__(self, table: Table, gtids: str, run: int, replaces: bool) -> None:
        told = {GTIDS: gtids, RUN: str(run)}
        self._transaction: Transaction = table.transaction()
        self._transaction.set_properties(told)
        update = self._transaction.update_snapshot(snapshot_properties=told)
        self._snapshot = update.overwrite() if replaces else update.merge_append()
        self._files = _FileWriter(table)
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
        for file in self._files.write(pyarrow.concat_tables(waiting)):
            self._snapshot.append_data_file(file)


class _FileWriter:
    """Writes data files of a table, whose names tell their order."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._uuid, self._numbers = uuid.uuid4(), itertools.count(0)

    def write(self, rows: pyarrow.Table) -> Iterator[DataFile]:
        """Writes rows with the columns of the table's schema."""
        made = _dataframe_to_data_files(
            table_metadata=self._table.metadata, df=rows, io=self._table.io, write_uuid=self._uuid, counter=self._numbers
        )
        return iter(made)


@dataclass
class FileJoin:
    """Data files whose rows are in new ones."""

    old: List[DataFile]
    new: List[DataFile]


class FileJoins:
    """Data files that are joined, which becomes one snapshot: its rows are those of the one before it. Nothing of it is seen before
    `commit`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._files = _FileWriter(table)
        self._all: List[FileJoin] = []

    def add(self, old: List[DataFile], rows: pyarrow.Table) -> None:
        """Takes data files and their rows, in the order that they get."""
        self._all.append(FileJoin(old, list(self._files.write(rows))))

    def commit(self) -> bool:
        """Commits them, whatever runs append meanwhile; whether there was any left, since a run may replace files too.

        CommitFailedException: others committed again and again.
        """
        for left in reversed(range(COMMITS_MAX)):
            if not self._all:
                return False
            try:
                self._try()
                return True
            except CommitFailedException:
                self._table.refresh()
                self._keep_possible()
                if not left:
                    self._remove(self._all)
                    raise
        return False

    def _try(self) -> None:
        gtids = covered(self._table)
        # A later run finds in the newest snapshot what the table has.
        told = {GTIDS: gtids, RUN: self._table.properties.get(RUN, "0"), JOINED: "true"}
        transaction = self._table.transaction()
        snapshot = _ReplaceFiles(operation=Operation.OVERWRITE, transaction=transaction, io=self._table.io, snapshot_properties=told)
        for join in self._all:
            for file in join.old:
                snapshot.delete_data_file(file)
            for file in join.new:
                snapshot.append_data_file(file)
        snapshot.commit()
        transaction.commit_transaction()

    def _keep_possible(self) -> None:
        """Leaves out those with a file that the table has no more."""
        there = {task.file.file_path for task in tasks(self._table)}
        joins, self._all = self._all, []
        gone: List[FileJoin] = []
        for join in joins:
            (self._all if all(file.file_path in there for file in join.old) else gone).append(join)
        self._remove(gone)

    def _remove(self, joins: Sequence[FileJoin]) -> None:
        """Removes files that the table doesn't have."""
        there = {task.file.file_path for task in tasks(self._table)}
        for file in (file for join in joins for file in join.new if file.file_path not in there):
            self._table.io.delete(file.file_path)


class _ReplaceFiles(_OverwriteFiles):
    """Replaces files by others with the same rows, which readers of what is new can pass over."""

    def _summary(self, snapshot_properties: Dict[str, str] = EMPTY_DICT) -> Summary:
        told = super()._summary(snapshot_properties)
        return Summary(operation=Operation.REPLACE, **told.additional_properties)


def tasks(table: Table) -> Iterator[FileScanTask]:
    """The data files of the table's current snapshot."""
    return iter(table.scan().plan_files())


def by_partition(table: Table) -> List[List[FileScanTask]]:
    """The data files of each partition, in the order in which they were written."""
    order = {entry.data_file.file_path: entry.sequence_number or 0 for entry in _entries(table)}
    found: Dict[Tuple[int, Any], List[FileScanTask]] = {}
    for task in tasks(table):
        found.setdefault((task.file.spec_id, task.file.partition), []).append(task)
    for files in found.values():
        files.sort(key=lambda task: (order.get(task.file.file_path, 0), _number(task.file.file_path), task.file.file_path))
    return list(found.values())


def _entries(table: Table) -> Iterator[ManifestEntry]:
    snapshot = table.current_snapshot()
    for manifest in snapshot.manifests(table.io) if snapshot is not None else ():
        yield from manifest.fetch_manifest_entry(table.io, discard_deleted=True)


def _number(path: str) -> int:
    """The number that a data file has among those of its commit."""
    found = re.match(r"\d+-(\d+)-", path.rpartition("/")[2])
    return int(found.group(1)) if found else 0


def read(table: Table, task: FileScanTask) -> pyarrow.Table:
    """The rows of a data file, as the table's schema has them."""
    scan = ArrowScan(table_metadata=table.metadata, io=table.io, projected_schema=table.schema(), row_filter=AlwaysTrue())
    return scan.to_table(tasks=[task])


def properties_of(kind: str, lineage: str, **others: str) -> Dict[str, str]:
    """The properties of a table that is made. kind: transactions, changes or current."""
    return {**TABLE_PROPERTIES, LINEAGE: lineage, "binlogz.kind": kind, **{f"binlogz.{name}": value for name, value in others.items()}}
