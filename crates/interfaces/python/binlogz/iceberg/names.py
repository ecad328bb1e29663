"""The names of tables in the catalog. Catalogs and engines mostly know no case, and have names of their own: a name that could be
taken for another's gets eight digits of a hash. A name that was given once stays."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

#: Namespaces that engines have: DuckDB's, then Spark's.
_RESERVED = frozenset(
    ["information_schema", "main", "memory", "pg_catalog", "system", "temp", "default", "global_temp"]
)
#: A name that is longer is cut before its hash: it is a folder's, too.
_LENGTH_MAX = 100
_MARKED = re.compile(r"_[0-9a-f]{8}\Z")

Identifier = Tuple[str, str]
Name = Tuple[str, str]


def _marked(name: str, whose: str) -> str:
    """A name with a hash of whose it is, and without characters that a path or an engine gives a meaning to."""
    plain = re.sub(r"[^\w]", "_", name)[:_LENGTH_MAX]
    return f"{plain}_{hashlib.sha256(whose.encode()).hexdigest()[:8]}"


def _is_plain(name: str) -> bool:
    return re.fullmatch(r"\w+", name) is not None and len(name) <= _LENGTH_MAX and not _MARKED.search(name)


def given(wanted: Sequence[Tuple[str, str]], taken: Iterable[str], reserved: Iterable[str] = ()) -> List[str]:
    """A name for each one that is wanted, which comes with whose it is.

    ValueError: even with its hash a name is another's.
    """
    there = {name.lower() for name in taken}
    own = {name.lower() for name in reserved}
    often = Counter(name.lower() for name, _ in wanted)
    names: List[str] = []
    for name, whose in wanted:
        is_clear = _is_plain(name) and often[name.lower()] == 1 and name.lower() not in there | own
        made = name if is_clear else _marked(name, whose)
        if not is_clear and made.lower() in there:
            raise ValueError(f"the name {made} for {name} is taken, expected one that is free")
        there.add(made.lower())
        names.append(made)
    return names


class TableNames:
    """Which namespace a database has, and which tables a table of it. It is kept as JSON in the ledger."""

    def __init__(self, prefix: str, ledger: str, kept: Optional[Dict[str, Dict[str, object]]] = None) -> None:
        kept = kept or {}
        self._prefix, self._ledger = prefix, ledger
        self._databases: Dict[str, str] = dict(kept.get("databases", {}))  # type: ignore[arg-type]
        #: By database and table: the name of the change log, of the current rows (None: no key), and the run that gave them.
        self._tables: Dict[str, Dict[str, List[object]]] = kept.get("tables", {})  # type: ignore[assignment]

    def kept(self) -> Dict[str, object]:
        """As JSON has it."""
        return {"databases": self._databases, "tables": self._tables}

    def add(self, tables: Sequence[Tuple[str, str, bool]], run: int) -> bool:
        """Gives names to tables that have none: database, name, whether there are current rows. Whether there were any."""
        new = [table for table in tables if table[1] not in self._tables.get(table[0], {})]
        databases = list(dict.fromkeys(database for database, _, _ in new if database not in self._databases))
        reserved = [*_RESERVED, self._ledger]
        taken = list(self._databases.values())
        wanted = [(self._prefix + database, database) for database in databases]
        self._databases.update(zip(databases, given(wanted, taken, reserved)))
        for database in dict.fromkeys(database for database, _, _ in new):
            self._add_of(database, [(name, has_current) for of, name, has_current in new if of == database], run)
        return bool(new)

    def _add_of(self, database: str, tables: List[Tuple[str, bool]], run: int) -> None:
        there = self._tables.setdefault(database, {})
        taken = [name for names in there.values() for name in names[:2] if isinstance(name, str)]
        wanted = [(f"{name}_changes", f"changes of {name}") for name, _ in tables]
        wanted += [(name, name) for name, has_current in tables if has_current]
        names = given(wanted, taken)
        currents = iter(names[len(tables) :])
        for (name, has_current), changes in zip(tables, names):
            there[name] = [changes, next(currents) if has_current else None, run]

    def changes(self, table: Name) -> Identifier:
        """The change log of a table."""
        return (self._databases[table[0]], str(self._tables[table[0]][table[1]][0]))

    def current(self, table: Name) -> Optional[Identifier]:
        """The current rows of a table; None: it has none."""
        name = self._tables[table[0]][table[1]][1]
        return None if name is None else (self._databases[table[0]], str(name))

    def run(self, table: Name) -> int:
        """The run that gave a table its names."""
        return int(str(self._tables[table[0]][table[1]][2]))

    def has(self, table: Name) -> bool:
        return table[1] in self._tables.get(table[0], {})

    def __iter__(self) -> Iterator[Name]:
        return ((database, table) for database, tables in self._tables.items() for table in tables)
