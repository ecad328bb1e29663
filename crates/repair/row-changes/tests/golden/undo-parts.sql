-- binlogz undo: takes changes back, the last one first
-- an UPDATE or DELETE whose row isn't as the log left it ends the script, as row_count() <> 1 is out of range then
-- a table with triggers ends the script here, and so does one with generated columns that aren't known
-- 468dfa6d-e565-11f1-89b6-02fc00000001:422, 2026-11-21 04:37:39.106015 UTC, thread 25, binlog.000006 at 288690
INSERT INTO `mix`.`parts` (`id`, `v`) VALUES (300, 3);
-- 468dfa6d-e565-11f1-89b6-02fc00000001:421, 2026-11-21 04:37:39.105868 UTC, thread 25, binlog.000006 at 288310
UPDATE `mix`.`parts` SET `id` = 200 WHERE `id` = 300 AND `v` = 3;
UPDATE `mix`.`parts` SET `id` = 2 WHERE `id` = 102 AND `v` = 2;
UPDATE `mix`.`parts` SET `id` = 1 WHERE `id` = 101 AND `v` = 1;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:420, 2026-11-21 04:37:39.105414 UTC, thread 25, binlog.000006 at 287972
-- a DELETE ends the script if rows refer to its row by a foreign key with CASCADE, SET NULL or SET DEFAULT, as far as the account may see them
DELETE FROM `mix`.`parts` WHERE `id` = 200 AND `v` = 3;
DELETE FROM `mix`.`parts` WHERE `id` = 2 AND `v` = 2;
DELETE FROM `mix`.`parts` WHERE `id` = 1 AND `v` = 1;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:419, 2026-11-21 04:37:39.102892 UTC, thread 25, binlog.000006 at 287651
-- not undone, a statement: CREATE TABLE parts (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) ( PARTITION low VALUES LESS THAN (100), PARTITION high VALUES LESS THAN MAXVALUE) (in mix)
-- 7 rows in 3 transactions; 0 rows and 1 statement not undone
