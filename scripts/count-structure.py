#!/usr/bin/env python3
"""Counts what there is to read, for lab/book/structure.md.

usage: count-structure.py [--programs] [--crates] [REVISION …]

Prints a table with a column for each revision (HEAD without one). It unpacks `git archive` of each into a temporary
folder, so nothing that isn't committed counts. It needs Python 3.9 and git, no build. `–`: not counted.

  product, lab       lines of .rs files below crates/ and lab/ (sandbox, testkit, experiments and bench lay below crates/
                     once), without tests, fuzz targets, and the codecs outside the workspace
  tests beside       tests.rs, and from `#[cfg(test)] mod tests` to the end of a file of product
  tests in folders   files below a `tests/` of a product crate
  public items       `pub` functions, types, traits, constants of product, whether or not their module is public; those
                     whose name no other crate writes, tests and lab included, are counted once more
  bound closures     `let name = |…|` in product
  tuples             `let (a, b) = (x, y);` in product, also for each 1,000 lines
  names bound again  `let x = x…` in product, also for each 1,000 lines; `let x = &x…` borrows and doesn't count
  types, names       what lint-names.py of today says of the revision, where crates lie as they do today
  circles            what import-graph.py --check of today says of it, likewise
  users' pages       words of docs/, without the lab book, which lay there once
  crates of others   with --programs: the dependencies of each program by `cargo tree`, without build and test
                     dependencies. It needs cargo and its copies of these crates.
  lines of a crate   with --crates: the lines below its src/, tests beside the code included
"""

import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

SCRIPTS = Path(__file__).parent
PROGRAMS = ("binlogz", "binlogz-sql", "binlogz-bench")
LAB = re.compile(r"lab/|crates/(?:sandbox|testkit|experiments|bench)")
CRATE = re.compile(r"(?:crates(?:/[^/]+)+|lab/[^/]+)/Cargo\.toml")
TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[[^\n]*\]\n)*mod tests \{", re.MULTILINE)
PUBLIC = re.compile(
    r"^[ \t]*pub (?:const |async |unsafe |extern \"C\" )*(?:fn|struct|enum|trait|type|const|static|union) (\w+)", re.MULTILINE
)
SOURCE_OF_CRATE = re.compile(r"((?:crates|lab)/.*?)/(?:src|tests|benches|examples)/")
CLOSURE = re.compile(r"^\s*let (?:mut )?\w+ = (?:move )?\|", re.MULTILINE)
TUPLE = re.compile(r"^[ \t]*let \([^;=]*\)(?:: \([^;=]*\))? = \(", re.MULTILINE)
REBOUND = re.compile(r"^[ \t]*let (?:mut )?(\w+)(?:: [^;=]+)? = \(*\1\b", re.MULTILINE)
# Comments and literals, which hold parentheses and words that are no code.
LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)"(?:.*?)"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""", re.DOTALL
)
# Rows that another script counts; a revision whose crates lie elsewhere has none of them.
TYPES = "types, also private ones"
REPEATED = "names of several types, of those seen outside their file"
VAGUE = "types with a vague name or a participle"
CIRCLES = "circles of files in the product"


def main():
    options = {argument for argument in sys.argv[1:] if argument.startswith("--")}
    revisions = [argument for argument in sys.argv[1:] if argument not in options] or ["HEAD"]
    columns = [(revision, counts(revision, options)) for revision in revisions]
    rows = dict.fromkeys(row for _, counted in columns for row in counted)
    print("| |" + "".join(f" {revision} |" for revision, _ in columns))
    print("|---|" + "---|" * len(columns))
    for row in rows:
        print(f"| {row} |" + "".join(f" {shown(counted.get(row))} |" for _, counted in columns))


def shown(figure):
    if figure is None:
        return "–"
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:.2f}"


def counts(revision, options):
    """The figures of a revision, by row."""
    counted, of_crates = Counter(), Counter()
    public, words = defaultdict(Counter), defaultdict(set)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files(revision, folder):
            if CRATE.fullmatch(name) and "/fuzz/" not in name:
                counted["crates, with those of the lab"] += 1
            if name.startswith("docs/") and name.endswith(".md") and not name.startswith("docs/internals/"):
                counted["words of the users' pages"] += len(text.split())
            if name.endswith(".rs") and "/fuzz/" not in name and name.startswith(("crates/", "lab/")):
                count_source(counted, name, text)
                crate = SOURCE_OF_CRATE.match(name)
                if crate:
                    public[crate[1]].update(PUBLIC.findall(product_of(name, text)))
                    words[crate[1]].update(re.findall(r"\w+", text))
                    of_crates[crate[1]] += text.count("\n") if f"{crate[1]}/src/" in name else 0
        counted["public items that no other crate names"] = own_names(public, words)
        figures = dict(counted)
        for row in ("tuples bound at once", "names bound again"):
            figures[f"{row}, in 1,000 lines"] = counted[row] * 1000 / counted["lines of product"]
        figures.update(counts_of_scripts(folder))
        if "--crates" in options:
            figures.update({f"lines of `{crate.split('/')[-1]}`": of_crates[crate] for crate in sorted(of_crates)})
        for program in PROGRAMS if "--programs" in options else ():
            figures[f"crates of others in `{program}`"] = crates_of_others(folder, program)
    return figures


def count_source(counted, name, text):
    if LAB.match(name):
        counted["lines of the lab"] += text.count("\n")
    elif "/tests/" in name:
        counted["lines of tests in folders"] += text.count("\n")
    else:
        product = product_of(name, text)
        counted["lines of tests beside the code"] += text.count("\n") - product.count("\n")
        counted["lines of product"] += product.count("\n")
        counted["files of product"] += not name.endswith("/tests.rs")
        count_habits(counted, product)


def product_of(name, text):
    """The text of a source without its tests; nothing of a source that the product doesn't have."""
    if LAB.match(name) or "/tests/" in name or name.endswith("/tests.rs"):
        return ""
    tests = TESTS.search(text)
    return text[: tests.start()] if tests else text


def own_names(public, words):
    """How many of the public items of each crate have a name that no other crate writes."""
    crates_with = Counter(word for crate in words for word in words[crate])
    return sum(
        count for crate in public for name, count in public[crate].items() if crates_with[name] == (name in words[crate])
    )


def count_habits(counted, product):
    code = LITERAL.sub("0", product)
    counted["public items"] += len(PUBLIC.findall(product))
    counted["bound closures"] += len(CLOSURE.findall(product))
    counted["tuples bound at once"] += sum(is_tuple(code, found.end()) for found in TUPLE.finditer(code))
    counted["names bound again"] += len(REBOUND.findall(code))


def is_tuple(code, begin):
    """Whether the parenthesis that opens before `begin` holds several values, and ends its statement."""
    depth, has_comma = 1, False
    for place in range(begin, len(code)):
        depth += (code[place] in "([{") - (code[place] in ")]}")
        has_comma |= depth == 1 and code[place] == ","
        if depth == 0:
            return has_comma and code[place + 1 : place + 2] == ";"
    return False


def counts_of_scripts(folder):
    """Rows that lint-names.py and import-graph.py count."""
    names = output("lint-names.py", "--repo", folder)
    types = re.search(r"^all: (\d+) types", names, re.MULTILINE)
    if not types or types[1] == "0":
        return dict.fromkeys((TYPES, REPEATED, VAGUE, CIRCLES))
    return {
        TYPES: int(types[1]),
        REPEATED: int(re.search(r"^visible outside their file: .*; (\d+) names stand", names, re.MULTILINE)[1]),
        VAGUE: int(re.search(r"^vague: (\d+) types", names, re.MULTILINE)[1]),
        CIRCLES: output("import-graph.py", "--check", "--repo", folder).count(": a circle of files: "),
    }


def output(script, *arguments):
    ran = subprocess.run([sys.executable, SCRIPTS / script, *arguments], capture_output=True, text=True)
    return ran.stdout + ran.stderr


def crates_of_others(folder, program):
    """How many crates that aren't ours a program is made of; `None`: cargo doesn't say."""
    tree = ["cargo", "tree", "-p", program, "-e", "normal", "--prefix", "none", "--locked", "--offline"]
    ran = subprocess.run(tree, cwd=folder, capture_output=True, text=True)
    crates = {re.sub(r" \(.*", "", line) for line in ran.stdout.splitlines()}
    return sum(not crate.startswith("binlogz") for crate in crates) if ran.returncode == 0 else None


def files(revision, folder):
    """Sources, pages and manifests of a revision, which are also written into the folder."""
    archive = subprocess.run(["git", "archive", revision], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith((".rs", ".md", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml")):
                content = tar.extractfile(member).read()
                path = Path(folder, member.name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                yield member.name, content.decode(errors="replace")


if __name__ == "__main__":
    main()
