"""Types at the program's prompt, through a terminal: each argument after the program's own is typed once a prompt is there.

usage: prompt.py STEPS PROGRAM ARGUMENT...; STEPS is JSON: texts to type; {"wait": TEXT} waits for output, {"size": [ROWS, COLUMNS]} is the
terminal's from then on, which has none before; {"busy": SECONDS} waits until the program has used as much processor time since, {"quiet": SECONDS}
until it uses less in a second, in which no thread was always ready to run, as one is that gets no processor: at the latest the third second.
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


def used():
    """Seconds of processor time."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split(" ")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy(seconds):
    end = time.monotonic() + 60
    goal = used() + seconds
    while used() < goal:
        if time.monotonic() > end:
            sys.exit("it isn't busy")
        time.sleep(0.02)


def ready():
    """The threads that run, or would if there was a processor for them."""
    states = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            states[thread] = open(f"/proc/{pid}/task/{thread}/stat").read().rsplit(") ", 1)[1][0]
        except OSError:
            pass
    return {thread for thread, state in states.items() if state == "R"}


def quiet(seconds):
    told = []
    while len(told) < 3:
        before, always = used(), ready()
        for _ in range(20):
            time.sleep(0.05)
            always &= ready()
        told.append((used() - before, len(always)))
        if told[-1][0] < seconds and not always:
            return
    print(seen)
    sys.exit(f"it used processor time, and had threads that were always ready, in three seconds: {told}")


for step in steps:
    if isinstance(step, dict) and "size" in step:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *step["size"], 0, 0))
    elif isinstance(step, dict) and "busy" in step:
        busy(step["busy"])
    elif isinstance(step, dict) and "quiet" in step:
        quiet(step["quiet"])
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
