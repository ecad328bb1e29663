-- binlogz undo: takes changes back, the last one first
-- 468dfa6d-e565-11f1-89b6-02fc00000001:398, 2026-11-21 04:37:38.892175 UTC, thread 24, binlog.000006 at 36419
-- a DELETE ends the script if rows refer to its row by a foreign key with CASCADE, SET NULL or SET DEFAULT, as far as the account may see them
DELETE FROM `mix`.`account` WHERE `id` = 10;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:391, 2026-11-21 04:37:38.865454 UTC, thread 24, binlog.000006 at 31767
UPDATE `mix`.`account` SET `balance` = 60.00 WHERE `id` = 2;
UPDATE `mix`.`account` SET `balance` = 40.00 WHERE `id` = 1;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:389, 2026-11-21 04:37:38.865126 UTC, thread 24, binlog.000006 at 30709
-- not undone: binlog.000006 at 31152#0: UPDATE of a row in mix.account: the logged image lacks balance (binlog_row_image=FULL writes all columns); the row has `id` = 2
-- not undone: binlog.000006 at 31052#0: UPDATE of a row in mix.account: the logged image lacks balance (binlog_row_image=FULL writes all columns); the row has `id` = 1
-- 468dfa6d-e565-11f1-89b6-02fc00000001:388, 2026-11-21 04:37:38.864859 UTC, thread 24, binlog.000006 at 29292
-- was: UPDATE account SET balance = balance * 2 /* a comment that is logged, with non-ASCII: čaj 茶 🍵 */
UPDATE `mix`.`account` SET `balance` = 1.00 WHERE `id` = 9;
UPDATE `mix`.`account` SET `balance` = 2.00 WHERE `id` = 8;
UPDATE `mix`.`account` SET `balance` = 1.00 WHERE `id` = 7;
UPDATE `mix`.`account` SET `balance` = 1.00 WHERE `id` = 6;
UPDATE `mix`.`account` SET `balance` = 2.00 WHERE `id` = 5;
UPDATE `mix`.`account` SET `balance` = 15.00 WHERE `id` = 2;
UPDATE `mix`.`account` SET `balance` = 10.00 WHERE `id` = 1;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:385, 2026-11-21 04:37:38.860703 UTC, thread 24, binlog.000006 at 16260
UPDATE `mix`.`account` SET `owner` = 'Alan' WHERE `id` = 9;
UPDATE `mix`.`account` SET `owner` = 'John' WHERE `id` = 8;
UPDATE `mix`.`account` SET `owner` = 'Ken' WHERE `id` = 7;
UPDATE `mix`.`account` SET `owner` = 'Niklaus' WHERE `id` = 6;
UPDATE `mix`.`account` SET `owner` = 'Tony Hoare' WHERE `id` = 5;
UPDATE `mix`.`account` SET `owner` = 'Barbara' WHERE `id` = 4;
UPDATE `mix`.`account` SET `owner` = 'Grace' WHERE `id` = 2;
UPDATE `mix`.`account` SET `owner` = 'Ada' WHERE `id` = 1;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:382, 2026-11-21 04:37:38.842419 UTC, thread 24, binlog.000006 at 14025
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (33, 'Edsger', 1.00, 'abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc');
-- 468dfa6d-e565-11f1-89b6-02fc00000001:380, 2026-11-21 04:37:38.841998 UTC, thread 24, binlog.000006 at 13080
DELETE FROM `mix`.`account` WHERE `id` = 9;
UPDATE `mix`.`account` SET `balance` = 1.00 WHERE `id` = 8;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:379, 2026-11-21 04:37:38.841818 UTC, thread 24, binlog.000006 at 12649
DELETE FROM `mix`.`account` WHERE `id` = 8;
DELETE FROM `mix`.`account` WHERE `id` = 5;
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (5, 'Tony', 1.00, NULL);
-- 468dfa6d-e565-11f1-89b6-02fc00000001:378, 2026-11-21 04:37:38.841584 UTC, thread 24, binlog.000006 at 9713
UPDATE `mix`.`account` SET `balance` = 35.50 WHERE `id` = 33;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:377, 2026-11-21 04:37:38.841120 UTC, thread 24, binlog.000006 at 6833
UPDATE `mix`.`account` SET `id` = 3 WHERE `id` = 33;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:376, 2026-11-21 04:37:38.840478 UTC, thread 24, binlog.000006 at 6129
DELETE FROM `mix`.`account` WHERE `id` = 7;
DELETE FROM `mix`.`account` WHERE `id` = 6;
DELETE FROM `mix`.`account` WHERE `id` = 5;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:375, 2026-11-21 04:37:38.839496 UTC, thread 24, binlog.000006 at 2880
UPDATE `mix`.`account` SET `balance` = 30.50 WHERE `id` = 3;
UPDATE `mix`.`account` SET `balance` = 20.00 WHERE `id` = 2;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:374, 2026-11-21 04:37:38.837973 UTC, thread 24, binlog.000006 at 1333
DELETE FROM `mix`.`account` WHERE `id` = 4;
DELETE FROM `mix`.`account` WHERE `id` = 3;
DELETE FROM `mix`.`account` WHERE `id` = 2;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:373, 2026-11-21 04:37:38.837654 UTC, thread 24, binlog.000006 at 1032
DELETE FROM `mix`.`account` WHERE `id` = 1;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:371, 2026-11-21 04:37:38.811533 UTC, thread 24, binlog.000006 at 380
-- not undone, a statement: CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(60), balance DECIMAL(12,2), note TEXT, KEY (owner)) (in mix)
-- 35 rows in 13 transactions; 2 rows and 1 statement not undone
