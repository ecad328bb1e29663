"""Logs divided into parts that several processes read at the same time: tasks of Ray, Dask and others. binlogz.spark has them, too.

    from binlogz.parts import partitions, read

    tables = [read(part) for part in partitions("/backup/archive", "shop.orders")]
"""

from __future__ import annotations

from . import _native, _paths

__all__ = ["Part", "partitions", "read"]

#: Bytes of the logs that one task reads, unless it is said otherwise.
PARTITION_SIZE = 128 << 20


class Part:
    """What one task reads. It can be pickled."""

    __slots__ = ("logs", "table", "columns", "conditions")

    def __init__(self, logs, table, columns, conditions):
        #: Paths, each with the blocks of it that are read, and where events begin; None: all.
        self.logs = logs
        self.table, self.columns, self.conditions = table, columns, conditions

    def __repr__(self):
        return f"<Part of {', '.join(str(log[0]) for log in self.logs)}>"


def names_of(table):
    """Database and name of a table; None: it is one of all logs."""
    schema, dot, name = table.partition(".")
    if not dot and table not in ("changes", "transactions"):
        raise ValueError(f"table is {table!r}, expected schema.table, changes or transactions")
    return (schema, name) if dot else None


def are_told(nameless, statements) -> bool:
    """Whether a statement may name columns that table maps leave without names: it has the name of their table."""
    names = [name.lower() for name in nameless]
    return any(name in statement for statement in statements for name in names)


def columns_of(paths, names):
    """The columns of a table, with Spark's names of their types, and whether statements of the logs tell some of them."""
    columns, nameless, statements = _native.met_tables(paths, names)
    if names is not None and not columns:
        raise ValueError(f"the logs have no row change of {'.'.join(names)}")
    is_told = are_told(nameless, statements)
    return (_native.told_columns(paths, *names) if is_told and names else columns), is_told


def conditions(is_ordered, **others):
    """Conditions as the native module takes them; all that are not given are met by everything."""
    everything = {
        "gtids": None,
        "start_after": None,
        "until": None,
        "committed_at": (None, None),
        "logged_at": (None, None),
        "schemas": None,
        "tables": None,
        "operations": None,
        "keys": [],
    }
    return {**everything, **others, "is_ordered": is_ordered}


def grouped(parts, size):
    """Parts of logs for each task, about as many bytes for each."""
    groups, filled = [], 0
    for path, part_size, blocks, _ in parts:
        if groups and part_size <= size - filled:
            groups[-1].append((path, blocks, None))
            filled += part_size
        else:
            groups.append([(path, blocks, None)])
            filled = part_size
    return groups


def partitions(source, table="changes", *, partition_size=PARTITION_SIZE):
    """Divides logs, archives and logs in archives. table: schema.table, changes or transactions. Where statements tell names of
    columns there is one part, of all logs."""
    paths, names = _paths(source), names_of(table)
    columns, is_told = ([], False) if table == "transactions" else columns_of(paths, names)
    asked = {} if names is None else {"schemas": [names[0]], "tables": [names[1]]}
    parts = _native.divide(paths, partition_size)
    if is_told:
        groups = [[(log, None, None) for log in dict.fromkeys(part[0] for part in parts)]]
    else:
        groups = grouped(parts, partition_size)
    return [Part(group, table, columns, conditions(is_told, **asked)) for group in groups]


def stream(part, has_others=False):
    """The rows of a part as an object with Arrow's C stream."""
    are_transactions = part.table == "transactions"
    return _native.arrow_parts(
        part.logs, are_transactions, names_of(part.table), part.columns, has_others, part.conditions
    )


def read(part):
    """The rows of a part as a pyarrow.Table."""
    import pyarrow

    return pyarrow.RecordBatchReader.from_stream(stream(part)).read_all()
