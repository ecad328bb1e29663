#!/usr/bin/env bash
# The units in packaging/: their exposure by `systemd-analyze security`, at most MAX (1.5 of 10), their syntax, and whether the relay's
# system calls are all among those that its unit allows: a relay of a private server is traced while it starts, receives, serves and is
# reloaded. Needs systemd-analyze and strace; says SKIPPED without.
#
# usage: unit.sh [MAX]
set -euo pipefail
cd "$(dirname "$0")/../.."

for tool in systemd-analyze strace; do
    if ! command -v "$tool" >/dev/null; then
        echo "SKIPPED: unit.sh: no $tool"
        exit 0
    fi
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for unit in packaging/*.service; do
    name=$(basename "$unit")
    # The program need not be installed.
    sed 's#/usr/bin/binlogz[a-z-]*#/bin/true#g' "$unit" >"$folder/$name"
    if ! systemd-analyze verify "$folder/$name" 2>"$folder/said" || grep -q "$name" "$folder/said"; then
        cat "$folder/said" >&2
        exit 1
    fi
    score=$(systemd-analyze security --offline=yes --no-pager "$folder/$name" | sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p')
    echo "$name: exposure $score"
    awk -v score="$score" -v max="${1:-1.5}" 'BEGIN { exit !(score != "" && score + 0 <= max + 0) }'
done

# The calls that the unit's filters leave: a group's line is followed by its calls and groups, indented.
allowed() {
    systemd-analyze syscall-filter "$1" | sed -n 's/^ \+\([a-z0-9_@-]\+\)$/\1/p' | while read -r call; do
        case $call in
        @*) allowed "$call" ;;
        *) echo "$call" ;;
        esac
    done
}
allowed @system-service | sort -u >"$folder/allowed"
{ allowed @privileged && allowed @resources; } | sort -u >"$folder/denied"
comm -23 "$folder/allowed" "$folder/denied" >"$folder/left"

BINLOGZ_STRACE=$folder/trace scripts/run-tests.sh --quiet --package binlogz --test relay -- --ignored --nocapture unit::
sed -n 's/^[0-9]* *\([a-z0-9_]\+\)(.*/\1/p' "$folder"/trace* | sort -u >"$folder/used"
# The first one begins the program, before the filter holds.
missing=$(comm -23 "$folder/used" "$folder/left" | grep -vx execve || true)
echo "the relay uses $(wc -l <"$folder/used") system calls; $(wc -l <"$folder/left") are allowed"
if [ -n "$missing" ]; then
    echo "unit.sh: not allowed by binlogz-relay.service: $missing" >&2
    exit 1
fi
