#!/usr/bin/env bash
# The packages of a release, in target/dist: static programs for each machine, as .tar.gz, .deb and .rpm, with manual pages and
# completions; SHA256SUMS, and the parts they are made of (SBOM, CycloneDX). binlogz-bench, and binlogz-sql, which brings a query engine, have
# packages of their own.
#
# usage: dist.sh [--without-sql] [x86_64|aarch64…]      both machines without; on two cores five minutes each and fifteen with SQL, and five
#                                                       for the tools once
#
# Static: linked with musl, so one program runs on every distribution. Zig's compiler and linker serve all machines; none needs to be
# installed. The same commit makes the same bytes: no path of this machine is in the program, and every date is the commit's.
set -euo pipefail
cd "$(dirname "$0")/.."

programs=(binlogz binlogz-bench binlogz-sql)
[[ ${1:-} != --without-sql ]] || { programs=(binlogz binlogz-bench) && shift; }
# Where the sources of a program are.
declare -A sources=([binlogz]=crates/interfaces/cli [binlogz-bench]=lab/bench [binlogz-sql]=crates/interfaces/sql-cli)
machines=("$@")
[[ ${#machines[@]} -gt 0 ]] || machines=(x86_64 aarch64)
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
dist=$PWD/target/dist
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

for tool in zigbuild cargo-deb cargo-generate-rpm cargo-cyclonedx; do
    prefix=$(scripts/get-tool.sh "$tool")
    PATH=$prefix/bin:$PATH
done
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export PATH SOURCE_DATE_EPOCH CARGO_PROFILE_RELEASE_STRIP=symbols
export RUSTFLAGS="--remap-path-prefix=$PWD=/binlogz --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"

# packed FOLDER: the folder as .tar.gz, with nothing in it that the machine or the day changes.
packed() {
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --directory "$(dirname "$1")" \
        "$(basename "$1")" | gzip --no-name --best >"$1.tar.gz"
}

rm -rf "$dist"
mkdir -p "$dist"
for machine in "${machines[@]}"; do
    triple=$machine-unknown-linux-musl
    rustup target add "$triple" 2>/dev/null || true
    for program in "${programs[@]}"; do
        # Linking the query engine by LTO takes 23 minutes of one processor (lab/book/build.md).
        lto=(CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16)
        [[ $program = binlogz-sql ]] || lto=()
        env "${lto[@]}" cargo zigbuild --release --locked --target "$triple" --package "$program"
        install -D "$target/$triple/release/$program" "$dist/$machine/$program"
    done
done

# What the program says of itself: the first machine's has to run here.
program=$dist/${machines[0]}/binlogz
[[ ${machines[0]} = "$(uname -m)" ]] || { echo "dist: the first machine has to be this one, $(uname -m)" >&2; exit 2; }
mkdir -p "$dist/share"/{man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
"$program" man --to "$dist/share/man/man1"
"$program" completions bash >"$dist/share/bash-completion/completions/binlogz"
"$program" completions zsh >"$dist/share/zsh/vendor-completions/_binlogz"
"$program" completions fish >"$dist/share/fish/vendor_completions.d/binlogz.fish"
"$program" relay init "$dist/relay.toml" >/dev/null

for machine in "${machines[@]}"; do
    triple=$machine-unknown-linux-musl
    for program in "${programs[@]}"; do
        folder=$dist/$program-$version-$machine-linux
        mkdir "$folder"
        cp "$dist/$machine/$program" CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$folder"
        [[ $program != binlogz ]] || cp -r "$dist/share" README.md packaging "$folder"
        packed "$folder"
        rm -r "$folder"
        cargo deb --quiet --no-build --no-strip --target "$triple" --package "$program" --output "$dist"
        cargo generate-rpm --package "${sources[$program]}" --target "$triple" --output "$dist"
    done
done

for program in "${programs[@]}"; do
    cargo cyclonedx --quiet --format json --manifest-path "${sources[$program]}/Cargo.toml" --override-filename "$program.cdx"
    sed "s|file://$PWD|file:///binlogz|g" "${sources[$program]}/$program.cdx.json" >"$dist/$program.cdx.json"
    # It describes each crate of the workspace that the program is made of.
    find crates lab -name "$program.cdx.json" -delete
done

(cd "$dist" && sha256sum -- *.tar.gz *.deb *.rpm *.json >SHA256SUMS && ls -l -- *.tar.gz *.deb *.rpm *.json)
