-- XA transactions; tagged, chosen and empty GTIDs.
SELECT * FROM binlog.transactions WHERE log = 'binlog.000009' ORDER BY position;
