#!/usr/bin/env bash
# `binlogz undo --apply --execute`: rows a second for TRANSACTIONS transactions (50,000) of one row each, of INSERT, UPDATE and DELETE, for
# as many that change two tables in turn, and for one DELETE of ROWS rows (100,000). All tables have keys. Each change is undone and the tables
# are compared with what they were before it (CHECKSUM TABLE).
#
# A line says which changes are undone: undoing an INSERT deletes. The server's settings are its own, so each COMMIT is synced twice.
# The seconds of processor time are those of both programs together: unlike rows a second, they say something on a busy machine.
#
# usage: undo-apply.sh          TRANSACTIONS=50000 ROWS=100000
# BINLOGZ names a program to try instead of a release build, JOURNAL=1 keeps a journal.
set -euo pipefail
cd "$(dirname "$0")/../.."

transactions=${TRANSACTIONS:-50000} rows=${ROWS:-100000}
. scripts/measure-lib.sh
binlogz=$(binlogz_program)
mysql=$(scripts/get-tool.sh mysql)
PATH=$mysql/bin:$mysql/sbin:$PATH
. scripts/server-lib.sh
begin_work

mysqld --no-defaults --initialize-insecure --secure-file-priv= --datadir="$work/data" --log-error="$work/log.txt" --user="$(id -un)"
mysqld --no-defaults --datadir="$work/data" --socket="$work/sock" --skip-networking=ON \
    --log-error="$work/log.txt" --log-bin=binlog --gtid-mode=ON --enforce-gtid-consistency=ON --server-id=1 \
    --binlog-row-metadata=FULL --max-binlog-size=1G --loose-mysqlx=OFF --secure-file-priv= --tmpdir="$work" --user="$(id -un)" &
running=$!
wait_for_server
sums() { sql 'CHECKSUM TABLE shop.orders, shop.lines'; }

sql "CREATE DATABASE shop; USE shop;
    CREATE TABLE orders (id INT PRIMARY KEY, customer INT NOT NULL, state VARCHAR(20), total DECIMAL(10,2), note VARCHAR(100), KEY (customer));
    CREATE TABLE \`lines\` LIKE orders;
DELIMITER //
    CREATE PROCEDURE one_by_one(what VARCHAR(10), most INT) BEGIN DECLARE i INT DEFAULT 0;
        WHILE i < most DO SET i = i + 1;
            CASE what
            WHEN 'insert' THEN INSERT INTO orders VALUES (i, i * 7919 % 100003, 'new', i % 100000 / 100, CONCAT('order ', SHA2(i, 224)));
            WHEN 'update' THEN UPDATE orders SET state = 'paid', total = total + 1 WHERE id = i;
            WHEN 'delete' THEN DELETE FROM orders WHERE id = i;
            ELSE IF i % 2 THEN INSERT INTO orders VALUES (i, i, 'new', i, 'n'); ELSE INSERT INTO \`lines\` VALUES (i, i, 'new', i, 'n'); END IF;
            END CASE;
        END WHILE; END //
DELIMITER ;"

before=() logs=() names=() counts=()
# changed NAME ROWS STATEMENTS: a log of its own with these changes.
changed() {
    before+=("$(sums)") names+=("$1") counts+=("$2")
    sql 'FLUSH BINARY LOGS'
    logs+=("$work/data/$(sql 'SHOW BINARY LOGS' | tail -1 | cut -f1)")
    sql "SET GLOBAL sync_binlog = 0, innodb_flush_log_at_trx_commit = 0; USE shop; $3; SET GLOBAL sync_binlog = 1, innodb_flush_log_at_trx_commit = 1"
    sql 'FLUSH BINARY LOGS'
}
changed 'two tables' "$transactions" "CALL one_by_one('turns', $transactions)"
sql 'TRUNCATE shop.orders; TRUNCATE shop.`lines`'
for what in insert update delete; do changed "$what" "$transactions" "CALL one_by_one('$what', $transactions)"; done
sql "SET cte_max_recursion_depth = $rows; INSERT INTO shop.orders WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $rows)
        SELECT i, i * 7919 % 100003, 'new', i % 100000 / 100, CONCAT('order ', SHA2(i, 224)) FROM n"
changed 'one DELETE' "$rows" 'DELETE FROM orders'

# processor_ms: what the server has used.
processor_ms() { awk -v hz="$(getconf CLK_TCK)" '{ print int(($14 + $15) * 1000 / hz) }' "/proc/$running/stat"; }
# undone NUMBER: undoes a log and prints a line.
undone() {
    local journal=() begin end load used
    [ "${JOURNAL:-0}" = 0 ] || journal=(--journal "$work/journal-$1")
    load=$(cut -d' ' -f1-2 /proc/loadavg)
    used=$(processor_ms)
    begin=$(date +%s%N)
    /usr/bin/env time -f '%U %S' -o "$work/figures" \
        "$binlogz" undo --no-defaults -u root --apply "$work/sock" --execute "${journal[@]}" "${logs[$1]}" >"$work/said"
    end=$(date +%s%N)
    used=$(($(processor_ms) - used))
    [ "$(sums)" = "${before[$1]}" ] || { echo "${names[$1]}: the rows are not as before" >&2; tail -3 "$work/said" >&2; exit 1; }
    awk -v name="${names[$1]}" -v rows="${counts[$1]}" -v ns=$((end - begin)) -v server="$used" -v load="$load" '{
        own = $1 + $2; server /= 1000
        printf "%-11s %7d rows %7d rows/s %7.2f s of binlogz %7.2f s of the server %7d rows a second of both  load %s\n",
            name, rows, rows * 1e9 / ns, own, server, rows / (own + server), load }' "$work/figures"
}
undone 4
sql 'TRUNCATE shop.orders'
for number in 3 2 1; do undone $number; done
sql "USE shop; CALL one_by_one('turns', $transactions)"
undone 0
