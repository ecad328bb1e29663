-- binlogz redo: makes changes again, in their order
-- an UPDATE or DELETE whose row isn't as the log left it ends the script, as row_count() <> 1 is out of range then
-- a table with triggers ends the script here, and so does one with generated columns that aren't known
-- 468dfa6d-e565-11f1-89b6-02fc00000001:408, 2026-11-21 04:37:39.002969 UTC, thread 25, binlog.000006 at 199753
-- not redone, a statement: CREATE TABLE times ( id INT PRIMARY KEY, y YEAR, d DATE, t0 TIME, t6 TIME(6), dt0 DATETIME, dt3 DATETIME(3), dt6 DATETIME(6), ts0 TIMESTAMP NULL, ts6 TIMESTAMP(6) NULL ) (in mix)
-- 468dfa6d-e565-11f1-89b6-02fc00000001:409, 2026-11-21 04:37:39.004849 UTC, thread 25, binlog.000006 at 200097
INSERT INTO `mix`.`times` (`id`, `y`, `d`, `t0`, `t6`, `dt0`, `dt3`, `dt6`, `ts0`, `ts6`) VALUES (1, 1901, '1000-01-01', '-838:59:59', '-00:00:00.000001', '1000-01-01 00:00:00', '1000-01-01 00:00:00.001', '1000-01-01 00:00:00.000001', '1970-01-01 00:00:01', '1970-01-01 00:00:01.000001');
INSERT INTO `mix`.`times` (`id`, `y`, `d`, `t0`, `t6`, `dt0`, `dt3`, `dt6`, `ts0`, `ts6`) VALUES (2, 2155, '9999-12-31', '838:59:59', '23:59:59.999999', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07', '2038-01-19 03:14:07.499999');
INSERT INTO `mix`.`times` (`id`, `y`, `d`, `t0`, `t6`, `dt0`, `dt3`, `dt6`, `ts0`, `ts6`) VALUES (3, 0000, '0000-00-00', '00:00:00', '-12:30:00.500000', '0000-00-00 00:00:00', '2020-00-00 00:00:00.500', '2024-02-29 12:00:00.123456', '0000-00-00 00:00:00', '2001-09-09 01:46:40.500000');
-- 3 rows in 1 transaction; 0 rows and 1 statement not redone
