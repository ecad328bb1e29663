"""A run: what logs have that is new goes into the tables, each row once, whenever a run ends.

    survey   the new transactions, their tables and definitions        nothing is written
    plan     types, keys, names: what can't be is an error here        nothing is written
    ledger   keeps the names of new tables
    tables   each commits its rows, with the GTIDs that it has then
    ledger   commits the transactions: all tables have these

A table that has GTIDs which the ledger lacks is of a run that ended in between: only the others are appended to it.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Collection, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import pyarrow
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from .. import _native, _paths
from . import changes, current
from .columns import Columns, Definition, evolve, is_same
from .files import appended, covered
from .ledger import Ledger, check_order
from .rows import Source
from .statements import Statement, emptied, is_harmless, named, rolls_back

Name = Tuple[str, str]
_Path = Union[str, "os.PathLike[str]"]


class LakeWarning(UserWarning):
    """Something that the tables don't show: a line of `Appended.notes`."""


@dataclass
class Appended:
    """What a run did. run: its number, None if nothing was new; gtids: its transactions; transactions: how many; rows: row changes
    by the names of change logs; keys: touched keys by the names of tables with current rows; incomplete: transactions that were left
    out since the logs don't have their end; notes: lines about what the tables don't show."""

    run: Optional[int] = None
    gtids: str = ""
    transactions: int = 0
    rows: Dict[str, int] = field(default_factory=dict)
    keys: Dict[str, int] = field(default_factory=dict)
    incomplete: int = 0
    notes: List[str] = field(default_factory=list)


@dataclass
class _Survey:
    """What the logs have that is new."""

    logs: List[Tuple[str, Optional[str], str]]
    gtids: str
    tables: Dict[Name, "_MetTable"]
    statements: List[Statement]
    statements_more: int
    incomplete: int


@dataclass
class _MetTable:
    """A table that new transactions have rows of."""

    definitions: List[Definition]
    #: Some rows lack columns after a change.
    is_partial: bool
    #: Statements tell its columns.
    is_told: bool

    @property
    def key(self) -> Sequence[str]:
        return self.definitions[-1][1]


def append(
    source: Union[_Path, Iterable[_Path]],
    catalog: Catalog,
    *,
    tables: Optional[Iterable[str]] = None,
    current_rows: bool = True,
    as_text: Iterable[str] = (),
    prefix: str = "",
    until: Optional[str] = None,
) -> Appended:
    """Appends what is new in logs, archives or logs in archives to tables in an Iceberg catalog.

    tables: as schema.table; None: all. current_rows: also keep tables with their current rows, of those that have a key. as_text: columns
    that are text whatever their type, as schema.table.column. These three stay as the first run has them. prefix: before the names of
    namespaces, for several servers in one catalog. until: a GTID set; transactions that it lacks are left for another run.

    ValueError: logs that can't be read, a type that Iceberg doesn't let a column change to, a table that isn't ours, transactions that
    are missing. OSError: files. pyiceberg's errors: the catalog, and CommitFailedException where somebody else commits at the same time.
    After any of them, and after a kill, the same call goes on: nothing is appended twice.
    """
    paths = _paths(source)
    for path in paths:
        if path.startswith("mysql://"):
            raise ValueError(f"{path}: is a server, expected logs or an archive, as a relay or `binlogz archive` keep them")
    text = sorted(as_text)
    chosen = None if tables is None else sorted(tables)
    ledger = Ledger(catalog, prefix, {"tables": chosen, "current_rows": current_rows, "as_text": text})
    found = _surveyed(paths, ledger, until)
    first = check_order(found.logs, ledger.before, ledger.covered)
    done = Appended(gtids=found.gtids, incomplete=found.incomplete)
    if not found.gtids:
        return done
    if chosen is not None:
        found.tables = {name: met for name, met in found.tables.items() if ".".join(name) in chosen}
    run = _Run(ledger, found, current_rows, text)
    ledger.begin(first)
    run.plan()
    for name in chosen or ():
        if name not in {".".join(known) for known in ledger.names}:
            done.notes.append(f"{name}: the logs so far have no row change of it")
    run.append(done)
    for note in done.notes:
        warnings.warn(note, LakeWarning, stacklevel=2)
    return done


def _surveyed(paths: List[str], ledger: Ledger, until: Optional[str]) -> _Survey:
    """Surveys the logs. Those of an archive that are covered are left out, unless only they may tell names of columns."""
    logs = list(dict.fromkeys((part[0], part[3]) for part in _native.divide(paths, (1 << 63) - 1)))
    new = [path for path, told in logs if told is None or not told[0] or _native.gtid_set([told[0]], [ledger.covered])]
    survey = _survey_of(new, ledger.covered, until)
    is_nameless = any(name.startswith("@") for met in survey.tables.values() for columns, _ in met.definitions for name, _ in columns)
    if is_nameless and len(new) < len(logs):
        return _survey_of([path for path, _ in logs], ledger.covered, until)
    return survey


def _survey_of(paths: List[str], covered_gtids: str, until: Optional[str]) -> _Survey:
    logs, gtids, tables, statements, more, incomplete = _native.survey(paths, covered_gtids, until)
    met = {(database, name): _MetTable(*others) for database, name, *others in tables}
    return _Survey(logs, gtids, met, [Statement(*statement) for statement in statements], more, incomplete)


@dataclass
class _Plan:
    """What a run does to one table in the catalog."""

    name: Name
    identifier: Tuple[str, str]
    columns: Columns
    key: Sequence[str] = ()
    table: Optional[Table] = None
    #: Statements that took all rows.
    emptied: List[Statement] = field(default_factory=list)

    @property
    def shown(self) -> str:
        return ".".join(self.identifier)


class _Run:
    """One run, from its survey on."""

    def __init__(self, ledger: Ledger, found: _Survey, has_current: bool, as_text: Collection[str]) -> None:
        self._ledger, self._found, self._has_current, self._as_text = ledger, found, has_current, as_text
        self._source = Source([(path, own) for path, _, own in found.logs], found.gtids)
        self._logs = [os.path.basename(path.rstrip("/")) for path, _, _ in found.logs]
        if len(set(self._logs)) < len(self._logs):
            raise ValueError("two logs have the same name, expected those of one server since its last RESET BINARY LOGS")
        #: What all tables have at the end.
        self._covered = str(_native.gtid_set([ledger.covered, found.gtids], []))
        self._number = ledger.run + 1
        self._changes: List[_Plan] = []
        self._current: List[_Plan] = []
        self._notes: List[str] = []

    def plan(self) -> None:
        """Finds out all that can't be done before anything is written but names."""
        wanted = []
        for name, met in self._found.tables.items():
            can_have = self._has_current and bool(met.key) and not met.is_partial
            wanted.append((name[0], name[1], can_have))
        is_new = self._ledger.names.add(wanted, self._number)
        for name, met in self._found.tables.items():
            self._plan_changes(name, met)
            self._plan_current(name, met)
        self._take_statements()
        if is_new:
            self._ledger.keep_names()

    def _plan_changes(self, name: Name, met: _MetTable) -> None:
        identifier = self._ledger.names.changes(name)
        table = self._ledger.find(identifier)
        if table is None and self._was_dropped(name, identifier):
            return
        columns = Columns({}, []) if table is None else changes.columns_there(table)
        columns.add(met.definitions, ".".join(name), ".".join(identifier), self._as_text)
        self._changes.append(_Plan(name, identifier, columns, table=table))

    def _plan_current(self, name: Name, met: _MetTable) -> None:
        identifier = self._ledger.names.current(name)
        shown = ".".join(name)
        if identifier is None:
            if self._has_current and met.key:
                why = "some row images are partial (binlog_row_image)" if met.is_partial else "its key wasn't known when it began"
                self._notes.append(f"{shown}: has a change log, but no current rows: {why}")
            return
        table = self._ledger.find(identifier)
        if table is None and self._was_dropped(name, identifier):
            return
        there = ".".join(identifier)
        if met.is_partial:
            raise ValueError(f"{shown}: some row images are partial, from which {there} can't go on; expected binlog_row_image=FULL, or {there} dropped")
        columns = Columns({}, []) if table is None else current.columns_there(table)
        columns.add(met.definitions, shown, there, self._as_text)
        keys = [[columns.name_of(column) or column for column in key] for _, key in met.definitions]
        expected = keys[-1] if table is None else [part.name for part in table.schema().fields if part.required]
        for key in keys:
            if sorted(key) != sorted(expected):
                told = [", ".join(names) or "none" for names in (key, expected)]
                raise ValueError(f"{shown}: its key is {told[0]}, by which {there} can't go on; expected {told[1]}, or {there} dropped")
        self._current.append(_Plan(name, identifier, columns, expected, table))

    def _was_dropped(self, name: Name, identifier: Tuple[str, str]) -> bool:
        if self._ledger.names.run(name) > self._ledger.run:
            return False
        self._notes.append(f"{'.'.join(name)}: {'.'.join(identifier)} was dropped, and isn't made again")
        return True

    def _take_statements(self) -> None:
        """Finds statements that changed rows without a row event."""
        if self._found.statements_more:
            self._notes.append(f"{self._found.statements_more} statements more than can be looked at: whether they changed rows isn't known")
        kept: Dict[str, List[Name]] = {}
        for name in self._ledger.names:
            kept.setdefault(name[1].lower(), []).append(name)
        for statement in self._found.statements:
            if rolls_back(statement):
                self._notes.append(f"{statement}: the rows of that transaction are in the tables as if it was committed")
                continue
            gone = emptied(statement)
            if gone is not None:
                for name in self._ledger.names:
                    if name in gone or (name[0], None) in gone:
                        self._empty(name, statement)
                    elif any(is_same(owner, name[0]) and (own is None or is_same(own, name[1])) for owner, own in gone):
                        # One table or two, by the server's lower_case_table_names.
                        self._notes.append(f"{'.'.join(name)}: may have no rows after {statement}")
                continue
            if is_harmless(statement):
                continue
            words = named(statement)
            for name in (name for word in words for name in kept.get(word, ())):
                if is_same(statement.database, name[0]) or name[0].lower() in words:
                    self._notes.append(f"{'.'.join(name)}: may have other rows after {statement}: no row event tells them")

    def _empty(self, name: Name, statement: Statement) -> None:
        identifier = self._ledger.names.current(name)
        shown = ".".join(name)
        plan = next((plan for plan in self._current if plan.name == name), None)
        if plan is None and identifier is not None:
            table = self._ledger.find(identifier)
            if table is not None:
                key = [part.name for part in table.schema().fields if part.required]
                plan = _Plan(name, identifier, current.columns_there(table), key, table)
                self._current.append(plan)
        if plan is not None:
            plan.emptied.append(statement)
        told = f", and {plan.shown} has none of the rows before it" if plan is not None else ""
        self._notes.append(f"{shown}: emptied by {statement}; the change log has no row for that{told}")

    def append(self, done: Appended) -> None:
        """Appends to each table, then to the ledger."""
        for plan in self._changes:
            rows = self._append_changes(plan)
            if rows is not None:
                done.rows[plan.shown] = rows
        for plan in self._current:
            keys = self._append_current(plan)
            if keys is not None:
                done.keys[plan.shown] = keys
        done.transactions = self._ledger.finish(self._covered, self._source)
        done.run = self._number
        done.notes += self._notes

    def _left(self, table: Table) -> Optional[str]:
        """The transactions that a table has already; None: it has all of the run's."""
        has = _native.gtid_set([covered(table), self._ledger.covered], [])
        return has if self._source.new(has) else None

    def _append_changes(self, plan: _Plan) -> Optional[int]:
        table = plan.table
        if table is None:
            schema = changes.schema_of(plan.columns)
            table = self._ledger.make(plan.identifier, "changes", plan.name, schema, changes.by_day(schema))
        return appended(table, partial(self._try_changes, plan, table))

    def _try_changes(self, plan: _Plan, table: Table) -> Optional[int]:
        evolve(table, plan.columns, changes.IMAGES)
        has = self._left(table)
        if has is None:
            return None
        log = changes.ChangeLog(table, self._covered, self._number)
        for batch in self._batches(plan, has):
            log.take(batch)
        return log.finish()

    def _append_current(self, plan: _Plan) -> Optional[int]:
        table = plan.table
        if table is None:
            schema = current.schema_of(plan.columns, plan.key)
            table = self._ledger.make(plan.identifier, "current", plan.name, schema, None)
        return appended(table, partial(self._try_current, plan, table))

    def _try_current(self, plan: _Plan, table: Table) -> Optional[int]:
        evolve(table, plan.columns, ())
        has = self._left(table)
        if has is None:
            return None
        gone = [statement for statement in plan.emptied if _native.gtid_set([statement.gtid], [has])]
        rows = current.CurrentRows(table, plan.key, self._covered, self._number, gone, self._logs)
        if plan.columns.met:
            for batch in self._batches(plan, has):
                rows.take(batch)
        return rows.finish()

    def _batches(self, plan: _Plan, has: str) -> Iterator[pyarrow.RecordBatch]:
        is_told = self._found.tables[plan.name].is_told
        return self._source.changes(plan.name, plan.columns.asked(), has, is_told)
