"""What Spark has to find in an export: for each data set its columns' types and sums of its values, as pyarrow reads them.

usage: spark-expected.py EXPORT      prints JSON
"""

import json
import pathlib
import sys

import pyarrow
import pyarrow.compute
import pyarrow.dataset

root = pathlib.Path(sys.argv[1])


def spark_type(kind):
    """The type that Spark has for one of Arrow."""
    types = pyarrow.types
    if types.is_struct(kind):
        return "struct<" + ",".join(f"{field.name}:{spark_type(field.type)}" for field in kind) + ">"
    if types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    # Spark has no unsigned numbers: the next wider one.
    return {
        "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint",
        "uint8": "smallint", "uint16": "int", "uint32": "bigint", "uint64": "decimal(20,0)",
        "float": "float", "double": "double", "date32[day]": "date", "string": "string", "binary": "binary",
    }[str(kind)]


def has_wide_decimal(kind):
    """Spark's decimals have 38 digits at most."""
    return any(pyarrow.types.is_decimal256(field.type) for field in kind) if pyarrow.types.is_struct(kind) else False


sets = {}
folders = [root / "_transactions", *sorted(root.glob("[!_.]*/*"))]
for folder in folders:
    table = pyarrow.dataset.dataset(folder).to_table()
    images = [name for name in ("before", "after") if name in table.column_names]
    columns = {}
    for field in table.schema:
        if has_wide_decimal(field.type):
            inner = [part for part in field.type if not pyarrow.types.is_decimal256(part.type)]
            columns[field.name] = spark_type(pyarrow.struct(inner))
        else:
            columns[field.name] = spark_type(field.type)
    numbers = {}
    for image in images:
        column = table.column(image).combine_chunks()
        for part in column.type:
            values = pyarrow.compute.struct_field(column, part.name)
            if pyarrow.types.is_integer(part.type):
                whole = [value for value in values.to_pylist() if value is not None]
                numbers[f"{image}.{part.name}"] = [str(sum(whole)), len(whole)]
    sets[str(folder)] = {"rows": table.num_rows, "columns": columns, "sums": numbers}
print(json.dumps(sets))
