-- Every column type, with values at its edges.
USE mix;
CREATE TABLE numbers (
    id INT PRIMARY KEY,
    ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, su SMALLINT UNSIGNED, mi MEDIUMINT, mu MEDIUMINT UNSIGNED,
    ii INT, iu INT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED,
    f FLOAT, d DOUBLE, d1 DECIMAL(1,0), d2 DECIMAL(65,30), d3 DECIMAL(10,10), b1 BIT(1), b64 BIT(64), bo BOOLEAN
);
INSERT INTO numbers VALUES
    (1, -128, 0, -32768, 0, -8388608, 0, -2147483648, 0, -9223372036854775808, 0,
     -3.4e38, -1.7e308, -9, -99999999999999999999999999999999999.999999999999999999999999999999, -0.9999999999,
     b'0', 0, FALSE),
    (2, 127, 255, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 9223372036854775807,
     18446744073709551615, 1.17e-38, 2.2e-308, 9, 0.000000000000000000000000000001, 0.0000000001,
     b'1', 0xFFFFFFFFFFFFFFFF, TRUE),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE times (
    id INT PRIMARY KEY, y YEAR, d DATE, t0 TIME, t6 TIME(6), dt0 DATETIME, dt3 DATETIME(3), dt6 DATETIME(6),
    ts0 TIMESTAMP NULL, ts6 TIMESTAMP(6) NULL
);
SET SESSION sql_mode = '', time_zone = '+00:00';
INSERT INTO times VALUES
    (1, 1901, '1000-01-01', '-838:59:59', '-00:00:00.000001', '1000-01-01 00:00:00', '1000-01-01 00:00:00.001',
     '1000-01-01 00:00:00.000001', '1970-01-01 00:00:01', '1970-01-01 00:00:01.000001'),
    (2, 2155, '9999-12-31', '838:59:59', '23:59:59.999999', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999',
     '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07', '2038-01-19 03:14:07.499999'),
    (3, 0, '0000-00-00', '00:00:00', '-12:30:00.5', '0000-00-00 00:00:00', '2020-00-00 00:00:00.5',
     '2024-02-29 12:00:00.123456', '0000-00-00 00:00:00', '2001-09-09 01:46:40.5');
SET SESSION sql_mode = DEFAULT, time_zone = DEFAULT;
CREATE TABLE strings (
    id INT PRIMARY KEY,
    c CHAR(20), c255 CHAR(255) CHARACTER SET utf8mb4, v VARCHAR(20), v1k VARCHAR(1200),
    bn BINARY(8), vb VARBINARY(300), tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, tb TINYBLOB, lb LONGBLOB,
    l1 VARCHAR(20) CHARACTER SET latin1, sj VARCHAR(20) CHARACTER SET sjis, u16 VARCHAR(20) CHARACTER SET utf16,
    e ENUM('small', 'medium', 'large'), s SET('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i')
);
INSERT INTO strings VALUES
    (1, 'tea', REPEAT('é', 255), 'čaj', REPEAT('茶🍵', 500), 0x0001, 0x00FF10, 'tiny', 'text', 'medium', 'long',
     0x00, 0x0A0D00, 'Märta', '日本', 'wide', 'medium', 'a,c,i'),
    (2, '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', 'small', ''),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 'quote '' and \\ back', 'line\nbreak', 'tab\t', 'nul\0', 0xFFFFFFFFFFFFFFFF, 0x27, '`', '"', '%', '_',
     0x5C, REPEAT(0x5C27, 300), 'ÿ', 'ｱ', '𝄞', 'large', 'a,b,c,d,e,f,g,h,i');
UPDATE strings SET v = CONCAT(v, '!'), e = 'large' WHERE id < 4;
CREATE TABLE others (
    id INT PRIMARY KEY, j JSON, p POINT, g GEOMETRY, v VECTOR(3),
    total INT GENERATED ALWAYS AS (id * 2) STORED, half INT GENERATED ALWAYS AS (id / 2) VIRTUAL,
    hidden INT INVISIBLE DEFAULT 7
);
INSERT INTO others (id, j, p, g, v) VALUES
    (1, '{"a": [1, -1, 1.5, true, null, "text", {"deep": {}}], "big": 18446744073709551615}', POINT(1, 2),
     ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))'), TO_VECTOR('[1,2.5,-3]')),
    (2, JSON_ARRAY(CAST('2024-02-29 12:00:00.123456' AS DATETIME(6)), CURRENT_TIME(3)), ST_GeomFromText('POINT(13 55)', 4326),
     ST_GeomFromText('LINESTRING(0 0, 5 5)'), NULL),
    (3, JSON_ARRAY(CAST(1.5 AS DECIMAL(5,2)), CURRENT_DATE, UNHEX('00FF')), NULL, NULL, NULL);
UPDATE others SET hidden = 8, j = JSON_OBJECT('k', REPEAT('v', 70000)) WHERE id = 1;
CREATE TABLE no_key (a INT, b VARCHAR(10));
INSERT INTO no_key VALUES (1, 'a'), (1, 'a'), (2, NULL);
UPDATE no_key SET b = 'c' WHERE a = 1;
CREATE TABLE parts (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (
    PARTITION low VALUES LESS THAN (100), PARTITION high VALUES LESS THAN MAXVALUE);
INSERT INTO parts VALUES (1, 1), (2, 2), (200, 3);
UPDATE parts SET id = id + 100;
DELETE FROM parts WHERE id > 150;
CREATE TABLE prefixed (a VARCHAR(50), b BLOB, PRIMARY KEY (a(10), b(20)));
INSERT INTO prefixed VALUES ('key', 'prefix');
CREATE TABLE `čaj 茶` (`sloupec ☕` INT PRIMARY KEY, `a``b` INT);
INSERT INTO `čaj 茶` VALUES (1, 2);
