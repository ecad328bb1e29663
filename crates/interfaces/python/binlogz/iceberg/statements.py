"""Statements of the logs that change the rows of a table without a row event: TRUNCATE, DROP TABLE and DROP DATABASE take all of
them; of any other that names the table it isn't known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import FrozenSet, List, NamedTuple, Optional, Tuple

_TOKEN = re.compile(
    r"`((?:[^`]|``)*)`|\"((?:[^\"]|\"\")*)\"|'(?:[^'\\]|''|\\.)*'|([\w$]+)|/\*(?!!).*?\*/|--\s[^\n]*|#[^\n]*|\s+|(.)", re.DOTALL
)
#: What follows a statement's first word where it leaves the rows of tables as they are.
_HARMLESS = {
    "CREATE": None,
    "DROP": {"INDEX", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "USER", "ROLE", "TEMPORARY"},
    "ALTER": {"USER", "EVENT", "PROCEDURE", "FUNCTION", "VIEW", "DATABASE", "SCHEMA"},
    "ANALYZE": None,
    "OPTIMIZE": None,
    "FLUSH": None,
    "GRANT": None,
    "REVOKE": None,
}


class Word(NamedTuple):
    """A word of a statement."""

    text: str
    is_quoted: bool

    def is_any(self, *words: str) -> bool:
        """Whether it is one of these, in capitals, and no name in quotes."""
        return not self.is_quoted and self.text.upper() in words


@dataclass(frozen=True)
class Statement:
    """A statement, and where it stands. offset: in bytes, in its log."""

    log: str
    offset: int
    gtid: str
    database: str
    text: str

    def __str__(self) -> str:
        shown = " ".join(self.text.split())
        return f"{self.log} at {self.offset} ({self.gtid}): {shown if len(shown) <= 100 else shown[:100] + '…'}"


def _words(text: str) -> List[Word]:
    words: List[Word] = []
    for found in _TOKEN.finditer(text):
        quoted, double, plain, other = found.groups()
        if quoted is not None:
            words.append(Word(quoted.replace("``", "`"), True))
        elif double is not None:
            words.append(Word(double.replace('""', '"'), True))
        elif plain is not None or other is not None:
            words.append(Word(plain or other, False))
    return words


def _names(words: List[Word], database: str) -> Optional[List[Tuple[str, str]]]:
    """The tables of a list that goes on to the statement's end; None: it is no such list."""
    names: List[Tuple[str, str]] = []
    rest = words
    while rest:
        name, rest = rest[0].text, rest[1:]
        owner = database
        if len(rest) > 1 and rest[0] == Word(".", False):
            owner, name, rest = name, rest[1].text, rest[2:]
        names.append((owner, name))
        if rest and rest[0].is_any("RESTRICT", "CASCADE") and len(rest) == 1:
            break
        if rest and (rest[0] != Word(",", False) or len(rest) == 1):
            return None
        rest = rest[1:]
    return names or None


def emptied(statement: Statement) -> Optional[List[Tuple[str, Optional[str]]]]:
    """The tables that have no rows after a statement, by database and name; name None: all of the database. None: it isn't known which."""
    words = _words(statement.text)
    if words and words[-1] == Word(";", False):
        words = words[:-1]
    if len(words) < 2:
        return None
    rest = words[2:]
    if words[0].is_any("TRUNCATE"):
        return list(_names(rest if words[1].is_any("TABLE") else words[1:], statement.database) or []) or None
    if not words[0].is_any("DROP"):
        return None
    if len(rest) > 2 and rest[0].is_any("IF") and rest[1].is_any("EXISTS"):
        rest = rest[2:]
    if words[1].is_any("DATABASE", "SCHEMA"):
        return [(rest[0].text, None)] if len(rest) == 1 else None
    if words[1].is_any("TABLE", "TABLES"):
        return list(_names(rest, statement.database) or []) or None
    return None


def is_harmless(statement: Statement) -> bool:
    """Whether a statement leaves the rows that tables have as they are, whatever tables it names."""
    words = _words(statement.text)
    if not words or words[0].is_quoted or words[0].text.upper() not in _HARMLESS:
        return False
    if words[0].is_any("CREATE"):
        # OR REPLACE TABLE has no rows of the table before.
        return not (len(words) > 1 and words[1].is_any("OR"))
    after = _HARMLESS[words[0].text.upper()]
    return after is None or (len(words) > 1 and words[1].is_any(*after))


def named(statement: Statement) -> FrozenSet[str]:
    """All that may be names in a statement, in small letters."""
    return frozenset(word.text.lower() for word in _words(statement.text))


def rolls_back(statement: Statement) -> bool:
    """Whether it takes back rows that an XA transaction had before."""
    words = _words(statement.text)
    return len(words) > 1 and words[0].is_any("XA") and words[1].is_any("ROLLBACK")
