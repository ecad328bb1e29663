#!/usr/bin/env python3
"""Fails where a crate names an older Rust than a crate that it is built with.

usage: check-msrv.py

It reads what the crates say of themselves; it doesn't compile with those versions. It needs cargo, Python 3.9, and the crates of Cargo.lock.
"""

import json
import subprocess
import sys

METADATA = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]


def number(version):
    parts = [int(part) for part in (version or "0").split(".")]
    return parts + [0] * (3 - len(parts))


def built_with(root, nodes):
    """The crates that one is built with, its tests left aside."""
    found, left = set(), [root]
    while left:
        crate = left.pop()
        if crate not in found:
            found.add(crate)
            dependencies = nodes[crate]["deps"]
            left += [of["pkg"] for of in dependencies if any(kind["kind"] != "dev" for kind in of["dep_kinds"])]
    return found


def main():
    metadata = json.loads(subprocess.run(METADATA, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    wrong = []
    for member in metadata["workspace_members"]:
        ours = packages[member]
        theirs = max((packages[crate] for crate in built_with(member, nodes)), key=lambda crate: number(crate["rust_version"]))
        if number(theirs["rust_version"]) > number(ours["rust_version"]):
            needs = f"{theirs['name']} {theirs['version']} needs {theirs['rust_version']}"
            wrong.append(f"{ours['name']} names Rust {ours['rust_version']}, but {needs}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
