# shellcheck shell=bash
# Workloads that change the same rows again and again, as statements for the mysql client:
#
#   queue     each job is inserted, taken, done and deleted; 100 are left
#   counters  1,000 counters, one increment each time
#   sessions  one begins, eight are touched, the one that began 500 before ends
#   bulk      rows that stay, 1,000 in a transaction
#   oltp      10,000 rows as sysbench has them: in a transaction two updates, a delete, and the insert of that row again

# changed_tables: the statements that make their tables, without a semicolon at the end.
changed_tables() {
    cat <<'SQL'
CREATE DATABASE w; USE w;
CREATE TABLE jobs (id BIGINT AUTO_INCREMENT PRIMARY KEY, payload VARCHAR(100), state VARCHAR(10) DEFAULT 'new', worker INT, KEY (state));
CREATE TABLE counters (id INT PRIMARY KEY, n BIGINT NOT NULL DEFAULT 0);
CREATE TABLE sessions (id BIGINT PRIMARY KEY, token VARCHAR(40) UNIQUE, seen BIGINT, data VARCHAR(200));
CREATE TABLE sbtest1 (id INT AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k));
INSERT INTO counters (id) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n;
SET SESSION cte_max_recursion_depth = 10000;
INSERT INTO sbtest1 (k, c, pad) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 10000) SELECT i % 997, SHA2(i, 256), SHA2(i, 224) FROM n
SQL
}

# changes KIND COUNT: the statements of a workload, about COUNT changes of one row each.
changes() {
    awk -v kind="$1" -v events="$2" 'BEGIN {
        print "USE w;"
        if (kind == "queue") for (job = 1; job <= events / 4; job++) {
            printf "INSERT INTO jobs (id, payload) VALUES (%d, REPEAT(\"p\", 80));\n", job
            printf "UPDATE jobs SET state = \"taken\", worker = %d WHERE id = %d;\n", job % 8, job
            printf "UPDATE jobs SET state = \"done\" WHERE id = %d;\n", job
            if (job > 100) printf "DELETE FROM jobs WHERE id = %d;\n", job - 100
        }
        if (kind == "counters") for (event = 1; event <= events; event++)
            printf "UPDATE counters SET n = n + 1 WHERE id = %d;\n", 1 + (event * 7919) % 1000
        if (kind == "sessions") for (session = 1; session <= events / 10; session++) {
            printf "INSERT INTO sessions VALUES (%d, \"token-%d\", 0, REPEAT(\"d\", 120));\n", session, session
            for (touch = 1; touch <= 8; touch++) {
                back = (touch * session) % 500
                printf "UPDATE sessions SET seen = %d WHERE id = %d;\n", session * 10 + touch, (back < session ? session - back : session)
            }
            if (session > 500) printf "DELETE FROM sessions WHERE id = %d;\n", session - 500
        }
        if (kind == "bulk") for (first = 1; first <= events; first += 1000) {
            for (row = first; row < first + 1000 && row <= events; row++)
                printf "%s (%d, \"token-%d\", %d, REPEAT(\"d\", 120))", (row == first ? "INSERT INTO sessions VALUES" : ","), row, row, row
            print ";"
        }
        if (kind == "oltp") for (event = 1; event <= events / 4; event++) {
            row = 1 + (event * 7919) % 10000
            printf "BEGIN; UPDATE sbtest1 SET k = k + 1 WHERE id = %d; UPDATE sbtest1 SET c = SHA2(%d, 256) WHERE id = %d;", row, event, 10001 - row
            printf " DELETE FROM sbtest1 WHERE id = %d; INSERT INTO sbtest1 VALUES (%d, %d, SHA2(%d, 256), \"pad\"); COMMIT;\n", 1 + row % 10000, 1 + row % 10000, event % 997, -event
        }
    }'
}
