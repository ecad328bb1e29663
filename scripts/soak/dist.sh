#!/usr/bin/env bash
# The .deb of `make dist` unpacked into an empty root: its program has to do the main work there, with nothing beside it, by the steps
# of docs/reference/packages.md. The second build of the same commit has to make the same bytes.
#
# usage: dist.sh      as root, for chroot; half an hour on two cores
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/dist.sh "$(uname -m)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp target/dist/SHA256SUMS "$work/first"

dpkg-deb --extract target/dist/*.deb "$work/root"
mkdir -p "$work/root"/{logs,out,tmp}
cp samples/plain/binlog.000009 samples/compressed/binlog.000001 "$work/root/logs"
run() { chroot "$work/root" /usr/bin/binlogz "$@"; }
run --version
run stats /logs/binlog.000001
run compress --output /out /logs/binlog.000009
run verify --same /logs/binlog.000009 -- /out/binlog.000009
run archive create --to /archive /logs/binlog.000001
run archive restore --to /restored /archive
cmp "$work/root/logs/binlog.000001" "$work/root/restored/binlog.000001"
run dump -v /logs/binlog.000009 >"$work/text"
grep --quiet '^### INSERT INTO' "$work/text"
for page in binlogz binlogz-archive-create binlogz-relay-run; do
    gunzip --test "$work/root/usr/share/man/man1/$page.1.gz"
done

rm -rf "${CARGO_TARGET_DIR:-target}/$(uname -m)-unknown-linux-musl"
scripts/dist.sh "$(uname -m)"
diff "$work/first" target/dist/SHA256SUMS
echo "the packages work in an empty root; two builds are equal"
