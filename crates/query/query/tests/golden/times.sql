SELECT position, operation, after FROM mix.times ORDER BY position, "row";
