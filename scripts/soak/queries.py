"""Runs each query of queries.sql on all engines and compares the answers, value by value.

usage: queries.py CONFIG.json

CONFIG: "program" (binlogz-sql), "queries" and "schema" (files), "engines" (name → arguments of an engine of ours; the first one
is what the others are compared with), "environment" (of our engines), "export" (a folder of Parquet files, for DuckDB),
"mysqlbinlog", "logs" and
"printed" (the logs that it prints whole: for the answers that its text gives).

Our engines give Arrow, so texts, numbers, NULLs and empty strings are told apart. DuckDB is asked with the same text but for
the few differences of TRANSLATED; queries of NOT_EXPORTED ask for something that Parquet files don't have.
"""

import collections
import datetime
import decimal
import io
import json
import os
import pathlib
import re
import subprocess
import sys

import duckdb
import pyarrow

import mysqlbinlog_rows

config = json.loads(pathlib.Path(sys.argv[1]).read_text())

# What DuckDB writes in other words: (pattern, replacement, the difference).
TRANSLATED = [
    (r"to_local_time\(", "identity(", "AT TIME ZONE gives the local time"),
    (r"octet_length\(", "strlen(", "bytes of a text"),
    (r"character_length\(", "length(", "letters of a text"),
    (r"regexp_like\(", "regexp_matches(", "regular expressions"),
    (r"\bCAST\((.*?) AS BYTEA\)", r"CAST(\1 AS BLOB)", "bytes"),
    (r"LEFT ANTI JOIN", "ANTI JOIN", "a join has no side"),
]
# What they can't be asked for.
NOT_EXPORTED = [
    (r"\bFROM events\b", "events are not exported"),
    (r"information_schema", "its schemas are its own"),
    (r"arrow_typeof", "types of Arrow"),
]
# What an engine of ours can't do, by its name: told, and not counted as passed.
# (engine, what is asked, why)
KNOWN = []


def queries():
    """Each line of the file that asks, with the views before it."""
    views = []
    for line in pathlib.Path(config["queries"]).read_text().splitlines():
        statement = line.strip().rstrip(";")
        if not statement or statement.startswith("--"):
            continue
        if statement.startswith("CREATE VIEW"):
            views.append(statement)
        else:
            yield views.copy(), statement


def value(cell):
    """A value, without the differences between the types of readers."""
    if isinstance(cell, bool) or cell is None:
        return cell
    if isinstance(cell, (int, decimal.Decimal)):
        return ("number", decimal.Decimal(cell).normalize())
    if isinstance(cell, float):
        return ("float", cell)
    if isinstance(cell, (bytes, bytearray)):
        return ("bytes", bytes(cell))
    if isinstance(cell, datetime.datetime):
        if cell.tzinfo is not None:
            cell = cell.astimezone(datetime.timezone.utc)
            return ("moment", cell.isoformat())
        return ("time", cell.isoformat())
    if isinstance(cell, datetime.date):
        return ("day", cell.isoformat())
    if isinstance(cell, dict):
        return tuple((name, value(inner)) for name, inner in cell.items())
    if isinstance(cell, (list, tuple)):
        return tuple(value(inner) for inner in cell)
    return cell


def equal(one, other):
    """Whether two values are equal; floating numbers may differ in the last digits, since sums have no order."""
    match one, other:
        case (("float", left), ("float" | "number", right)) | (("number", left), ("float", right)):
            left, right = float(left), float(right)
            return left == right or abs(left - right) <= 1e-12 * max(abs(left), abs(right))
        case (tuple(), tuple()) if len(one) == len(other) and one[:1] not in (("number",), ("bytes",)):
            return all(equal(left, right) for left, right in zip(one, other))
    return one == other


def rows_of(table):
    return [[value(cell.as_py()) for cell in row] for row in zip(*table.columns)] if table.num_columns else []


def ours(arguments, views, statement):
    """The answer of an engine of ours, or its one line of error."""
    text = "; ".join([*views, statement])
    command = [config["program"], "--format", "arrow", "--schema", config["schema"], *arguments[0], text, *arguments[1]]
    environment = os.environ | config.get("environment", {})
    run = subprocess.run(command, capture_output=True, env=environment, timeout=600)
    if run.returncode != 0:
        return run.stderr.decode().splitlines()[0] if run.stderr else f"ended with {run.returncode}"
    return rows_of(pyarrow.ipc.open_stream(io.BytesIO(run.stdout)).read_all())


def gtid_in(wanted, gtid):
    """Whether a GTID is in a set of one range or one GTID for each server."""
    if wanted is None or gtid is None:
        return None
    source, number = gtid.rsplit(":", 1)
    for part in wanted.replace("\n", "").split(","):
        name, *ranges = part.strip().split(":")
        tag = ""
        for piece in ranges:
            if not re.fullmatch(r"\d+(-\d+)?", piece):
                tag = ":" + piece
                continue
            first, _, last = piece.partition("-")
            if name + tag == source and int(first) <= int(number) <= int(last or first):
                return True
    return False


def lake():
    """DuckDB over the export."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    # As MySQL, and our engines.
    connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    connection.execute("SET disabled_optimizers = 'late_materialization'")
    connection.execute(pathlib.Path(config["export"], "views.sql").read_text())
    tables = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema <> 'main' ORDER BY 1, 2"
    ).fetchall()
    image = "CASE WHEN {0} IS NULL THEN NULL ELSE to_json({0}) END AS {0}"
    union = " UNION ALL ".join(
        f"""SELECT '{schema}' AS schema, '{table}' AS "table", * EXCLUDE (before, after), {image.format("before")}, """
        f"""{image.format("after")} FROM "{schema}"."{table}" """
        for schema, table in tables
    )
    connection.execute(f"CREATE VIEW changes AS {union}")
    connection.execute("CREATE MACRO json_value(document, place) AS json_extract_string(document, place)")
    connection.execute("CREATE MACRO identity(value) AS value")
    connection.create_function("gtid_in", gtid_in, ["VARCHAR", "VARCHAR"], "BOOLEAN", null_handling="special")
    return connection


def theirs(connection, views, statement):
    """DuckDB's answer, and in what words it was asked; or why it wasn't."""
    for pattern, why in NOT_EXPORTED:
        if re.search(pattern, statement):
            return None, [why]
    told = []
    for pattern, replacement, why in TRANSLATED:
        changed = re.sub(pattern, replacement, statement)
        if changed != statement:
            told.append(why)
            statement = changed
    for view in views:
        connection.execute(view.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    return rows_of(connection.sql(statement).to_arrow_table()), told


def first_difference(one, other):
    if isinstance(other, str):
        return other.strip()
    if len(one) != len(other):
        return f"{len(one)} rows, and {len(other)}"
    for number, (left, right) in enumerate(zip(one, other)):
        if len(left) != len(right):
            return f"{len(left)} columns, and {len(right)}"
        for column, (this, that) in enumerate(zip(left, right)):
            if not equal(this, that):
                return f"row {number}, column {column}: {this}, and {that}"
    return None


def main():
    engines = config["engines"]
    base = next(iter(engines))
    passed = collections.Counter()
    skipped = collections.Counter()
    failures = []
    connection = lake() if "export" in config else None
    by_text = mysqlbinlog_rows.answers(config["mysqlbinlog"], config["logs"], config["printed"]) if "mysqlbinlog" in config else {}
    count = 0
    for views, statement in queries():
        count += 1
        expected = ours(engines[base], views, statement)
        if isinstance(expected, str):
            failures.append(f"{base}: {statement}\n  {expected.strip()}")
            continue
        passed[base] += 1
        for name, arguments in engines.items():
            if name == base:
                continue
            difference = first_difference(expected, ours(arguments, views, statement))
            known = [why for engine, asks, why in KNOWN if re.search(engine, name) and re.search(asks, statement)]
            if difference and known:
                skipped[name] += 1
                print(f"{name} can't, {known[0]}: {statement}")
            elif difference:
                failures.append(f"{name}: {statement}\n  {difference}")
            else:
                passed[name] += 1
        if connection:
            try:
                answer, told = theirs(connection, views, statement)
            except duckdb.Error as error:
                answer, told = str(error), []
            if answer is None:
                skipped["DuckDB"] += 1
                print(f"DuckDB is not asked, {told[0]}: {statement}")
            else:
                difference = first_difference(expected, answer)
                if difference:
                    failures.append(f"DuckDB: {statement}\n  {difference}")
                else:
                    passed["DuckDB"] += 1
                for why in told:
                    print(f"DuckDB is asked in other words, {why}: {statement}")
        if statement in by_text:
            logs, rows = by_text[statement]
            expected = ours([[], logs], views, statement)
            read = [[value(cell) for cell in row] for row in rows]
            difference = first_difference(read, expected)
            if difference:
                failures.append(f"mysqlbinlog -v: {statement}\n  {difference}")
            else:
                passed["mysqlbinlog -v"] += 1
    if unread := set(by_text) - {statement for _, statement in queries()}:
        failures.append(f"mysqlbinlog_rows.py answers what nobody asks: {sorted(unread)}")
    print(f"{count} queries; equal to {base}:")
    for name in [*engines, "DuckDB", "mysqlbinlog -v"]:
        if passed[name] or skipped[name]:
            left = f", {skipped[name]} not asked, or can't" if skipped[name] else ""
            print(f"  {name}: {passed[name]}{left}")
    if failures:
        sys.exit("\n".join([f"{len(failures)} differ:", *failures]))


main()
