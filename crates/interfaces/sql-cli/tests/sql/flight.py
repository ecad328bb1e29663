"""ADBC's client of Flight SQL, as a program that users write: each line that it prints is compared by the test."""
import sys
import threading
import time

import adbc_driver_flightsql.dbapi as flight
from adbc_driver_flightsql import DatabaseOptions

what, uri, user, password, roots = sys.argv[1:6]


def connect(password=password, roots=roots):
    options = {"username": user, "password": password} if user else {}
    if roots:
        options[DatabaseOptions.TLS_ROOT_CERTS.value] = open(roots).read()
    return flight.connect(uri, db_kwargs=options, autocommit=True)


def trouble(work):
    try:
        work()
        print("no error")
    except Exception as error:
        print(str(error).splitlines()[0])


def ask(sql, parameters=None, connection=None):
    with (connection or connect()) as opened, opened.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()


if what == "all":
    trouble(lambda: ask("SELECT 1", connection=connect(password="wrong")))
    with connect() as connection, connection.cursor() as cursor:
        print(connection.adbc_get_info()["vendor_name"])
        print(connection.adbc_get_table_types())
        objects = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        for catalog in objects:
            for schema in catalog["catalog_db_schemas"]:
                tables = sorted(table["table_name"] for table in schema["db_schema_tables"])
                print(catalog["catalog_name"], schema["db_schema_name"], tables)
        for kind in ["TABLE", "BASE TABLE", "VIEW"]:
            objects = connection.adbc_get_objects(depth="tables", table_types_filter=[kind]).read_all().to_pylist()
            print(kind, sum(len(schema["db_schema_tables"]) for catalog in objects for schema in catalog["catalog_db_schemas"]))
        schema = connection.adbc_get_table_schema("salaries", db_schema_filter="employees")
        print(schema.field("after").type.field(1))
        cursor.execute("SELECT operation, count(*) FROM changes GROUP BY 1 ORDER BY 1")
        print(cursor.fetchall())
        # A row of values, which take the places of parameters.
        cursor.execute("SELECT count(*) FROM changes WHERE operation = ?", ("update",))
        print(cursor.fetchall())
        cursor.execute("SELECT count(*) FROM employees.salaries WHERE after.salary > ? AND operation = ?", (60000, "insert"))
        print(cursor.fetchall())
        cursor.execute("SELECT $1 || '!'", ("' OR 1 = 1 --",))
        print(cursor.fetchall())
        cursor.execute("SELECT * FROM changes")
        print(cursor.fetch_arrow_table().num_rows)
        # Larger than any message.
        cursor.execute("SELECT value, repeat('x', 100) FROM generate_series(1, 300000)")
        print(sum(batch.num_rows for batch in cursor.fetch_record_batch()))
        for sql in ["SELEC 1", "SELECT nothing FROM changes", "SELECT 1; SELECT 2", "SELECT ?",
                    "COPY changes TO '/tmp/changes.csv'",
                    "CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION '/etc/passwd'",
                    "SET datafusion.runtime.memory_limit = '100G'", "CREATE VIEW v AS SELECT 1",
                    "INSERT INTO changes SELECT * FROM changes",
                    "SELECT " + "(" * 10000 + "1" + ")" * 10000]:
            trouble(lambda: cursor.execute(sql))
    # Two at once.
    found = []
    threads = [threading.Thread(target=lambda: found.append(ask("SELECT count(*) FROM changes"))) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(found[0] == found[-1], len(found))
elif what == "moved":
    print(ask("SELECT after.id, after.paid, after.owed FROM shop.t ORDER BY 1"))
elif what == "unknown":
    trouble(lambda: print(ask('SELECT after."@2", after.owed FROM shop.t ORDER BY 1')))
    print(ask("SELECT count(*) FROM shop.t"))
elif what == "endless":
    with connect() as connection, connection.cursor() as cursor:
        stop = threading.Timer(1.0, cursor.adbc_cancel)
        stop.start()

        def endless():
            cursor.execute("SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b "
                           "WHERE a.value + b.value = 1")
            cursor.fetchall()
        begun = time.monotonic()
        trouble(endless)
        print("soon" if time.monotonic() - begun < 20 else "late")
    print(ask("SELECT 1"))
elif what == "memory":
    trouble(lambda: ask("SELECT array_agg(after) FROM changes"))
    trouble(lambda: ask("SELECT CAST('x' AS INT)"))
    print(ask("SELECT 1"))
