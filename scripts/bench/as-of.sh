#!/usr/bin/env bash
# A row as it was, by its key, out of an archive of logs that the server has purged: `binlogz-sql --base`, cold and warm. It makes the server
# and its logs first (three tables, in files of 256 MiB), and archives them, unless DIR/archive is there.
#
#   1. one look-up by key in a process of its own: seconds of the clock and of the processors, peak memory, blocks read and searched
#   2. each of LOOKUPS more in the same process, other keys and moments, warm: what one takes in the mean
#   3. the same row of the whole table
#
# usage: as-of.sh DIR [MB [LOOKUPS]]      (by default 6000 and 20); BIN=DIR: programs that are built already
set -euo pipefail
cd "$(dirname "$0")/../.."

to=$(realpath -m "$1")
megabytes=${2:-6000}
lookups=${3:-20}
bin=${BIN:-$(realpath -m "${CARGO_TARGET_DIR:-target}")/release}
[[ -n ${BIN:-} ]] || cargo build --quiet --release --package binlogz --package binlogz-sql
mysql=$(scripts/get-tool.sh mysql)
PATH=$mysql/bin:$mysql/sbin:$PATH
mkdir -p "$to"
work=$(mktemp -d -p "$to")
running=
stop() {
    [[ -z $running ]] || { kill "$running" && wait "$running" || true; }
    running=
}
trap 'stop; rm -rf "$work"' EXIT
data=$to/server

[[ -d $data ]] || mysqld --no-defaults --initialize-insecure --secure-file-priv= --datadir="$data" --log-error="$work/log.txt" --user="$(id -un)"
mkdir -p "$to/logs"
mysqld --no-defaults --datadir="$data" --socket="$work/sock" --skip-networking=ON --log-error="$work/log.txt" --log-bin="$to/logs/binlog" \
    --gtid-mode=ON --enforce-gtid-consistency=ON --server-id=1 --binlog-row-metadata=FULL --max-binlog-size=256M --sync-binlog=0 \
    --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=OFF --innodb-buffer-pool-size=512M --loose-mysqlx=OFF --secure-file-priv= --user="$(id -un)" &
running=$!
until mysqladmin --no-defaults -uroot -S "$work/sock" --silent ping >/dev/null 2>&1; do
    kill -0 "$running" || { cat "$work/log.txt" >&2; exit 1; }
    sleep 0.1
done
ask() { mysql --no-defaults -uroot -S "$work/sock" -N -B -e "$1"; }

if [[ ! -d $to/archive ]]; then
    # A round is some 2.5 MB of log: 6,000 orders, of which a third is paid, and old ones that go.
    rounds=$((megabytes * 10 / 25 + 1))
    ask 'CREATE DATABASE shop; CREATE TABLE shop.numbers (n INT PRIMARY KEY); SET cte_max_recursion_depth = 6000;
         INSERT INTO shop.numbers WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) SELECT i FROM n;
         CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, customer INT NOT NULL, total DECIMAL(10,2) NOT NULL, placed DATETIME NOT NULL,
         note VARCHAR(300)); FLUSH BINARY LOGS'
    : >"$to/moments"
    for ((round = 0; round < rounds; round++)); do
        ask "USE shop; INSERT INTO orders SELECT $round * 6000 + n, CRC32(n * 31 + $round) % 400000, CRC32(n * 7 + $round) % 100000 / 100,
             '2026-01-01' + INTERVAL ($round * 6000 + n) SECOND, REPEAT(SHA2($round * 6000 + n, 256), 4) FROM numbers;
             UPDATE orders SET total = total + 1 WHERE id > $round * 6000 AND id % 3 = 0;
             DELETE FROM orders WHERE id <= ($round - 50) * 6000"
        ((round % 20)) || ask "SELECT REPLACE(@@GLOBAL.gtid_executed, '\\n', '')" | sed "s/^/$round /" >>"$to/moments"
    done
    ask 'FLUSH BINARY LOGS'
    last=$(ask 'SHOW BINARY LOG STATUS' | cut -f1)
    mapfile -t logs < <(find "$to/logs" -name 'binlog.0*' ! -name "$last" | sort)
    "$bin/binlogz" archive create --quiet --to "$to/archive" "${logs[@]}"
    cat "${logs[@]}" | wc -c >"$to/bytes"
    ask "PURGE BINARY LOGS TO '$last'"
fi
echo "$(cat "$to/bytes") bytes of logs, archive of $(du -sb "$to/archive" | cut -f1); load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) cores"

# statement PLACE CONDITION: of the PLACE-th moment, from the first on; an order that there was then.
statement() {
    local round gtids
    read -r round gtids < <(sed -n "$(($1 + 1))p" "$to/moments")
    echo "SELECT * FROM shop.orders AS OF '$gtids' WHERE ${2/KEY/$((round * 6000 + 100 + $1))}"
}
count=$(wc -l <"$to/moments")
sql() { "$bin/binlogz-sql" --quiet --format csv --base "root@$work/sock" "$@"; }
timed() {
    local name=$1
    shift
    /usr/bin/time -o "$work/time" -f '%e %U %S %M' "$@" >"$work/out"
    awk -v name="$name" '{ printf "%-28s %8.3f %8.3f %8d", name, $1, $2 + $3, $4 / 1024 }' "$work/time"
}
export -f sql
export bin work
printf '%-28s %8s %8s %8s\n' '' clock cpu MiB
one=$(statement $((count / 2)) 'id = KEY')
[[ ! -w /proc/sys/vm/drop_caches ]] || { sync; echo 3 >/proc/sys/vm/drop_caches; }
timed 'one row, cold' bash -c "sql \"$one\" '$to/archive'"; echo
timed 'one row, once more' bash -c "sql \"$one\" '$to/archive'"
sql "EXPLAIN ANALYZE $one" "$to/archive" | grep -oE 'blocks_(read|searched|skipped)=[0-9.]+ ?K?' | tr '\n' ' ' | sed 's/^/ /'; echo
for ((number = 0; number < lookups; number++)); do
    echo "$(statement $((number * count / lookups)) 'id = KEY');"
done >"$work/lookups.sql"
head -1 "$work/lookups.sql" >"$work/first.sql"
timed 'one look-up' bash -c "sql -f '$work/first.sql' '$to/archive'"; echo
begin=$(cut -d' ' -f1 "$work/time")
timed "$lookups look-ups" bash -c "sql -f '$work/lookups.sql' '$to/archive'"
awk -v begin="$begin" -v count="$lookups" '{ printf " each of the others %.3f\n", ($1 - begin) / (count - 1) }' "$work/time"
timed 'the same, whole table' bash -c "sql \"$(statement $((count / 2)) 'abs(id) = KEY')\" '$to/archive'"; echo
