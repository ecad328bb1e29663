#!/usr/bin/env python3
"""Counts what there is to read, for lab/book/structure.md.

usage: count-structure.py [REVISION …]

Prints a table with a column for each revision (HEAD without one). It reads `git archive` of each, so nothing that isn't
committed counts. It needs Python 3.9 and git, no build.

  product, lab       lines of .rs files below crates/ and lab/ (sandbox, testkit, experiments and bench lay below crates/
                     once), without tests, fuzz targets, and the codecs outside the workspace
  tests beside       tests.rs, and from `#[cfg(test)] mod tests` to the end of a file of product
  tests in folders   files below a `tests/` of a product crate
  public items       `pub` functions, types, traits, constants of product, whether or not their module is public
  bound closures     `let name = |…|` in product
  users' pages       words of docs/, without the lab book, which lay there once
"""

import io
import re
import subprocess
import sys
import tarfile
from collections import Counter

LAB = re.compile(r"lab/|crates/(?:sandbox|testkit|experiments|bench)")
CRATE = re.compile(r"(?:crates(?:/[^/]+)+|lab/[^/]+)/Cargo\.toml")
TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[[^\n]*\]\n)*mod tests \{", re.MULTILINE)
PUBLIC = re.compile(
    r'^[ \t]*pub (?:const |async |unsafe |extern "C" )*(?:fn|struct|enum|trait|type|const|static|union) \w+', re.MULTILINE
)
CLOSURE = re.compile(r"^\s*let (?:mut )?\w+ = (?:move )?\|", re.MULTILINE)


def main():
    columns = [(revision, counts(revision)) for revision in sys.argv[1:] or ["HEAD"]]
    rows = dict.fromkeys(row for _, counted in columns for row in counted)
    print("| |" + "".join(f" {revision} |" for revision, _ in columns))
    print("|---|" + "---|" * len(columns))
    for row in rows:
        print(f"| {row} |" + "".join(f" {counted[row]:,} |" for _, counted in columns))


def counts(revision):
    counted = Counter()
    for name, text in files(revision):
        if CRATE.fullmatch(name) and "/fuzz/" not in name:
            counted["crates, with those of the lab"] += 1
        if name.startswith("docs/") and name.endswith(".md") and not name.startswith("docs/internals/"):
            counted["words of the users' pages"] += len(text.split())
        if name.endswith(".rs") and "/fuzz/" not in name and name.startswith(("crates/", "lab/")):
            count_source(counted, name, text)
    return counted


def count_source(counted, name, text):
    if LAB.match(name):
        counted["lines of the lab"] += text.count("\n")
    elif "/tests/" in name:
        counted["lines of tests in folders"] += text.count("\n")
    elif name.endswith("/tests.rs"):
        counted["lines of tests beside the code"] += text.count("\n")
    else:
        tests = TESTS.search(text)
        product = text[: tests.start()] if tests else text
        counted["lines of tests beside the code"] += text.count("\n") - product.count("\n")
        counted["lines of product"] += product.count("\n")
        counted["files of product"] += 1
        counted["public items"] += len(PUBLIC.findall(product))
        counted["bound closures"] += len(CLOSURE.findall(product))


def files(revision):
    archive = subprocess.run(["git", "archive", revision], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith((".rs", ".md", "Cargo.toml")):
                yield member.name, tar.extractfile(member).read().decode(errors="replace")


if __name__ == "__main__":
    main()
