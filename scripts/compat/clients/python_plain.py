"""PyMySQL, or with AS=connector mysql-connector-python, as a plain client: does what programs do when they connect, and says of each step how it went."""
import os
import sys

port, user, password = sys.argv[1:4]
tls = bool(os.environ.get("TLS"))
is_connector = os.environ.get("AS") == "connector"


def connect():
    target = dict(host="127.0.0.1", port=int(port), user=user, password=password, charset="utf8mb4")
    if is_connector:
        import mysql.connector

        print("version", mysql.connector.__version__)
        return mysql.connector.connect(**target, ssl_disabled=not tls)
    import pymysql

    print("version", pymysql.__version__)
    return pymysql.connect(**target, **(dict(ssl={"ca": None, "check_hostname": False, "verify_mode": "none"}) if tls else {}))


def step(name, what):
    try:
        what()
        print("done", name)
    except Exception as error:
        print(f"failed {name}: {error}")


def query(sql, *arguments, **kind):
    def run():
        cursor = connection.cursor(**kind)
        cursor.execute(sql, *arguments)
        if not cursor.fetchall():
            raise RuntimeError("no row")
        cursor.close()

    return run


def select_database():
    if is_connector:
        connection.database = "compat"
    else:
        connection.select_db("compat")


try:
    connection = connect()
except Exception as error:
    print(f"failed connect: {error}")
    sys.exit()
begin = connection.start_transaction if is_connector else connection.begin
print("done connect")
step("ping", lambda: connection.ping(reconnect=False))
step("SELECT 1", query("SELECT 1"))
step("SHOW BINARY LOG STATUS", query("SHOW BINARY LOG STATUS"))
step("SHOW BINARY LOGS", query("SHOW BINARY LOGS"))
step("SHOW VARIABLES", query("SHOW VARIABLES LIKE 'binlog%'"))
step("begin, commit, rollback", lambda: (begin(), connection.commit(), connection.rollback()))
if is_connector:
    step("reset", connection.cmd_reset_connection)
    step("change user", lambda: connection.cmd_change_user(user, password))
else:
    step("autocommit", lambda: connection.autocommit(True))
step("select database", select_database)
step("columns", query("SELECT column_name FROM information_schema.columns WHERE table_schema = 'compat'"))
step("rows", query("SELECT COUNT(*) FROM compat.t"))
if is_connector:
    step("prepared statement", query("SELECT COUNT(*) FROM compat.t WHERE id > %s", (0,), prepared=True))
