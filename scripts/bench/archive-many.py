"""Times commands on generated archives of many logs: the entry of a real log repeated, ten logs to an object, each with a name, SHA-256,
GTIDs, previous GTIDs and times of its own. The objects of generated logs are empty files. The last logs are real. The manifest is in one
piece at first; the first run divides it. After each run: the bytes of the files of the manifest that it wrote. With --s3 the archive is in
versitygw, and each run's requests are counted (those of the first are more: the generated manifest has no fitting tag).

usage: archive-many.py [--s3] BINLOGZ LOG COUNT...
"""

import copy
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

from versitygw import S3

arguments = sys.argv[1:]
in_s3 = arguments[0] == "--s3"
binlogz, log, *counts = arguments[in_s3:]
s3 = None
UUID = "11111111-2222-3333-4444-555555555555"
PER_OBJECT = 10
TRANSACTIONS = 100


def run(name, *args):
    """Runs binlogz and prints its time and its memory. Returns what it says."""
    before = s3.requests() if s3 else 0
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([binlogz, "archive", *args], stdout=out, env=s3.env if s3 else None)
        _, status, used = os.wait4(process.pid, 0)
        clock = time.monotonic() - begin
        if status:
            sys.exit(f"{name}: status {status}")
        cpu = used.ru_utime + used.ru_stime
        requests = f"{s3.requests() - before:9}" if s3 else ""
        print(f"{name:32} {clock:8.2f} {cpu:8.2f} {used.ru_maxrss / 1024:8.0f}{requests}", flush=True)
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


def written(archive):
    """The files of the manifest, and when each was written."""
    files = [archive / "manifest.json", *(archive / "objects").glob("manifest-*")]
    return {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in files}


def told(archive, before):
    """Prints how much of the manifest was written since. Returns what there is now."""
    now = written(archive)
    new = [file for file in now if before.get(file) != now[file]]
    print(f"    wrote {sum(file.stat().st_size for file in new)} bytes in {len(new)} files of the manifest", flush=True)
    return now


def generate(archive, manifest, count):
    """Puts that many entries into the archive of one log."""
    model = manifest["files"][0]
    files = []
    for at in range(count):
        entry = copy.copy(model)
        first = at * TRANSACTIONS + 1
        entry["name"] = f"binlog.{at + 1:06}"
        entry["objects"] = [f"segment-{hashlib.sha256(b'o%d' % (at // PER_OBJECT)).hexdigest()[:32]}.binlogz"]
        entry["sha256"] = hashlib.sha256(b"%d" % at).hexdigest()
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
        s3 = S3(work / str(count)) if in_s3 else None
        archive, last = s3.bucket / "archive" if s3 else work / "archive", work / f"binlog.{count + 1:06}"
        place = "s3://bucket/archive" if s3 else archive
        shutil.copy(log, last)
        subprocess.run([binlogz, "archive", "create", "--to", place, last], check=True, capture_output=True, env=s3.env if s3 else None)
        manifest = json.loads((archive / "manifest.json").read_text())
        gtid = manifest["files"][0]["gtids"].split("-")[0:5]
        gtid = "-".join(gtid).split(",")[0]
        for file in (archive / "objects").glob("segment-*"):
            file.unlink()
        # In a process of its own: the system counts this one's memory as that of the programs it runs.
        if (child := os.fork()) == 0:
            generate(archive, manifest, count)
            os._exit(0)
        os.waitpid(child, 0)
        size = (archive / "manifest.json").stat().st_size
        print(f"{count} logs, a manifest of {size} bytes, {size / count:.0f} a log")
        print(f"{'':32} {'clock s':>8} {'cpu s':>8} {'MiB':>8}" + (f"{'requests':>9}" if s3 else ""))
        before = written(archive)
        run("create of one more log, divides", "create", "--to", place, last)
        before = told(archive, before)
        more = work / f"binlog.{count + 2:06}"
        shutil.copy(log, more)
        run("create of one more log", "create", "--to", place, more)
        told(archive, before)
        run("create of none", "create", "--to", place, last)
        run("list", "list", "--format", "json", place)
        run("one GTID", "cat", "--gtids", gtid, place)
        run("prune of half", "prune", "--grace", "0", "--keep-after", f"{UUID}:{count // 2 * TRANSACTIONS + 1}", place)
        listed = json.loads(run("list of what is left", "list", "--format", "json", place))
        assert listed["log_count"] == count - count // 2 + 2, listed["log_count"]
        if s3:
            s3.__exit__()
        shutil.rmtree(archive)
