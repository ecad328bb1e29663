//! An ordinary server, as most people have one: nothing about its logs is set (so they have no names of columns), its zone isn't UTC, rows go with
//! their parents over three generations, columns are ENUM, SET and DECIMAL, some tables have triggers, a table was altered amid its rows, and the last
//! log is in use.
//!
//! Its shop has orders, of which somebody deletes too many, number 42 among them. The tests of the guides work on it.

use std::fmt::Write;

use binlogz_sandbox::{InstalledTool, MysqlBuilder};

/// Where its people are: what `TZ` says to them.
pub const ORDINARY_ZONE: &str = "America/New_York";

/// The mistake: the condition was to have a second part. Items, cards and letters go with the orders.
pub const MISTAKE: &str = "DELETE FROM shop.orders WHERE FIND_IN_SET('express', flags)";

/// Its tables, and who may do what: `repl` reads logs and rows, `admin` may do everything. Each has the password `repl`.
pub const ORDINARY_SHOP: &str = "
SET sql_log_bin = 0;
CREATE USER admin@'%' IDENTIFIED BY 'repl';
GRANT ALL ON *.* TO admin@'%' WITH GRANT OPTION;
GRANT SELECT ON *.* TO repl@'127.0.0.1';
SET sql_log_bin = 1;
CREATE DATABASE shop;
USE shop;
CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer VARCHAR(40) NOT NULL, status ENUM('new', 'paid', 'sent') NOT NULL DEFAULT 'new',
  total DECIMAL(8,2) NOT NULL, flags SET('gift', 'express', '易碎') NOT NULL DEFAULT '', note TEXT,
  placed TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3));
CREATE TABLE items (id INT AUTO_INCREMENT PRIMARY KEY, order_id INT NOT NULL, product VARCHAR(40) NOT NULL, price DECIMAL(8,2) NOT NULL,
  CONSTRAINT of_order FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE);
CREATE TABLE cards (item INT PRIMARY KEY, motif ENUM('rose', 'ship'), wish VARCHAR(100),
  CONSTRAINT of_item FOREIGN KEY (item) REFERENCES items (id) ON DELETE CASCADE);
CREATE TABLE letters (id INT AUTO_INCREMENT PRIMARY KEY, order_id INT, text VARCHAR(200) NOT NULL,
  CONSTRAINT about_order FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE SET NULL);
CREATE TABLE visits (id INT AUTO_INCREMENT PRIMARY KEY, page VARCHAR(200) NOT NULL);
CREATE TABLE pages (page VARCHAR(200) PRIMARY KEY, seen INT NOT NULL);
CREATE TRIGGER trim_page BEFORE INSERT ON visits FOR EACH ROW SET NEW.page = TRIM(NEW.page);
CREATE TRIGGER count_page AFTER INSERT ON visits FOR EACH ROW INSERT INTO pages VALUES (NEW.page, 1) ON DUPLICATE KEY UPDATE seen = seen + 1;
CREATE VIEW open_orders AS SELECT id, customer, total FROM orders WHERE status <> 'sent';
";

/// How it is started: but for the zone, as a server is without options of its own.
pub fn ordinary_server(mysql: &'static InstalledTool) -> MysqlBuilder {
    mysql.sandbox().option("default-time-zone", "-05:00")
}

/// A day's work, up to last night's backup: orders come one by one, and order 42 was entered again because it had been wrong.
pub fn before_the_backup() -> String {
    let mut sql = String::from("USE shop;\n");
    orders(&mut sql, 1..=45);
    sql += "ALTER TABLE orders ADD COLUMN channel ENUM('web', 'shop', 'phone') NOT NULL DEFAULT 'web' AFTER customer, ADD KEY (customer);\n";
    sql += "DELETE FROM orders WHERE id = 42;\n";
    orders(&mut sql, 42..=42);
    sql += "FLUSH BINARY LOGS;\n";
    sql
}

/// The work since, up to the mistake: orders are paid, some of them in transactions that the session compresses.
pub fn after_the_backup() -> String {
    let mut sql = String::from("USE shop;\n");
    orders(&mut sql, 46..=60);
    sql += "FLUSH BINARY LOGS;\n";
    for id in 5..=50 {
        writeln!(sql, "UPDATE orders SET status = 'paid' WHERE id = {id};").expect("a String takes all");
    }
    sql += "SET SESSION binlog_transaction_compression = ON;\n";
    sql += "UPDATE orders SET note = CONCAT(note, 'on its way'), status = 'sent', channel = 'phone' WHERE id BETWEEN 20 AND 41;\n";
    sql
}

/// What others do after the mistake, in the log that is in use.
pub const AFTER_THE_MISTAKE: &str =
    "INSERT INTO shop.visits (page) VALUES ('/after the delete'), ('/and more')";

/// Orders with their items, cards and letters, as people enter them.
fn orders(sql: &mut String, ids: std::ops::RangeInclusive<u32>) {
    for id in ids {
        let note = format!("order {id} of this customer, to be delivered; ").repeat(12);
        let flags = ["", "gift", "gift,express", "易碎"][id as usize % 4];
        writeln!(
            sql,
            "INSERT INTO orders (id, customer, total, flags, note) VALUES ({id}, 'customer {id}', {id}.50, '{flags}', '{note}');\n\
             INSERT INTO items (order_id, product, price) VALUES ({id}, 'tea', {id}.25), ({id}, 'cup', 0.25);\n\
             INSERT INTO cards VALUES (LAST_INSERT_ID(), 'ship', 'Happy Zoë''s day');\n\
             INSERT INTO letters (order_id, text) VALUES ({id}, 'thank you');\n\
             INSERT INTO visits (page) VALUES (' /index.html?a=b&c={id}');"
        )
        .expect("a String takes all");
    }
}
