-- One session that compresses, doesn't, and compresses at other levels.
USE mix;
CREATE TABLE toggled (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT);
SET SESSION binlog_transaction_compression = ON;
INSERT INTO toggled (v) VALUES (REPEAT('level as the server has it ', 50));
SET SESSION binlog_transaction_compression_level_zstd = 1;
INSERT INTO toggled (v) SELECT v FROM toggled;
SET SESSION binlog_transaction_compression = OFF;
INSERT INTO toggled (v) SELECT v FROM toggled;
SET SESSION binlog_transaction_compression = ON, SESSION binlog_transaction_compression_level_zstd = 22;
INSERT INTO toggled (v) SELECT v FROM toggled;
SET SESSION binlog_transaction_compression_level_zstd = 10;
BEGIN; INSERT INTO toggled (v) SELECT v FROM toggled; DELETE FROM toggled WHERE id % 3 = 0; COMMIT;
SET SESSION binlog_transaction_compression_level_zstd = 3;
UPDATE toggled SET v = CONCAT(v, id);
SET SESSION binlog_transaction_compression = OFF;
DELETE FROM toggled;
