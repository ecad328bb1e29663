#!/usr/bin/env bash
# Makes pictures of the HTML pages of advise, bench, fleet and the relay, as the tests see them.
#
# usage: make-screenshots.sh DIR        every page at 390, 768 and 1440 px, light and dark: DIR/PAGE-WIDTH-SCHEME.png
#        make-screenshots.sh --docs     only docs/images/page-*.png, which README and docs show
#
# The pages are those of the tests (BINLOGZ_PAGES), which also assert that nothing on them is clipped or pale.
# bench needs sysbench and a private MySQL, and takes a minute.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '4,5s/^# //p' "$0" >&2; exit 2; }
out=$1
if [ "$out" != --docs ]; then
    mkdir -p "$out"
    out=$(cd "$out" && pwd)
fi
cd "$(dirname "$0")/.."
chromium=$(scripts/get-tool.sh chromium)/bin/chromium
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/pages"
export BINLOGZ_PAGES=$work/pages BINLOGZ_REQUIRE_SERVERS=1

scripts/run-tests.sh --quiet -p binlogz-relay --lib page::tests
scripts/run-tests.sh --quiet -p binlogz --test commands advise_page
scripts/run-tests.sh --quiet -p binlogz --bin binlogz fleet::page::tests
[ "$out" = --docs ] || scripts/run-tests.sh --quiet -p binlogz-bench --test bench every_preset_runs

# shoot PAGE WIDTH HEIGHT SCHEME FILE [SCALE]
shoot() {
    local scheme=1
    [ "$4" = light ] || scheme=0
    "$chromium" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars --force-device-scale-factor="${6:-1}" \
        --user-data-dir="$work/home-$RANDOM" --blink-settings=preferredColorScheme=$scheme --window-size="$2,$3" \
        --screenshot="$5" "file://$BINLOGZ_PAGES/$1.html" 2>/dev/null
    echo "$5"
}

if [ "$out" = --docs ]; then
    shoot advise 1180 1900 light docs/images/page-advise.png 0.6
    # The beginning of the same page, for README.
    shoot advise 1180 985 light docs/images/page-advise-top.png 0.6
    shoot relay-down 1180 1400 light docs/images/page-relay.png 0.6
    exit
fi
for page in "$BINLOGZ_PAGES"/*.html; do
    name=$(basename "$page" .html)
    for scheme in light dark; do
        shoot "$name" 390 3400 $scheme "$out/$name-390-$scheme.png"
        shoot "$name" 768 2800 $scheme "$out/$name-768-$scheme.png"
        shoot "$name" 1440 2400 $scheme "$out/$name-1440-$scheme.png"
    done
done
