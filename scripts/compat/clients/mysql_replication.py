"""mysql-replication: prints the rows of compat.t and where to go on; see crates/interfaces/cli/tests/compat/clients."""
import os
import sys

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import GtidEvent, XidEvent
from pymysqlreplication.row_event import WriteRowsEvent

port, user, password, by, place = sys.argv[1:]
settings = dict(host="127.0.0.1", port=int(port), user=user, passwd=password, charset="utf8mb4")
if os.environ.get("TLS"):
    settings["ssl"] = dict(check_hostname=False, verify_mode="none")
if by == "gtid":
    begin = dict(auto_position=place)
    uuid, numbers = place.split(":")
    last = int(numbers.split("-")[-1])
else:
    name, offset = place.rsplit(":", 1)
    begin = dict(log_file=name, log_pos=int(offset), resume_stream=True)
stream = BinLogStreamReader(connection_settings=settings, server_id=os.getpid(), blocking=True, **begin)
for event in stream:
    if isinstance(event, WriteRowsEvent) and event.table == "t":
        for row in event.rows:
            columns = ["NULL" if value is None else str(value) for value in row["values"].values()]
            print("row", "\t".join(columns), flush=True)
    elif isinstance(event, GtidEvent):
        last = int(event.gtid.split(":")[1])
    elif isinstance(event, XidEvent):
        print("at", f"{uuid}:1-{last}" if by == "gtid" else f"{stream.log_file}:{stream.log_pos}", flush=True)
