"""One thread reads, others work on rows; the program tells where it would go on."""

import os
import queue
import threading

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent

SETTINGS = {"host": "127.0.0.1", "port": int(os.environ["PORT"]), "user": "python", "passwd": "p:/@s"}
WORKERS = 3


def read(rows, places):
    stream = BinLogStreamReader(
        connection_settings=SETTINGS,
        server_id=3,
        log_file=os.environ["LOG"],
        log_pos=4,
        resume_stream=True,
        only_events=[WriteRowsEvent],
        only_tables=["many"],
    )
    for event in stream:
        if stream.log_file != os.environ["LOG"]:
            break
        rows.put((event.schema, event.table, event.rows))
    places.append(stream.log_file)
    stream.close()
    for _ in range(WORKERS):
        rows.put(None)


def work(rows, counts):
    while (item := rows.get()) is not None:
        _, _, found = item
        counts.append((len(found), sum(row["values"]["id"] for row in found)))


def main():
    rows, counts, places = queue.Queue(maxsize=100), [], []
    threads = [threading.Thread(target=read, args=(rows, places))]
    threads += [threading.Thread(target=work, args=(rows, counts)) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(count for count, _ in counts), "rows, their ids", sum(total for _, total in counts))


if __name__ == "__main__":
    main()
