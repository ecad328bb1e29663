"""Answers to some of queries.sql from the text of `mysqlbinlog -v`: rows are read from its comments, by no code of ours."""

import collections
import datetime
import decimal
import re
import subprocess

HEADS = {"INSERT INTO": "insert", "UPDATE": "update", "DELETE FROM": "delete"}

Row = collections.namedtuple("Row", "log schema table operation before after gtid committed_at")


def cell(text):
    """A value as mysqlbinlog prints it."""
    if text == "NULL":
        return None
    if text.startswith("'"):
        return text[1:-1]
    number = re.match(r"-?\d+", text)
    return int(number[0]) if re.fullmatch(r"-?\d+( \(\d+\))?", text) else decimal.Decimal(text) if number else text


def rows(mysqlbinlog, log):
    """All row changes of a log."""
    command = [mysqlbinlog, "--no-defaults", "-v", "--base64-output=decode-rows", log]
    text = subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")
    gtid = committed = row = image = None
    # Only these end lines: values may have others, such as U+0085.
    for line in text.split("\n"):
        if found := re.match(r"SET @@SESSION.GTID_NEXT= '(.*?)'", line):
            gtid = None if found[1] == "AUTOMATIC" else found[1]
        elif found := re.search(r"original_commit_timestamp=(\d+)", line):
            moment = datetime.timedelta(microseconds=int(found[1]))
            committed = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + moment
        elif found := re.match(r"### (INSERT INTO|UPDATE|DELETE FROM) `((?:[^`]|``)*)`\.`((?:[^`]|``)*)`$", line):
            if row:
                yield row
            row = Row(log.rsplit("/", 1)[-1], found[2], found[3], HEADS[found[1]], {}, {}, gtid, committed)
        elif line in ("### WHERE", "### SET"):
            image = row.before if line == "### WHERE" else row.after
        elif found := re.match(r"###   @(\d+)=(.*)", line):
            image[int(found[1])] = cell(found[2])
        elif row and not line.startswith("###"):
            yield row
            row = None


def answers(mysqlbinlog, logs, printed):
    """Queries, word for word, with the logs to ask and what the rows say. `printed`: the logs that mysqlbinlog prints whole; of
    the others, single tables are asked."""
    all_rows = [row for log in printed for row in rows(mysqlbinlog, log)]
    of = lambda schema, table: [row for row in all_rows if (row.schema, row.table) == (schema, table)]
    counted = lambda keys: sorted([*key, count] for key, count in collections.Counter(keys).items())
    answers = {}
    answers['SELECT schema, "table", operation, count(*) AS rows FROM changes GROUP BY 1, 2, 3 ORDER BY 1, 2, 3'] = counted(
        (row.schema, row.table, row.operation) for row in all_rows
    )
    answers["SELECT count(*) AS rows, count(DISTINCT gtid) AS transactions FROM changes"] = [
        [len(all_rows), len({row.gtid for row in all_rows})]
    ]
    answers["SELECT log, count(*) AS rows FROM changes GROUP BY log ORDER BY log"] = counted((row.log,) for row in all_rows)
    hours = collections.defaultdict(list)
    for row in all_rows:
        hours[row.schema, row.table, row.committed_at.replace(minute=0, second=0, microsecond=0)].append(row.gtid)
    answers[
        "SELECT schema, \"table\", date_trunc('hour', committed_at) AS hour, count(*) AS rows, count(DISTINCT gtid) AS "
        "transactions FROM changes GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    ] = sorted([*key, len(gtids), len(set(gtids))] for key, gtids in hours.items())
    salaries = of("employees", "salaries")
    numbers = lambda images, column: [image[column] for image in images if column in image]
    sums = []
    for operation in sorted({row.operation for row in salaries}):
        chosen = [row for row in salaries if row.operation == operation]
        after, before = numbers((row.after for row in chosen), 2), numbers((row.before for row in chosen), 2)
        sums.append([operation, len(chosen), sum(after) if after else None, min(after, default=None), max(before, default=None)])
    answers[
        'SELECT operation, count(*), sum(after.salary), min(after.salary), max(before.salary) FROM "employees"."salaries" '
        "GROUP BY operation ORDER BY operation"
    ] = sums
    answers["SELECT DISTINCT after.salary - before.salary AS raised FROM employees.salaries WHERE operation = 'update'"] = [
        [raised] for raised in sorted({row.after[2] - row.before[2] for row in salaries if row.operation == "update"})
    ]
    sbtest = of("sbtest", "sbtest1")
    answers["SELECT count(*) FROM sbtest.sbtest1 WHERE after.id >= 300 AND after.id < 310"] = [
        [sum(1 for row in sbtest if 300 <= row.after.get(1, 0) < 310)]
    ]
    kept = []
    for operation in ("delete", "insert", "update"):
        chosen = [
            row
            for row in sbtest
            if row.operation == operation
            and (10 <= row.after.get(1, 0) <= 20 or row.before.get(1) in (7, 8, 9, 1000))
        ]
        if chosen:
            after, before = numbers((row.after for row in chosen), 1), numbers((row.before for row in chosen), 1)
            kept.append([operation, len(chosen), min(after, default=None), max(before, default=None)])
    answers[
        "SELECT operation, count(*), min(after.id), max(before.id) FROM sbtest.sbtest1 WHERE after.id BETWEEN 10 AND 20 OR "
        "before.id IN (7, 8, 9, 1000) GROUP BY 1 ORDER BY 1"
    ] = kept
    answers["SELECT count(*) FROM employees.salaries WHERE after.emp_no = -1"] = [[0]]
    answers["SELECT operation, after.title, after.from_date, after.to_date FROM employees.titles WHERE after.emp_no = 10005 ORDER BY 3, 1, 2"] = sorted(
        (
            [row.operation, row.after[2], day(row.after[3]), day(row.after[4])]
            for row in of("employees", "titles")
            if row.after.get(1) == 10005
        ),
        key=lambda found: (found[2], found[0], found[1]),
    )
    found = {statement: (printed, rows) for statement, rows in answers.items()}
    unprinted = [row for log in logs if log not in printed for row in rows(mysqlbinlog, log)]
    integers = sorted((row.after for row in unprinted if row.table == "numbers"), key=lambda image: image[1])
    # mysqlbinlog prints what is above the middle of a type as "-1 (255)".
    unsigned = {3: 8, 5: 16, 7: 24, 9: 32, 11: 64}
    fixed = lambda column, number: number % (1 << unsigned[column]) if column in unsigned and number is not None else number
    found[
        "SELECT after.id, after.ti, after.tu, after.si, after.su, after.mi, after.mu, after.ii, after.iu, after.bi, after.bu "
        "FROM mix.numbers ORDER BY 1"
    ] = (logs, [[fixed(column, image[column]) for column in range(1, 12)] for image in integers])
    return found


def day(text):
    """A date as mysqlbinlog prints it: 2026:11:24."""
    return None if text is None else datetime.date(*map(int, text.split(":")))
