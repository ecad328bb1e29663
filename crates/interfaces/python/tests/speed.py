"""Rows a second and memory of the readers, on the server at PORT. Run by python.rs for scripts/bench/python.sh."""

import os
import resource
import subprocess
import sys
import time

PORT = int(os.environ["PORT"])
ACCOUNT = {"host": "127.0.0.1", "port": PORT, "user": "python", "password": "p"}
RUNS = 3
COLUMNS = "id BIGINT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12, 2), at DATETIME(6), n INT, state ENUM('new', 'done')"
#: A log: rows, rows of a statement, bytes beside each row.
SHAPES = {"bulk": (500_000, 500, 0), "single": (40_000, 1, 0), "gigabyte": (64_000, 50, 16_384)}


def fill(connection, rows, rows_a_statement, beside):
    with connection.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOG STATUS")
        log = cursor.fetchone()[0]
        cursor.execute("DROP TABLE IF EXISTS t")
        cursor.execute(f"CREATE TABLE t ({COLUMNS}, pad MEDIUMBLOB)")
        pad = f"REPEAT(RANDOM_BYTES(1024), {beside // 1024})" if beside else "NULL"
        for first in range(0, rows, rows_a_statement):
            values = ", ".join(
                f"({number}, 'name of {number}', {number}.25, '2024-05-06 07:08:09.{number % 1000000:06}', {number % 1000}, 'done', {pad})"
                for number in range(first, first + rows_a_statement)
            )
            cursor.execute(f"INSERT INTO t VALUES {values}")
        cursor.execute("SHOW BINARY LOG STATUS")
        print(f"{log}: {rows} rows, {cursor.fetchone()[1]} bytes", flush=True)
        cursor.execute("FLUSH BINARY LOGS")
    return log


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def read(reader, log):
    """Rows, seconds, and the most KiB of memory at a quarter of the rows and at the end."""
    count, early = 0, 0
    if reader in ("python-mysql-replication", "binlogz.compat"):
        if reader == "binlogz.compat":
            from binlogz.compat import BinLogStreamReader
            from binlogz.compat.row_event import WriteRowsEvent
        else:
            from pymysqlreplication import BinLogStreamReader
            from pymysqlreplication.row_event import WriteRowsEvent
        begin = time.perf_counter()
        stream = BinLogStreamReader(dict(ACCOUNT), 4711, log_file=log, log_pos=4, resume_stream=True, only_events=[WriteRowsEvent])
        for event in stream:
            count += len(event.rows)
            early = early or (count >= int(os.environ["ROWS"]) // 4 and peak())
            if count >= int(os.environ["ROWS"]):
                break
        stream.close()
    else:
        import binlogz

        where = {"path": os.path.join(os.environ["DATADIR"], log)}.get(reader) or f"mysql://python:p@127.0.0.1:{PORT}"
        options = {} if reader == "path" else {"log": log}
        begin = time.perf_counter()
        for _ in binlogz.open(where, **options).changes():
            count += 1
            if not early and count >= int(os.environ["ROWS"]) // 4:
                early = peak()
            if count >= int(os.environ["ROWS"]):
                break
    print(count, time.perf_counter() - begin, early, peak())


def main():
    import pymysql

    with pymysql.connect(unix_socket=os.environ["SOCKET"], user="root", autocommit=True) as connection:
        connection.query("CREATE USER python IDENTIFIED BY 'p'")
        connection.query("GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO python")
        connection.query("CREATE DATABASE d")
        connection.select_db("d")
        logs = {name: fill(connection, *shape) for name, shape in SHAPES.items()}
    print(f"{'log':10} {'reader':26} {'rows/s':>10} {'KiB at 1/4':>11} {'KiB':>9}", flush=True)
    for name, log in logs.items():
        rows = SHAPES[name][0]
        for reader in ("python-mysql-replication", "binlogz.compat", "server", "path"):
            found = []
            for _ in range(RUNS):
                command = [sys.executable, "-W", "ignore", __file__, reader, log]
                out = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "ROWS": str(rows)})
                count, seconds, early, last = map(float, out.stdout.split())
                assert count == rows, (name, reader, count, rows)
                found.append((count / seconds, early, last))
            speed, early, last = sorted(found)[RUNS // 2]
            print(f"{name:10} {reader:26} {speed:10.0f} {early:11.0f} {last:9.0f}", flush=True)


if __name__ == "__main__":
    read(*sys.argv[1:]) if len(sys.argv) > 1 else main()
