"""PyMySQL as a plain client: does what programs do when they connect, and says of each step how it went."""
import os
import sys

import pymysql

port, user, password = sys.argv[1:4]
tls = dict(ssl={"ca": None, "check_hostname": False, "verify_mode": "none"}) if os.environ.get("TLS") else {}


def step(name, what):
    try:
        what()
        print("done", name)
    except Exception as error:
        print(f"failed {name}: {error}")


def query(sql):
    def run():
        with connection.cursor() as cursor:
            cursor.execute(sql)
            if not cursor.fetchall():
                raise RuntimeError("no row")

    return run


try:
    connection = pymysql.connect(host="127.0.0.1", port=int(port), user=user, password=password, charset="utf8mb4", **tls)
except Exception as error:
    print(f"failed connect: {error}")
    sys.exit()
print("done connect")
step("ping", lambda: connection.ping(reconnect=False))
step("SELECT 1", query("SELECT 1"))
step("SHOW BINARY LOG STATUS", query("SHOW BINARY LOG STATUS"))
step("SHOW BINARY LOGS", query("SHOW BINARY LOGS"))
step("SHOW VARIABLES", query("SHOW VARIABLES LIKE 'binlog%'"))
step("begin, commit, rollback", lambda: (connection.begin(), connection.commit(), connection.rollback()))
step("autocommit", lambda: connection.autocommit(True))
step("select_db", lambda: connection.select_db("compat"))
step("columns", query("SELECT column_name FROM information_schema.columns WHERE table_schema = 'compat'"))
step("rows", query("SELECT COUNT(*) FROM compat.t"))
