-- Each statement gives the same over plain logs, compressed ones and an archive.

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
SELECT operation, lead(operation) OVER (PARTITION BY key ORDER BY log, "offset", "inside", "row") AS then, key FROM changes WHERE schema = 'sbtest' AND "table" = 'sbtest1' ORDER BY log, "offset", "inside", "row" LIMIT 5;
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
