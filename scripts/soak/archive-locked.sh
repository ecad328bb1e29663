#!/usr/bin/env bash
# An archive in a bucket with versions and object lock (retention of a day, mode COMPLIANCE, on versitygw; needs curl): create, merge, prune, remove and
# copy work and leave it whole; nothing that was stored is lost, whoever deletes it; and an archive that was pruned to nothing is brought back from its versions.
#
# usage: archive-locked.sh [BINLOGZ]
set -euo pipefail
cd "$(dirname "$0")/../.."

binlogz=${1:-target/release/binlogz}
versitygw=$(scripts/get-tool.sh versitygw)/bin/versitygw
work=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port
mkdir "$work"/{data,meta,versions}
"$versitygw" --access tester --secret tester-secret --quiet --port "127.0.0.1:$port" posix --sidecar "$work/meta" \
    --versioning-dir "$work/versions" "$work/data" >"$work/log" 2>&1 &
trap 'kill %1; wait || true; rm -rf "$work"' EXIT
until curl --silent --output "$work/first" "$url"; do sleep 0.1; done

export AWS_ACCESS_KEY_ID=tester AWS_SECRET_ACCESS_KEY=tester-secret AWS_REGION=us-east-1 AWS_ENDPOINT_URL=$url
# As S3 asks for in such a bucket.
export AWS_CHECKSUM_ALGORITHM=sha256

# s3 METHOD PATH?QUERY [FILE]: a signed request; prints the answer.
s3() {
    local body=${3:-/dev/null}
    curl --silent --show-error --user tester:tester-secret --aws-sigv4 aws:amz:us-east-1:s3 --request "$1" --data-binary "@$body" \
        --header "x-amz-content-sha256: $(sha256sum <"$body" | cut -d' ' -f1)" \
        --header "Content-MD5: $(openssl md5 -binary "$body" | base64)" "$url/$2"
}
# Lines of KEY VERSION, the newest first: those of objects, or of delete markers.
versions() {
    s3 GET "bucket?max-keys=1000&versions=" | python3 -c '
import sys, xml.etree.ElementTree as tree
name = lambda element: element.tag.rsplit("}", 1)[-1]
for entry in tree.parse(sys.stdin).getroot():
    if name(entry) == sys.argv[1]:
        fields = {name(field): field.text for field in entry}
        print(fields["Key"], fields["VersionId"])' "$1"
}
fail() { echo "archive-locked: $*" >&2; exit 1; }

"$versitygw" admin --access tester --secret tester-secret --endpoint-url "$url" create-bucket --owner tester --bucket bucket \
    --object-lock-enabled-for-bucket
cat >"$work/lock" <<'XML'
<ObjectLockConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>
<Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>
XML
s3 PUT "bucket?object-lock=" "$work/lock"

place=s3://bucket/arc
logs=(samples/plain/binlog.000001 samples/plain/binlog.000002 samples/plain/binlog.000003)
archive() { "$binlogz" archive "$@"; }
whole() { archive check "$1" >"$work/said" || grep -vq ': gap: ' "$work/said" || true; if grep -v ': gap: \| whole' "$work/said"; then fail "$1"; fi; }
for log in "${logs[@]}"; do archive create --to "$place" "$log"; whole "$place"; done
before=$(versions Version | grep -c 'objects/segment-')
archive merge --grace 0 "$place"; whole "$place"
archive copy "$place" s3://bucket/copy; whole s3://bucket/copy
archive create --to "$place" samples/plain/binlog.000009; whole "$place"
archive prune --keep-bytes 1 --grace 0 "$place"; whole "$place"
archive remove "$place" binlog.000009
[ "$before" = 3 ] || fail "$before objects, expected 3"
kept=$(versions Version | grep -c '^arc/objects/segment-')
[ "$kept" = 5 ] || fail "$kept versions of segments are there, expected 5: of three logs, of the merged ones, of the last"

# A version that is locked stays.
versions Version | grep '^arc/' >"$work/stored"
while read -r key version; do
    answer=$(s3 DELETE "bucket/$key?versionId=$version")
    case $answer in *AccessDenied* | *locked*) ;; *) fail "$key $version: $answer" ;; esac
done <"$work/stored"
versions Version | grep '^arc/' | cmp - "$work/stored" || fail "a version is gone"

# What was pruned comes back: segments without their delete markers, and the manifest of before.
versions DeleteMarker | grep '^arc/objects/segment-' | while read -r key version; do s3 DELETE "bucket/$key?versionId=$version"; done
found=
while read -r _ version; do
    s3 GET "bucket/arc/manifest.json?versionId=$version" >"$work/manifest"
    if [ "$(grep -c '"name"' "$work/manifest")" = 3 ]; then found=$version; break; fi
done < <(versions Version | grep '^arc/manifest.json ')
[ -n "$found" ] || fail "no manifest has the three logs"
s3 PUT bucket/arc/manifest.json "$work/manifest"
archive create --to "$place" samples/plain/binlog.000008
whole "$place"
archive restore --to "$work/back" "$place"
for log in "${logs[@]}"; do cmp "$log" "$work/back/$(basename "$log")"; done
echo "archive-locked: $(wc -l <"$work/stored") versions, none lost"
