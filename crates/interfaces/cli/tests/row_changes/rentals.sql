-- A shop that rents films, with the shape of MySQL's example database sakila: sixteen tables in one net of foreign keys, two
-- of them in a circle; triggers that fill a text table and dates, views, ENUM, SET, YEAR, DECIMAL, a geometry, unsigned keys of all widths,
-- times that follow each update. Our own definitions and rows.
CREATE DATABASE rentals;
USE rentals;
SET SESSION cte_max_recursion_depth = 10000;
CREATE TABLE country (country_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, country VARCHAR(50) NOT NULL,
  last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP);
CREATE TABLE city (city_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, city VARCHAR(50) NOT NULL, country_id SMALLINT UNSIGNED NOT NULL,
  last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  CONSTRAINT city_country FOREIGN KEY (country_id) REFERENCES country (country_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE address (address_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, address VARCHAR(50) NOT NULL, address2 VARCHAR(50), city_id SMALLINT UNSIGNED NOT NULL,
  postal_code VARCHAR(10), location GEOMETRY NOT NULL SRID 0,
  last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, SPATIAL KEY (location),
  CONSTRAINT address_city FOREIGN KEY (city_id) REFERENCES city (city_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE store (store_id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, manager_staff_id TINYINT UNSIGNED, address_id SMALLINT UNSIGNED NOT NULL,
  UNIQUE KEY (manager_staff_id),
  CONSTRAINT store_address FOREIGN KEY (address_id) REFERENCES address (address_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE staff (staff_id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, first_name VARCHAR(45) NOT NULL, picture BLOB, store_id TINYINT UNSIGNED NOT NULL,
  active BOOLEAN NOT NULL DEFAULT TRUE, password VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  CONSTRAINT staff_store FOREIGN KEY (store_id) REFERENCES store (store_id) ON DELETE RESTRICT ON UPDATE CASCADE);
ALTER TABLE store ADD CONSTRAINT store_staff FOREIGN KEY (manager_staff_id) REFERENCES staff (staff_id) ON DELETE RESTRICT ON UPDATE CASCADE;
CREATE TABLE customer (customer_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, store_id TINYINT UNSIGNED NOT NULL, name VARCHAR(45) NOT NULL, email VARCHAR(50),
  address_id SMALLINT UNSIGNED NOT NULL, active BOOLEAN NOT NULL DEFAULT TRUE, create_date DATETIME NOT NULL, last_update TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  KEY (name), CONSTRAINT customer_store FOREIGN KEY (store_id) REFERENCES store (store_id) ON DELETE RESTRICT ON UPDATE CASCADE,
  CONSTRAINT customer_address FOREIGN KEY (address_id) REFERENCES address (address_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TRIGGER customer_create_date BEFORE INSERT ON customer FOR EACH ROW SET NEW.create_date = NOW();
CREATE TABLE actor (actor_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(45) NOT NULL);
CREATE TABLE category (category_id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(25) NOT NULL);
CREATE TABLE language (language_id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name CHAR(20) NOT NULL);
CREATE TABLE film (film_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title VARCHAR(128) NOT NULL, description TEXT, release_year YEAR,
  language_id TINYINT UNSIGNED NOT NULL, original_language_id TINYINT UNSIGNED, rental_duration TINYINT UNSIGNED NOT NULL DEFAULT 3,
  rental_rate DECIMAL(4,2) NOT NULL DEFAULT 4.99, length SMALLINT UNSIGNED, replacement_cost DECIMAL(5,2) NOT NULL DEFAULT 19.99,
  rating ENUM('G', 'PG', 'PG-13', 'R', 'NC-17') DEFAULT 'G', special_features SET('Trailers', 'Commentaries', 'Deleted Scenes', 'Behind the Scenes'),
  last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, KEY (title),
  CONSTRAINT film_language FOREIGN KEY (language_id) REFERENCES language (language_id) ON DELETE RESTRICT ON UPDATE CASCADE,
  CONSTRAINT film_original FOREIGN KEY (original_language_id) REFERENCES language (language_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE film_text (film_id SMALLINT UNSIGNED PRIMARY KEY, title VARCHAR(255) NOT NULL, description TEXT, FULLTEXT KEY (title, description));
CREATE TABLE film_actor (actor_id SMALLINT UNSIGNED NOT NULL, film_id SMALLINT UNSIGNED NOT NULL, PRIMARY KEY (actor_id, film_id), KEY (film_id),
  CONSTRAINT cast_actor FOREIGN KEY (actor_id) REFERENCES actor (actor_id) ON DELETE RESTRICT ON UPDATE CASCADE,
  CONSTRAINT cast_film FOREIGN KEY (film_id) REFERENCES film (film_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE film_category (film_id SMALLINT UNSIGNED NOT NULL, category_id TINYINT UNSIGNED NOT NULL, PRIMARY KEY (film_id, category_id),
  CONSTRAINT sort_film FOREIGN KEY (film_id) REFERENCES film (film_id) ON DELETE RESTRICT ON UPDATE CASCADE,
  CONSTRAINT sort_category FOREIGN KEY (category_id) REFERENCES category (category_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE inventory (inventory_id MEDIUMINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, film_id SMALLINT UNSIGNED NOT NULL, store_id TINYINT UNSIGNED NOT NULL,
  CONSTRAINT copy_film FOREIGN KEY (film_id) REFERENCES film (film_id) ON DELETE RESTRICT ON UPDATE CASCADE,
  CONSTRAINT copy_store FOREIGN KEY (store_id) REFERENCES store (store_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE rental (rental_id INT AUTO_INCREMENT PRIMARY KEY, rental_date DATETIME NOT NULL, inventory_id MEDIUMINT UNSIGNED NOT NULL, customer_id SMALLINT UNSIGNED NOT NULL,
  return_date DATETIME, staff_id TINYINT UNSIGNED NOT NULL, last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  UNIQUE KEY (rental_date, inventory_id, customer_id),
  CONSTRAINT rental_copy FOREIGN KEY (inventory_id) REFERENCES inventory (inventory_id) ON DELETE RESTRICT ON UPDATE CASCADE,
  CONSTRAINT rental_customer FOREIGN KEY (customer_id) REFERENCES customer (customer_id) ON DELETE RESTRICT ON UPDATE CASCADE,
  CONSTRAINT rental_staff FOREIGN KEY (staff_id) REFERENCES staff (staff_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE payment (payment_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, customer_id SMALLINT UNSIGNED NOT NULL, staff_id TINYINT UNSIGNED NOT NULL, rental_id INT,
  amount DECIMAL(5,2) NOT NULL, payment_date DATETIME NOT NULL, last_update TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  CONSTRAINT payment_customer FOREIGN KEY (customer_id) REFERENCES customer (customer_id) ON DELETE RESTRICT ON UPDATE CASCADE,
  CONSTRAINT payment_staff FOREIGN KEY (staff_id) REFERENCES staff (staff_id) ON DELETE RESTRICT ON UPDATE CASCADE,
  CONSTRAINT payment_rental FOREIGN KEY (rental_id) REFERENCES rental (rental_id) ON DELETE SET NULL ON UPDATE CASCADE);
CREATE TRIGGER film_inserted AFTER INSERT ON film FOR EACH ROW INSERT INTO film_text VALUES (NEW.film_id, NEW.title, NEW.description);
CREATE TRIGGER film_updated AFTER UPDATE ON film FOR EACH ROW
  UPDATE film_text SET film_id = NEW.film_id, title = NEW.title, description = NEW.description WHERE film_id = OLD.film_id AND (OLD.title <> NEW.title OR NOT OLD.description <=> NEW.description);
CREATE TRIGGER film_deleted AFTER DELETE ON film FOR EACH ROW DELETE FROM film_text WHERE film_id = OLD.film_id;
CREATE VIEW customer_list AS SELECT customer_id, name, city, country FROM customer JOIN address USING (address_id) JOIN city USING (city_id) JOIN country USING (country_id);
CREATE VIEW film_list AS SELECT film_id, title, rental_rate, rating, category.name FROM film JOIN film_category USING (film_id) JOIN category USING (category_id);
CREATE TEMPORARY TABLE seq (n INT PRIMARY KEY);
INSERT INTO seq WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 600) SELECT n FROM s;
INSERT INTO country (country) SELECT CONCAT('country ', n) FROM seq WHERE n <= 20;
INSERT INTO city (city, country_id) SELECT CONCAT('Städtchen ', n), 1 + n % 20 FROM seq WHERE n <= 60;
INSERT INTO address (address, city_id, postal_code, location) SELECT CONCAT(n, ' Main St'), 1 + n % 60, LPAD(n, 5, '0'), POINT(n / 7, -n) FROM seq WHERE n <= 120;
INSERT INTO store (address_id) VALUES (1), (2);
INSERT INTO staff (first_name, picture, store_id, password) VALUES ('Mike', 0x89504E470D0A1A0A00FF27005C, 1, 'a\'b\\'), ('Jon', NULL, 2, NULL);
UPDATE store SET manager_staff_id = store_id;
INSERT INTO customer (store_id, name, email, address_id, create_date) SELECT 1 + n % 2, CONCAT('name ', n), IF(n % 9, CONCAT(n, '@example.com'), NULL), 1 + n % 120, NOW() FROM seq WHERE n <= 100;
INSERT INTO actor (name) SELECT CONCAT('actor ', n) FROM seq WHERE n <= 40;
INSERT INTO category (name) SELECT CONCAT('category ', n) FROM seq WHERE n <= 6;
INSERT INTO language (name) VALUES ('English'), ('日本語'), ('中文');
INSERT INTO film (title, description, release_year, language_id, original_language_id, rental_rate, length, rating, special_features)
  SELECT CONCAT('FILM ', n), REPEAT(CONCAT('a tale of ', n, '; '), n % 9), 1990 + n % 30, 1 + n % 3, IF(n % 4, NULL, 1), n % 5 + 0.99, 60 + n, 1 + n % 5, n % 16 FROM seq WHERE n <= 80;
INSERT INTO film_actor SELECT 1 + n % 40, 1 + n % 80 FROM seq WHERE n <= 80;
INSERT INTO film_category SELECT n, 1 + n % 6 FROM seq WHERE n <= 80;
INSERT INTO inventory (film_id, store_id) SELECT 1 + n % 80, 1 + n % 2 FROM seq WHERE n <= 200;
INSERT INTO rental (rental_date, inventory_id, customer_id, return_date, staff_id) SELECT '2026-03-08 01:30:00' + INTERVAL n HOUR, 1 + n % 200, 1 + n % 100, IF(n % 7, '2026-11-01 01:30:00' + INTERVAL n HOUR, NULL), 1 + n % 2 FROM seq;
INSERT INTO payment (customer_id, staff_id, rental_id, amount, payment_date) SELECT 1 + n % 100, 1 + n % 2, n, n % 7 + 0.99, '2026-03-08 01:30:00' + INTERVAL n HOUR FROM seq;
CREATE TRIGGER rental_date BEFORE INSERT ON rental FOR EACH ROW SET NEW.rental_date = NOW();
CREATE TRIGGER payment_date BEFORE INSERT ON payment FOR EACH ROW SET NEW.payment_date = NOW();
