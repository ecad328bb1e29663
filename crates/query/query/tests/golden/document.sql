-- Documents, also those of which only differences are logged.
SELECT gtid, operation, before, after FROM mix.document ORDER BY position, "row";
