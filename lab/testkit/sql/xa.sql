-- Distributed transactions: two phases, one phase, rolled back, and one that another session commits.
USE mix;
CREATE TABLE xa (id INT PRIMARY KEY, v VARCHAR(100));
XA START 'two'; INSERT INTO xa VALUES (1, REPEAT('two phases ', 9)); XA END 'two'; XA PREPARE 'two';
XA COMMIT 'two';
XA START 'one', 'branch', 7; INSERT INTO xa VALUES (2, 'one phase'); XA END 'one', 'branch', 7;
XA COMMIT 'one', 'branch', 7 ONE PHASE;
XA START 'back'; INSERT INTO xa VALUES (3, 'rolled back'); XA END 'back'; XA PREPARE 'back';
XA ROLLBACK 'back';
XA START 'unprepared'; INSERT INTO xa VALUES (4, 'never seen'); XA END 'unprepared';
XA ROLLBACK 'unprepared';
XA START 'empty'; XA END 'empty'; XA PREPARE 'empty';
XA COMMIT 'empty';
XA START X'00FF27', X'5C00', 4294967295; INSERT INTO xa VALUES (5, 'binary'); XA END X'00FF27', X'5C00', 4294967295;
XA PREPARE X'00FF27', X'5C00', 4294967295;
XA COMMIT X'00FF27', X'5C00', 4294967295;
XA START 'orphan'; INSERT INTO xa VALUES (6, 'left prepared'); UPDATE xa SET v = 'changed' WHERE id = 1;
XA END 'orphan'; XA PREPARE 'orphan';
