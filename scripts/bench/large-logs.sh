#!/usr/bin/env bash
# Makes the logs for scripts/bench/sql-large.sh: those of one server with three tables (orders that are placed and paid, their
# items, and visits, of which the server keeps none), in files of 256 MiB, with full metadata.
#
# usage: large-logs.sh DIR [MB]      (by default 5200)
set -euo pipefail
cd "$(dirname "$0")/../.."

to=$(realpath -m "$1")
megabytes=${2:-5200}
mysql=$(scripts/get-tool.sh mysql)
PATH=$mysql/bin:$mysql/sbin:$PATH
mkdir -p "$to"
work=$(mktemp -d -p "$to")
running=
stop() {
    [ -z "$running" ] || { kill "$running" && wait "$running" || true; }
    running=
}
trap 'stop; rm -rf "$work"' EXIT

mysqld --no-defaults --initialize-insecure --secure-file-priv= --datadir="$work/data" --log-error="$work/log.txt" --user="$(id -un)"
mysqld --no-defaults --datadir="$work/data" --socket="$work/sock" --skip-networking=ON --log-error="$work/log.txt" \
    --log-bin="$to/binlog" --gtid-mode=ON --enforce-gtid-consistency=ON --server-id=1 --binlog-row-metadata=FULL \
    --max-binlog-size=256M --sync-binlog=0 --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=OFF \
    --innodb-buffer-pool-size=512M --loose-mysqlx=OFF --secure-file-priv= --tmpdir="$work" --user="$(id -un)" &
running=$!
until mysqladmin --no-defaults -uroot -S "$work/sock" --silent ping >/dev/null 2>&1; do
    kill -0 "$running" || { cat "$work/log.txt" >&2; exit 1; }
    sleep 0.1
done
# A round has 10 transactions for each statement below: some 12.8 MB of log.
rounds=$((megabytes * 10 / 128 + 1))
mysql --no-defaults -uroot -S "$work/sock" <<SQL
CREATE DATABASE shop;
USE shop;
CREATE TABLE numbers (n INT PRIMARY KEY);
SET cte_max_recursion_depth = 2000;
INSERT INTO numbers WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i FROM n;
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT NOT NULL, state ENUM('new', 'paid', 'sent') NOT NULL,
    total DECIMAL(10,2) NOT NULL, placed DATETIME NOT NULL, note VARCHAR(100));
CREATE TABLE items (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL, product INT NOT NULL, pieces SMALLINT NOT NULL,
    price DECIMAL(8,2) NOT NULL);
CREATE TABLE visits (id BIGINT PRIMARY KEY, at TIMESTAMP(3) NOT NULL, address VARBINARY(16) NOT NULL,
    page VARCHAR(200) NOT NULL, agent VARCHAR(200) NOT NULL, took FLOAT NOT NULL) ENGINE = BLACKHOLE;
DELIMITER //
CREATE PROCEDURE fill(rounds INT)
BEGIN
    DECLARE r INT DEFAULT 0;
    DECLARE b BIGINT;
    WHILE r < rounds * 10 DO
        SET b = r * 2000;
        INSERT INTO orders SELECT b + n, CRC32(b + n) % 400000, 'new', CRC32(n * 7 + r) % 100000 / 100,
            '2026-01-01' + INTERVAL (b + n) SECOND, CONCAT('for ', SUBSTR(SHA2(b + n, 224), 1, 24), ', leave at the door') FROM numbers;
        INSERT INTO items SELECT 3 * (b + n) + k, b + n, CRC32(b + n + k * 31) % 20000, 1 + CRC32(n + k) % 5,
            CRC32((b + n + k * 31) % 20000) % 30000 / 100 FROM numbers JOIN (SELECT 0 k UNION SELECT 1 UNION SELECT 2) k;
        INSERT INTO visits SELECT 4 * (b + n) + k, '2026-01-01' + INTERVAL (4 * (b + n) + k) * 1003 MICROSECOND,
            UNHEX(LPAD(HEX(CRC32(n % 700 + r + k)), 8, '0')),
            CONCAT('/shop/', ELT(1 + CRC32(n + k) % 4, 'product', 'basket', 'search?q=', 'account'), '/', CRC32(b + n * 5 + k) % 20000),
            ELT(1 + CRC32(n + r * k) % 3, 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
                'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15', 'curl/8.14.1'),
            (CRC32(n * 3 + b + k) % 100000) / 977
            FROM numbers JOIN (SELECT 0 k UNION SELECT 1 UNION SELECT 2 UNION SELECT 3) k;
        UPDATE orders SET state = 'paid', total = total + 1 WHERE id > b AND id <= b + 2000 AND id % 2 = 0;
        DELETE FROM orders WHERE id <= b - 200000;
        DELETE FROM items WHERE id <= 3 * (b - 60000);
        SET r = r + 1;
    END WHILE;
END //
DELIMITER ;
CALL fill($rounds);
FLUSH BINARY LOGS;
SQL
stop
rm -f "$to/binlog.index"
ls -l "$to"/binlog.0* | awk '{ sum += $5 } END { print NR " logs, " sum " bytes" }'
