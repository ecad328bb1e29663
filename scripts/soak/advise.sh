#!/usr/bin/env bash
# `binlogz advise` over 40 sets of logs, under several loads: does a verdict come, and does `--exact` say the same? For lab/book/advise.md.
#
#   18  the five workloads, the three shapes and the ten more shapes at SCALE, each alone
#    3  a log of samples/, all of them plain, all of them compressed
#    7  logs of two and of three servers together
#   12  the first twelve of all logs, grown to 10, 100, 300 MB and 1 GB (grown-log.py): MB has the sizes
#
# Each set is advised without options under LOADS loops that do nothing but run, and with --exact under none. Printed of each: its size, verdict, level
# and seconds. Fails if
#   - a set has no verdict, under any load or from --exact;
#   - a verdict is not that of --exact. Where processor times decide, which differ under load, a trial on a replica is advised: that contradicts turning it
#     on and compressing elsewhere no more than they do it. Levels may differ: by the rule they save about as much;
#   - TIMES=1, and without loops an answer took more than 2 s for 3 MB, 10 s for 300 MB, 60 s for more.
# GB=30 has one more set, of so many logs of 1 GB: a verdict in a minute, without --exact.
#
# usage: advise.sh            SCALE=0.03 LOADS="0 4 16" MB="10 10 10 10 100 100 100 100 300 300 1000 1000" TIMES=1 GB=30 ONLY=NAME
# BINLOGZ names a program to try instead of a release build, WORKLOADS one that makes the logs.
set -euo pipefail
cd "$(dirname "$0")/../.."

scale=${SCALE:-0.03} loads=${LOADS:-0 4 16} times=${TIMES:-} only=${ONLY:-} gigabytes=${GB:-}
read -ra sizes <<<"${MB:-10 10 10 10 100 100 100 100 300 300 1000 1000}"
. scripts/measure-lib.sh
. scripts/advise-lib.sh
binlogz=$(binlogz_program)
work=$(mktemp -d)
trap 'quiet; rm -rf "$work"' EXIT

# Each set's files, by its name; the names in order.
declare -A files
names=()
# set_of NAME FILE…
set_of() {
    names+=("$1")
    files[$1]="${*:2}"
}
logs=()
while IFS=$'\t' read -r name path; do
    set_of "$name" "$path"
    logs+=("$name")
done < <(plain_logs "$scale" workloads shapes more-shapes)
set_of sample samples/plain/binlog.000006
set_of samples samples/plain/binlog.0*
set_of samples-compressed samples/compressed/binlog.0*
# together FIRST COUNT: the logs of so many servers, from this one on.
together() {
    local name set=() together=("${logs[@]:$1:$2}")
    for name in "${together[@]}"; do
        set+=("${files[$name]}")
    done
    set_of "$(IFS=+; echo "${together[*]}")" "${set[@]}"
}
together 0 2
together 2 2
together 4 3
together 7 2
together 9 3
together 12 3
together 15 3
# Sets that are made when their turn comes, as they are large: the log and its size.
declare -A grown=()
for place in "${!sizes[@]}"; do
    name=${logs[place % ${#logs[@]}]}
    set_of "$name-${sizes[place]}MB" "$work/grown"
    grown[$name-${sizes[place]}MB]="${files[$name]} $((sizes[place] * 1000000))"
done
# make_set NAME: the files of a set that isn't there yet.
make_set() {
    # shellcheck disable=SC2086  # a file and a number
    [ -z "${grown[$1]:-}" ] || python3 scripts/soak/grown-log.py ${grown[$1]} "$work/grown"
}

# advised NAME ARGUMENT…: verdict, level and whether processor times decided, of what people are told; the seconds in $work/seconds.
advised() {
    local name=$1 begin=$EPOCHREALTIME
    shift
    # shellcheck disable=SC2086  # a list of files
    "$binlogz" advise "$@" ${files[$name]} >"$work/told" 2>"$work/errors" || { cat "$work/errors" >&2; return 1; }
    awk -v begin="$begin" -v end="$EPOCHREALTIME" 'BEGIN { printf "%.1f\n", end - begin }' >"$work/seconds"
    python3 - "$work/told" <<'PYTHON'
import re, sys
told = " ".join(open(sys.argv[1]).read().split("\n\n")[0].split())
answer = told.split(" - ")[0]
verdicts = {"leave compression off": "leave_off", "turn compression on": "turn_on", "try ": "trial", "compress off the source": "elsewhere"}
answer = answer.removeprefix("Recommendation: ")
verdict = next((name for words, name in verdicts.items() if answer.startswith(words)), "none")
level = re.search(r"level (\d+)", answer)
by_times = "this machine was busy" in told or "the processor time that decides" in told
print(verdict, level[1] if level else "-", "times" if by_times else "-")
PYTHON
}
# agrees VERDICT TIMES EXACT TIMES: whether an answer says what --exact says.
agrees() {
    [ "$1" = "$3" ] && return
    case $1/$3 in
        trial/turn_on | trial/elsewhere) [ "$2" = times ] ;;
        turn_on/trial | elsewhere/trial) [ "$4" = times ] ;;
        *) return 1 ;;
    esac
}
# limit BYTES: the seconds that an answer may take.
limit() {
    if [ "$1" -le 3000000 ]; then echo 2; elif [ "$1" -le 320000000 ]; then echo 10; else echo 60; fi
}

without=0 other=0 levels=0 late=0 answers=0
printf '%-34s %8s %5s  %-10s %5s %8s\n' set MB load verdict level seconds
# shown NAME LOAD VERDICT LEVEL
shown() {
    printf '%-34.34s %8.2f %5s  %-10s %5s %8s\n' "$1" "$(bc <<<"scale=2; $size / 1000000")" "$2" "$3" "$4" "$(cat "$work/seconds")"
}
for name in "${names[@]}"; do
    [ -z "$only" ] || [ "$only" = "$name" ] || continue
    make_set "$name"
    # shellcheck disable=SC2086  # a list of files
    size=$(stat -c %s ${files[$name]} | awk '{ sum += $1 } END { print sum }')
    read -r exact exact_level exact_by < <(advised "$name" --exact --no-whole-files --levels 1,3,6,9)
    shown "$name" exact "$exact" "$exact_level"
    [ "$exact" != none ] || without=$((without + 1))
    for load in $loads; do
        busy "$load"
        read -r verdict level by < <(advised "$name")
        quiet
        shown "$name" "$load" "$verdict" "$level"
        answers=$((answers + 1))
        if [ "$verdict" = none ]; then
            without=$((without + 1))
        elif ! agrees "$verdict" "$by" "$exact" "$exact_by"; then
            echo "$name, load $load: contradicts --exact"
            other=$((other + 1))
        fi
        [ "$level" = "$exact_level" ] || levels=$((levels + 1))
        [ -z "$times" ] || [ "$load" != 0 ] || [ "$(bc <<<"$(cat "$work/seconds") <= $(limit "$size")")" = 1 ] || late=$((late + 1))
    done
done
if [ -n "$gigabytes" ]; then
    python3 scripts/soak/grown-log.py "${files[shop]}" 1000000000 "$work/grown"
    files[large]=
    for ((number = 1; number <= gigabytes; number++)); do
        ln "$work/grown" "$work/$(printf 'binlog.%06d' "$number")"
        files[large]+="$work/$(printf 'binlog.%06d' "$number") "
    done
    size=$((gigabytes * 1000000000))
    for load in $loads; do
        busy "$load"
        read -r verdict level _ < <(advised large)
        quiet
        shown "$gigabytes GB" "$load" "$verdict" "$level"
        answers=$((answers + 1))
        [ "$verdict" != none ] || without=$((without + 1))
        [ "$(bc <<<"$(cat "$work/seconds") <= 60")" = 1 ] || late=$((late + 1))
    done
fi
echo "${#names[@]} sets, $answers answers: $without without a verdict, $other that --exact contradicts, $levels with another level, $late too late"
[ "$without" = 0 ] && [ "$other" = 0 ] && [ "$late" = 0 ] && [ "$answers" -gt 0 ]
