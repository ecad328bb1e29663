#!/usr/bin/env bash
# Records `binlogz demo --once` as docs/images/demo.cast, an asciinema file of version 2: a header and a line for each output.
#
# usage: make-cast.sh            needs python3 and the servers of `make demo`; BINLOGZ names a program to record instead of a build
set -euo pipefail
cd "$(dirname "$0")/.."

binlogz=${BINLOGZ:-}
if [ -z "$binlogz" ]; then
    cargo build --profile quick --no-default-features --package binlogz --package binlogz-bench
    binlogz=${CARGO_TARGET_DIR:-target}/quick/binlogz
fi
binlogz=$(realpath "$binlogz") exec python3 - docs/images/demo.cast <<'PYTHON'
import codecs, json, os, pty, sys, time

WIDTH, HEIGHT = 110, 32
# People read for a while before the next step; nobody wants to wait longer for a server than this.
READ, WAIT_MAX = 3.0, 1.5

events, now, last = [], 0.0, time.monotonic()
decoder = codecs.getincrementaldecoder("utf-8")()
def read(fd):
    global now, last
    data = os.read(fd, 65536)
    text = decoder.decode(data)
    now, last = now + min(time.monotonic() - last, WAIT_MAX), time.monotonic()
    if "\n== " in text or text.startswith("== "):
        now += READ
    events.append([round(now, 3), "o", text])
    return data

line = f'stty cols {WIDTH} rows {HEIGHT}; exec "$binlogz" demo --once'
status = os.waitstatus_to_exitcode(pty.spawn(["sh", "-c", line], read))
if status:
    sys.exit(f"the demo ended with {status}")
header = {"version": 2, "width": WIDTH, "height": HEIGHT, "title": "binlogz demo"}
with open(sys.argv[1], "w") as cast:
    cast.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in [header, *events])
PYTHON
