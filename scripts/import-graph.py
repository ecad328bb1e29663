#!/usr/bin/env python3
"""Shows the shape of the code, and fails where imports run the wrong way.

usage: import-graph.py [--check] [--repo DIR]

Prints the dependencies between crates, the imports between the folders of each crate, the circles of files that import
from each other, and the sizes of files and functions. With --check it prints only what is wrong. It needs Python 3.9 and
nothing else.

Wrong is:
  a crate that depends on one above it, by CRATES, or on one of a higher floor, by FLOORS;
  a cycle between the folders and top-level files of a crate;
  a folder that imports from one that stands after it in FOLDERS;
  a circle of files that import from each other;
  a source that no module declares: the compiler passes over it, and over the tests in it.

Tests are not counted as imports: neither `#[cfg(test)]` modules nor `tests/`, `examples/` and dev-dependencies.
"""

import re
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path

from file_imports import FileGraph

# The folders of crates/, and lab/, from the bottom to the top: a crate depends on those of its own floor and of lower ones.
FLOORS = "files format transform storage report replication repair query interfaces lab".split()

# From the bottom to the top. A crate depends on what stands before it, never on what stands after it.
CRATES = """atomic-file scratch-file private-server binlog schema payload encryption figures arrow flow exits print change-formats stats triage advise wire source row-changes archive inspect fleet store variables client-sql engine relay-log relay-forms relay relay-config replay sandbox
testkit experiments bench-programs cli-common bench cli query query-server flight mysql-front sql-cli python capi""".split()

# The folders of a crate from the bottom to the top: a folder imports only from those before it. A top-level file stands
# where its imports put it, so that only cycles are looked for.
FOLDERS = {
    "archive": "codec log chosen_tables block storage format segment operations".split(),
    "exits": "policy value table statement log".split(),
    "experiments": "preset server safety load measure run report".split(),
    "flow": "read work events measure passes".split(),
    "payload": "codec transaction rewritten compress expand".split(),
    "query": "sql logs tables scan catalog run export".split(),
    "row-changes": "table choose record sql pass log cascade images apply script life past fold erase".split(),
    "relay": "telemetry replicas receive housekeeping serve watch".split(),
    "store": "storage files recovery state open".split(),
}


def main():
    arguments = sys.argv[1:]
    root = Path(arguments[arguments.index("--repo") + 1]) if "--repo" in arguments else Path(__file__).parents[1]
    manifests = [*root.glob("crates/*/*/Cargo.toml"), *root.glob("lab/*/Cargo.toml")]
    crates = {path.parent.name: Crate(path.parent) for path in sorted(manifests)}
    for outside in ("bench-peers", "fuzz"):  # not in the workspace
        crates.pop(outside, None)
    wrong = check_crates(crates)
    for crate in crates.values():
        wrong += crate.check()
    wrong += check_circles(crates)
    if "--check" not in arguments:
        show(crates)
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(1 if wrong else 0)


class Crate:
    """A crate's sources, and who imports whom in them."""

    def __init__(self, folder):
        self.folder, self.name = folder, folder.name
        self.floor = folder.parent.name
        self.depends_on = dependencies(folder / "Cargo.toml")
        self.sources = {}
        self.by_path = set()  # names of sources that #[path = "…"] declares
        for path in sorted((folder / "src").rglob("*.rs")):
            text = path.read_text()
            self.sources[path] = without_comments_and_strings(text)
            self.by_path |= set(re.findall(r'#\[path = "(?:[^"]*/)?([^"/]+)"\]', text))
        tests = {test for path, text in self.sources.items() for test in test_modules(path, text)}
        self.files = {
            path: without_tests(text)
            for path, text in self.sources.items()
            if not any(test == path or test_folder(test) in path.parents for test in tests)
        }
        self.exported = self.reexports()
        self.imports = defaultdict(set)  # (from, to) → places
        for path, text in self.files.items():
            for target, line in self.targets(path, text):
                if target != self.unit(path):
                    self.imports[self.unit(path), target].add(f"{path.relative_to(folder)}:{line}")
        self.file_graph = FileGraph(folder / "src", self.library_files())

    def library_files(self):
        """The files that are one crate for the compiler: beside a lib.rs, programs are crates of their own."""
        programs = {"bin", "main"} if self.folder / "src" / "lib.rs" in self.files else {"bin"}
        return {path: text for path, text in self.files.items() if self.unit(path) not in programs}

    def unit(self, path):
        """The folder or top-level file that a source belongs to; lib.rs and programs are units of their own."""
        return path.relative_to(self.folder / "src").parts[0].removesuffix(".rs")

    def folders(self):
        parts = [path.relative_to(self.folder / "src").parts for path in self.files]
        return {part[0] for part in parts if len(part) > 1} - {"bin"}

    def units(self):
        return {self.unit(path) for path in self.files}

    def reexports(self):
        """Names that lib.rs or main.rs passes on, and the unit that they come from."""
        names = {}
        for root in ("lib.rs", "main.rs"):
            text = self.files.get(self.folder / "src" / root, "")
            for path in used_paths(text):
                parts = [part for part in path if part not in ("crate", "self")]
                if len(parts) > 1 and parts[0] in self.units():
                    names[parts[-1]] = parts[0]
        return names

    def targets(self, path, text):
        """The units that a source names by `crate::…` or `super::…`."""
        relative = path.relative_to(self.folder / "src")
        module = list(relative.with_suffix("").parts)
        if module[-1] == "mod" or module == ["lib"] or module == ["main"]:
            module.pop()
        for at, parts in paths_with_places(text):
            if parts[0] == "crate":
                absolute = parts[1:]
            elif parts[0] == "super":
                depth = len(parts) - len(list(strip_supers(parts)))
                if depth > len(module):
                    continue  # an inline module's
                absolute = module[: len(module) - depth] + list(strip_supers(parts))
            else:
                continue
            if not absolute:
                continue
            unit = absolute[0] if absolute[0] in self.units() else self.exported.get(absolute[0])
            if unit:
                yield unit, text.count("\n", 0, at) + 1

    def edges(self):
        # lib.rs only declares and passes on.
        return {pair: places for pair, places in self.imports.items() if not {"lib", "main"} & set(pair)}

    def cycles(self):
        return [group for group in strongly_connected(self.units(), self.edges()) if len(group) > 1]

    def check(self):
        wrong = []
        for group in self.cycles():
            wrong.append(f"{self.name}: a cycle of imports between {', '.join(sorted(group))}:")
            for (one, other), places in sorted(self.edges().items()):
                if one in group and other in group:
                    wrong.append(f"  {one} -> {other}  {', '.join(sorted(places)[:3])}")
        return wrong + self.check_order() + self.check_declared()

    def check_declared(self):
        manifest = (self.folder / "Cargo.toml").read_text()
        return [
            f"{self.name}: no module declares {path.relative_to(self.folder)}"
            for path in self.sources
            if str(path.relative_to(self.folder)) not in manifest and not self.is_declared(path)
        ]

    def is_declared(self, path):
        """Whether the module that a source belongs into declares it; a program's root needs none."""
        if path.name in ("lib.rs", "main.rs") or path.parent.name == "bin" or path.name in self.by_path:
            return True
        module = path.parent if path.name == "mod.rs" else path.with_suffix("")
        folder = module.parent
        parents = (folder / "mod.rs", folder / "lib.rs", folder / "main.rs", folder.with_suffix(".rs"))
        return any(re.search(rf"\bmod {module.name};", self.sources.get(parent, "")) for parent in parents)

    def check_order(self):
        wrong = []
        order = FOLDERS.get(self.name, [])
        for folder in sorted(self.folders() - set(order)) if order else []:
            wrong.append(f"{self.name}: FOLDERS lacks {folder}")
        for (one, other), places in sorted(self.edges().items()):
            if one in order and other in order and order.index(one) < order.index(other):
                wrong.append(f"{self.name}: {one} imports from {other} above it: {', '.join(sorted(places)[:3])}")
        return wrong


def check_circles(crates):
    wrong = []
    for crate in crates.values():
        for files in crate.file_graph.circles():
            wrong.append(f"{crate.name}: a circle of files: {' '.join(files)}")
            wrong += [f"  {one} -> {other}" for one, other in crate.file_graph.inside(set(files))]
    return wrong


def dependencies(manifest):
    """The project's crates that a crate depends on, without its tests."""
    found, section = [], ""
    for line in manifest.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif section == "dependencies" and line.startswith("binlogz-"):
            found.append(re.match(r"binlogz-([\w-]+)", line)[1])
    return sorted(found)


def check_crates(crates):
    wrong = [f"CRATES lacks {name}" for name in crates if name not in CRATES]
    place = {name: number for number, name in enumerate(CRATES)}
    for crate in crates.values():
        for other in crate.depends_on:
            if place.get(other, -1) >= place.get(crate.name, len(CRATES)):
                wrong.append(f"{crate.name} depends on {other}, which stands above it")
    return wrong + check_floors(crates)


def check_floors(crates):
    wrong = [f"FLOORS lacks {crate.floor}" for crate in crates.values() if crate.floor not in FLOORS]
    if wrong:
        return wrong
    for crate in crates.values():
        for other in crate.depends_on:
            floor = crates[other].floor
            if FLOORS.index(floor) > FLOORS.index(crate.floor):
                wrong.append(f"{crate.name} on the floor {crate.floor} depends on {other} on {floor} above it")
    return wrong


LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)"(?:.*?)"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""", re.DOTALL
)


def without_comments_and_strings(text):
    """The text with as many lines, so that places stay what they are."""
    return LITERAL.sub(lambda found: '""' + "\n" * found[0].count("\n"), text)


TEST_MODULE = r"#\[cfg\((?:all\()?test\b[^\n]*\]\s*(?:#\[[^\n]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod "


def without_tests(text):
    """The text without its inline test module, which stands last."""
    return re.split(TEST_MODULE + r"\w+ \{", text)[0]


def test_folder(module):
    """Where the submodules of a test module are."""
    return module.parent if module.name == "mod.rs" else module.with_suffix("")


def test_modules(path, text):
    """Files of modules that only tests have."""
    folder = path.parent if path.name in ("mod.rs", "lib.rs", "main.rs") else path.with_suffix("")
    for name in re.findall(TEST_MODULE + r"(\w+);", text):
        yield folder / f"{name}.rs"
        yield folder / name / "mod.rs"


def paths_with_places(text):
    """All paths that begin with `crate` or `super`, trees of `use` spread out."""
    for found in re.finditer(r"\b(?:crate|super)((?:::\w+)+|)(::\{)?", text):
        head = found[0].removesuffix("::{").split("::")
        if not found[2]:
            if len(head) > 1:
                yield found.start(), head
            continue
        for tail in spread(group_at(text, found.end())):
            yield found.start(), head + tail


def used_paths(text):
    for found in re.finditer(r"\buse ((?:\w+::)+\w+|(?:\w+::)*)(\{)?", text):
        head = [part for part in found[1].split("::") if part]
        if not found[2]:
            yield head
            continue
        for tail in spread(group_at(text, found.end())):
            yield head + tail


def group_at(text, start):
    """What stands between the brace that opens before `start` and the one that closes it."""
    depth, at = 1, start
    while depth and at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return text[start : at - 1]


def spread(group):
    """The paths of `a, b::{c, d}`."""
    depth, item, items = 0, "", []
    for letter in group:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            items.append(item)
            item = ""
        else:
            item += letter
    for item in items + [item]:
        item = item.strip()
        if not item:
            continue
        head, brace, rest = item.partition("::{")
        parts = re.sub(r"\s+as\s+\w+", "", head).split("::")
        if brace:
            yield from (parts + tail for tail in spread(rest.rstrip().removesuffix("}")))
        else:
            yield parts


def strip_supers(parts):
    rest = list(parts)
    while rest and rest[0] == "super":
        rest.pop(0)
    return rest


def strongly_connected(nodes, edges):
    """Groups of nodes that reach each other."""
    reach = {node: {other for one, other in edges if one == node} for node in nodes}
    for middle in nodes:
        for node in nodes:
            if middle in reach[node]:
                reach[node] = reach[node] | reach[middle]
    groups = []
    for node in sorted(nodes):
        group = {node} | {other for other in reach[node] if node in reach[other]}
        if group not in groups:
            groups.append(group)
    return groups


def function_lengths(text):
    """Each function's name, and its lines from its signature to its closing brace."""
    for found in re.finditer(r"^([ \t]*)(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?fn (\w+)", text, re.MULTILINE):
        start = text.find("{", found.end())
        end = text.find(";", found.end())
        if start < 0 or (0 <= end < start and "[" not in text[found.end() : end]):
            continue  # declared without a body
        body = group_at(text, start + 1)
        yield found[2], text.count("\n", found.start(), start + len(body) + 2) + 1


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


def show(crates):
    print("Crates, and the crates that each depends on:\n")
    for name in sorted(crates, key=lambda name: CRATES.index(name) if name in CRATES else len(CRATES)):
        print(f"  {name:<15} {', '.join(crates[name].depends_on) or '-'}")
    for crate in crates.values():
        folders = crate.folders()
        edges = {pair: places for pair, places in crate.edges().items() if set(pair) <= folders}
        if len(folders) > 1:
            print(f"\n{crate.name}: imports between its folders\n")
            for folder in sorted(folders):
                to = sorted(other for one, other in edges if one == folder)
                print(f"  {folder:<15} {', '.join(to) or '-'}")
        for group in crate.cycles():
            print(f"\n{crate.name}: a cycle of {len(group)}: {', '.join(sorted(group))}")
        for files in crate.file_graph.circles():
            print(f"\n{crate.name}: a circle of {len(files)} files:\n")
            for one, other in crate.file_graph.inside(set(files)):
                print(f"  {one} -> {other}")
    print_sizes(crates)
    print_longest(crates)
    print_names(crates)


def print_sizes(crates):
    print("\nSizes of src, tests included, in lines\n")
    print(f"  {'crate':<15} {'lines':>7} {'files':>6} {'median':>7} {'95th':>5} {'functions':>10} {'median':>7} {'95th':>5}")
    all_files, all_functions = [], []
    for name, crate in crates.items():
        files = [text.count("\n") for text in crate.sources.values()]
        functions = [length for text in crate.sources.values() for _, length in function_lengths(text)]
        all_files += files
        all_functions += functions
        print_size(name, files, functions)
    print_size("all", all_files, all_functions)


def print_size(name, files, functions):
    middle = lambda values: round(statistics.median(values)) if values else 0
    print(
        f"  {name:<15} {sum(files):>7} {len(files):>6} {middle(files):>7} {percentile(files, 0.95):>5} "
        f"{len(functions):>10} {middle(functions):>7} {percentile(functions, 0.95):>5}"
    )


def print_longest(crates):
    """The longest functions and files of the product, tests not counted."""
    functions, files = [], []
    for crate in crates.values():
        for path, text in crate.files.items() if crate.floor != "lab" else ():
            name = f"{crate.name}/{path.relative_to(crate.folder)}"
            files.append((text.count("\n"), name))
            functions += [(length, f"{name} {function}") for function, length in function_lengths(text)]
    for of, longest in (("functions", functions), ("files", files)):
        print(f"\nThe longest {of} of the product, tests not counted, in lines\n")
        for length, name in sorted(longest, reverse=True)[:10]:
            print(f"  {length:>5}  {name}")


def print_names(crates):
    names = Counter()
    for crate in crates.values():
        for text in crate.files.values():
            names.update(re.findall(r"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum) (\w+)", text, re.MULTILINE))
    more = [(count, name) for name, count in names.items() if count > 1]
    print("\nStructs and enums whose name is declared more than once, tests not counted\n")
    by_count = defaultdict(list)
    for count, name in more:
        by_count[count].append(name)
    for count in sorted(by_count, reverse=True):
        print(f"  {count:>2}  {', '.join(sorted(by_count[count]))}")


main()
