"""Asks `binlogz sql serve --mysql` with PyMySQL: values, parameters, rows as they come, another login method, KILL.

usage: mysql.py PORT USER PASSWORD CERTIFICATE
"""

import json
import sys

import pymysql
import pymysql.cursors

port, user, password, certificate = sys.argv[1:]


def connect(**options):
    return pymysql.connect(host="localhost", port=int(port), user=user, password=password, **options)


connection = connect(ssl={"ca": certificate}, database="employees")
cursor = connection.cursor()
cursor.execute("SELECT 1, NULL, 'é', x'00ff', CAST(-1.5 AS DECIMAL(5,2)), 1e20, DATE('2024-02-29')")
print(*cursor.fetchall())
cursor.execute(
    "SELECT CAST('2024-02-29 01:02:03' AS DATETIME), CAST('2024-02-29 01:02:03.000004' AS DATETIME(6)), "
    "CAST(18446744073709551615 AS UNSIGNED)"
)
print(*cursor.fetchall())
cursor.execute("SELECT count(*) FROM changes WHERE operation = %s", ("update",))
print(cursor.fetchall())
cursor.execute("SELECT `after` FROM salaries ORDER BY log, position, inside, `offset`, `row` LIMIT 1")
print(json.loads(cursor.fetchone()[0]))
rows = connection.cursor(pymysql.cursors.SSCursor)
rows.execute("SELECT * FROM changes")
print("rows", sum(1 for _ in rows))
try:
    pymysql.connect(host="127.0.0.1", port=int(port), user=user, password="wrong")
except pymysql.err.OperationalError as error:
    print("denied", error.args[0])
# As servers before 8.0 prove passwords.
native = connect(auth_plugin_map={}, ssl_disabled=True)
print("native", native.query("SELECT 1"))
try:
    cursor.execute("UPDATE salaries SET operation = 'x'")
except pymysql.err.OperationalError as error:
    print("refused", error.args[0])
connection.kill(native.thread_id())
try:
    native.query("SELECT 1")
except pymysql.err.OperationalError:
    print("killed")
