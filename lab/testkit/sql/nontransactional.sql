-- Allowed only without GTIDs: tables with and without transactions in one, and what else a statement may mix.
USE mix;
CREATE TABLE mixed_innodb (id INT PRIMARY KEY);
CREATE TABLE mixed_myisam (id INT PRIMARY KEY) ENGINE = MyISAM;
BEGIN;
INSERT INTO mixed_innodb VALUES (1);
INSERT INTO mixed_myisam VALUES (1);
INSERT INTO mixed_innodb VALUES (2);
COMMIT;
BEGIN;
INSERT INTO mixed_myisam VALUES (2);
INSERT INTO mixed_innodb VALUES (3);
ROLLBACK;
BEGIN;
INSERT INTO mixed_innodb VALUES (4);
CREATE TEMPORARY TABLE scratch (id INT);
DROP TEMPORARY TABLE scratch;
COMMIT;
