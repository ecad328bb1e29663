SELECT position, "row", key, arrow_typeof(after) AS type FROM mix.strings ORDER BY position, "row";
