#!/usr/bin/env bash
# Makes docs/images/terminal.svg, the README's picture: commands run on the samples, with what they really print.
#
# usage: make-picture.sh [BINLOGZ]      the program; built if none is named
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
binlogz=${1:-}
if [ -z "$binlogz" ]; then
    cargo build --quiet --release --package binlogz
    binlogz=target/release/binlogz
fi
binlogz=$(realpath "$binlogz")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,here/small} docs/images
ln -s "$binlogz" "$work/bin/binlogz"
cp samples/plain/binlog.00000[1-5] "$work/here"
export PATH="$work/bin:$PATH" TZ=UTC

# show COMMAND: the command as it is typed, then what it prints.
show() {
    printf '$ %s\n' "$1"
    bash -euo pipefail -c "$1" 2>&1
    echo
}

{
    cd "$work/here"
    show 'binlogz compress --output small/ binlog.000001 binlog.000002 binlog.000003 binlog.000004'
    show 'binlogz verify --same binlog.000002 -- small/binlog.000002'
    show 'binlogz dump -v --base64-output=decode-rows --table=sbtest.sbtest1 binlog.000005 | grep -m1 -A3 DELETE'
    show 'binlogz archive create --to archive binlog.00000[1-5]'
} >"$work/text"
cd "$root"

# One line of text is 20 units high, a character 8.43 wide (the font's size is 14, textLength makes it so everywhere).
awk '
    function escaped(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text); return text }
    { lines[NR] = $0; if (length($0) > widest) widest = length($0); if (NF) last = NR }
    END {
        width = int(widest * 8.43) + 48; height = last * 20 + 60
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", width, height, width, height
        print "<title>binlogz compresses, compares, reads and archives binary logs</title>"
        print "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;fill:#d7dae0;white-space:pre}.typed{fill:#8fd694;font-weight:bold}</style>"
        printf "<rect width=\"%d\" height=\"%d\" rx=\"10\" fill=\"#1d2128\"/>\n", width, height
        print "<circle cx=\"20\" cy=\"18\" r=\"6\" fill=\"#e0645c\"/><circle cx=\"40\" cy=\"18\" r=\"6\" fill=\"#e0b05c\"/><circle cx=\"60\" cy=\"18\" r=\"6\" fill=\"#7dc46c\"/>"
        for (i = 1; i <= last; i++) {
            if (lines[i] == "") continue
            typed = lines[i] ~ /^\$ / ? " class=\"typed\"" : ""
            printf "<text x=\"24\" y=\"%d\" textLength=\"%.1f\" xml:space=\"preserve\"%s>%s</text>\n", i * 20 + 34, length(lines[i]) * 8.43, typed, escaped(lines[i])
        }
        print "</svg>"
    }' "$work/text" >docs/images/terminal.svg
echo docs/images/terminal.svg
