"""Conditions of Spark on columns, as the reader of logs takes them: they choose logs and blocks of an archive. Spark checks each
row again, so that a condition that isn't understood costs time alone."""

from __future__ import annotations

import datetime
import decimal

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from . import _native
from .parts import conditions

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_WORDS = {"schema": "schemas", "table": "tables", "operation": "operations", "log": "logs"}


def _micros(value):
    if not isinstance(value, datetime.datetime):
        return None
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.timezone.utc)
    return (value - _EPOCH) // datetime.timedelta(microseconds=1)


def _key(value):
    """A key as an archive looks for it; None: it can't."""
    if isinstance(value, bool):
        return None
    if isinstance(value, decimal.Decimal) and value == value.to_integral_value():
        value = int(value)
    if isinstance(value, int):
        return (value, value, None)
    return (None, None, value) if isinstance(value, str) else None


class Conditions:
    """What a query's conditions leave of the logs."""

    def __init__(self, table):
        self.words = {"schemas": None, "tables": None, "operations": None, "logs": None, "gtids": None}
        if table is not None:
            self.words["schemas"], self.words["tables"] = [table[0]], [table[1]]
        self.times = {"committed_at": (None, None), "logged_at": (None, None)}
        self.keys = []

    def take(self, condition):
        values = None
        if isinstance(condition, (EqualTo, EqualNullSafe)):
            values = [condition.value]
        elif isinstance(condition, In):
            values = list(condition.value)
        names = getattr(condition, "attribute", None)
        if not names or (values is not None and any(value is None for value in values)):
            return
        column = names[0]
        if len(names) == 1 and values is not None and (column in _WORDS or column == "gtid"):
            self._take_words(_WORDS.get(column, "gtids"), values)
        elif len(names) == 1 and column in self.times:
            self._take_time(column, condition, values)
        elif len(names) == 2 and column in ("before", "after"):
            self._take_key(names[1], condition, values)

    def _take_words(self, name, values):
        known = self.words[name]
        self.words[name] = [value for value in values if known is None or value in known]

    def _take_time(self, column, condition, values):
        asked = values if values is not None else [getattr(condition, "value", None)]
        moments = [_micros(value) for value in asked]
        if not moments or None in moments:
            return
        first, last = self.times[column]
        if values is not None or isinstance(condition, (GreaterThan, GreaterThanOrEqual)):
            first = min(moments) if first is None else max(first, min(moments))
        if values is not None or isinstance(condition, (LessThan, LessThanOrEqual)):
            last = max(moments) if last is None else min(last, max(moments))
        self.times[column] = (first, last)

    def _take_key(self, column, condition, values):
        keys = [_key(value) for value in (values if values is not None else [getattr(condition, "value", None)])]
        if None in keys:
            return
        if values is None:
            (number, _, _) = keys[0]
            if number is None:
                return
            if isinstance(condition, (GreaterThan, GreaterThanOrEqual)):
                keys = [(number, None, None)]
            elif isinstance(condition, (LessThan, LessThanOrEqual)):
                keys = [(None, number, None)]
            else:
                return
        self.keys.append((column, keys))

    def may_have(self, part):
        """Whether a part of a log may have what is asked for."""
        path, _, _, gtids = part
        logs, wanted = self.words["logs"], self.words["gtids"]
        if logs is not None and str(path).rstrip("/").rpartition("/")[2] not in logs:
            return False
        if wanted is None or gtids is None:
            return True
        asked = _union(wanted)
        return asked is None or _native.gtid_set([asked], [gtids[0]]) != asked

    def asked(self, is_ordered, start_after=None, until=None):
        """As the native module takes them."""
        gtids = self.words["gtids"]
        named = {name: self.words[name] for name in ("schemas", "tables", "operations")}
        asked_gtids = None if gtids is None else _union(gtids)
        return conditions(
            is_ordered, gtids=asked_gtids, start_after=start_after, until=until, keys=self.keys, **self.times, **named
        )


def _union(gtids):
    """The set of some GTIDs; None: one is no GTID."""
    try:
        return _native.gtid_set(gtids, [])
    except ValueError:
        return None
