"""Imports between the files of a crate, for `import-graph.py`.

A path of a source (`crate::block::rows::decode`, `super::Rows`, `rows::decode` after `use super::rows`) leads to the file
that declares what it names. A name that a module only passes on (`pub use rows::Rows;` in `block/mod.rs`) leads to the
file that declares it, and passing it on is no import. `mod rows;` is none either. A submodule is a part of the module
that it stands in, so it may use what that one declares: `super::Rows` is no import.

Methods and traits are called without a path, so a file that only calls them isn't seen to import anything.
"""

import re

USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
PATH = re.compile(r"(?<![\w:.])(\w+)((?:::\w+)+)")
DECLARED = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? )?mod (\w+);", re.MULTILINE)


class FileGraph:
    """Which file of a crate imports from which. `files` are its sources without comments and tests, by path."""

    def __init__(self, source_folder, files):
        self.folder = source_folder
        self.texts = {module_of(path.relative_to(source_folder)): text for path, text in files.items()}
        self.names = {module_of(path.relative_to(source_folder)): str(path.relative_to(source_folder)) for path in files}
        self.uses = {module: list(uses(text)) for module, text in self.texts.items()}
        self.edges = self.find_edges()

    def find_edges(self):
        """Pairs of modules: the first imports from the second."""
        edges = set()
        for module, text in self.texts.items():
            body = USE.sub("", text)
            for path in self.paths(module, body):
                other = self.resolve(module, path)
                if other is not None and module[: len(other)] != other:
                    edges.add((module, other))
        return edges

    def paths(self, module, body):
        for found in PATH.finditer(body):
            yield [found[1], *found[2].removeprefix("::").split("::")]
        words = set(re.findall(r"\w+", body))
        for is_public, path, name in self.uses[module]:
            is_passed_on = is_public and name not in words
            if not is_passed_on and not self.is_module(module, path):
                yield path

    def is_module(self, module, path):
        """Whether a path names a module; what is taken out of it has a path of its own."""
        absolute = self.absolute(module, path)
        return absolute is not None and tuple(absolute) in self.texts

    def absolute(self, module, path):
        """A path from the crate's root; `None` if it leads out of the crate."""
        path = [part for number, part in enumerate(path) if part != "self" or number == 0]
        head, rest = path[0], path[1:]
        if head == "crate":
            return rest
        if head == "self":
            return [*module, *rest]
        if head == "super":
            depth = next((number for number, part in enumerate(path) if part != "super"), len(path))
            return None if depth > len(module) else [*module[: len(module) - depth], *path[depth:]]
        if (*module, head) in self.texts:
            return [*module, *path]
        for _, used, name in self.uses[module]:
            if name == head and used[0] != head:
                absolute = self.absolute(module, used)
                return None if absolute is None else [*absolute, *rest]
        return None

    def resolve(self, module, path, depth=0):
        """The module that declares what a path names."""
        absolute = self.absolute(module, path)
        if absolute is None or depth > 8:
            return None
        at = ()
        for number, part in enumerate(absolute):
            if (*at, part) in self.texts:
                at = (*at, part)
                continue
            for _, used, name in self.uses.get(at, ()):
                if name == part:
                    return self.resolve(at, [*used, *absolute[number + 1 :]], depth + 1)
            break
        return at if at in self.texts else None

    def circles(self):
        """Groups of files that import from each other, by one or several steps."""
        groups = components(set(self.texts), self.edges)
        return sorted(sorted(self.names[module] for module in group) for group in groups if len(group) > 1)

    def inside(self, names):
        """The imports between some files."""
        for one, other in sorted(self.edges):
            if self.names[one] in names and self.names[other] in names:
                yield self.names[one], self.names[other]


def module_of(path):
    parts = list(path.with_suffix("").parts)
    if parts[-1] == "mod" or parts in (["lib"], ["main"]):
        parts.pop()
    return tuple(parts)


def uses(text):
    """Each name that a source uses: whether it passes it on, its path, and the name that it has here."""
    for found in USE.finditer(text):
        for path, name in tree(re.sub(r"\s+", " ", found[2]).strip()):
            if name not in ("_", "*"):
                yield bool(found[1]), path, name


def tree(text):
    """The paths of `a::{b, c as d}`, each with its name."""
    head, brace, rest = text.partition("{")
    if not brace:
        path, _, alias = text.partition(" as ")
        parts = [part for part in path.strip().split("::") if part]
        name = parts[-2] if parts[-1] == "self" and len(parts) > 1 else parts[-1]
        yield parts, alias.strip() or name
        return
    parts = [part for part in head.strip().split("::") if part]
    for item in items(rest.rstrip().removesuffix("}")):
        for path, name in tree(item):
            yield parts + path, parts[-1] if name == "self" and parts else name


def items(group):
    depth, item = 0, ""
    for letter in group + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if item.strip():
                yield item.strip()
            item = ""
        else:
            item += letter


def components(nodes, edges):
    """The strongly connected components of a graph, after Tarjan."""
    after = {node: [] for node in nodes}
    for one, other in edges:
        after[one].append(other)
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in after[node]:
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            found.append(stack[at:])
            del stack[at:]

    for node in sorted(nodes):
        if node not in number:
            visit(node)
    return found
