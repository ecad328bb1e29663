-- How XA transactions ended: prepared and committed, rolled back, in one phase.
SELECT log, position, operation, after, ending FROM mix.xa ORDER BY log, position, "row";
