"""Row changes as JSON lines, for Logstash or a queue such as RabbitMQ or Kafka."""

import json
import os
import sys

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

SETTINGS = {"host": "127.0.0.1", "port": int(os.environ["PORT"]), "user": "python", "passwd": "p:/@s"}
ACTIONS = {DeleteRowsEvent: "delete", UpdateRowsEvent: "update", WriteRowsEvent: "insert"}


def text(value):
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {text(key): text(member) for key, member in value.items()}
    if isinstance(value, list):
        return [text(member) for member in value]
    if isinstance(value, set):
        return sorted(value)
    return value


def main():
    stream = BinLogStreamReader(
        connection_settings=SETTINGS,
        server_id=3,
        log_file=os.environ["LOG"],
        log_pos=4,
        resume_stream=True,
        only_events=list(ACTIONS),
        only_schemas=["d"],
    )
    for event in stream:
        if stream.log_file != os.environ["LOG"]:
            break
        for row in event.rows:
            message = {"schema": event.schema, "table": event.table, "action": ACTIONS[type(event)], "time": event.timestamp}
            message.update(row["after_values"] if isinstance(event, UpdateRowsEvent) else row["values"])
            json.dump({name: text(value) for name, value in message.items()}, sys.stdout, default=str)
            print()
    stream.close()


if __name__ == "__main__":
    main()
