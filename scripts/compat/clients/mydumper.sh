#!/usr/bin/env bash
# mydumper, which MYDUMPER names, as a plain client; see crates/interfaces/cli/tests/compat/clients/sql.rs. It dumps a database, and notes the
# position that goes with it.
set -euo pipefail
port=$1 user=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$MYDUMPER" --version | sed -n '1s/^mydumper \([0-9.]*\).*/version \1/p'
if ! "$MYDUMPER" --host=127.0.0.1 --port="$port" --user="$user" --password="$3" --database=compat --outputdir="$folder/dump" \
    >"$folder/log" 2>&1 || grep -q CRITICAL "$folder/log"; then
    echo "failed dump: $(grep -m1 -e CRITICAL -e ERROR "$folder/log" || tail -1 "$folder/log")"
    exit
fi
if grep -q 'INSERT INTO' "$folder"/dump/compat.t*.sql; then echo "done dump"; else echo "failed dump: it has no rows"; fi
if grep -q 'Log: ' "$folder/dump/metadata"; then echo "done position"; else echo "failed position: it has none"; fi
