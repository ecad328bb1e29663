"""Rows of logs without names: each has the columns that its table had at its place, by the statements of the logs.

MINIMAL and FULL are the same changes with and without names, paths with ":" between them; MOVED is a log in which the columns of
shop.moved change their places."""

import os

import binlogz
from binlogz.compat import BinLogStreamReader
from binlogz.compat.row_event import WriteRowsEvent


def changes(paths):
    found = []
    for change in binlogz.open(paths).changes():
        found.append((change.operation, change.table_name, change.before, change.after))
    return found


minimal, full = (os.environ[name].split(":") for name in ("MINIMAL", "FULL"))
ours, named = changes(minimal), changes(full)
assert len(ours) == len(named) > 0
known = 0
for one, other in zip(ours, named):
    columns = [name for image in one[2:] if image for name in image]
    if not any(name.startswith("@") for name in columns):
        known += 1
        assert one == other, (one, other)
print(f"{known} of {len(ours)} known")
assert known * 2 > len(ours)

# Without the log that makes the tables nothing is known of them until one is made anew; nothing is wrong.
for one, other in zip(changes(minimal[1:]), named):
    columns = [name for image in one[2:] if image for name in image]
    if not any(name.startswith("@") for name in columns):
        assert one == other, (one, other)

moved = os.environ["MOVED"]
images = [change.after for change in binlogz.open(moved).changes() if change.table_name == "moved"]
assert images == [{"id": 1, "paid": 100, "owed": 5, "state": "old"}, {"id": 2, "owed": 6, "paid": 200, "state": "new"}], images

stream = BinLogStreamReader(
    connection_settings={"host": "127.0.0.1", "port": int(os.environ["PORT"]), "user": "python", "passwd": "p:/@s"},
    server_id=77,
    log_file=os.path.basename(moved),
    log_pos=4,
    only_events=[WriteRowsEvent],
    only_tables=["moved"],
)
values = [row["values"] for event in stream for row in event.rows]
stream.close()
assert [(row["paid"], row["owed"]) for row in values] == [(100, 5), (200, 6)], values

# A transaction that the server leaves out may have been the statement: nothing is known then.
alter = next(one.gtid for one in binlogz.open(moved) if any("MODIFY owed" in text for text in one.statements))
url = f"mysql://python:p%3A%2F%40s@127.0.0.1:{os.environ['PORT']}"
with binlogz.open(url, start_after=alter) as log:
    images = [change.after for change in log.changes() if change.table_name == "moved"]
assert images == [{"@1": 1, "@2": 100, "@3": 5, "@4": 2}, {"@1": 2, "@2": 6, "@3": 200, "@4": 1}], images
with binlogz.open(url) as log:
    images = [change.after for change in log.changes() if change.table_name == "moved"]
assert [(image["paid"], image["owed"]) for image in images] == [(100, 5), (200, 6)], images

try:
    import pyarrow  # noqa: F401
except ImportError:
    print("SKIPPED: pyarrow isn't here")
else:
    table = binlogz.open(moved).to_arrow("shop.moved").to_pylist()
    assert [(row["after"]["paid"], row["after"]["owed"]) for row in table] == [(100, 5), (200, 6)], table
