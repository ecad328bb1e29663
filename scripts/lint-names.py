#!/usr/bin/env python3
"""Finds type names that stand for more than one type, and names that don't say what the type is.

usage: lint-names.py [--check | --write] [--repo DIR]

Without an option it prints each such name with the places that declare it. With --check it compares what it finds with
`names-baseline.txt` beside this script and fails on every difference: the baseline may only shrink, so a name that is
gone must leave it too. --write writes the baseline. It needs Python 3.9 and nothing else, no build either.

  repeated   a struct, enum, trait or type with `pub` or `pub(…)` whose name another one has, in any crate. `Error` and
             `Result` may repeat: each library has one of each.
  vague      a type of any visibility, repeated or not, whose one-word name is a participle (`Kept`, `Running`) or a word
             that fits anything (`Place`, `Part`).

Each place says how far the type can be seen: `api` (outside the crate, by a path of public modules or a `pub use` of
lib.rs), `pub` (written so, but no path leads there), `crate` (`pub(crate)`, `pub(super)`) or `file`. Test modules,
`tests/`, `examples/`, `benches/`, and the crates outside the workspace aren't counted.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

MAY_REPEAT = {"Error", "Result"}

# Participles that don't end in -ed or -ing.
PARTICIPLES = set(
    """Bound Built Cut Dealt Done Drawn Fed Found Given Gone Heard Held Kept Known Left Lost Made Met Put Ran Rewritten Seen
    Sent Shown Spent Taken Told Unmet Unwritten Written""".split()
)

# Words that fit anything, or only say where, when or how large.
VAGUE = set(
    """After Ahead Alone Around At Away Before Behind Beside By Came Coming Few Fresh From Full Helper Info Inner Inside Into
    Item Kind Large Largest Last Look Looks Member New Next Nobody Nothing Now Old Older Others Out Outer Over Part Parts
    Piece Pieces Place Places Quick Side Sides Since Small State Stuff Tell Thing Things Turn Turns What While Whole""".split()
)

# Nouns that end as participles do.
NOUNS = set(
    """Encoding Feed Finding Framing Greeting Heading Housekeeping Keyring Listing Need Padding Pruning Seed Setting Speed
    String Warning""".split()
)

DECLARATION = re.compile(
    r"^([ \t]*)(pub(?:\([^)]*\))? )?(?:unsafe )?(struct|enum|union|trait|type) ([A-Z]\w*)", re.MULTILINE
)
# Comments and literals, each replaced by as many lines.
LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)"(?:.*?)"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""", re.DOTALL
)
TEST_MODULE = r"#\[cfg\((?:all\()?test\b[^\n]*\]\s*(?:#\[[^\n]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod "


def main():
    arguments = sys.argv[1:]
    root = Path(arguments[arguments.index("--repo") + 1]) if "--repo" in arguments else Path(__file__).parents[1]
    baseline = root / "scripts" / "names-baseline.txt"
    places = declarations(root)
    found = findings(places)
    lines = sorted(f"{rule} {name}: {len(found[rule, name])}" for rule, name in found)
    if "--write" in arguments:
        baseline.write_text("".join(line + "\n" for line in lines))
    elif "--check" in arguments:
        sys.exit(check(lines, baseline.read_text().splitlines(), found))
    else:
        show(found, places)


def findings(places):
    """Places by rule and name."""
    found = {}
    for name, declared in places.items():
        seen = [place for place in declared if place[0] != "file"]
        if len(seen) > 1 and name not in MAY_REPEAT:
            found["repeated", name] = seen
        if is_vague(name):
            found["vague", name] = declared
    return found


def is_vague(name):
    if name in PARTICIPLES or name in VAGUE:
        return True
    return bool(re.fullmatch(r"[A-Z][a-z]+(?:ed|ing)", name)) and name not in NOUNS


def check(lines, baseline, found):
    """The exit code: 0 where the baseline says exactly what was found."""
    wrong = [] if baseline == sorted(set(baseline)) else ["names-baseline.txt: lines aren't sorted, or stand twice"]
    for line in sorted(set(lines) - set(baseline)):
        rule, name = re.match(r"(\w+) (\w+)", line).groups()
        advice = "more than one type has this name" if rule == "repeated" else "name it by a noun that says of what"
        wrong.append(f"{line}  ({advice})")
        wrong += [f"    {shown(place)}" for place in found[rule, name]]
    for line in sorted(set(baseline) - set(lines)):
        wrong.append(f"names-baseline.txt: `{line}` is gone: take the line out, or lower its number")
    for line in wrong:
        print(f"lint-names: {line}" if line[0] != " " else line, file=sys.stderr)
    return 1 if wrong else 0


def show(found, places):
    for rule, name in sorted(found):
        print(f"{rule} {name}: {len(found[rule, name])}")
        for place in found[rule, name]:
            print(f"    {shown(place)}")
    visible = {name: [place for place in declared if place[0] != "file"] for name, declared in places.items()}
    public = {name: [place for place in declared if place[0] in ("api", "pub")] for name, declared in places.items()}
    for kind, counted in (("all", places), ("visible outside their file", visible), ("public", public)):
        counts = [len(declared) for name, declared in counted.items() if declared and name not in MAY_REPEAT]
        repeated = [count for count in counts if count > 1]
        print(f"{kind}: {sum(counts)} types, {len(counts)} names; {len(repeated)} names stand for {sum(repeated)} types")
    print(f"vague: {sum(len(found[key]) for key in found if key[0] == 'vague')} types")


def shown(place):
    seen, kind, path, line = place
    return f"{seen:<5} {kind:<6} {path}:{line}"


def declarations(root):
    """Of each name, the places that declare it: how far it is seen, what it is, file and line."""
    places = defaultdict(list)
    manifests = [*root.glob("crates/*/*/Cargo.toml"), *root.glob("lab/*/Cargo.toml")]
    for folder in sorted(path.parent for path in manifests):
        if folder.name in ("bench-peers", "fuzz"):  # not in the workspace
            continue
        for seen, kind, name, path, line in declarations_of_crate(folder):
            places[name].append((seen, kind, path.relative_to(root), line))
    return places


def declarations_of_crate(folder):
    texts = {path: LITERAL.sub(blank, path.read_text()) for path in sorted((folder / "src").rglob("*.rs"))}
    tests = {test for path, text in texts.items() for test in test_modules(path, text)}
    exported = set(re.findall(r"\w+", " ".join(re.findall(r"\bpub use ([^;]*);", texts.get(folder / "src/lib.rs", "")))))
    for path, text in texts.items():
        if any(test == path or test_folder(test) in path.parents for test in tests):
            continue
        is_open = in_public_modules(path, folder / "src", texts)
        text = re.split(TEST_MODULE + r"\w+ \{", text)[0]
        for declared in DECLARATION.finditer(text):
            indent, public, kind, name = declared.groups()
            if indent and kind == "type" and not public:
                continue  # an associated type
            if not public:
                seen = "file"
            elif public != "pub ":
                seen = "crate"
            else:
                seen = "api" if name in exported or is_open else "pub"
            yield seen, kind, name, path, text.count("\n", 0, declared.start(4)) + 1


def in_public_modules(path, src, texts):
    """Whether lib.rs declares the file's module public, and each module on the way to it the next."""
    parts = list(path.relative_to(src).with_suffix("").parts)
    if parts[-1] in ("mod", "lib"):
        parts.pop()
    at, text = src, texts.get(src / "lib.rs")
    for part in parts:
        if text is None or not re.search(rf"^pub mod {part};", text, re.MULTILINE):
            return False
        text = texts.get(at / f"{part}.rs", texts.get(at / part / "mod.rs"))
        at = at / part
    return (src / "lib.rs") in texts


def blank(found):
    return '""' + "\n" * found[0].count("\n")


def test_modules(path, text):
    """Files of modules that only tests have."""
    folder = path.parent if path.name in ("mod.rs", "lib.rs", "main.rs") else path.with_suffix("")
    for name in re.findall(TEST_MODULE + r"(\w+);", text):
        yield folder / f"{name}.rs"
        yield folder / name / "mod.rs"


def test_folder(module):
    """Where the submodules of a test module are."""
    return module.parent if module.name == "mod.rs" else module.with_suffix("")


main()
