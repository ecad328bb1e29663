#!/usr/bin/env bash
# The life of an archive in Azure Blob Storage, as Azurite emulates it (an npm package, in the folder AZURITE or a new one), plain and encrypted.
# And in Google Cloud Storage, if GCS_URL says where something answers by its XML API and has a bucket `bucket`. That is the API that we
# use: fake-gcs-server 1.56.1 takes no uploads by it ("invalid uploadType").
#
# usage: archive-clouds.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

azurite=${AZURITE:-$(mktemp -d)}
[ -x "$azurite/node_modules/.bin/azurite-blob" ] ||
    npm install --prefix "$azurite" --no-audit --no-fund --ignore-scripts azurite@3 >&2

data=$(mktemp -d)
trap 'kill $(jobs -p); wait || true; rm -rf "$data"' EXIT
"$azurite/node_modules/.bin/azurite-blob" --skipApiVersionCheck --disableTelemetry --silent --location "$data" --blobPort 10077 &
export AZURITE_BLOB_STORAGE_URL=http://127.0.0.1:10077

python3 - <<'PYTHON'
"""Makes the container."""
import base64, email.utils, hashlib, hmac, time, urllib.request


def send(method, url, headers):
    request = urllib.request.Request(url, method=method, headers=headers)
    for attempt in range(300):
        try:
            return urllib.request.urlopen(request).read()
        except OSError as error:
            if attempt == 299 or hasattr(error, "code"):
                raise
            time.sleep(0.2)


# The account that every Azurite has.
key = base64.b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")
date, version = email.utils.formatdate(usegmt=True), "2021-08-06"
headers = f"x-ms-date:{date}\nx-ms-version:{version}\n"
text = "PUT\n" + "\n" * 11 + headers + "/devstoreaccount1/devstoreaccount1/bucket\nrestype:container"
signature = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
send("PUT", "http://127.0.0.1:10077/devstoreaccount1/bucket?restype=container", {
    "x-ms-date": date, "x-ms-version": version, "Content-Length": "0",
    "Authorization": f"SharedKey devstoreaccount1:{signature}"})
PYTHON
clouds=(clouds::an_archive_lives_in_azure)
[ -z "${GCS_URL:-}" ] || clouds+=(clouds::an_archive_lives_in_google_cloud)
scripts/run-tests.sh --package binlogz-archive --features azure,gcs --test archive -- --ignored "${clouds[@]}"
