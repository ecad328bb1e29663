#!/usr/bin/env bash
# `binlogz archive erase` of PERSONS persons in one run, from an archive of SCALE GB of logs, as scripts/bench/large-logs.sh makes them: the dry run, and the erasure.
#
#   keys      orders by their key, so that the index tells where they may be: one text becomes empty
#   children  orders by a column that is no key, and their items by a foreign key: the rows go
#
# Prints seconds of the clock and of the processors, peak memory, the logs that were read, the bytes of the objects that were rewritten and of those that took their place.
# Afterwards `archive check` must find all whole, and the erased rows must be gone.
#
# usage: erase.sh [DIR]        SCALE=1 PERSONS=100 WAYS="keys children"; DIR: where the logs are, or are made; it stays
# BINLOGZ names a program to try instead of a build.
set -euo pipefail
cd "$(dirname "$0")/../.."

scale=${SCALE:-1} persons=${PERSONS:-100} ways=${WAYS:-keys children}
. scripts/measure-lib.sh
binlogz=$(binlogz_program quick)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
logs=${1:-$work/logs}
ls "$logs"/binlog.0* >/dev/null 2>&1 || scripts/bench/large-logs.sh "$logs" "$((scale * 1000))" >&2
bytes=$(cat "$logs"/binlog.0* | wc -c)
"$binlogz" archive create --quiet --level fast --to "$work/archive" "$logs"/binlog.0*

cat >"$work/schema.sql" <<'SQL'
USE shop;
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT NOT NULL, state ENUM('new', 'paid', 'sent') NOT NULL,
    total DECIMAL(10,2) NOT NULL, placed DATETIME NOT NULL, note VARCHAR(100));
CREATE TABLE items (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL, product INT NOT NULL, pieces SMALLINT NOT NULL,
    price DECIMAL(8,2) NOT NULL, FOREIGN KEY (order_id) REFERENCES orders (id));
SQL
# Orders have the numbers from 1, some 20,000 in a round of 12.8 MB of logs.
orders=$((bytes / 12800000 * 20000))
numbers=$(seq "$persons" | awk -v orders="$orders" -v persons="$persons" '{ print int($1 * orders / (persons + 1)) + 1 }' | paste -sd,)
customers=$(seq "$persons" | awk -v persons="$persons" '{ print int($1 * 400000 / (persons + 1)) }' | paste -sd,)

# measured NAME COMMAND…: a line of the seconds, memory and what the command said of bytes.
measured() {
    local name=$1 code=0
    shift
    /usr/bin/env time -o "$work/figures" -f '%e %U %S %M' "$@" --format json >"$work/said" 2>"$work/errors" || code=$?
    # 1: statements may hold values, and are named.
    [ "$code" -le 1 ] || { cat "$work/errors" >&2; exit 1; }
    tail -1 "$work/figures" | awk -v name="$name" '{ printf "%-18s %8.2f %8.2f %6d", name, $1, $2 + $3, $4 / 1024 }'
    head -1 "$work/said" | python3 -c '
import json, sys
report = json.load(sys.stdin)
size = lambda objects: sum(one["bytes"] for one in report[objects])
print(" %8d %7d %5d/%-4d %12d %12d" % (report["row_changes"], report["transactions"], report["logs_read"], report["logs_in_archive"], size("objects_before"), size("objects_after")))'
}

echo "$bytes bytes of logs, $persons persons; load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) cores"
printf '%-18s %8s %8s %6s %8s %7s %10s %12s %12s\n' run clock cpu MiB rows trx. logs before after
for way in $ways; do
    cp -a "$work/archive" "$work/erased"
    case $way in
        keys) erase=(--table shop.orders --where "id IN ($numbers)" --blank note) ;;
        children) erase=(--table shop.orders --where "customer IN ($customers)" --rows --children --schema "$work/schema.sql") ;;
    esac
    measured "$way, dry" "$binlogz" archive erase "$work/erased" --level fast "${erase[@]}"
    measured "$way, executed" "$binlogz" archive erase "$work/erased" --level fast --grace 0 --execute "${erase[@]}"
    "$binlogz" archive check --quiet "$work/erased" >/dev/null 2>&1 || { echo "$way: the archive isn't whole" >&2; exit 1; }
    again=0
    "$binlogz" archive erase "$work/erased" "${erase[@]}" >"$work/said" 2>/dev/null || again=$?
    grep -q 'nothing to erase' "$work/said" || { echo "$way: something is left: $(head -1 "$work/said")" >&2; exit 1; }
    rm -r "$work/erased"
done
