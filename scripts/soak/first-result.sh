#!/usr/bin/env bash
# A user with nothing but one package: how long from its installation to the first result, by the written steps (docs/reference/packages.md,
# python.md, crates/transform/flow's README). Each has a folder or a root of its own. More than a minute is a failure. A crate is installed once the crates
# that a program needs are compiled: that is said apart, with its processor time, and has no limit.
#
# usage: first-result.sh [deb|rpm|tar|wheel|crate…]      all without; deb, rpm and tar need `make dist` and root, rpm the program rpm
set -euo pipefail
cd "$(dirname "$0")/../.."

ways=("$@")
[[ ${#ways[@]} -gt 0 ]] || ways=(deb rpm tar wheel crate)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
log=$PWD/samples/compressed/binlog.000001
machine=$(uname -m)
limit=60

# measured WAY COMMAND…: runs it, and prints the seconds.
measured() {
    local way=$1 begin=$SECONDS took
    shift
    "$@" >"$work/$way.out" 2>"$work/$way.err" || { cat "$work/$way.out" "$work/$way.err" >&2; echo "$way: failed" >&2; exit 1; }
    took=$((SECONDS - begin))
    printf '%-6s %3d s  %s\n' "$way" "$took" "$(tail -1 "$work/$way.out")"
    ((took <= limit)) || { echo "$way: more than $limit s" >&2; exit 1; }
}

# installed WAY COMMAND…: runs it, and prints the seconds it took, and those of processors.
installed() {
    local way=$1
    shift
    TIMEFORMAT="$way: installed in %R s, %U + %S s of processors"
    time "$@" >"$work/$way.out" 2>&1 || { cat "$work/$way.out" >&2; echo "$way: can't be installed" >&2; exit 1; }
}

# answered ROOT: what the installed program says of a log, in a root in which nothing else is.
answered() {
    mkdir -p "$1/logs"
    cp "$log" "$1/logs"
    chroot "$1" /usr/bin/binlogz stats /logs/binlog.000001
}

with_deb() {
    mkdir "$work/deb"
    dpkg-deb --extract target/dist/binlogz_*_amd64.deb "$work/deb"
    answered "$work/deb"
}

with_rpm() {
    mkdir "$work/rpm"
    # Its scripts need a shell, and the root is empty.
    rpm --root "$work/rpm" --install --nodeps --noscripts target/dist/binlogz-[0-9]*."$machine".rpm
    rpm --root "$work/rpm" --query binlogz >&2
    answered "$work/rpm"
}

with_tar() {
    mkdir "$work/tar"
    tar --extract --gzip --file target/dist/binlogz-[0-9]*-"$machine"-linux.tar.gz --directory "$work/tar" --strip-components=1
    (cd "$work/tar" && ./binlogz stats "$log")
}

with_wheel() {
    python3 -m venv "$work/wheel"
    "$work/wheel/bin/pip" --quiet --disable-pip-version-check install --no-index "$work"/dist/binlogz-*.whl
    "$work/wheel/bin/python" -c '
import sys, binlogz
changes = list(binlogz.open(sys.argv[1]).changes())
print(len(changes), "row changes, the first:", changes[0])
assert changes' "$log"
}

# A program without a line of its own: cargo fetches and compiles what it needs.
new_crate() {
    cargo new --quiet --vcs none --name newcomer "$work/newcomer"
    cd "$work/newcomer"
    {
        echo "binlogz-flow = { path = \"$(echo "$work"/packages/binlogz-flow-*)\" }"
        echo
        echo '[patch.crates-io]'
        for package in "$work"/packages/*; do
            name=$(basename "$package")
            echo "${name%-*} = { path = \"$package\" }"
        done
    } >>Cargo.toml
    CARGO_TARGET_DIR=$work/newcomer/target cargo build --quiet
}

with_crate() {
    cat >"$work/newcomer/src/main.rs" <<'END'
use binlogz_flow::{Input, RowChanges};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: newcomer FILE")?;
    let changes = RowChanges::new(Input::open(path.as_ref())?).collect::<Result<Vec<_>, _>>()?;
    println!("{} row changes", changes.len());
    Ok(())
}
END
    CARGO_TARGET_DIR=$work/newcomer/target cargo run --quiet --manifest-path "$work/newcomer/Cargo.toml" -- "$log"
}

for way in "${ways[@]}"; do
    # What is there before a user has it.
    case $way in
        deb | rpm | tar) [[ -d target/dist ]] || { echo "first-result: no target/dist, make dist makes it" >&2; exit 2; } ;;
        wheel)
            maturin=$(scripts/get-tool.sh maturin)
            "$maturin/bin/maturin" build --quiet --release --manifest-path crates/interfaces/python/Cargo.toml --out "$work/dist"
            ;;
        crate)
            scripts/package-crates.sh --no-verify --allow-dirty
            mkdir "$work/packages"
            for package in "$target"/package/*.crate; do
                tar --extract --gzip --file "$package" --directory "$work/packages"
            done
            (installed crate new_crate)
            ;;
        *) sed -n '5p' "$0" | sed 's/^# //' >&2; exit 2 ;;
    esac
    measured "$way" "with_$way"
done
