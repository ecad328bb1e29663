-- Each statement gives the same over plain logs, compressed ones and an archive, and over the Parquet files of an export. Each line
-- is a query; views of a line before are there. scripts/soak/queries.sh runs them on all engines, and a test most of them on three.

-- Rows by table and operation: what `mysqlbinlog -vvv | perl` counts.
SELECT schema, "table", operation, count(*) AS rows FROM changes GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
-- All of them.
SELECT count(*) AS rows, count(DISTINCT gtid) AS transactions FROM changes;
-- By log.
SELECT log, count(*) AS rows FROM changes GROUP BY log ORDER BY log;
-- By hour.
SELECT date_trunc('day', committed_at) = date_trunc('day', max(committed_at) OVER ()) AS last_day, count(*) > 0 FROM changes GROUP BY committed_at ORDER BY 1, committed_at LIMIT 3;
-- Transactions and what they hold.
SELECT count(*), sum(inserted), sum(updated), sum(deleted), sum(uncompressed_bytes) FROM transactions;
SELECT log, count(*), sum(inserted + updated + deleted) AS rows FROM transactions GROUP BY log ORDER BY log;
-- The largest.
SELECT gtid, inserted + updated + deleted AS rows, tables FROM transactions ORDER BY rows DESC, gtid LIMIT 5;
-- What no server compresses, and why.
SELECT not_compressed, count(*) FROM transactions WHERE not_compressed <> 'compression_off' GROUP BY 1 ORDER BY 1;
-- DDL.
SELECT log, statement FROM transactions WHERE statement LIKE 'CREATE TABLE%' ORDER BY log, position LIMIT 10;
-- A join of changes with their transactions.
SELECT t.thread_id IS NOT NULL AS known, count(*) FROM changes c JOIN transactions t ON t.gtid = c.gtid GROUP BY 1 ORDER BY 1;
-- Transactions without rows.
SELECT count(*) FROM transactions t LEFT ANTI JOIN changes c ON t.gtid = c.gtid;
-- Counts of both agree.
SELECT count(*) FROM (SELECT gtid, count(*) AS rows FROM changes GROUP BY gtid) c JOIN transactions t ON t.gtid = c.gtid WHERE c.rows <> t.inserted + t.updated + t.deleted;
-- Typed columns: sums, minima.
SELECT operation, count(*), sum(after.salary), min(after.salary), max(before.salary) FROM "employees"."salaries" GROUP BY operation ORDER BY operation;
-- What an update did to a number.
SELECT DISTINCT after.salary - before.salary AS raised FROM employees.salaries WHERE operation = 'update';
-- A key.
SELECT operation, key, after.salary FROM employees.salaries WHERE before.emp_no = 10001 ORDER BY "offset", "row", key LIMIT 5;
-- Ranges and lists of keys, numbers and texts: an archive knows them.
SELECT operation, count(*), min(after.id), max(before.id) FROM sbtest.sbtest1 WHERE after.id BETWEEN 10 AND 20 OR before.id IN (7, 8, 9, 1000) GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM sbtest.sbtest1 WHERE after.id >= 300 AND after.id < 310;
SELECT count(*) FROM sbtest.sbtest2 WHERE before['id'] IN (5, 50, 150, 151, 152);
SELECT count(*) FROM mix.prefixed WHERE after.a = 'key' OR after.a = 'nobody';
-- Which columns updates changed.
SELECT "table", array_to_string(changed, ' ') AS changed, count(*) FROM changes WHERE operation = 'update' GROUP BY 1, 2 ORDER BY 1, 2;
-- Windows.
SELECT gtid, rows, sum(rows) OVER (ORDER BY gtid) AS running FROM (SELECT gtid, count(*) AS rows FROM changes WHERE schema = 'sbtest' GROUP BY gtid) ORDER BY gtid LIMIT 5;
-- The life of a row.
SELECT operation, lead(operation) OVER (PARTITION BY key ORDER BY log, "offset", "inside", "row") AS "next", key FROM changes WHERE schema = 'sbtest' AND "table" = 'sbtest1' ORDER BY log, "offset", "inside", "row" LIMIT 5;
-- JSON of the images.
SELECT json_value(after, '$.emp_no') AS emp_no, json_value(after, '$.last_name') AS name FROM changes WHERE schema = 'employees' AND "table" = 'employees' ORDER BY 1 LIMIT 3;
-- GTIDs.
SELECT count(*) FROM transactions t WHERE gtid_in((SELECT max(gtid) FROM transactions WHERE log = 'binlog.000002'), gtid);
-- NULLs.
SELECT count(*) FILTER (WHERE before IS NULL), count(*) FILTER (WHERE after IS NULL), count(gtid) FROM changes;
-- Events.
SELECT event_type, count(*) FROM events WHERE event_type IN ('Write_rows', 'Update_rows', 'Delete_rows') GROUP BY 1 ORDER BY 1;
-- The union of two tables.
SELECT 'salaries' AS name, count(*) FROM employees.salaries UNION ALL SELECT 'titles', count(*) FROM employees.titles ORDER BY 1;
-- Tables by their names.
SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'binlogz' AND table_schema <> 'information_schema' ORDER BY 1, 2;
-- A subquery, and HAVING.
SELECT "table", count(*) AS rows FROM changes WHERE gtid IN (SELECT gtid FROM transactions WHERE inserted > 10) GROUP BY 1 HAVING count(*) > 20 ORDER BY 1;
-- A view.
CREATE VIEW raises AS SELECT after.emp_no AS emp_no, after.salary - before.salary AS raise FROM employees.salaries WHERE operation = 'update';
SELECT count(*), sum(raise), count(DISTINCT emp_no) FROM raises;
-- Text functions, CASE.
SELECT CASE WHEN deleted > 0 THEN 'deletes' WHEN inserted > 0 THEN 'inserts' ELSE 'other' END AS kind, count(*) FROM transactions GROUP BY 1 ORDER BY 1;
-- Moments: the clock of a row is that of its transaction.
SELECT count(*) FROM changes c JOIN transactions t USING (gtid) WHERE c.committed_at <> t.committed_at;
-- Further ones: the normal tests have each third of them.

-- Sums by table and hour: of each table, the rows and the transactions of each hour.
SELECT schema, "table", date_trunc('hour', committed_at) AS hour, count(*) AS rows, count(DISTINCT gtid) AS transactions FROM changes GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
-- The same by the minute of the day, of transactions.
SELECT date_part('hour', committed_at) AS hour, date_part('minute', committed_at) AS minute, count(*) AS transactions, sum(inserted) AS inserted, sum(updated) AS updated FROM transactions GROUP BY 1, 2 ORDER BY 1, 2;
-- Bytes by log: what compressing them would leave, which is the same in each shape.
SELECT log, sum(uncompressed_bytes) AS bytes, max(uncompressed_bytes) AS largest FROM transactions GROUP BY log ORDER BY log;
-- Time zones: the wall clock of other places, with and without summer time, and half an hour off.
SELECT after.id, to_local_time(after.ts6 AT TIME ZONE 'Europe/Berlin') AS berlin, to_local_time(after.ts6 AT TIME ZONE 'America/New_York') AS new_york, to_local_time(after.ts6 AT TIME ZONE 'Asia/Kolkata') AS kolkata FROM mix.times WHERE operation = 'insert' ORDER BY 1;
SELECT date_part('year', to_local_time(after.ts0 AT TIME ZONE 'Pacific/Auckland')) AS year, date_part('hour', to_local_time(after.ts0 AT TIME ZONE 'Pacific/Auckland')) AS hour FROM mix.times WHERE after.ts0 IS NOT NULL ORDER BY 1, 2;
-- Moments compared with one that has a zone.
SELECT count(*) FROM changes WHERE committed_at > TIMESTAMPTZ '2020-01-01 02:00:00+02:00' AND committed_at < TIMESTAMPTZ '2100-01-01 00:00:00+00:00';
-- Every type: whole numbers at their limits.
SELECT after.id, after.ti, after.tu, after.si, after.su, after.mi, after.mu, after.ii, after.iu, after.bi, after.bu FROM mix.numbers ORDER BY 1;
-- Floats, decimals, bits.
SELECT after.id, after.f, after.d, after.d1, after.d3, after.b1, after.b64, after.bo FROM mix.numbers ORDER BY 1;
-- A decimal of 65 digits.
SELECT after.id, after.d2 FROM mix.numbers ORDER BY 1;
-- Dates and times; those that no calendar has are NULL.
SELECT after.id, after.y, after.d, after.t0, after.t6, after.dt0, after.dt3, after.dt6, after.ts0, after.ts6 FROM mix.times ORDER BY 1;
-- Strings and bytes in several character sets; the empty string is not NULL.
SELECT after.id, after.c, after.v, after.bn, after.vb, after.tt, after.tx, after.mt, after.lt, after.tb, after.l1, after.sj, after.u16, after.e, after.s FROM mix.strings WHERE operation = 'insert' ORDER BY 1;
SELECT after.id, character_length(after.c255) AS letters, after.v = '' AS is_empty, after.v IS NULL AS is_null FROM mix.strings WHERE operation = 'insert' ORDER BY 1;
-- JSON, points, vectors, generated and hidden columns.
SELECT after.id, after.j, after.p, after.v, after.total, after.half, after.hidden FROM mix.others WHERE operation = 'insert' ORDER BY 1;
SELECT after.id, json_value(after.j, '$.big') AS big, json_value(after.j, '$.a[5]') AS text, json_value(after.j, '$.none') AS nothing FROM mix.others WHERE operation = 'insert' ORDER BY 1;
-- Bytes as hexadecimal digits.
SELECT after.id, hex(after.bn) AS bn, hex(after.vb) AS vb FROM mix.strings WHERE operation = 'insert' ORDER BY 1;
-- Sums at the limits of types: of signed, unsigned, decimal and floating numbers.
SELECT sum(after.bi), sum(after.bu), sum(after.d3), min(after.d1), max(after.iu), sum(after.d) FROM mix.numbers;
-- NULLs sort last, and groups have one for them.
SELECT after.e, count(*) AS rows, count(after.e) AS values FROM mix.strings GROUP BY 1 ORDER BY 1 NULLS LAST;
SELECT operation, after.a, after.b, before.b AS old FROM mix.no_key ORDER BY log, position, "offset", inside, "row";
SELECT after.a, after.b, after.a + 1 AS more, coalesce(after.b, 'none') AS b FROM mix.no_key WHERE after.b IS NULL OR after.b <> 'a' ORDER BY 1, 2 NULLS FIRST;
-- Conditions with NULL are neither true nor false.
SELECT count(*) FILTER (WHERE after.ti > 0) AS above, count(*) FILTER (WHERE NOT after.ti > 0) AS not_above, count(*) FILTER (WHERE after.ti IS NULL) AS unknown FROM mix.numbers;
-- Names that need quotes.
SELECT after['sloupec ☕'] AS cup, after['a`b'] AS tick, operation FROM mix."čaj 茶" ORDER BY 1;
-- A join of changes with their transactions, summed.
SELECT c.schema, c."table", count(DISTINCT t.gtid) AS transactions, sum(t.inserted + t.updated + t.deleted) AS rows, min(t.server_id) AS server_id FROM changes c JOIN transactions t ON t.gtid = c.gtid GROUP BY 1, 2 ORDER BY 1, 2;
-- Of outer joins: transactions and the changes of one table.
SELECT count(*) AS rows, count(c.gtid) AS with_changes FROM transactions t LEFT JOIN (SELECT DISTINCT gtid FROM changes WHERE "table" = 'titles') c ON t.gtid = c.gtid;
-- Two tables by their keys.
SELECT e.after.emp_no, e.after.last_name, count(*) AS salaries, max(s.after.salary) AS highest FROM employees.employees e JOIN employees.salaries s ON e.after.emp_no = s.after.emp_no WHERE e.operation = 'insert' AND s.operation = 'insert' GROUP BY 1, 2 ORDER BY 1 LIMIT 8;
-- A join by a field that is also the group.
SELECT e.after.emp_no, count(*) AS rows FROM employees.employees e JOIN employees.salaries s ON e.after.emp_no = s.after.emp_no GROUP BY 1 ORDER BY 1 LIMIT 5;
SELECT e.after.emp_no, count(t.operation) AS titles FROM employees.employees e LEFT JOIN employees.titles t ON e.after.emp_no = t.after.emp_no GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 5;
-- A key with several columns, a key that a transaction changed, one that nothing has.
SELECT operation, after.title, after.from_date, after.to_date FROM employees.titles WHERE after.emp_no = 10005 ORDER BY 3, 1, 2;
SELECT count(*) FROM employees.salaries WHERE after.emp_no = -1;
SELECT after.emp_no, after.salary FROM employees.salaries WHERE after.emp_no IN (10001, 10002) AND after.from_date > DATE '1990-01-01' AND operation = 'insert' ORDER BY 1, 2;
-- The last version of each row, by a window.
SELECT emp_no, salary FROM (SELECT coalesce(after.emp_no, before.emp_no) AS emp_no, after.salary AS salary, row_number() OVER (PARTITION BY coalesce(after.emp_no, before.emp_no) ORDER BY log DESC, position DESC, "offset" DESC, inside DESC, "row" DESC) AS age FROM employees.salaries) WHERE age = 1 ORDER BY 1 LIMIT 10;
-- Ranks, differences to the row before, moving averages.
SELECT emp_no, total, rank() OVER (ORDER BY total DESC, emp_no) AS place, total - lag(total) OVER (ORDER BY total, emp_no) AS more FROM (SELECT after.emp_no AS emp_no, sum(after.salary) AS total FROM employees.salaries WHERE operation = 'insert' GROUP BY 1) ORDER BY 3 LIMIT 10;
SELECT number, rows, avg(rows) OVER (ORDER BY number ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS mean FROM (SELECT row_number() OVER (ORDER BY gtid) AS number, count(*) AS rows FROM changes WHERE schema = 'employees' GROUP BY gtid) ORDER BY 1 LIMIT 12;
-- Sets of rows.
SELECT after.emp_no FROM employees.titles WHERE after.title = 'Staff' INTERSECT SELECT after.emp_no FROM employees.titles WHERE after.title = 'Senior Staff' ORDER BY 1 LIMIT 10;
-- Subqueries that look at the row outside.
SELECT count(*) FROM (SELECT after.emp_no AS emp_no FROM employees.employees) e WHERE EXISTS (SELECT 1 FROM (SELECT after.emp_no AS emp_no, after.title AS title FROM employees.titles) t WHERE t.emp_no = e.emp_no AND t.title = 'Engineer');
-- WITH, text functions, regular expressions.
WITH names AS (SELECT upper(after.last_name) AS name FROM employees.employees WHERE operation = 'insert') SELECT substr(name, 1, 1) AS letter, count(*) AS people, count(DISTINCT name) AS names FROM names WHERE regexp_like(name, '^[A-M]') GROUP BY 1 ORDER BY 1;
