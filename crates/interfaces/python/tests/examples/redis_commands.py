"""Keeps a cache as the tables are: commands for `redis-cli --pipe`."""

import os

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

SETTINGS = {"host": "127.0.0.1", "port": int(os.environ["PORT"]), "user": "python", "passwd": "p:/@s"}


def command(*words):
    print(" ".join('"' + str(word).replace('"', '\\"') + '"' for word in words))


def main():
    stream = BinLogStreamReader(
        connection_settings=SETTINGS,
        server_id=3,
        log_file=os.environ["LOG"],
        log_pos=4,
        resume_stream=True,
        only_events=[DeleteRowsEvent, WriteRowsEvent, UpdateRowsEvent],
    )
    for event in stream:
        if stream.log_file != os.environ["LOG"]:
            break
        for row in event.rows:
            values = row["after_values"] if isinstance(event, UpdateRowsEvent) else row["values"]
            key = f"{event.schema}:{event.table}:{values['id']}"
            if isinstance(event, DeleteRowsEvent):
                command("DEL", key)
            else:
                command("HSET", key, *(part for pair in values.items() if pair[1] is not None for part in pair))
    stream.close()


if __name__ == "__main__":
    main()
