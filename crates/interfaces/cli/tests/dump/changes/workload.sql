-- The changes of scripts/make-changes.sh: all types of columns, and all that can happen to a row.
SET NAMES utf8mb4;
SET time_zone = '+00:00';
SET sql_mode = '';
CREATE DATABASE shop;
USE shop;
CREATE TABLE numbers (
  id INT PRIMARY KEY AUTO_INCREMENT,
  t TINYINT, tu TINYINT UNSIGNED, t1 TINYINT(1), b TINYINT,
  s SMALLINT, su SMALLINT UNSIGNED, m MEDIUMINT, mu MEDIUMINT UNSIGNED,
  i INT, iu INT UNSIGNED, l BIGINT, lu BIGINT UNSIGNED,
  f FLOAT, d DOUBLE, f2 FLOAT, d2 DOUBLE(9,3),
  bit1 BIT(1), bit3 BIT(3), bit33 BIT(33), bit64 BIT(64), y YEAR,
  n1 DECIMAL(1,0), n5 DECIMAL(5,2), n20 DECIMAL(20,0), n38 DECIMAL(38,10), n65 DECIMAL(65,30), nu DECIMAL(10,4) UNSIGNED
);
INSERT INTO numbers VALUES
  (1, -128, 255, 1, TRUE, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808, 18446744073709551615,
   1.5, 2.5, 12345.67, 123456.789, b'1', b'101', b'100000000000000000000000000000001', ~0, 2024,
   9, 123.45, 12345678901234567890, 1234567890123456789012345678.0123456789, 12345678901234567890123456789012345.123456789012345678901234567890, 1.5),
  (2, 127, 0, 0, FALSE, 32767, 0, 8388607, 0, 2147483647, 0, 9223372036854775807, 0,
   -0.0, 0.0, 0, 0, b'0', b'0', b'0', b'0', 1901, 0, 0, 0, 0, 0, 0),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
   NULL, NULL, NULL, NULL, NULL, NULL),
  (4, 0, 128, -1, 2, 0, 32768, 0, 8388608, 0, 2147483648, 0, 9223372036854775808,
   0.1, 0.1, -0.01, -0.001, b'1', b'010', 255, 256, 0, -9, -0.01, -99999999999999999999, -0.0000000001, -1, 999999.9999),
  (5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3.4028235e38, 1.7976931348623157e308, 1, 1, 1, 1, 1, 1, 2155, 1, 1, 1, 1, 1, 1),
  (6, -1, 1, 1, 1, -1, 1, -1, 1, -1, 1, -1, 1, 1.2e-38, 2.2250738585072014e-308, 100, 1000, 1, 7, 8589934591, 4294967296, 1970,
   -1, -127.99, -128, -255.5, 0.000000000000000000000000000001, 0.0001),
  (7, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 16777216, 9007199254740993, 33554432, 123, 0, 4, 5, 6, 2000, 5, 1.28, 32768, 0.00000128, 1e34, 6.5535),
  (8, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 1e10, 1e21, 1e7, 1e7, 0, 4, 5, 6, 2000, 5, 1.27, 127, 1e20, 1e-5, 0.0255),
  (9, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 1e-5, 1e-7, 0.001, 0.0001, 0, 4, 5, 6, 2000, 5, -1.28, -129, 1e-10, 1e-30, 0.0256);
UPDATE numbers SET i = 5, n5 = 0.05 WHERE id = 1;
UPDATE numbers SET t = NULL WHERE id = 2;
UPDATE numbers SET t = 9 WHERE id = 3;
DELETE FROM numbers WHERE id IN (2, 4);

CREATE TABLE times (
  id INT PRIMARY KEY, d DATE, dn DATE NOT NULL, t TIME, t1 TIME(1), t3 TIME(3), t6 TIME(6),
  dt DATETIME, dt1 DATETIME(1), dt3 DATETIME(3), dt4 DATETIME(4), dt6 DATETIME(6), dtn DATETIME NOT NULL, dtn6 DATETIME(6) NOT NULL,
  ts TIMESTAMP NULL, ts1 TIMESTAMP(1) NULL, ts3 TIMESTAMP(3) NULL, ts6 TIMESTAMP(6) NULL, tsn TIMESTAMP NOT NULL
);
INSERT INTO times VALUES
  (1, '2024-02-29', '2024-02-29', '12:34:56', '12:34:56.7', '12:34:56.789', '12:34:56.789012',
   '2024-02-29 12:34:56', '2024-02-29 12:34:56.7', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.7890', '2024-02-29 12:34:56.789012',
   '2024-02-29 12:34:56', '2024-02-29 12:34:56.789012',
   '2024-02-29 12:34:56', '2024-02-29 12:34:56.7', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789012', '2024-02-29 12:34:56'),
  (2, '0000-00-00', '0000-00-00', '00:00:00', '0', '0', '0', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00',
   '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00'),
  (3, NULL, '1000-01-01', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '1000-01-01 00:00:00', '1000-01-01 00:00:00.000001', NULL, NULL, NULL, NULL,
   '1970-01-01 00:00:01'),
  (4, '9999-12-31', '1969-12-31', '-838:59:59', '-00:00:00.1', '-00:00:01.001', '-12:34:56.789012',
   '9999-12-31 23:59:59', '1969-12-31 23:59:59.9', '1969-12-31 23:59:59.999', '1969-12-31 23:59:59.9999', '1969-12-31 23:59:59.999999',
   '1969-12-31 23:59:59', '1582-10-04 00:00:00',
   '2038-01-19 03:14:07', '2038-01-19 03:14:07.9', '2024-01-01 00:00:00.100', '2024-01-01 00:00:00.120000', '2024-01-01 00:00:00'),
  (5, '1582-10-04', '0001-01-01', '838:59:59', '838:59:58.9', '838:59:59.000', '838:59:58.999999',
   '1582-10-15', '1582-10-14 23:59:59', '1900-01-01', '1900-01-01', '2000-01-01 00:00:00.5', '2000-01-01', '2000-01-01',
   '2001-09-09 01:46:40', '2001-09-09 01:46:40.0', '2001-09-09 01:46:40.000', '2001-09-09 01:46:40.000001', '2001-09-09 01:46:40'),
  (6, '2024-00-00', '2024-01-00', '24:00:00', '23:59:59.9', '100:00:00', '-24:00:00', '2024-00-00', '2024-01-00', '2024-00-01', '0000-01-01', '2024-02-00', '2024-01-00',
   '2024-00-00', '2024-01-01', '2024-01-01', '2024-01-01', '2024-01-01', '2024-01-01');
UPDATE times SET t6 = '00:00:00.000001', ts6 = '2024-06-30 23:59:59.999999' WHERE id = 1;

CREATE TABLE texts (
  id INT PRIMARY KEY, c CHAR(10), v VARCHAR(100), vn VARCHAR(300) NOT NULL, l1 VARCHAR(20) CHARACTER SET latin1, u16 VARCHAR(20) CHARACTER SET utf16,
  gb VARCHAR(20) CHARACTER SET gbk, sj VARCHAR(20) CHARACTER SET sjis, cb CHAR(5) COLLATE utf8mb4_bin,
  tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, tl TEXT CHARACTER SET latin1,
  b BINARY(8), vb VARBINARY(20), tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB,
  e ENUM('red', 'green', 'blau, grün'), st SET('a', 'b', 'c d'), j JSON,
  g GEOMETRY, p POINT, ls LINESTRING, pg POLYGON, pn POINT NOT NULL SRID 4326, mp MULTIPOINT, gc GEOMETRYCOLLECTION
);
INSERT INTO texts VALUES
  (1, 'tea', 'Grüße "quoted" \\ / 😀', 'line\nnext\ttab\b\f\r', 'Grüße', 'Grüße 😀', '中文', '日本語', 'abc', 'tiny', 'text', 'medium', 'long', 'Ä',
   'ab', x'00ff10', x'01', x'0203', x'', x'ff', 'green', 'a,c d', '{"a": 1, "b": [1.5, true, null, "x\\"y"], "c": {"d": "é"}}',
   ST_GeomFromText('POINT(1 2)'), ST_GeomFromText('POINT(1.5 -2.25)'), ST_GeomFromText('LINESTRING(0 0, 1 1)'),
   ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))'), ST_GeomFromText('POINT(10 20)', 4326), ST_GeomFromText('MULTIPOINT(0 0, 1 1)'),
   ST_GeomFromText('GEOMETRYCOLLECTION(POINT(0 0))')),
  (2, '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '[]',
   NULL, NULL, NULL, NULL, ST_GeomFromText('POINT(0 0)', 4326), NULL, NULL),
  (3, NULL, NULL, 'x', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
   NULL, NULL, NULL, NULL, ST_GeomFromText('POINT(-10.5 20)', 4326), NULL, NULL),
  (4, 'a  ', 'b  ', CONCAT(CHAR(0), CHAR(1), CHAR(31), CHAR(127)), 'x', 'x', 'x', 'x', 'x', REPEAT('é', 100), REPEAT('t', 300), '</script>\'', '\u2028', 'x',
   x'0000000000000000', x'0a0d', 'x', 'x', 'x', 'x', 3, 7, '"text"',
   NULL, NULL, NULL, NULL, ST_GeomFromText('POINT(0 0)', 4326), NULL, NULL);
INSERT INTO texts (id, vn, pn, j) VALUES
  (10, 'j', ST_GeomFromText('POINT(0 0)', 4326), '1'), (11, 'j', ST_GeomFromText('POINT(0 0)', 4326), '-1.5e300'), (12, 'j', ST_GeomFromText('POINT(0 0)', 4326), 'null'),
  (13, 'j', ST_GeomFromText('POINT(0 0)', 4326), CAST(CAST('2024-01-02 03:04:05.678' AS DATETIME(3)) AS JSON)),
  (14, 'j', ST_GeomFromText('POINT(0 0)', 4326), JSON_OBJECT('d', CAST('2024-01-02' AS DATE), 't', CAST('03:04:05.5' AS TIME(1)), 'dt', CAST('2024-01-02 03:04:05.5' AS DATETIME(1)),
    'n', CAST(1.50 AS DECIMAL(5,2)), 'u', CAST(18446744073709551615 AS UNSIGNED), 'i', -5, 'f', 1.0e0, 'b', CAST('abc' AS BINARY))),
  (15, 'j', ST_GeomFromText('POINT(0 0)', 4326), '{"": {"k\\n": []}, "é": "😀", "z": false, "big": 12345678901, "tiny": 1e-7, "s": "a/b\\u0001"}'),
  (16, 'j', ST_GeomFromText('POINT(0 0)', 4326), '{}'), (17, 'j', ST_GeomFromText('POINT(0 0)', 4326), '[1, [2, [3]], {"a": {}}]');
UPDATE texts SET j = JSON_SET(j, '$.a', 2), e = 'red', st = '' WHERE id = 1;
UPDATE texts SET v = NULL WHERE id = 2;

-- Keys: of two columns, changed, none at all, and a unique one instead.
CREATE TABLE orders (region VARCHAR(10), n BIGINT UNSIGNED, note TEXT, PRIMARY KEY (n, region));
CREATE TABLE loose (a INT, b VARCHAR(10));
CREATE TABLE unique_only (a INT NOT NULL, b VARCHAR(10), UNIQUE KEY (a));
BEGIN;
INSERT INTO orders VALUES ('eu', 1, 'one'), ('us', 2, 'two');
INSERT INTO loose VALUES (1, 'x'), (1, 'x'), (NULL, NULL);
INSERT INTO unique_only VALUES (1, 'u');
UPDATE orders SET note = 'changed' WHERE n = 1;
UPDATE orders SET n = 18446744073709551615 WHERE n = 2;
UPDATE loose SET b = 'y' WHERE a = 1;
DELETE FROM loose LIMIT 1;
COMMIT;
BEGIN;
UPDATE orders, loose SET orders.note = NULL, loose.b = 'z' WHERE orders.n = 1;
DELETE FROM orders;
COMMIT;
BEGIN;
INSERT INTO loose VALUES (5, 'before');
SAVEPOINT s;
INSERT INTO loose VALUES (6, 'gone');
ROLLBACK TO s;
INSERT INTO loose VALUES (7, 'after');
COMMIT;
REPLACE INTO unique_only VALUES (1, 'replaced');
INSERT INTO unique_only VALUES (1, 'again') ON DUPLICATE KEY UPDATE b = 'updated';

-- The structure changes. Canal asks the server for a table's columns, so it needs time.
DO SLEEP(2);
ALTER TABLE loose ADD COLUMN c DECIMAL(6,3) DEFAULT 1.250, ADD COLUMN `odd "näme` INT;
INSERT INTO loose VALUES (8, 'new', 2.5, 3);
TRUNCATE TABLE loose;
DO SLEEP(2);
RENAME TABLE loose TO loose2;
INSERT INTO loose2 VALUES (9, 'renamed', NULL, NULL);
CREATE TABLE copied AS SELECT * FROM loose2;
CREATE TABLE `odd table` (`from` INT PRIMARY KEY, `a.b` INT);
INSERT INTO `odd table` VALUES (1, 2);
CREATE TABLE made (id INT PRIMARY KEY, a INT, b INT AS (a + 1) STORED, c INT AS (a * 2) VIRTUAL, hidden INT INVISIBLE DEFAULT 4);
INSERT INTO made (id, a) VALUES (1, 2);
UPDATE made SET a = 3;
CREATE INDEX i ON made (a);
DO SLEEP(2);
DROP TABLE copied;
CREATE DATABASE other;
CREATE TABLE other.t (id BIGINT PRIMARY KEY, v VARCHAR(10));
BEGIN;
INSERT INTO other.t VALUES (-1, 'a');
INSERT INTO shop.unique_only VALUES (3, 'c');
INSERT INTO other.t VALUES (2, 'b');
COMMIT;
CREATE TABLE myisam (id INT PRIMARY KEY) ENGINE=MyISAM;
INSERT INTO myisam VALUES (1);
XA START 'x';
INSERT INTO other.t VALUES (3, 'xa');
XA END 'x';
XA COMMIT 'x' ONE PHASE;
DO SLEEP(2);
DROP DATABASE other;
-- Canal doesn't read what follows.
CREATE TABLE canal_end (id INT PRIMARY KEY);
INSERT INTO canal_end VALUES (1);
CREATE TABLE vectors (id INT PRIMARY KEY, v VECTOR(3));
INSERT INTO vectors VALUES (1, STRING_TO_VECTOR('[1, 2.5, -3]')), (2, NULL), (3, STRING_TO_VECTOR('[0.1, 1e10, 3.4e38]'));
SET binlog_row_value_options = PARTIAL_JSON;
UPDATE texts SET j = JSON_SET(j, '$.a', 3) WHERE id = 1;
SET binlog_row_value_options = '';
CREATE TABLE end (id INT PRIMARY KEY);
INSERT INTO end VALUES (1);
