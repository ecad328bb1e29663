-- Row-format transactions of every shape: what the server compresses.
CREATE DATABASE mix;
USE mix;
CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(60), balance DECIMAL(12,2), note TEXT, KEY (owner));
CREATE TABLE entry (
    id BIGINT PRIMARY KEY AUTO_INCREMENT, account_id INT, amount DECIMAL(12,2), at TIMESTAMP(6) NULL,
    FOREIGN KEY (account_id) REFERENCES account (id) ON DELETE CASCADE ON UPDATE CASCADE
);

-- one row, several rows, several statements and tables in one transaction
INSERT INTO account VALUES (1, 'Ada', 10.00, NULL);
INSERT INTO account VALUES (2, 'Grace', 20.00, 'x'), (3, 'Edsger', 30.50, REPEAT('abc', 400)), (4, 'Barbara', 0, '');
BEGIN;
UPDATE account SET balance = balance - 5 WHERE id = 2;
UPDATE account SET balance = balance + 5 WHERE id = 3;
INSERT INTO entry (account_id, amount, at) VALUES (2, -5, NOW(6)), (3, 5, NOW(6));
DELETE FROM entry WHERE amount < 0;
COMMIT;

-- savepoints, some rolled back to
BEGIN;
INSERT INTO account VALUES (5, 'Tony', 1, NULL);
SAVEPOINT one;
INSERT INTO account VALUES (6, 'Niklaus', 1, NULL);
SAVEPOINT two;
UPDATE account SET note = 'kept' WHERE id = 5;
ROLLBACK TO SAVEPOINT two;
INSERT INTO account VALUES (7, 'Ken', 1, NULL);
RELEASE SAVEPOINT one;
COMMIT;

-- nothing is logged for these
BEGIN; INSERT INTO account VALUES (100, 'nobody', 1, NULL); ROLLBACK;
BEGIN; COMMIT;

-- cascades, multi-table statements, REPLACE, upsert, INSERT … SELECT
UPDATE account SET id = 33 WHERE id = 3;
UPDATE account JOIN entry ON entry.account_id = account.id SET account.balance = 1, entry.amount = 1;
REPLACE INTO account VALUES (5, 'Tony Hoare', 2, NULL), (8, 'John', 1, NULL);
INSERT INTO account VALUES (8, 'John', 1, NULL), (9, 'Alan', 1, NULL) ON DUPLICATE KEY UPDATE balance = balance + 1;
INSERT INTO entry (account_id, amount, at) SELECT id, balance, FROM_UNIXTIME(1700000000 + id) FROM account;
DELETE FROM account WHERE id = 33;

-- triggers and a stored procedure: several table maps in one statement
CREATE TABLE audit (id INT PRIMARY KEY AUTO_INCREMENT, what VARCHAR(100));
CREATE TRIGGER account_audit AFTER UPDATE ON account FOR EACH ROW
    INSERT INTO audit (what) VALUES (CONCAT(OLD.owner, ' -> ', NEW.owner));
UPDATE account SET owner = UPPER(owner);
DELIMITER //
CREATE PROCEDURE fill(IN n INT)
BEGIN
    DECLARE i INT DEFAULT 0;
    START TRANSACTION;
    WHILE i < n DO
        INSERT INTO entry (account_id, amount, at) VALUES (1, i, NULL);
        SET i = i + 1;
    END WHILE;
    COMMIT;
END//
DELIMITER ;
CALL fill(100);

-- the statement beside its rows; other row images and metadata in one session
SET SESSION binlog_rows_query_log_events = ON;
UPDATE account SET balance = balance * 2 /* a comment that is logged, with non-ASCII: čaj 茶 🍵 */;
SET SESSION binlog_rows_query_log_events = OFF;
SET SESSION binlog_row_image = 'MINIMAL';
UPDATE account SET balance = balance * 2 WHERE id < 5;
DELETE FROM entry LIMIT 20;
SET SESSION binlog_row_image = 'NOBLOB';
UPDATE account SET balance = balance * 2 WHERE id < 5;
SET SESSION binlog_row_image = 'FULL';

-- partial JSON updates
CREATE TABLE document (id INT PRIMARY KEY, doc JSON);
INSERT INTO document VALUES (1, JSON_OBJECT('name', REPEAT('x', 500), 'tags', JSON_ARRAY(1, 2, 3), 'price', 9.5));
SET SESSION binlog_row_value_options = 'PARTIAL_JSON';
UPDATE document SET doc = JSON_SET(doc, '$.price', 10.25);
UPDATE document SET doc = JSON_REMOVE(doc, '$.tags[1]');
UPDATE document SET doc = JSON_REPLACE(doc, '$.name', 'short');
SET SESSION binlog_row_value_options = '';

-- sessions of other times, character sets and modes
SET TIMESTAMP = 946684799.123456;
INSERT INTO entry (account_id, amount, at) VALUES (1, 1999, NOW(6));
SET TIMESTAMP = DEFAULT;
SET time_zone = '+05:45', sql_mode = 'ANSI', character_set_client = latin1;
INSERT INTO account VALUES (10, 'Märta', 1, 'latin1');
SET time_zone = DEFAULT, sql_mode = DEFAULT, character_set_client = utf8mb4;
SET foreign_key_checks = 0, unique_checks = 0;
INSERT INTO entry (account_id, amount, at) VALUES (12345, 1, NULL);
SET foreign_key_checks = 1, unique_checks = 1;

-- rows that don't compress, rows that do, and many rows events in one statement
CREATE TABLE blobs (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB);
INSERT INTO blobs (b) SELECT RANDOM_BYTES(1000) FROM account;
INSERT INTO blobs (b) VALUES (REPEAT('compress me ', 8000));
INSERT INTO blobs (b) VALUES (''), (NULL), ('x');
INSERT INTO entry (account_id, amount, at)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT 1, i, NULL FROM n;
UPDATE entry SET amount = amount + 1;
