-- Tables and a workload of scripts/soak/spark-source.sh.
CREATE DATABASE shop;
USE shop;
CREATE TABLE customers (
    id INT UNSIGNED PRIMARY KEY, name VARCHAR(40) CHARACTER SET utf8mb4, born DATE, rating DOUBLE, kind ENUM('new', 'known', 'left'),
    tags SET('a', 'b', 'c'), note JSON, picture VARBINARY(20)
);
CREATE TABLE orders (
    id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, customer INT UNSIGNED, total DECIMAL(12, 2), items SMALLINT UNSIGNED, state TINYINT,
    placed DATETIME(3), changed TIMESTAMP(6), flags BIT(5), share FLOAT, year_of YEAR, took TIME(2), large DECIMAL(65, 10)
);
CREATE TABLE items (order_id BIGINT UNSIGNED, line INT, product CHAR(8), price DECIMAL(10, 2), PRIMARY KEY (order_id, line));
CREATE TABLE plain (note TEXT);
DELIMITER //
CREATE PROCEDURE work(part INT, orders INT)
BEGIN
    DECLARE number INT DEFAULT 0;
    DECLARE current BIGINT;
    WHILE number < orders DO
        START TRANSACTION;
        IF number % 20 = 0 THEN
            INSERT INTO customers VALUES (part * 100000 + number, CONCAT('žena ', number, ' 茶'), '1970-01-01' + INTERVAL number DAY, number / 7, 1 + number % 3,
                number % 8, JSON_OBJECT('part', part, 'list', JSON_ARRAY(1, 2, number)), UNHEX(LPAD(HEX(number * 7919), 12, '0')));
        END IF;
        INSERT INTO orders (customer, total, items, state, placed, changed, flags, share, year_of, took, large) VALUES
            (part * 100000 + 20 * (number DIV 20), number * 1.37 - 20, number % 9, number % 3 - 1, '2026-01-01' + INTERVAL number MINUTE, NOW(6), number % 32,
            number / 4, 1990 + number % 40, SEC_TO_TIME(number * 37 - 20000), number * 12345678901234567890.0123456789);
        SET current = LAST_INSERT_ID();
        INSERT INTO items VALUES (current, 1, 'apple', number * 0.1), (current, 2, 'tea', NULL), (current, 3, CONCAT('p', number % 50), 9.99);
        IF number % 3 = 0 THEN UPDATE orders SET state = 5, total = total + 1 WHERE id = current; END IF;
        IF number % 10 = 0 THEN DELETE FROM items WHERE order_id = current AND line = 2; END IF;
        COMMIT;
        SET number = number + 1;
    END WHILE;
    INSERT INTO plain SELECT CONCAT('row ', id) FROM orders WHERE id % 50 = 0;
    UPDATE customers SET rating = rating + 1;
END //
DELIMITER ;
