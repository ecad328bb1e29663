-- binlogz undo: takes changes back, the last one first
-- 468dfa6d-e565-11f1-89b6-02fc00000001:409, 2026-11-21 04:37:39.004849 UTC, thread 25, binlog.000006 at 200097
-- a DELETE ends the script if rows refer to its row by a foreign key with CASCADE, SET NULL or SET DEFAULT, as far as the account may see them
DELETE FROM `mix`.`times` WHERE `id` = 3;
DELETE FROM `mix`.`times` WHERE `id` = 2;
DELETE FROM `mix`.`times` WHERE `id` = 1;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:408, 2026-11-21 04:37:39.002969 UTC, thread 25, binlog.000006 at 199753
-- not undone, a statement: CREATE TABLE times ( id INT PRIMARY KEY, y YEAR, d DATE, t0 TIME, t6 TIME(6), dt0 DATETIME, dt3 DATETIME(3), dt6 DATETIME(6), ts0 TIMESTAMP NULL, ts6 TIMESTAMP(6) NULL ) (in mix)
-- 3 rows in 1 transaction; 0 rows and 1 statement not undone
