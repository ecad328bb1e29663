#!/usr/bin/env bash
# The page of `binlogz advise` side by side with Observable Plot and Grafana: three of its charts, drawn by each with its own
# defaults, looked at by the same probe as in the tests (lab/testkit/src/browser/probe.js) at 390, 768 and 1440 px, light and
# dark. Prints the faults that it finds, and what a page weighs. Needs npm.
#
# usage: pages.sh [DIR]      DIR: keep the pages, and a picture of each, there
set -euo pipefail
out=$(realpath -m "${1:-$(mktemp -d)}")
cd "$(dirname "$0")/../.."
root=$PWD
mkdir -p "$out"

cache=${BINLOGZ_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/binlogz}/pages-plot-0.6.17-grafana-13.2.2
if [ ! -d "$cache" ]; then
    work=$(mktemp -d "$(dirname "$cache")/pages.XXXXXX")
    (cd "$work" && npm init --yes && npm install --legacy-peer-deps --ignore-scripts @observablehq/plot@0.6.17 \
        @grafana/ui@13.2.2 @grafana/data@13.2.2 react@18.3.1 react-dom@18.3.1 esbuild@0.28.2) >"$work/npm.log" 2>&1 ||
        { cat "$work/npm.log" >&2; exit 1; }
    mv "$work" "$cache"
fi
for source in plot.js grafana.jsx; do
    NODE_PATH=$cache/node_modules "$cache/node_modules/.bin/esbuild" "scripts/bench/pages/$source" --bundle --minify --log-level=error \
        --outfile="$out/${source%.*}.js" '--define:process.env.NODE_ENV="production"' \
        --loader:.svg=text --loader:.woff2=dataurl --loader:.ttf=empty
done

cargo build --quiet --package binlogz
binlogz=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug/binlogz
"$binlogz" --quiet advise --exact --levels=1,3,9,19 --format=json --force --html="$out/binlogz.html" samples/plain/binlog.0000?? >"$out/advise.json"
chromium=$(scripts/get-tool.sh chromium)/bin/chromium
exec node scripts/bench/pages/look.mjs "$chromium" "$root/lab/testkit/src/browser/probe.js" "$out"
