"""Times commands on generated archives of many logs: the entry of a real log repeated, ten logs to an object, each with a name,
GTIDs, previous GTIDs and times of its own. The objects of generated logs are empty files. The last log is real.

usage: archive-many.py BINLOGZ LOG COUNT...
"""

import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

binlogz, log, *counts = sys.argv[1:]
UUID = "11111111-2222-3333-4444-555555555555"
PER_OBJECT = 10
TRANSACTIONS = 100


def run(name, *args):
    """Runs binlogz and prints its time and its memory. Returns what it says."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([binlogz, "archive", *args], stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        clock = time.monotonic() - begin
        if status:
            sys.exit(f"{name}: status {status}")
        cpu = used.ru_utime + used.ru_stime
        print(f"{name:32} {clock:8.2f} {cpu:8.2f} {used.ru_maxrss / 1024:8.0f}", flush=True)
        out.seek(0)
        return out.read()


def write(archive, manifest):
    """Writes the manifest as binlogz does."""
    manifest.pop("crc32", None)
    text = json.dumps(manifest, indent=2) + "\n"
    manifest["crc32"] = zlib.crc32(text.encode())
    text = json.dumps(manifest, indent=2) + "\n"
    (archive / "manifest.json").write_text(text)
    (archive / "objects" / "manifest-copy.json").write_text(text)


def generate(archive, manifest, count):
    """Puts that many entries into the archive of one log."""
    model = manifest["files"][0]
    files = []
    for at in range(count):
        entry = copy.copy(model)
        first = at * TRANSACTIONS + 1
        entry["name"] = f"binlog.{at + 1:06}"
        entry["objects"] = [f"segment-{at // PER_OBJECT:032x}.binlogz"]
        entry["sha256"] = f"{zlib.crc32(str(at).encode()):08x}" * 8
        entry["gtids"] = f"{UUID}:{first}-{first + TRANSACTIONS - 1}"
        entry["previous_gtids"] = f"{UUID}:1-{first - 1}" if at else ""
        entry["times"] = [1_700_000_000 + at * 60, 1_700_000_059 + at * 60]
        files.append(entry)
        if at % PER_OBJECT == 0:
            (archive / "objects" / entry["objects"][0]).touch()
    manifest["files"] = files
    write(archive, manifest)


with tempfile.TemporaryDirectory() as work:
    work = pathlib.Path(work)
    for count in map(int, counts):
        archive, last = work / "archive", work / f"binlog.{count + 1:06}"
        shutil.copy(log, last)
        subprocess.run([binlogz, "archive", "create", "--to", archive, last], check=True, capture_output=True)
        manifest = json.loads((archive / "manifest.json").read_text())
        gtid = manifest["files"][0]["gtids"].split("-")[0:5]
        gtid = "-".join(gtid).split(",")[0]
        shutil.rmtree(archive)
        (archive / "objects").mkdir(parents=True)
        # In a process of its own: the system counts this one's memory as that of the programs it runs.
        if (child := os.fork()) == 0:
            generate(archive, manifest, count)
            os._exit(0)
        os.waitpid(child, 0)
        size = (archive / "manifest.json").stat().st_size
        print(f"{count} logs, a manifest of {size} bytes, {size / count:.0f} a log")
        print(f"{'':32} {'clock s':>8} {'cpu s':>8} {'MiB':>8}")
        run("create of one more log", "create", "--to", archive, last)
        run("create of none", "create", "--to", archive, last)
        run("list", "list", "--format", "json", archive)
        run("one GTID", "cat", "--gtids", gtid, archive)
        run("prune of half", "prune", "--grace", "0", "--keep-after", f"{UUID}:{count // 2 * TRANSACTIONS + 1}", archive)
        listed = json.loads(run("list of what is left", "list", "--format", "json", archive))
        assert listed["log_count"] == count - count // 2 + 1, listed["log_count"]
        shutil.rmtree(archive)
