#!/usr/bin/env bash
# The crates as the registry would get them: each is packed, and built from its package alone; then a new program that
# depends on nothing but packages reads the row changes of a log, with the current `zstd` crate beside it.
#
# usage: packages.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=${CARGO_TARGET_DIR:-$PWD/target}
sample=$PWD/samples/compressed/binlog.000001

scripts/package-crates.sh

mkdir "$work/packages"
for package in "$target"/package/*.crate; do
    tar --extract --gzip --file "$package" --directory "$work/packages"
done

cargo new --quiet --name newcomer "$work/newcomer"
cd "$work/newcomer"
{
    echo 'binlogz-flow = "*"'
    echo 'zstd = "*"'
    echo
    echo '[patch.crates-io]'
    for package in "$work"/packages/*; do
        name=$(basename "$package")
        echo "${name%-*} = { path = \"$package\" }"
    done
} >>Cargo.toml
cat >src/main.rs <<'END'
use binlogz_flow::{Input, RowChanges};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: newcomer FILE")?;
    let changes = RowChanges::new(Input::open(path.as_ref())?).collect::<Result<Vec<_>, _>>()?;
    let packed = zstd::bulk::compress(format!("{changes:?}").as_bytes(), 3)?;
    println!("{} row changes, {} bytes of zstd", changes.len(), packed.len());
    Ok(())
}
END
cargo run --quiet -- "$sample" | tee "$work/printed"
grep --quiet --extended-regexp '^[1-9][0-9]* row changes' "$work/printed"
