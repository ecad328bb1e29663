-- binlogz redo: makes changes again, in their order
-- 468dfa6d-e565-11f1-89b6-02fc00000001:371, 2026-11-21 04:37:38.811533 UTC, thread 24, binlog.000006 at 380
-- not redone, a statement: CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(60), balance DECIMAL(12,2), note TEXT, KEY (owner)) (in mix)
-- 468dfa6d-e565-11f1-89b6-02fc00000001:373, 2026-11-21 04:37:38.837654 UTC, thread 24, binlog.000006 at 1032
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (1, 'Ada', 10.00, NULL);
-- 468dfa6d-e565-11f1-89b6-02fc00000001:374, 2026-11-21 04:37:38.837973 UTC, thread 24, binlog.000006 at 1333
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (2, 'Grace', 20.00, 'x');
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (3, 'Edsger', 30.50, 'abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc');
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (4, 'Barbara', 0.00, '');
-- 468dfa6d-e565-11f1-89b6-02fc00000001:375, 2026-11-21 04:37:38.839496 UTC, thread 24, binlog.000006 at 2880
UPDATE `mix`.`account` SET `balance` = 15.00 WHERE `id` = 2;
UPDATE `mix`.`account` SET `balance` = 35.50 WHERE `id` = 3;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:376, 2026-11-21 04:37:38.840478 UTC, thread 24, binlog.000006 at 6129
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (5, 'Tony', 1.00, NULL);
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (6, 'Niklaus', 1.00, NULL);
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (7, 'Ken', 1.00, NULL);
-- 468dfa6d-e565-11f1-89b6-02fc00000001:377, 2026-11-21 04:37:38.841120 UTC, thread 24, binlog.000006 at 6833
UPDATE `mix`.`account` SET `id` = 33 WHERE `id` = 3;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:378, 2026-11-21 04:37:38.841584 UTC, thread 24, binlog.000006 at 9713
UPDATE `mix`.`account` SET `balance` = 1.00 WHERE `id` = 33;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:379, 2026-11-21 04:37:38.841818 UTC, thread 24, binlog.000006 at 12649
-- a DELETE ends the script if rows refer to its row by a foreign key with CASCADE, SET NULL or SET DEFAULT, as far as the account may see them
DELETE FROM `mix`.`account` WHERE `id` = 5;
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (5, 'Tony Hoare', 2.00, NULL);
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (8, 'John', 1.00, NULL);
-- 468dfa6d-e565-11f1-89b6-02fc00000001:380, 2026-11-21 04:37:38.841998 UTC, thread 24, binlog.000006 at 13080
UPDATE `mix`.`account` SET `balance` = 2.00 WHERE `id` = 8;
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (9, 'Alan', 1.00, NULL);
-- 468dfa6d-e565-11f1-89b6-02fc00000001:382, 2026-11-21 04:37:38.842419 UTC, thread 24, binlog.000006 at 14025
DELETE FROM `mix`.`account` WHERE `id` = 33;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:385, 2026-11-21 04:37:38.860703 UTC, thread 24, binlog.000006 at 16260
UPDATE `mix`.`account` SET `owner` = 'ADA' WHERE `id` = 1;
UPDATE `mix`.`account` SET `owner` = 'GRACE' WHERE `id` = 2;
UPDATE `mix`.`account` SET `owner` = 'BARBARA' WHERE `id` = 4;
UPDATE `mix`.`account` SET `owner` = 'TONY HOARE' WHERE `id` = 5;
UPDATE `mix`.`account` SET `owner` = 'NIKLAUS' WHERE `id` = 6;
UPDATE `mix`.`account` SET `owner` = 'KEN' WHERE `id` = 7;
UPDATE `mix`.`account` SET `owner` = 'JOHN' WHERE `id` = 8;
UPDATE `mix`.`account` SET `owner` = 'ALAN' WHERE `id` = 9;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:388, 2026-11-21 04:37:38.864859 UTC, thread 24, binlog.000006 at 29292
-- was: UPDATE account SET balance = balance * 2 /* a comment that is logged, with non-ASCII: čaj 茶 🍵 */
UPDATE `mix`.`account` SET `balance` = 20.00 WHERE `id` = 1;
UPDATE `mix`.`account` SET `balance` = 30.00 WHERE `id` = 2;
UPDATE `mix`.`account` SET `balance` = 4.00 WHERE `id` = 5;
UPDATE `mix`.`account` SET `balance` = 2.00 WHERE `id` = 6;
UPDATE `mix`.`account` SET `balance` = 2.00 WHERE `id` = 7;
UPDATE `mix`.`account` SET `balance` = 4.00 WHERE `id` = 8;
UPDATE `mix`.`account` SET `balance` = 2.00 WHERE `id` = 9;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:389, 2026-11-21 04:37:38.865126 UTC, thread 24, binlog.000006 at 30709
UPDATE `mix`.`account` SET `balance` = 40.00 WHERE `id` = 1;
UPDATE `mix`.`account` SET `balance` = 60.00 WHERE `id` = 2;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:391, 2026-11-21 04:37:38.865454 UTC, thread 24, binlog.000006 at 31767
UPDATE `mix`.`account` SET `balance` = 80.00 WHERE `id` = 1;
UPDATE `mix`.`account` SET `balance` = 120.00 WHERE `id` = 2;
-- 468dfa6d-e565-11f1-89b6-02fc00000001:398, 2026-11-21 04:37:38.892175 UTC, thread 24, binlog.000006 at 36419
INSERT INTO `mix`.`account` (`id`, `owner`, `balance`, `note`) VALUES (10, 'MÃ¤rta', 1.00, 'latin1');
-- 37 rows in 14 transactions; 0 rows and 1 statement not redone
