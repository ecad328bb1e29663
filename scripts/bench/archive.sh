#!/usr/bin/env bash
# `binlogz archive` side by side with `xz -6` and `zstd -19 --long=27`, on two cores, in one run: the five workloads at full
# scale, each archived alone, all five as one archive, and three shapes of other kinds; what the server's level-3 files
# cost. Sizes, MB/s to create (with its verification) and to restore, and create's speed as a multiple of `xz -6`'s.
#
# usage: archive.sh [SCALE]      (by default 1: about eight minutes, most of them of xz and zstd)
set -euo pipefail
cd "$(dirname "$0")/../.."

scale=${1:-1}
release=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release
cargo build --quiet --release --package binlogz
make_workloads() {
    cargo run --quiet --release --package binlogz-bench-programs --bin workloads -- --scale "$scale" "$@" | grep -o '/[^ ]*$'
}
mapfile -t workloads < <(make_workloads --setting plain)
mapfile -t level3 < <(make_workloads --setting level3)
mapfile -t shapes < <(make_workloads --of shapes --setting plain)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# seconds COMMAND…: how long it takes, its output thrown away.
seconds() {
    local begin=$EPOCHREALTIME
    "$@" >/dev/null
    awk -v begin="$begin" -v end="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", end - begin }'
}

bytes_of() {
    cat "$@" | wc -c
}

# Before a command: its memory goes into a file, where GNU time is installed.
measured=()
if [[ -x /usr/bin/time ]]; then measured=(/usr/bin/time --format %M --output "$work/memory"); fi
echo 0 >"$work/memory"

# packed FILE…: bytes of the archive of these, seconds to create it, to restore it. Files have names of their own.
packed() {
    rm -rf "$work/arc" "$work/back"
    local create restore file
    create=$(seconds "${measured[@]}" "$release/binlogz" archive create --jobs 2 --to "$work/arc" "$@")
    restore=$(seconds "$release/binlogz" archive cat "$work/arc")
    "$release/binlogz" archive restore --to "$work/back" "$work/arc" >/dev/null
    for file in "$@"; do cmp "$file" "$work/back/$(basename "$file")"; done
    echo "$(bytes_of "$work"/arc/objects/segment-*) $create $restore"
}

# rival FILE: bytes of xz and of zstd, seconds of xz. The two run at once, each on a core. Of the shapes (0: not made)
# nothing is asked against zstd.
rival() {
    if [[ $1 = *workloads* ]]; then
        zstd -19 --long=27 --quiet --stdout "$1" | wc -c >"$work/zstd" &
    else
        echo 0 >"$work/zstd"
    fi
    local begin=$EPOCHREALTIME
    xz -6 --threads=1 --stdout "$1" | wc -c >"$work/xz"
    local end=$EPOCHREALTIME
    wait
    echo "$(<"$work/xz") $(<"$work/zstd") $(awk -v begin="$begin" -v end="$end" 'BEGIN { print end - begin }')"
}

printf '%-26s %10s %10s %10s %10s %6s %6s %9s %10s %8s\n' \
    file plain archive 'xz -6' zstd-19 'of xz' 'of zst' 'pack MB/s' 'unpack MB/s' 'x xz'
for file in "${workloads[@]}" "${shapes[@]}"; do
    # shellcheck disable=SC2046 # words are wanted
    echo "$(basename "$file") $(bytes_of "$file")" $(packed "$file") $(rival "$file")
done | tee "$work/lines" | awk '{
    printf "%-26s %10d %10d %10d %10d %6.3f %6.3f %9.1f %10.1f %8.1f\n",
        $1, $2, $3, $6, $7, $3 / $6, $7 ? $3 / $7 : 0, $2 / 1e6 / $4, $2 / 1e6 / $5, $8 / $4
    fflush()
}'
awk -v workloads="${#workloads[@]}" 'NR <= workloads { ratio += log($3 / $6) }
    END { printf "geometric mean of xz -6 over the workloads: %.3f\n", exp(ratio / workloads) }' "$work/lines"

together() {
    local name=$1 of=$2 size create restore file number=0
    shift 2
    # As one server's log: create puts logs in the order of their names.
    rm -rf "$work/logs"
    mkdir "$work/logs"
    for file in "$@"; do
        number=$((number + 1))
        ln -s "$file" "$work/logs/binlog.$(printf %06d "$number")"
    done
    set -- "$work"/logs/*
    read -r size create restore < <(packed "$@")
    awk -v name="$name" -v plain="$(bytes_of "$@")" -v size="$size" -v create="$create" -v restore="$restore" -v of="$of" \
        'BEGIN { printf "%s: %d -> %d bytes, %.3f of %d; %.1f MB/s, %.1f MB/s back\n",
            name, plain, size, size / of, of, plain / 1e6 / create, plain / 1e6 / restore }'
    echo "  memory to create it: $(($(<"$work/memory") / 1024)) MiB"
}
xz=$(awk -v workloads="${#workloads[@]}" 'NR <= workloads { sum += $6 } END { print sum }' "$work/lines")
together 'all five together, of the sum of xz -6' "$xz" "${workloads[@]}"
plain_archive=$(awk -v workloads="${#workloads[@]}" 'NR <= workloads { sum += $3 } END { print sum }' "$work/lines")
together "the server's level-3 files together, of the plain ones' archives" "$plain_archive" "${level3[@]}"

"$release/binlogz" archive create --jobs 2 --to "$work/one" "${workloads[@]}" >/dev/null
gtid=$("$release/binlogz" archive list "$work/one" | tail -1 | grep -oE '[0-9a-f-]{36}:[0-9]+' | head -1)
echo "one transaction of the last log ($gtid): $(seconds "$release/binlogz" archive cat --gtids "$gtid" "$work/one") s"
