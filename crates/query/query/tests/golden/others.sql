-- JSON, geometry, vectors, generated and hidden columns.
SELECT position, operation, after FROM mix.others WHERE operation = 'insert' ORDER BY position, "row";
