"""Prints every event of a log."""

import os

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import GtidEvent, QueryEvent, RowsQueryLogEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

SETTINGS = {"host": "127.0.0.1", "port": int(os.environ["PORT"]), "user": "python", "passwd": "p:/@s"}


def main():
    stream = BinLogStreamReader(
        connection_settings=SETTINGS,
        server_id=3,
        log_file=os.environ["LOG"],
        log_pos=4,
        resume_stream=True,
        only_events=[GtidEvent, QueryEvent, RowsQueryLogEvent, XidEvent, DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent],
    )
    for event in stream:
        if stream.log_file != os.environ["LOG"]:
            break
        event.dump()
    stream.close()


if __name__ == "__main__":
    main()
