#!/usr/bin/env bash
# `binlogz dump` side by side with mysqlbinlog on the five workloads at full scale, plain and at level 3: rows as text
# (-v --base64-output=decode-rows) and the default, on two cores and on one. Medians of RUNS alternating runs, output
# thrown away on both sides, then the geometric mean of the ratios. At the end the same with --raw from a server that has
# the plain logs: its files have to be the server's, and ours are synced before the program ends.
#
# usage: dump.sh            RUNS=5
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/measure-lib.sh

runs=${RUNS:-5}
release=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release
cargo build --quiet --release --package binlogz
mysqlbinlog=$(scripts/get-tool.sh mysql)/bin/mysqlbinlog

mapfile -t files < <(cargo run --quiet --release --package binlogz-bench-programs --bin workloads -- \
    --scale 1 --setting plain --setting level3 | grep -o '/[^ ]*$')

work=$(mktemp -d)
server=
cleanup() {
    if [ -n "$server" ]; then
        kill "$server"
        wait "$server" || true
    fi
    rm -rf "$work"
}
trap cleanup EXIT
for options in "-v --base64-output=decode-rows" ""; do
    echo "dump ${options:-(default)}"
    printf '%-8s %-24s %12s %9s %9s %9s %9s\n' setting file mysqlbinlog '2 cores' '1 core' 'x on 2' 'x on 1'
    for file in "${files[@]}"; do
        : >"$work/two"; : >"$work/one"; : >"$work/theirs"
        for ((run = 0; run < runs; run++)); do
            # The options are words of their own.
            # shellcheck disable=SC2086
            seconds "$mysqlbinlog" --no-defaults $options "$file" >>"$work/theirs"
            # shellcheck disable=SC2086
            seconds "$release/binlogz" dump --no-defaults --jobs=2 $options "$file" >>"$work/two"
            # shellcheck disable=SC2086
            seconds taskset -c 0 "$release/binlogz" dump --no-defaults --jobs=1 $options "$file" >>"$work/one"
        done
        echo "$(basename "$(dirname "$file")") $(basename "$file") $(median <"$work/theirs")" \
            "$(median <"$work/two") $(median <"$work/one")"
    done | awk '{
        printf "%-8s %-24s %12.3f %9.3f %9.3f %9.1f %9.1f\n", $1, $2, $3, $4, $5, $3 / $4, $3 / $5
        n++; two += log($3 / $4); one += log($3 / $5)
    } END { printf "geometric mean: %.1f x mysqlbinlog on 2 cores, %.1f x on one\n\n", exp(two / n), exp(one / n) }'
done

# A server of its own, with the plain logs as its own.
mysqld=$(dirname "$mysqlbinlog")/mysqld
data=$work/server/data
mkdir -p "$work/server"
"$mysqld" --no-defaults --user=root --initialize-insecure --datadir="$data" --log-error="$work/server/log.err"
rm -f "$data"/binlog.*
number=0
for file in "${files[@]}"; do
    [ "$(basename "$(dirname "$file")")" = plain ] || continue
    number=$((number + 1))
    cp "$file" "$data/binlog.00000$number"
    echo "./binlog.00000$number" >>"$data/binlog.index"
done
port=$((20000 + $$ % 20000))
"$mysqld" --no-defaults --user=root --datadir="$data" --log-bin=binlog --server-id=1 \
    --gtid-mode=ON --enforce-gtid-consistency=ON --loose-mysqlx=OFF --secure-file-priv= --bind-address=127.0.0.1 --port="$port" \
    --socket="$work/server/sock" --pid-file="$work/server/pid" --log-error="$work/server/log.err" >/dev/null 2>&1 &
server=$!
login=(--host=127.0.0.1 --port="$port" --user=root)
for ((wait = 0; ; wait++)); do
    "$(dirname "$mysqlbinlog")/mysqladmin" --no-defaults "${login[@]}" ping >/dev/null 2>&1 && break
    [ "$wait" -lt 120 ] || { tail "$work/server/log.err" >&2; exit 1; }
    sleep 0.5
done

echo "dump --raw from a live server"
printf '%-14s %12s %9s %9s\n' log mysqlbinlog binlogz x
mkdir "$work/raw-theirs" "$work/raw-ours"
for ((log = 1; log <= number; log++)); do
    name=binlog.00000$log
    : >"$work/theirs"; : >"$work/two"
    for ((run = 0; run < runs; run++)); do
        seconds "$mysqlbinlog" --no-defaults --read-from-remote-server --raw "${login[@]}" \
            --result-file="$work/raw-theirs/" "$name" >>"$work/theirs"
        seconds "$release/binlogz" dump --no-defaults --read-from-remote-server --raw "${login[@]}" \
            --result-file="$work/raw-ours/" "$name" >>"$work/two"
    done
    cmp "$work/raw-theirs/$name" "$work/raw-ours/$name"
    cmp "$data/$name" "$work/raw-ours/$name"
    rm "$work/raw-theirs/$name" "$work/raw-ours/$name"
    echo "$name $(median <"$work/theirs") $(median <"$work/two")"
done | awk '{
    printf "%-14s %12.3f %9.3f %9.2f\n", $1, $2, $3, $2 / $3
    n++; sum += log($2 / $3)
} END { printf "geometric mean: %.2f x mysqlbinlog, files byte-identical\n", exp(sum / n) }'
