import datetime
import os
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal, Union

_Path = Union[str, os.PathLike[str]]
#: NULL, numbers, times, text, bytes, documents. A date that is in no calendar is text.
Value = Union[
    None, int, float, Decimal, str, bytes, datetime.date, datetime.datetime, datetime.timedelta, bool, list[Any], dict[str, Any]
]

class Table:
    schema: str
    table: str
    columns: list[str]
    primary_key: list[str]

class Change:
    transaction: Transaction
    table: Table
    schema: str
    table_name: str
    operation: Literal["insert", "update", "delete"]
    before: dict[str, Value] | None
    after: dict[str, Value] | None
    timestamp: int
    offset: int

class Transaction:
    gtid: str | None
    committed_at: datetime.datetime | None
    applied_at: datetime.datetime | None
    log: str
    position: int
    end_position: int | None
    server_id: int
    thread_id: int | None
    statements: list[str]
    xid: int | None
    complete: bool
    compressed: bool
    @property
    def changes(self) -> Iterator[Change]: ...

class ArrowRows:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Log:
    def __iter__(self) -> Iterator[Transaction]: ...
    def changes(self) -> Iterator[Change]: ...
    def arrow(self, table: str) -> ArrowRows: ...
    def to_arrow(self, table: str) -> Any: ...
    def to_pandas(self, table: str) -> Any: ...
    def close(self) -> None: ...
    def __enter__(self) -> Log: ...
    def __exit__(self, *exc: object) -> None: ...

def open(
    source: _Path | Iterable[_Path],
    *,
    start_after: str | None = None,
    follow: bool = False,
    server_id: int | None = None,
    log: str | None = None,
    position: int | None = None,
    options: Mapping[str, object] | None = None,
) -> Log: ...
def stats(source: _Path | Iterable[_Path]) -> dict[str, Any]: ...
def compress(path: _Path, output: _Path, *, level: int = 3, replace: bool = False) -> tuple[int, int, int]: ...
def expand(path: _Path, output: _Path, *, replace: bool = False) -> tuple[int, int, int]: ...
