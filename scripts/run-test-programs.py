#!/usr/bin/env python3
"""Runs every test of the workspace, as `cargo test --workspace` does, but several test programs at once.

Cargo runs one program after the other, and at the end of each most cores wait for its slowest tests, which wait for servers. Here as many
programs run at once as there are cores, those that take longest first. A program's output is printed whole when it has ended; none is
started late because another failed. The last lines say how long each took and which failed.

A few tests that failed are run once more, alone: one that then passes is named at the end, to be mended (it depends on what runs beside it, or
on how fast a server is), and doesn't fail the run. Its first output stays above.

usage: run-test-programs.py [NAME…]      only programs whose names contain one of NAMEs, and no examples of docs

RUST_TEST_THREADS is how many tests a program runs at once (by default as many as cores), TEST_PROGRAMS how many programs.
Without a runner: `cargo test --workspace`.
"""

import json
import os
import queue
import re
import subprocess
import sys
import threading
import time

CARGO = os.environ.get("CARGO", "cargo")
CORES = len(os.sched_getaffinity(0))
# Begun in this order, the others after them: what takes longest may not begin last.
LONGEST = ["cli relay_chaos", "sql-cli sql", "cli relay", "cli row_changes", "flow flow", "cli dump", "relay unit", "cli archive", "archive archive", "bench bench",
           "testkit testkit", "cli memory", "python python", "stats stats", "cli commands"]
# Lines of this table are as long as a screen is wide.
SUMMARY_COUNT = 12
# More than so many failures have a cause that a second run won't hide.
AGAIN_COUNT = 3


class Program:
    """An executable with tests in it, or the examples of the docs."""

    def __init__(self, name, command, folder):
        self.name, self.command, self.folder = name, command, folder
        self.output, self.status, self.seconds = "", None, 0.0
        self.counts = [0, 0, 0]
        self.unsteady = []

    def run(self, environment):
        began = time.monotonic()
        self.status, self.output = self.outcome(environment)
        self.seconds = time.monotonic() - began
        for counts in re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", self.output, re.MULTILINE):
            self.counts = [sum(pair) for pair in zip(self.counts, map(int, counts))]

    def outcome(self, environment, arguments=()):
        """The exit code and what was printed."""
        done = subprocess.run([*self.command, *arguments], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def failures(self):
        """The tests that failed, by name; none where the program ended without a word of them."""
        return re.findall(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", self.output, re.MULTILINE)

    def run_again(self, environment):
        """Runs only what failed; whether that passed."""
        failures = self.failures()
        if not failures or len(failures) != self.counts[1]:
            return
        status, output = self.outcome(environment, ["--exact", *failures])
        print(f"\n     Running {self.name} again: {', '.join(failures)}\n{output}", flush=True)
        if status == 0 and f" {len(failures)} passed;" in output:
            self.status, self.unsteady = 0, failures
            self.counts[0] += len(failures)
            self.counts[1] = 0


def compiled():
    """Compiles the tests; their programs, and the folders with libraries that they load."""
    build = subprocess.run([CARGO, "test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"],
                           stdout=subprocess.PIPE, check=False)
    if build.returncode != 0:
        sys.exit(build.returncode)
    programs, libraries = [], []
    for message in map(json.loads, build.stdout.splitlines()):
        if message["reason"] == "build-script-executed":
            libraries += [path.partition("=")[2] or path for path in message["linked_paths"]]
        if message["reason"] != "compiler-artifact" or not message["profile"]["test"] or not message["executable"]:
            continue
        folder, target = os.path.dirname(message["manifest_path"]), message["target"]
        what = target["name"] if target["kind"] in (["test"], ["bin"]) else "unit"
        programs.append(Program(f"{os.path.basename(folder)} {what}", [message["executable"]], folder))
        libraries.append(os.path.dirname(message["executable"]))
    return programs, list(dict.fromkeys(libraries))


def environment_with(libraries):
    """As cargo sets it for a test."""
    system = subprocess.run(["rustc", "--print", "target-libdir"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    paths = libraries + [system] + [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]
    threads = os.environ.get("RUST_TEST_THREADS", str(CORES))
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(paths), "RUST_TEST_THREADS": threads}


def place(program):
    """Where it stands in the order."""
    return LONGEST.index(program.name) if program.name in LONGEST else len(LONGEST)


def run_from(waiting, environment, ended):
    """What each of the threads does: one program after the other."""
    while True:
        try:
            program = waiting.get_nowait()
        except queue.Empty:
            return
        program.run(environment)
        ended.put(program)


def report(programs):
    """The last lines; the exit code."""
    for program in sorted(programs, key=lambda program: -program.seconds)[:SUMMARY_COUNT]:
        print(f"{program.seconds:8.1f} s  {program.counts[0]:4} tests  {program.name}")
    for program in programs:
        for test in program.unsteady:
            print(f"UNSTEADY: {program.name} {test} failed, and passed when it ran alone")
    failed = [program.name for program in programs if program.status != 0]
    passed, wrong, ignored = (sum(program.counts[place] for program in programs) for place in range(3))
    print(f"{len(programs)} programs, {len(failed)} of which failed{': ' if failed else ''}{', '.join(failed)}")
    # As cargo's own last line has it.
    print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {wrong} failed; {ignored} ignored; 0 measured; 0 filtered out")
    if passed == 0:
        print("run-test-programs: no test ran, expected one or more", file=sys.stderr)
    return 1 if failed or passed == 0 else 0


def main():
    names = sys.argv[1:]
    programs, libraries = compiled()
    programs.append(Program("docs' examples", [CARGO, "test", "--workspace", "--doc"], os.getcwd()))
    programs = [program for program in programs if not names or any(name in program.name for name in names)]
    waiting, ended = queue.Queue(), queue.Queue()
    for program in sorted(programs, key=place):
        waiting.put(program)
    environment = environment_with(libraries)
    for _ in range(int(os.environ.get("TEST_PROGRAMS", CORES))):
        threading.Thread(target=run_from, args=(waiting, environment, ended), daemon=True).start()
    for _ in programs:
        program = ended.get()
        print(f"\n     Running {program.name}\n{program.output}", flush=True)
    wrong = [program for program in programs if program.status != 0]
    if sum(len(program.failures()) for program in wrong) <= AGAIN_COUNT:
        for program in wrong:
            program.run_again(environment)
    return report(programs)


if __name__ == "__main__":
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    sys.exit(main())
