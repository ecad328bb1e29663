#!/usr/bin/env bash
# The packages of `make dist`, each in an empty root with nothing beside it, by the steps of docs/reference/packages.md: the programs of the
# .deb, the .rpm and the image do the main work there; those for 64-bit ARM do it under qemu-aarch64. A second build of the same commit
# has to make the same bytes.
#
# usage: dist.sh [--built]      as root, for chroot; an hour on two cores. --built takes target/dist as it is and builds nothing.
#
# Without rpm, buildah or qemu-aarch64 it says SKIPPED for that part.
set -euo pipefail
cd "$(dirname "$0")/../.."

built=${1:-}
[[ $built = --built ]] || scripts/dist.sh
machine=$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# with_logs ROOT: a root gets two logs.
with_logs() {
    mkdir -p "$1/logs" "$1/out" "$1/tmp"
    cp samples/plain/binlog.000009 samples/compressed/binlog.000001 "$1/logs"
}

# smoke LOGS COMMAND…: the program that COMMAND runs does the main work on the logs below LOGS, as it calls the place, and writes there.
smoke() {
    local logs=$1 text
    shift
    "$@" --version
    "$@" stats "$logs/logs/binlog.000001" >/dev/null
    "$@" compress --output "$logs/out" "$logs/logs/binlog.000009"
    "$@" verify --same "$logs/logs/binlog.000009" -- "$logs/out/binlog.000009"
    "$@" archive create --to "$logs/archive" "$logs/logs/binlog.000001"
    "$@" archive restore --to "$logs/restored" "$logs/archive"
    text=$("$@" dump -v "$logs/logs/binlog.000009")
    grep --quiet '^### INSERT INTO' <<<"$text"
    "$@" relay init "$logs/relay.toml"
}

# sql LOGS COMMAND…: the same of binlogz-sql. The log has row changes.
sql() {
    local logs=$1 found
    shift
    found=$("$@" --format csv 'SELECT count(*) FROM changes' "$logs/logs/binlog.000001" | tail -1)
    ((found > 0))
}

# installed ROOT: all packages stand in ROOT.
installed() {
    with_logs "$1"
    smoke "" chroot "$1" /usr/bin/binlogz
    cmp "$1/logs/binlog.000001" "$1/restored/binlog.000001"
    sql "" chroot "$1" /usr/bin/binlogz sql
    chroot "$1" /usr/bin/binlogz bench commit --committers 1 --levels off --time 0.05 --dir /tmp >/dev/null
    chroot "$1" /usr/bin/binlogz export --to /parquet /logs/binlog.000001
    [[ -n $(find "$1/parquet" -name '*.parquet' -print -quit) ]]
    for page in binlogz binlogz-archive-create binlogz-relay-run; do
        [[ $(zcat --force "$1/usr/share/man/man1/$page.1"*) = *".TH "* ]]
    done
    for unit in binlogz-{relay,archive,fleet}.service binlogz-{archive,fleet}.timer; do
        [[ -s $1/usr/lib/systemd/system/$unit ]] || { echo "dist: no $unit" >&2; exit 1; }
    done
    [[ -s $1/etc/binlogz/relay.toml && -s $1/usr/lib/sysusers.d/binlogz.conf ]]
}

(cd target/dist && sha256sum --quiet --check SHA256SUMS)
for list in target/dist/*.cdx.json; do
    python3 -c 'import json, sys; parts = json.load(open(sys.argv[1]))["components"]; print(sys.argv[1], len(parts), "parts"); assert len(parts) > 50' "$list"
done

for package in target/dist/*_amd64.deb; do dpkg-deb --extract "$package" "$work/deb"; done
installed "$work/deb"
echo "the .deb works in an empty root"

if command -v rpm >/dev/null; then
    mkdir "$work/rpm"
    # Its scripts need a shell, and the root is empty.
    rpm --root "$work/rpm" --install --nodeps --noscripts target/dist/*."$machine".rpm
    rpm --root "$work/rpm" --query --all
    installed "$work/rpm"
    echo "the .rpm works in an empty root"
else
    echo "SKIPPED: dist.sh: no rpm"
fi

mkdir "$work/tar"
for package in target/dist/*-"$machine"-linux.tar.gz; do
    tar --extract --gzip --file "$package" --directory "$work/tar" --strip-components=1
done
with_logs "$work/tar"
smoke "$work/tar" "$work/tar/binlogz"
sql "$work/tar" "$work/tar/binlogz" sql
"$work/tar/binlogz" bench commit --committers 1 --levels off --time 0.05 --dir "$work/tar/tmp" >/dev/null
echo "the .tar.gz works"

if command -v buildah >/dev/null; then
    # The base can't be fetched everywhere; the program needs none of it.
    export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
    buildah() { command buildah --root "$work/containers" --runroot "$work/run" "$@"; }
    buildah build --quiet --build-arg BASE=scratch --file packaging/Containerfile --tag binlogz target/dist
    container=$(buildah from binlogz)
    image=$(buildah mount "$container")
    with_logs "$image"
    smoke "" buildah run "$container" /usr/bin/binlogz
    cmp "$image/logs/binlog.000001" "$image/restored/binlog.000001"
    buildah rm "$container" >/dev/null
    echo "the image is built and works"
else
    echo "SKIPPED: dist.sh: no buildah"
fi

if ! command -v qemu-aarch64 >/dev/null; then
    echo "SKIPPED: dist.sh: no qemu-aarch64"
elif [[ -x target/dist/aarch64/binlogz ]]; then
    mkdir "$work/arm"
    with_logs "$work/arm"
    smoke "$work/arm" qemu-aarch64 target/dist/aarch64/binlogz
    cmp "$work/arm/logs/binlog.000001" "$work/arm/restored/binlog.000001"
    [[ ! -x target/dist/aarch64/binlogz-sql ]] || sql "$work/arm" qemu-aarch64 target/dist/aarch64/binlogz-sql
    echo "the programs for 64-bit ARM work under qemu-aarch64"
fi
[[ $built != --built ]] || exit 0

# The main program alone: the time of the other is that of DataFusion.
cp target/dist/SHA256SUMS "$work/first"
rm -rf "${CARGO_TARGET_DIR:-target}/$machine-unknown-linux-musl"
scripts/dist.sh --without-sql "$machine"
(cd target/dist && sha256sum -- *.tar.gz *.deb *.rpm *.json) | grep --invert-match --fixed-strings --line-regexp --file "$work/first" &&
    { echo "dist: two builds differ" >&2; exit 1; }
echo "the packages work in empty roots; two builds are equal"
