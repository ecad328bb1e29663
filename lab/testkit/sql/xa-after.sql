-- The second phase of what another session prepared, with other transactions between.
USE mix;
INSERT INTO xa VALUES (7, 'between');
XA COMMIT 'orphan';
