"""Types at the program's prompt, through a terminal: each argument after the program's own is typed once a prompt is there.

usage: prompt.py STEPS PROGRAM ARGUMENT...; STEPS is JSON: texts to type; {"wait": TEXT} waits for output, {"size": [ROWS, COLUMNS]} is the
terminal's from then on, which has none before.
The output goes to standard output without what moves a cursor; the last line is the exit code.
"""
import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time

steps, program = json.loads(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(program[0], program)
seen = ""
read_to = 0


def wait(text, seconds=60):
    """Reads until a text comes after what was read before."""
    global seen, read_to
    end = time.monotonic() + seconds
    while text not in seen[read_to:]:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        if not ready:
            print(seen)
            sys.exit(f"waited for {text!r}")
        try:
            got = os.read(terminal, 65536)
        except OSError:
            got = b""
        if not got:
            print(seen)
            sys.exit(f"ended before {text!r}")
        seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", got.decode(errors="replace")).replace("\r", "")
    read_to = seen.index(text, read_to) + len(text)


for step in steps:
    if isinstance(step, dict) and "size" in step:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *step["size"], 0, 0))
    elif isinstance(step, dict):
        wait(step["wait"])
    else:
        time.sleep(0.1)
        os.write(terminal, step.encode())
while True:
    try:
        got = os.read(terminal, 65536)
    except OSError:
        break
    if not got:
        break
    seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", got.decode(errors="replace")).replace("\r", "")
_, status = os.waitpid(pid, 0)
print(seen)
print("exit", os.waitstatus_to_exitcode(status))
