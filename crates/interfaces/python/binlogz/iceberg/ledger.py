"""The ledger: the table of transactions. A run commits to it last, so that what it covers is in all tables; what a run that ended
before left in some of them is told by these. It also keeps the names of all tables, and what the first run chose."""

from __future__ import annotations

import json
import uuid
from functools import partial
from typing import Dict, List, Optional, Sequence, Tuple

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.types import ListType, NestedField, StringType

from .. import _native
from .changes import by_day
from .columns import of_spark
from .files import LINEAGE, RUN, Commit, appended, covered, properties_of
from .names import TableNames
from .rows import TRANSACTION_COLUMNS, Source, shaped

#: The ledger's namespace, after the prefix, and its name.
_NAMESPACE, _NAME = "binlogz", "transactions"
_BEFORE, _CHOICE, _NAMES = "binlogz.before", "binlogz.choice", "binlogz.names"


def _schema() -> Schema:
    fields = [NestedField(-1, name, of_spark(kind), required=False) for name, kind in TRANSACTION_COLUMNS]
    tables = ListType(element_id=-1, element_type=StringType(), element_required=False)
    return assign_fresh_schema_ids(Schema(*fields, NestedField(-1, "tables", tables, required=False)))


class Ledger:
    """What the runs so far did. table: None before the first one."""

    def __init__(self, catalog: Catalog, prefix: str, choice: Dict[str, object]) -> None:
        self._catalog, self._prefix, self._choice = catalog, prefix, choice
        self.identifier = (prefix + _NAMESPACE, _NAME)
        self._table: Optional[Table] = None
        try:
            self._table = catalog.load_table(self.identifier)
        except NoSuchTableError:
            pass
        kept: Optional[Dict[str, Dict[str, object]]] = None
        #: The transactions whose rows are in all tables.
        self.covered = ""
        #: Those before the first log of the first run; None: there was none.
        self.before: Optional[str] = None
        #: The last run that ended.
        self.run = 0
        if self._table is not None:
            told = self._table.properties
            if LINEAGE not in told:
                raise ValueError(f"{'.'.join(self.identifier)} is in the catalog and no table of binlogz, expected another prefix")
            self._check_choice(json.loads(told[_CHOICE]))
            kept = json.loads(told[_NAMES])
            self.covered, self.before = covered(self._table), told[_BEFORE]
            self.run = int(told.get(RUN, "0"))
        self.names = TableNames(prefix, self.identifier[0], kept)

    def _check_choice(self, there: Dict[str, object]) -> None:
        for option, chosen in self._choice.items():
            if there[option] != chosen:
                raise ValueError(f"{option} is {chosen!r}, but the first run had {there[option]!r}, which stays; expected the same, or another prefix")

    @property
    def lineage(self) -> str:
        """The identity of the ledger, which all of its tables have."""
        assert self._table is not None
        return self._table.properties[LINEAGE]

    def begin(self, before: str) -> None:
        """Makes the ledger before the first run. before: the GTIDs of the logs before the first one."""
        if self._table is not None:
            return
        self.before = before
        schema = _schema()
        own = {_BEFORE: before, _CHOICE: json.dumps(self._choice), _NAMES: json.dumps(self.names.kept())}
        properties = {**properties_of("transactions", str(uuid.uuid4())), **own}
        self._catalog.create_namespace_if_not_exists(self.identifier[0])
        self._table = self._catalog.create_table(self.identifier, schema, partition_spec=by_day(schema), properties=properties)

    def keep_names(self) -> None:
        """Keeps the names of tables, before these are made."""
        assert self._table is not None
        appended(self._table, partial(self._keep_names, self._table))

    def _keep_names(self, table: Table) -> None:
        with table.transaction() as transaction:
            transaction.set_properties({_NAMES: json.dumps(self.names.kept())})

    def finish(self, gtids: str, source: Source) -> int:
        """Commits a run. gtids: what all tables have then. How many transactions it had."""
        assert self._table is not None
        rows = appended(self._table, partial(self._append, self._table, gtids, source))
        self.covered, self.run = gtids, self.run + 1
        return rows

    def _append(self, table: Table, gtids: str, source: Source) -> int:
        commit = Commit(table, gtids, self.run + 1, replaces=False)
        schema = table.schema().as_arrow()
        for batch in source.transactions(self.covered):
            commit.add(shaped(batch, schema))
        commit.finish()
        return commit.rows

    def make(
        self, identifier: Tuple[str, str], kind: str, name: Tuple[str, str], schema: Schema, spec: Optional[PartitionSpec], **others: str
    ) -> Table:
        """Makes a table, or finds the one that a run made which ended before its rows were in it."""
        self._catalog.create_namespace_if_not_exists(identifier[0])
        own = properties_of(kind, self.lineage, database=name[0], table=name[1], **others)
        there = self.find(identifier)
        if there is not None:
            return there
        return self._catalog.create_table(identifier, schema, partition_spec=spec or PartitionSpec(), properties=own)

    def find(self, identifier: Tuple[str, str]) -> Optional[Table]:
        """A table of this ledger; None: there is none of this name.

        ValueError: somebody else's has it.
        """
        try:
            there = self._catalog.load_table(identifier)
        except NoSuchTableError:
            return None
        if there.properties.get(LINEAGE) != self.lineage:
            raise ValueError(f"{'.'.join(identifier)} is in the catalog and not of these logs, expected another prefix")
        return there


def check_order(logs: Sequence[Tuple[str, Optional[str], str]], before: Optional[str], covered_gtids: str) -> str:
    """Checks that no transaction is missing before or between logs. logs: path, the GTIDs before it, and its own. The GTIDs before the
    first log of the first run.

    ValueError: transactions that no log has, or a log that tells no GTIDs before it.
    """
    for path, previous, _ in logs:
        if previous is None:
            raise ValueError(f"{path}: tells no GTIDs of the logs before it, expected a log of a server with GTIDs")
    first = before if before is not None else (logs[0][1] or "" if logs else "")
    seen: List[str] = [first, covered_gtids]
    for path, previous, own in logs:
        lost = _native.gtid_set([previous or ""], seen)
        if lost:
            raise ValueError(f"{path} begins after {lost}, which neither the logs before it nor earlier runs have; expected all logs, in their order")
        older = "" if before is None else _native.gtid_set([own], [_native.gtid_set([own], [before])]) if before else ""
        if older:
            raise ValueError(f"{path} has {older}, which is before the first log of the first run; expected later logs")
        seen = [_native.gtid_set([*seen, own], [])]
    return first
