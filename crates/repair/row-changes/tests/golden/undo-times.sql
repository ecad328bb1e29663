-- binlogz undo: takes changes back, the last one first
-- an UPDATE or DELETE whose row isn't as the log left it ends the script, as row_count() <> 1 is out of range then
-- a table with triggers ends the script here, and so does one with generated columns that aren't known
-- 468dfa6d-e565-11f1-89b6-02fc00000001:409, 2026-11-21 04:37:39.004849 UTC, thread 25, binlog.000006 at 200097
-- a DELETE ends the script if rows refer to its row by a foreign key with CASCADE, SET NULL or SET DEFAULT, as far as the account may see them
DELETE FROM `mix`.`times` WHERE `id` = 3 AND `y` = 0000 AND `d` = '0000-00-00' AND `t0` = '00:00:00' AND `t6` = '-12:30:00.500000' AND `dt0` = '0000-00-00 00:00:00' AND `dt3` = '2020-00-00 00:00:00.500' AND `dt6` = '2024-02-29 12:00:00.123456' AND `ts0` = '0000-00-00 00:00:00' AND `ts6` = '2001-09-09 01:46:40.500000';
DELETE FROM `mix`.`times` WHERE `id` = 2 AND `y` = 2155 AND `d` = '9999-12-31' AND `t0` = '838:59:59' AND `t6` = '23:59:59.999999' AND `dt0` = '9999-12-31 23:59:59' AND `dt3` = '9999-12-31 23:59:59.999' AND `dt6` = '9999-12-31 23:59:59.999999' AND `ts0` = '2038-01-19 03:14:07' AND `ts6` = '2038-01-19 03:14:07.499999';
DELETE FROM `mix`.`times` WHERE `id` = 1 AND `y` = 1901 AND `d` = '1000-01-01' AND `t0` = '-838:59:59' AND `t6` = '-00:00:00.000001' AND `dt0` = '1000-01-01 00:00:00' AND `dt3` = '1000-01-01 00:00:00.001' AND `dt6` = '1000-01-01 00:00:00.000001' AND `ts0` = '1970-01-01 00:00:01' AND `ts6` = '1970-01-01 00:00:01.000001';
-- 468dfa6d-e565-11f1-89b6-02fc00000001:408, 2026-11-21 04:37:39.002969 UTC, thread 25, binlog.000006 at 199753
-- not undone, a statement: CREATE TABLE times ( id INT PRIMARY KEY, y YEAR, d DATE, t0 TIME, t6 TIME(6), dt0 DATETIME, dt3 DATETIME(3), dt6 DATETIME(6), ts0 TIMESTAMP NULL, ts6 TIMESTAMP(6) NULL ) (in mix)
-- 3 rows in 1 transaction; 0 rows and 1 statement not undone
