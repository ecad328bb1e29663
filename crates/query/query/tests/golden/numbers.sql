-- Every numeric type, at its bounds.
SELECT position, operation, after FROM mix.numbers ORDER BY position, "row";
