"""versitygw, an S3 server over a folder, which counts its requests: for the benches of archives."""

import os
import pathlib
import socket
import subprocess
import time

SCRIPTS = pathlib.Path(__file__).parent.parent


class S3:
    """Keeps all in a folder; `bucket` is one of a bucket `bucket`, and `env` the environment of its clients."""

    def __init__(self, work):
        tool = subprocess.run([SCRIPTS / "get-tool.sh", "versitygw"], check=True, capture_output=True, text=True).stdout.strip()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.log, self.bucket = work / "requests", work / "s3/bucket"
        for folder in (self.bucket, work / "meta"):
            folder.mkdir(parents=True)
        self.process = subprocess.Popen(
            [f"{tool}/bin/versitygw", "--access", "bench", "--secret", "bench-secret", "--quiet", "--access-log", self.log,
             "--port", f"127.0.0.1:{port}", "posix", "--sidecar", work / "meta", self.bucket.parent],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.05)
        self.env = os.environ | {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench-secret", "AWS_REGION": "us-east-1",
                                 "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}

    def requests(self):
        """How many there were so far."""
        time.sleep(0.2)
        return self.log.read_bytes().count(b"\n") if self.log.exists() else 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
