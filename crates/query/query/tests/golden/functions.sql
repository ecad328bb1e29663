SELECT gtid_in('468dfa6d-e565-11f1-89b6-02fc00000001:1-380', gtid) AS early, count(*) AS transactions FROM binlog.transactions GROUP BY 1 ORDER BY 1;
