-- Counts that need no rows.
SELECT log, "schema", "table", operation, count(*) AS "rows" FROM binlog.changes GROUP BY ALL ORDER BY log, "schema", "table", operation;
