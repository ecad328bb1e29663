#!/usr/bin/env bash
# mysqld_exporter, which MYSQLD_EXPORTER names, as a plain client; see crates/interfaces/cli/tests/compat/clients/sql.rs. It is asked for its
# metrics once, with the collectors that it has on by default and those of the binary log and of replicas; each is a step.
set -euo pipefail
port=$1 user=$2
folder=$(mktemp -d)
# Looked into before the exporter may have begun it.
: >"$folder/log"
"$MYSQLD_EXPORTER" --version 2>&1 | sed -n '1s/.*, \(version [0-9.]*\).*/\1/p'
MYSQLD_EXPORTER_PASSWORD=$3 "$MYSQLD_EXPORTER" --config.my-cnf="$folder/none" --mysqld.address="127.0.0.1:$port" \
    --mysqld.username="$user" --web.listen-address=127.0.0.1:0 --collect.binlog_size --collect.slave_hosts \
    --collect.info_schema.processlist --collect.info_schema.tables 2>>"$folder/log" &
exporter=$!
trap 'kill $exporter; rm -rf "$folder"' EXIT
for _ in $(seq 600); do
    address=$(sed -n 's/.*msg="Listening on" address=\([0-9.:]*\).*/\1/p' "$folder/log")
    [ -z "$address" ] || break
    sleep 0.1
done
if [ -z "$address" ]; then
    echo "failed begin: $(tail -1 "$folder/log")"
    exit
fi
python3 - "http://$address/metrics" >"$folder/metrics" <<'PYTHON'
import sys
import urllib.request

print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())
PYTHON
if ! grep -q '^mysql_up 1' "$folder/metrics"; then
    echo "failed connect: $(tail -1 "$folder/log")"
    exit
fi
echo "done connect"
sed -n 's/^mysql_exporter_collector_success{collector="\([a-z_.]*\)"} \([01]\)/\1 \2/p' "$folder/metrics" |
    while read -r collector success; do
        if [ "$success" = 1 ]; then
            echo "done $collector"
        else
            echo "failed $collector: $(grep "scraper=${collector#collect.} " "$folder/log" | sed 's/.* err=//' | head -1)"
        fi
    done
