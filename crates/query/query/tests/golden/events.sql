SELECT log, event_type, count(*) AS events, sum(size) AS bytes FROM binlog.events GROUP BY log, event_type ORDER BY log, event_type;
