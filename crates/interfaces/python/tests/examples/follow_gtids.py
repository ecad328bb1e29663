"""Follows a server by GTIDs, waits for more, and ends when it has seen enough rows."""

import os

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import GtidEvent
from pymysqlreplication.row_event import WriteRowsEvent

SETTINGS = {"host": "127.0.0.1", "port": int(os.environ["PORT"]), "user": "python", "passwd": "p:/@s"}


def main():
    stream = BinLogStreamReader(
        connection_settings=SETTINGS,
        server_id=3,
        blocking=True,
        resume_stream=True,
        auto_position=os.environ["GTIDS"],
        slave_heartbeat=1,
        only_events=[GtidEvent, WriteRowsEvent],
        ignored_tables=["types"],
    )
    gtid, rows = None, 0
    for event in stream:
        if isinstance(event, GtidEvent):
            gtid = event.gtid
            continue
        rows += len(event.rows)
        if rows == int(os.environ["ROWS"]):
            print(rows, "rows, the last of", gtid)
            break
    stream.close()


if __name__ == "__main__":
    main()
