"""Joins small data files, as many runs leave them. The rows of a table stay as they are, and so does what its properties tell, so runs go
on as before; the snapshot is Iceberg's `replace`."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import pyarrow
import pyarrow.compute
from pyiceberg.catalog import Catalog
from pyiceberg.table import FileScanTask, Table

from .files import FileJoins, by_partition, covered, read
from .ledger import Ledger

#: Bytes of a file that others are joined to.
TARGET_BYTES = 64 << 20
#: A file of more than this share of the target stays as it is.
_SMALL_SHARE = 0.75
#: Bytes of rows in memory that become one file.
_ROWS_BYTES_MAX = 512 << 20
#: The order of rows in change logs and of transactions: that of the logs. A number of more digits is a later one.
_BY_LOG = ("log", "position", "offset")


def compact(
    catalog: Catalog, *, tables: Optional[Iterable[str]] = None, prefix: str = "", target_bytes: int = TARGET_BYTES
) -> Dict[str, Tuple[int, int]]:
    """Joins small data files of the tables that `append` makes, those of each partition, in one commit for each table; by the names of
    tables in the catalog, how many files they had and have, where that changed.

    tables: as schema.table; None: all, and the transactions. prefix: that of `append`. target_bytes: of a file. Rows are then in the order of
    the logs, current rows in that of their key. It may run beside `append`. Files that earlier snapshots have stay until those expire.

    ValueError: no run, or a table that isn't among theirs. CommitFailedException: others committed again and again; the table is as
    they left it.
    """
    if target_bytes < 1:
        raise ValueError(f"target_bytes is {target_bytes}, expected at least 1")
    ledger = Ledger(catalog, prefix, {})
    if ledger.before is None:
        raise ValueError(f"{'.'.join(ledger.identifier)} isn't in the catalog, expected it as the first run makes it, or another prefix")
    joined: Dict[str, Tuple[int, int]] = {}
    for identifier, is_current in _wanted(ledger, None if tables is None else sorted(tables)):
        table = ledger.find(identifier)
        if table is None:
            continue  # It was dropped.
        order = [part.name for part in table.schema().fields if part.required] if is_current else _BY_LOG
        before = _count(table)
        if _compact_table(table, order, target_bytes):
            joined[".".join(identifier)] = (before, _count(table))
    return joined


def _wanted(ledger: Ledger, chosen: Optional[Sequence[str]]) -> Iterator[Tuple[Tuple[str, str], bool]]:
    """The tables, and whether it is one of current rows."""
    names = {".".join(name): name for name in ledger.names}
    for name in chosen or ():
        if name not in names:
            raise ValueError(f"{name}: no run has appended to it, expected one of {', '.join(sorted(names)) or 'none'}")
    for name in names if chosen is None else chosen:
        yield ledger.names.changes(names[name]), False
        current = ledger.names.current(names[name])
        if current is not None:
            yield current, True
    if chosen is None:
        yield ledger.identifier, False


def _count(table: Table) -> int:
    return sum(len(files) for files in by_partition(table))


def _compact_table(table: Table, order: Sequence[str], target_bytes: int) -> bool:
    """Whether files were joined."""
    covered(table)  # An error in a table that was set back.
    joins = FileJoins(table)
    for files in by_partition(table):
        for part, rows in _parts(table, files, target_bytes):
            joins.add([task.file for task in part], _sorted(rows, order))
    return joins.commit()


def _parts(
    table: Table, files: Sequence[FileScanTask], target_bytes: int
) -> Iterator[Tuple[List[FileScanTask], pyarrow.Table]]:
    """The files of a partition that become one each, at least two, with their rows."""
    part: List[FileScanTask] = []
    rows: List[pyarrow.Table] = []
    size, held = 0, 0
    small = [task for task in files if task.file.file_size_in_bytes <= target_bytes * _SMALL_SHARE]
    for task in small if len(small) > 1 else ():
        of_file = read(table, task)
        if part and (size + task.file.file_size_in_bytes > target_bytes or held + of_file.nbytes > _ROWS_BYTES_MAX):
            if len(part) > 1:
                yield part, pyarrow.concat_tables(rows)
            part, rows, size, held = [], [], 0, 0
        part.append(task)
        rows.append(of_file)
        size += task.file.file_size_in_bytes
        held += of_file.nbytes
    if len(part) > 1:
        yield part, pyarrow.concat_tables(rows)


def _sorted(rows: pyarrow.Table, order: Sequence[str]) -> pyarrow.Table:
    """Rows in an order; those that are equal by it stay in theirs."""
    there = [name for name in order if name in rows.schema.names]
    columns = {f"k{number}": rows.column(name) for number, name in enumerate(there)}
    if order is _BY_LOG:
        columns = {"length": pyarrow.compute.utf8_length(rows.column("log")), **columns}
    keys = pyarrow.table(columns)
    return rows.take(pyarrow.compute.sort_indices(keys, sort_keys=[(name, "ascending") for name in columns]))
