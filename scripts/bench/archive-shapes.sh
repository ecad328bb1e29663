#!/usr/bin/env bash
# `binlogz archive` beside `xz -6` and `zstd -19 --long=27` over the five workloads and nineteen shapes of log (lab/testkit's
# `WorkloadShape`, which says what each is; seeds 20260201 and, for the sixteen, 20260202 to 20260217), each archived alone at each level:
# sizes, of the smaller of the two, MB/s to create (with its verification) and to restore, by the clock and by a core's time (which a
# busy machine changes little), memory to create.
#
# usage: archive-shapes.sh [SCALE [LEVEL…]]      (by default 1, level default: an hour, most of it of xz and zstd)
# BINLOGZ=PROGRAM takes that program; LOGS="FILE…" takes logs that are there, PEERS=no leaves out xz and zstd.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/measure-lib.sh
. scripts/measure-lib.sh

scale=${1:-1}
levels=("${@:2}")
[[ ${#levels[@]} -gt 0 ]] || levels=(default)
binlogz=$(binlogz_program)
make_logs() {
    cargo run --quiet --release --package binlogz-bench-programs --bin workloads -- --scale "$scale" \
        --setting plain --of "$1" | grep -o '/[^ ]*$'
}
if [ -n "${LOGS:-}" ]; then
    read -r -a logs <<<"$LOGS"
else
    mapfile -t logs < <(make_logs workloads && make_logs shapes && make_logs more-shapes && make_logs later-shapes)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Before a command: its memory goes into a file, where GNU time is installed.
measured=()
if [[ -x /usr/bin/time ]]; then measured=(/usr/bin/time --format %M --output "$work/memory"); fi
echo 0 >"$work/memory"

# timed COMMAND…: how long it takes by the clock, and its processor time, user and system together; its output is thrown away.
timed() {
    local TIMEFORMAT='%R %U %S'
    { time "$@" >/dev/null 2>"$work/said"; } 2>&1 | awk '{ printf "%.3f %.3f\n", $1, $2 + $3 }'
}

printf '%-22s %-8s %10s %10s %10s %10s %6s %7s %9s %9s %9s %9s %6s\n' \
    log level plain archive 'xz -6' zstd-19 'of xz' 'of best' 'pack MB/s' 'of a core' 'back MB/s' 'of a core' MiB
for log in "${logs[@]}"; do
    xz=0
    echo 0 >"$work/zstd"
    if [ "${PEERS:-yes}" != no ]; then
        zstd -19 --long=27 --quiet --stdout "$log" | wc -c >"$work/zstd" &
        xz=$(xz -6 --threads=1 --stdout "$log" | wc -c)
        wait
    fi
    for level in "${levels[@]}"; do
        rm -rf "$work/arc" "$work/back"
        create=$(timed "${measured[@]}" "$binlogz" archive create --jobs 2 --level "$level" --to "$work/arc" "$log")
        restore=$(timed "$binlogz" archive restore --to "$work/back" "$work/arc")
        cmp "$log" "$work/back/$(basename "$log")"
        echo "$(basename "$log") $level $(wc -c <"$log") $(cat "$work"/arc/objects/segment-* | wc -c) $xz $(<"$work/zstd")" \
            "$create $restore $(<"$work/memory")"
    done
done | tee "$work/lines" | awk '{
    best = $5 < $6 ? $5 : $6
    of_xz = $5 ? sprintf("%.3f", $4 / $5) : "-"
    of_best = best ? sprintf("%.3f", $4 / best) : "-"
    printf "%-22s %-8s %10d %10d %10d %10d %6s %7s %9.1f %9.1f %9.1f %9.1f %6d\n",
        $1, $2, $3, $4, $5, $6, of_xz, of_best, $3 / 1e6 / $7, $3 / 1e6 / $8, $3 / 1e6 / $9, $3 / 1e6 / $10, $11 / 1024
    fflush()
}'
[ "${PEERS:-yes}" = no ] || awk '{ of_xz[$2] += log($4 / $5); of_best[$2] += log($4 / ($5 < $6 ? $5 : $6)); count[$2]++ }
    END { for (level in count) printf "geometric mean, level %s: %.3f of xz -6, %.3f of the smaller of the two\n",
        level, exp(of_xz[level] / count[level]), exp(of_best[level] / count[level]) }' "$work/lines"
