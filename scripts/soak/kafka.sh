#!/usr/bin/env bash
# Row changes of a busy server go into a real Kafka broker by a pipe, as docs/guides/kafka.md says, while both programs of the pipe
# are killed again and again. In the end the topic has every change of the log, in order; some twice. Fetches Kafka from Maven
# (54 MB).
#
# usage: kafka.sh [ROUNDS]        each of about 10 seconds; 6 by default. BINLOGZ names the program.
set -euo pipefail
[ $# -le 1 ] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
cd "$(dirname "$0")/../.."
rounds=${1:-6}
[ -n "${BINLOGZ:-}" ] || { cargo build --quiet --release --package binlogz && BINLOGZ=$PWD/target/release/binlogz; }
mysql=$(scripts/get-tool.sh mysql)
kafka=$(scripts/get-tool.sh compat-kafka)
PATH=$PATH:/usr/sbin
bin() { if [ -x "$mysql/bin/$1" ]; then echo "$mysql/bin/$1"; else echo "$mysql/sbin/$1"; fi; }

work=$(mktemp -d)
running=()
finish() {
    for process in "${running[@]}"; do kill "$process" 2>/dev/null || true; done
    wait
    rm -rf "$work"
}
trap finish EXIT

port=$((20000 + RANDOM % 10000)) broker=$((30000 + RANDOM % 10000))
common=("--no-defaults" "--datadir=$work/data" "--user=$(id -un)" --mysqlx=OFF --server-id=1 --secure-file-priv=)
"$(bin mysqld)" "${common[@]}" --initialize-insecure >"$work/init.log" 2>&1 || { cat "$work/init.log" >&2; exit 1; }
"$(bin mysqld)" "${common[@]}" --bind-address=127.0.0.1 --port=$port --socket="$work/sock" --pid-file="$work/pid" --log-bin=binlog \
    --gtid-mode=ON --enforce-gtid-consistency=ON --binlog-row-metadata=FULL --innodb-buffer-pool-size=32M \
    --innodb-flush-log-at-trx-commit=2 --sync-binlog=0 >"$work/server.log" 2>&1 &
running+=($!)
client() { "$(bin mysql)" --no-defaults --socket="$work/sock" --user=root "$@"; }
for _ in $(seq 600); do
    client -e 'SELECT 1' >/dev/null 2>&1 && break
    sleep 0.1
done
client -e "CREATE DATABASE shop; CREATE TABLE shop.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, n INT, note VARCHAR(200))"

cat >"$work/broker.properties" <<CONFIG
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((broker + 1))
listeners=PLAINTEXT://127.0.0.1:$broker,CONTROLLER://127.0.0.1:$((broker + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$broker
controller.listener.names=CONTROLLER
log.dirs=$work/kafka
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
CONFIG
"$kafka/bin/storage" format -t "$("$kafka/bin/storage" random-uuid 2>/dev/null)" -c "$work/broker.properties" >"$work/format.log" 2>&1 ||
    { cat "$work/format.log" >&2; exit 1; }
"$kafka/bin/broker" "$work/broker.properties" >"$work/broker.log" 2>&1 &
running+=($!)
server=(--bootstrap-server "127.0.0.1:$broker")
for _ in $(seq 60); do
    "$kafka/bin/topics" "${server[@]}" --create --topic shop1.shop.t --partitions 1 >"$work/topics.log" 2>&1 && break
    sleep 1
done
"$kafka/bin/topics" "${server[@]}" --list 2>/dev/null | grep -q shop1.shop.t || { tail "$work/topics.log" "$work/broker.log" >&2; exit 1; }

# Inserts, updates, deletes and new keys, as fast as the client sends them.
(
    while [ ! -e "$work/enough" ]; do
        for _ in $(seq 20); do
            echo "INSERT INTO shop.t (n, note) VALUES (1, REPEAT('a', RAND() * 200)), (2, 'b'), (3, NULL);"
            echo "BEGIN; UPDATE shop.t SET n = n + 1 ORDER BY id DESC LIMIT 2; DELETE FROM shop.t ORDER BY id DESC LIMIT 1; COMMIT;"
            echo "UPDATE shop.t SET id = -id WHERE id > 0 ORDER BY id LIMIT 1;"
        done | client shop
        sleep 0.2
    done
) &
writer=$!
running+=($writer)

pipe=("$BINLOGZ" dump --no-defaults -R -h127.0.0.1 "-P$port" -uroot --ssl-mode=PREFERRED --get-server-public-key --format debezium --with-key
    --topic-prefix shop1 --table shop.t --offsets "$work/offsets" --offsets-delay 4)
client -e "CREATE USER root@'127.0.0.1' IDENTIFIED BY ''; GRANT ALL ON *.* TO root@'127.0.0.1'"
producer=("$kafka/bin/producer" "${server[@]}" --topic shop1.shop.t --property parse.key=true --property null.marker=null
    --producer-property enable.idempotence=true --producer-property request.timeout.ms=1000
    --producer-property linger.ms=5 --producer-property delivery.timeout.ms=3000)

mkfifo "$work/fifo"
for round in $(seq "$rounds"); do
    "${producer[@]}" <"$work/fifo" >"$work/producer.log" 2>&1 &
    to=$!
    "${pipe[@]}" --follow >"$work/fifo" 2>"$work/dump.log" &
    from=$!
    sleep $((7 + RANDOM % 4))
    case $((round % 3)) in
        0) kill -9 $from 2>/dev/null || true ;;
        1) kill -9 $to 2>/dev/null || true ;;
        2) kill -9 $from $to 2>/dev/null || true ;;
    esac
    # The one that is left ends with its next line, or now.
    sleep 1
    kill -9 $from $to 2>/dev/null || true
    wait $from $to 2>/dev/null || true
    echo "round $round: $(cat "$work/offsets")"
done
touch "$work/enough"
wait $writer || true
# To the end of what is there.
"${pipe[@]}" --to-last-log 2>"$work/dump.log" | "${producer[@]}" >"$work/producer.log" 2>&1 ||
    { cat "$work/dump.log" "$work/producer.log" >&2; exit 1; }
"$BINLOGZ" dump --no-defaults --format debezium --with-key --topic-prefix shop1 --table shop.t "$work"/data/binlog.0* >"$work/expected"
"$kafka/bin/consumer" "${server[@]}" --topic shop1.shop.t --from-beginning --timeout-ms 10000 --property print.key=true \
    --property null.literal=null >"$work/found" 2>"$work/consumer.log" || true

python3 - "$work/expected" "$work/found" <<'CHECK'
import sys
expected, found = (open(path, encoding="utf-8").read().splitlines() for path in sys.argv[1:])
# Tombstones of one key are alike: each is known by the line before it.
def named(lines):
    before = ""
    for line in lines:
        yield (before, line) if line.endswith("\tnull") else ("", line)
        before = line
places = {name: place for place, name in enumerate(named(expected))}
assert len(places) == len(expected), "lines that can't be told apart"
furthest, last, repeated, runs = -1, -1, 0, 0
previous = ""
for number, line in enumerate(found):
    if line.endswith("\tnull") and previous and ("", previous) in places:
        name = (previous, line)
    else:
        name = ("", line)
    previous = line
    place = places.get(name)
    assert place is not None, f"message {number} is not in the log: {line}"
    if place != last + 1:
        assert place <= furthest + 1, f"message {number}: {place - furthest - 1} changes are missing before {line}"
        runs += 1
    repeated += place <= furthest
    furthest, last = max(furthest, place), place
assert furthest == len(expected) - 1, f"{len(expected) - 1 - furthest} changes are missing at the end"
print(f"{len(expected)} messages of the log, {len(found)} in the topic: all there, in order, {repeated} twice, begun again {runs} times")
CHECK
