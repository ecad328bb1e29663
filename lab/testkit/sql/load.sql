-- LOAD DATA as rows and as a statement with the file's blocks. The file of two columns is in the schema's directory.
USE mix;
CREATE TABLE loaded (id INT PRIMARY KEY, v VARCHAR(200));
LOAD DATA INFILE 'rows.csv' INTO TABLE loaded FIELDS TERMINATED BY ',' (id, v);
SET SESSION binlog_format = 'STATEMENT';
DELETE FROM loaded;
LOAD DATA INFILE 'rows.csv' REPLACE INTO TABLE loaded FIELDS TERMINATED BY ',' (id, @v) SET v = UPPER(@v);
SET SESSION binlog_format = 'ROW';
