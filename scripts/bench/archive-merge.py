"""Archives a log in as many pieces as a job that runs every hour would, each by a run of its own, in a folder and in S3 (versitygw); merges them; and
prints bytes, objects and requests before and after. Each piece is a log of its own: so many of the log's transactions, one after the other.

usage: archive-merge.py BINLOGZ LOG PIECES
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

from versitygw import S3

binlogz, log, pieces = sys.argv[1], sys.argv[2], int(sys.argv[3])


def run(*args, env=None):
    begin = time.monotonic()
    done = subprocess.run([binlogz, "archive", *map(str, args)], capture_output=True, env=env)
    if done.returncode:
        sys.exit(f"{args}: status {done.returncode}: {done.stderr.decode()}")
    return done.stdout, time.monotonic() - begin


def divided(work):
    """The pieces."""
    run("create", "--to", work / "whole", log)
    entry = json.loads(run("list", "--format", "json", work / "whole")[0])["logs"][0]
    tsid, numbers = entry["gtids"].rsplit(":", 1)
    first, last = (int(number) for number in (numbers.split("-") * 2)[:2])
    logs = []
    for piece in range(pieces):
        begin, end = (first + (last + 1 - first) * at // pieces for at in (piece, piece + 1))
        if begin == end:
            sys.exit(f"{log} has {last + 1 - first} transactions")
        run("restore", "--gtids", f"{tsid}:{begin}-{end - 1}", "--to", work / "piece", "--force", work / "whole")
        logs.append(work / f"binlog.{piece + 1:06}")
        (work / "piece" / entry["log"]).rename(logs[-1])
    return logs


def stored(archive):
    """Segments and their bytes."""
    sizes = [path.stat().st_size for path in (archive / "objects").glob("segment-*")]
    return len(sizes), sum(sizes)


with tempfile.TemporaryDirectory() as work:
    work = pathlib.Path(work)
    logs = divided(work)
    plain = sum(path.stat().st_size for path in logs)
    print(f"{pieces} logs of {plain} bytes")
    with S3(work) as s3:
        for place, archive, env in [(work / "archive", work / "archive", None), ("s3://bucket/archive", s3.bucket / "archive", s3.env)]:
            begin = time.monotonic()
            for path in logs:
                run("create", "--to", place, path, env=env)
            print(f"{place}: {pieces} runs in {time.monotonic() - begin:.1f} s")
            for state in ("as archived", "merged"):
                if state == "merged":
                    before = s3.requests()
                    said, seconds = run("merge", "--grace", "0", place, env=env)
                    print(f"  merge: {seconds:.1f} s, {s3.requests() - before} requests: {said.decode().splitlines()[0]}")
                objects, size = stored(archive)
                told = [f"{objects} objects of {size} bytes"]
                middle = json.loads(run("list", "--format", "json", place, env=env)[0])["logs"][pieces // 2]
                tsid, numbers = middle["gtids"].rsplit(":", 1)
                for name, args in {
                    "list": ["list", place],
                    "one GTID": ["cat", "--gtids", f"{tsid}:{numbers.split('-')[0]}", place],
                    "restore": ["restore", "--to", work / "back", "--force", place],
                    "copy": ["copy", place, work / f"copy {state} {env is None}"],
                }.items():
                    before = s3.requests()
                    _, seconds = run(*args, env=env)
                    told.append(f"{name} {seconds:.2f} s" + (f" {s3.requests() - before} requests" if env else ""))
                print(f"  {state}: {'; '.join(told)}", flush=True)
                assert all(path.read_bytes() == (work / "back" / path.name).read_bytes() for path in logs)
