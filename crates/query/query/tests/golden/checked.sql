-- Whole numbers don't wrap.
SELECT CAST(1 AS INT UNSIGNED) - CAST(2 AS INT UNSIGNED) AS below_zero, sum(position) AS total FROM binlog.transactions;
