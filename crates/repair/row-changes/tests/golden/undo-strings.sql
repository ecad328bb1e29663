-- binlogz undo: takes changes back, the last one first
-- 468dfa6d-e565-11f1-89b6-02fc00000001:412, 2026-11-21 04:37:39.023736 UTC, thread 25, binlog.000006 at 206334
UPDATE `mix`.`strings` SET `e` = NULL WHERE `id` = 3;
UPDATE `mix`.`strings` SET `v` = '', `e` = 1 WHERE `id` = 2;
UPDATE `mix`.`strings` SET `v` = 'čaj', `e` = 2 WHERE `id` = 1;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:411, 2026-11-21 04:37:39.023304 UTC, thread 25, binlog.000006 at 201160
-- a DELETE ends the script if rows refer to its row by a foreign key with CASCADE, SET NULL or SET DEFAULT, as far as the account may see them
DELETE FROM `mix`.`strings` WHERE `id` = 4;
DELETE FROM `mix`.`strings` WHERE `id` = 3;
DELETE FROM `mix`.`strings` WHERE `id` = 2;
DELETE FROM `mix`.`strings` WHERE `id` = 1;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:410, 2026-11-21 04:37:39.016771 UTC, thread 25, binlog.000006 at 200542
-- not undone, a statement: CREATE TABLE strings ( id INT PRIMARY KEY, c CHAR(20), c255 CHAR(255) CHARACTER SET utf8mb4, v VARCHAR(20), v1k VARCHAR(1200), bn BINARY(8), vb VARBINARY(300), tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, tb TINYBLOB, lb LONGBLOB, l1 VARCHAR(20) CHARACTER SET latin1, sj VARCHAR(20) CHARACTER SET sjis, u16 VARCHAR(20) CHARACTER SET utf16, e ENUM('small', 'medium', 'large'), s SET('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i') ) (in mix)
-- 7 rows in 2 transactions; 0 rows and 1 statement not undone
