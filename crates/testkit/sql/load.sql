-- LOAD DATA as rows and as a statement with the file's blocks. @FILE@ is a file of two columns.
USE mix;
CREATE TABLE loaded (id INT PRIMARY KEY, v VARCHAR(200));
LOAD DATA LOCAL INFILE '@FILE@' INTO TABLE loaded FIELDS TERMINATED BY ',' (id, v);
SET SESSION binlog_format = 'STATEMENT';
DELETE FROM loaded;
LOAD DATA LOCAL INFILE '@FILE@' REPLACE INTO TABLE loaded FIELDS TERMINATED BY ',' (id, @v) SET v = UPPER(@v);
SET SESSION binlog_format = 'ROW';
