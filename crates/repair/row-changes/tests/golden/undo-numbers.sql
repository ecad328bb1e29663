-- binlogz undo: takes changes back, the last one first
-- 468dfa6d-e565-11f1-89b6-02fc00000001:407, 2026-11-21 04:37:38.995477 UTC, thread 25, binlog.000006 at 199237
-- a DELETE ends the script if rows refer to its row by a foreign key with CASCADE, SET NULL or SET DEFAULT, as far as the account may see them
DELETE FROM `mix`.`numbers` WHERE `id` = 3;
DELETE FROM `mix`.`numbers` WHERE `id` = 2;
DELETE FROM `mix`.`numbers` WHERE `id` = 1;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:406, 2026-11-21 04:37:38.992652 UTC, thread 25, binlog.000006 at 198742
-- not undone, a statement: CREATE TABLE numbers ( id INT PRIMARY KEY, ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, su SMALLINT UNSIGNED, mi MEDIUMINT, mu MEDIUMINT UNSIGNED, ii INT, iu INT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED, f FLOAT, d DOUBLE, d1 DECIMAL(1,0), d2 DECIMAL(65,30), d3 DECIMAL(10,10), b1 BIT(1), b64 BIT(64), bo BOOLEAN ) (in mix)
-- 3 rows in 1 transaction; 0 rows and 1 statement not undone
