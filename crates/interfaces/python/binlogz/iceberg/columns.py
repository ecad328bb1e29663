"""The types of columns in Iceberg, and how they may change: int to long, float to double, a decimal to more digits. Any other change
is an error that names the column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Dict, List, Optional, Sequence, Tuple

from pyiceberg.table import Table
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

#: Names of columns, with Spark's names of their types; names of the key's columns.
Definition = Tuple[Sequence[Tuple[str, str]], Sequence[str]]

_TYPES: Dict[str, IcebergType] = {
    "tinyint": IntegerType(),
    "smallint": IntegerType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "binary": BinaryType(),
    "string": StringType(),
}
_NAMES = {str(kind): name for name, kind in _TYPES.items() if name not in ("tinyint", "smallint")}
_LIST = "array<float>"
#: (from, to) that Iceberg allows, besides decimals.
_WIDENED = (("int", "long"), ("float", "double"))


def of_spark(name: str) -> IcebergType:
    """The Iceberg type of one of Spark's names. Ids are given when a table gets the column."""
    if name == _LIST:
        return ListType(element_id=-1, element_type=FloatType(), element_required=False)
    if name.startswith("decimal("):
        precision, scale = name[len("decimal(") : -1].split(",")
        return DecimalType(int(precision), int(scale))
    return _TYPES[name]


def to_spark(kind: IcebergType) -> str:
    """Spark's name of an Iceberg type, as the native module takes it.

    ValueError: a type that no column of MySQL is read as.
    """
    if isinstance(kind, ListType) and isinstance(kind.element_type, FloatType):
        return _LIST
    if isinstance(kind, DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    if str(kind) not in _NAMES:
        raise ValueError(f"the type {kind}, expected one that a column of MySQL is read as")
    return _NAMES[str(kind)]


def _wider(one: str, other: str) -> Optional[str]:
    """The one of two types, by Spark's names, that has the values of both by Iceberg's rules; None: neither."""
    if one == other:
        return one
    first, second = of_spark(one), of_spark(other)
    if isinstance(first, DecimalType) and isinstance(second, DecimalType):
        if first.scale != second.scale:
            return None
        return one if first.precision >= second.precision else other
    for narrow, wide in _WIDENED:
        if {str(first), str(second)} == {narrow, wide}:
            return one if str(first) == wide else other
    return one if str(first) == str(second) else None


def is_same(one: str, other: str) -> bool:
    """Whether two names are the same column's: MySQL's columns have no case."""
    return one == other or one.lower() == other.lower()


@dataclass
class Columns:
    """The columns of a table in Iceberg, by name, with Spark's names of their types; and those that this run's rows have."""

    types: Dict[str, str]
    met: List[str]

    def name_of(self, column: str) -> Optional[str]:
        """The name under which a column is there, in whatever case."""
        return column if column in self.types else next((name for name in self.types if is_same(name, column)), None)

    def add(self, definitions: Sequence[Definition], where: str, there: str, as_text: Collection[str]) -> None:
        """Takes the definitions of a run, in order. where: the table in MySQL; there: the one in Iceberg; as_text: columns that are
        text whatever their type, as schema.table.column.

        ValueError: a type that Iceberg doesn't let a column change to.
        """
        for columns, _ in definitions:
            for column, told in columns:
                kind = "string" if f"{where}.{column}" in as_text else told
                name = self.name_of(column)
                if name is None:
                    name = column
                    self.types[name] = kind
                wider = _wider(self.types[name], kind)
                if wider is None:
                    raise ValueError(
                        f"{where}: column {column} is {of_spark(self.types[name])} and becomes {of_spark(kind)}; Iceberg allows int to long, "
                        f"float to double and more digits of a decimal. Rename the column of {there}, and a new one comes beside it, "
                        "or name it in as_text of the first run"
                    )
                self.types[name] = wider
                if name not in self.met:
                    self.met.append(name)

    def asked(self) -> List[Tuple[str, str]]:
        """The columns that are read of this run's rows, as the native module takes them."""
        return [(name, self.types[name]) for name in self.met]

    def struct(self) -> StructType:
        """All columns as a struct, without ids."""
        return StructType(*self.fields(()))

    def fields(self, required: Sequence[str]) -> List[NestedField]:
        """All columns as fields, without ids; those of a key are required."""
        return [NestedField(-1, name, of_spark(kind), required=name in required) for name, kind in self.types.items()]


def columns_of(fields: Sequence[NestedField]) -> Columns:
    """The columns that a table has in Iceberg."""
    return Columns({field.name: to_spark(field.field_type) for field in fields}, [])


def evolve(table: Table, columns: Columns, images: Sequence[str]) -> None:
    """Gives a table the columns and types that it lacks. images: the structs that have the columns; none: the table itself has them."""
    paths: Sequence[Tuple[str, ...]] = [(image,) for image in images] or [()]
    with table.update_schema() as update:
        for path in paths:
            there = {field.name: field.field_type for field in _fields(table, path)}
            for name, kind in columns.types.items():
                wanted = of_spark(kind)
                if name not in there:
                    update.add_column((*path, name), wanted)
                elif to_spark(there[name]) != to_spark(wanted):
                    update.update_column((*path, name), field_type=wanted)


def _fields(table: Table, path: Sequence[str]) -> Sequence[NestedField]:
    if not path:
        return table.schema().fields
    image = table.schema().find_field(path[0]).field_type
    assert isinstance(image, StructType)
    return image.fields
