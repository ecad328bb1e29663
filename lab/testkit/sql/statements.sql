-- What the server never compresses: DDL, accounts, statement format, tables without transactions.
USE mix;
CREATE TABLE plain_ddl (id INT PRIMARY KEY, v INT);
ALTER TABLE plain_ddl ADD COLUMN w VARCHAR(20) DEFAULT 'x', ADD INDEX (v);
CREATE TABLE alike LIKE plain_ddl;
RENAME TABLE alike TO renamed;
TRUNCATE TABLE renamed;
DROP TABLE renamed;
CREATE VIEW rich AS SELECT * FROM account WHERE balance > 10;
CREATE FUNCTION twice(i INT) RETURNS INT DETERMINISTIC RETURN 2 * i;
CREATE EVENT later ON SCHEDULE AT '2037-01-01 00:00:00' DO DELETE FROM mix.audit;
DROP EVENT later;
CREATE USER visitor@'%' IDENTIFIED BY 'secret';
GRANT SELECT ON mix.* TO visitor@'%';
DROP USER visitor@'%';
ANALYZE TABLE account;
FLUSH TABLES;

-- one transaction of DDL and rows
CREATE TABLE copied (PRIMARY KEY (id)) SELECT id, owner FROM account;

-- no transactions
CREATE TABLE myisam (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50)) ENGINE = MyISAM;
INSERT INTO myisam (v) VALUES ('a'), ('b');
UPDATE myisam SET v = 'c';
DELETE FROM myisam WHERE id = 1;

-- temporary tables: not logged in row format, their creation inside a transaction neither
CREATE TEMPORARY TABLE scratch (id INT);
INSERT INTO scratch VALUES (1), (2);
BEGIN;
INSERT INTO plain_ddl (id, v) SELECT id, id FROM scratch;
DELETE FROM scratch;
COMMIT;
DROP TEMPORARY TABLE scratch;

-- statement format with its context events, alone and beside rows
SET SESSION binlog_format = 'STATEMENT';
INSERT INTO entry (account_id, amount) VALUES (1, 1), (1, 2);
INSERT INTO audit (what) SELECT owner FROM account ORDER BY id;
SET @who = 'a user variable', @number = 42, @fraction = 1.5, @nothing = NULL, @bytes = 0x00FF;
INSERT INTO audit (what) VALUES (@who), (@number), (@fraction), (@nothing), (HEX(@bytes));
INSERT INTO audit (what) VALUES (RAND());
INSERT INTO audit (what) VALUES (LAST_INSERT_ID());
UPDATE myisam SET v = 'd';
CREATE TABLE copied_by_statement (PRIMARY KEY (id)) SELECT id, owner FROM account;
CREATE TEMPORARY TABLE scratch (id INT);
INSERT INTO scratch VALUES (1), (2);
UPDATE plain_ddl SET v = 0;
DROP TEMPORARY TABLE scratch;
BEGIN;
UPDATE account SET balance = 5 WHERE id = 1;
SET SESSION sql_mode = 'TRADITIONAL';
UPDATE account SET balance = 6 WHERE id = 1;
COMMIT;
SET SESSION sql_mode = DEFAULT;
SET SESSION binlog_format = 'MIXED';
INSERT INTO audit (what) VALUES ('safe as a statement');
INSERT INTO audit (what) VALUES (UUID());
SET SESSION binlog_format = 'ROW';
