#!/usr/bin/env python3
"""Two builds of binlogz side by side: processor time of what handles every byte of a log.

For each command and log the two programs run by turns, each with its own archives; printed are the medians of RUNS runs (5), user and system seconds
together, and the geometric mean of new/old for each command. Processor time can be compared on a busy machine, too.

usage: compare-builds.py OLD NEW LOG…            RUNS=5
"""

import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COMMANDS = {
    "compress": ["compress", "{log}", "--output", "{out}"],
    "expand": ["expand", "{compressed}", "--output", "{out}"],
    "verify": ["verify", "{log}"],
    "stats": ["stats", "{log}"],
    "stats --values": ["stats", "--values", "{log}"],
    "dump": ["dump", "--no-defaults", "{log}"],
    "dump -v": ["dump", "--no-defaults", "-v", "--base64-output=decode-rows", "{log}"],
    "undo": ["undo", "{log}"],
    "archive create": ["archive", "create", "--to", "{out}", "{log}"],
    "archive restore": ["archive", "restore", "--to", "{out}", "{archive}"],
}


def seconds(program, arguments):
    """Runs it; how much processor time it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run([program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # 1 is a negative answer: undo names changes that it can't take back.
    if ran.returncode not in (0, 1):
        sys.exit(f"{program} {' '.join(arguments)}: exit code {ran.returncode}: {ran.stderr.decode()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def removed(path):
    """The path, with nothing there."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    return path


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__.strip().split("\n")[-1])
    programs = dict(zip(["old", "new"], sys.argv[1:3]))
    logs = sys.argv[3:]
    runs = int(os.environ.get("RUNS", "5"))
    with tempfile.TemporaryDirectory() as folder:
        out, compressed, archive = (Path(folder) / name for name in ["out", "compressed", "archive"])
        for name, template in COMMANDS.items():
            ratios = []
            for log in logs:
                seconds(programs["old"], ["compress", log, "--output", str(removed(compressed))])
                places = {"log": log, "compressed": compressed, "archive": archive, "out": out}
                arguments = [word.format(**places) for word in template]
                times = {build: [] for build in programs}
                for run in range(runs):
                    for build in sorted(programs, reverse=run % 2 == 0):
                        if "{archive}" in template:
                            seconds(programs[build], ["archive", "create", "--to", str(removed(archive)), log])
                        removed(out)
                        times[build].append(seconds(programs[build], arguments))
                old, new = (statistics.median(times[build]) for build in ["old", "new"])
                ratios.append(new / old)
                print(f"{name:16} {Path(log).name:28} old {old:7.3f} new {new:7.3f} new/old {new / old:.3f}", flush=True)
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"{name:16} {'geometric mean':28} {'':23} new/old {mean:.3f}\n", flush=True)


if __name__ == "__main__":
    main()
