-- binlogz redo: makes changes again, in their order
-- an UPDATE or DELETE whose row isn't as the log left it ends the script, as row_count() <> 1 is out of range then
-- a table with triggers ends the script here, and so does one with generated columns that aren't known
-- 468dfa6d-e565-11f1-89b6-02fc00000001:406, 2026-11-21 04:37:38.992652 UTC, thread 25, binlog.000006 at 198742
-- not redone, a statement: CREATE TABLE numbers ( id INT PRIMARY KEY, ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, su SMALLINT UNSIGNED, mi MEDIUMINT, mu MEDIUMINT UNSIGNED, ii INT, iu INT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED, f FLOAT, d DOUBLE, d1 DECIMAL(1,0), d2 DECIMAL(65,30), d3 DECIMAL(10,10), b1 BIT(1), b64 BIT(64), bo BOOLEAN ) (in mix)
-- 468dfa6d-e565-11f1-89b6-02fc00000001:407, 2026-11-21 04:37:38.995477 UTC, thread 25, binlog.000006 at 199237
INSERT INTO `mix`.`numbers` (`id`, `ti`, `tu`, `si`, `su`, `mi`, `mu`, `ii`, `iu`, `bi`, `bu`, `f`, `d`, `d1`, `d2`, `d3`, `b1`, `b64`, `bo`) VALUES (1, -128, 0, -32768, 0, -8388608, 0, -2147483648, 0, -9223372036854775808, 0, -3.3999999521443642e38, -1.7e308, -9, -99999999999999999999999999999999999.999999999999999999999999999999, -0.9999999999, b'0', b'0', 0);
INSERT INTO `mix`.`numbers` (`id`, `ti`, `tu`, `si`, `su`, `mi`, `mu`, `ii`, `iu`, `bi`, `bu`, `f`, `d`, `d1`, `d2`, `d3`, `b1`, `b64`, `bo`) VALUES (2, 127, 255, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615, 1.1699999996735163e-38, 2.2e-308, 9, 0.000000000000000000000000000001, 0.0000000001, b'1', b'1111111111111111111111111111111111111111111111111111111111111111', 1);
INSERT INTO `mix`.`numbers` (`id`, `ti`, `tu`, `si`, `su`, `mi`, `mu`, `ii`, `iu`, `bi`, `bu`, `f`, `d`, `d1`, `d2`, `d3`, `b1`, `b64`, `bo`) VALUES (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
-- 3 rows in 1 transaction; 0 rows and 1 statement not redone
