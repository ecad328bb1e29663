#!/usr/bin/env python3
"""Finds code in comments: a statement that a line above it swallowed, or that somebody disabled.

Only what could vanish without a compiler's word is looked for: a whole statement on one line, which ends in a semicolon, or in a
block, and which calls something. Examples between ``` fences of doc comments are code that belongs there.

  scripts/lint-comments.py             all files of the repository
  scripts/lint-comments.py --check     its own examples first
"""

import re
import subprocess
import sys

FILES = ("*.rs", "*.c", "*.h", "*.cpp", "*.go", "*.java", "*.js")
# A name, a call of it, and what ends a statement: a;  a!(b);  if a { b(); }  A => b(),
CALL = re.compile(r"[A-Za-z_]\w*(?:::<[^>]*>)?[!?]?\([^`]*\)")
STATEMENT = re.compile(r"(?:;|;\s*\}|\}\s*;?|\)\?\s*;)$")
ARM = re.compile(r"=>.*\)\s*,$")
BEGINS = re.compile(r"^(?:let|return|use|break|continue)\b[^`]*;$")
# What is quoted with backticks is a word of the prose.
QUOTED = re.compile(r"`[^`]*`")


def comments(text):
    """The number and the text of each line's comment, without those of fenced examples, and outside literals."""
    in_fence = in_block = in_raw = False
    raw_end = ""
    for number, line in enumerate(text.split("\n"), 1):
        at, in_string = 0, False
        found = None
        while at < len(line):
            rest = line[at:]
            if in_raw:
                end = rest.find(raw_end)
                if end < 0:
                    break
                at, in_raw = at + end + len(raw_end), False
            elif in_block:
                end = rest.find("*/")
                if end < 0:
                    break
                at, in_block = at + end + 2, False
            elif in_string:
                at += 2 if rest[0] == "\\" else 1
                in_string = rest[0] != '"'
            elif raw := re.match(r'b?r(#*)"', rest):
                raw_end, in_raw = '"' + raw[1], True
                at += raw.end()
            elif rest[0] == '"':
                at, in_string = at + 1, True
            elif char := re.match(r"'(?:\\.[^']*|[^'\\])'", rest):
                at += char.end()
            elif rest.startswith("/*"):
                at, in_block = at + 2, True
            elif rest.startswith("//"):
                found = rest
                break
            else:
                at += 1
        if in_string:
            # A literal over several lines: nothing in it is a comment. Its end is looked for on the lines that follow.
            in_raw, raw_end = True, '"'
        if found is None:
            in_fence = False
            continue
        is_doc = found.startswith(("///", "//!"))
        words = found.lstrip("/!").strip()
        if is_doc and words.startswith("```"):
            in_fence = not in_fence
        elif not in_fence:
            yield number, words


def is_code(words):
    words = QUOTED.sub("x", words)
    if BEGINS.search(words):
        return True
    return bool(CALL.search(words) and (STATEMENT.search(words) or ARM.search(words)))


EXAMPLES = {
    'on its way to the complain!(store.self.telemetry, &error, &format!("{error}"));': True,
    "self.sync()?;": True,
    "if done { return finish(); }": True,
    "Error::Io(_) => self.fail(error),": True,
    "let before = now;": True,
    "The receiver recovers, because it knows what is on its way to the store.": False,
    "What `sync()` does; see there.": False,
    "the first half (of two);": False,
    "ends with `self.sync();`": False,
    "SELECT COUNT(*) FROM t": False,
}


def main():
    if "--check" in sys.argv:
        for words, expected in EXAMPLES.items():
            assert is_code(words) == expected, words
        swallowed = 'a("// b();");\n    // c();\n/// ```\n/// d();\n/// ```\nlet e = r#"\n// f();\n"#; // g();\n'
        found = [words for _, words in comments(swallowed) if is_code(words)]
        assert found == ["c();", "g();"], found
    files = subprocess.run(["git", "ls-files", *FILES], capture_output=True, text=True, check=True).stdout.split("\n")
    count = 0
    for name in filter(None, files):
        with open(name, encoding="utf-8") as file:
            text = file.read()
        for number, words in comments(text):
            if is_code(words):
                count += 1
                print(f"{name}:{number}: code in a comment: {words}", file=sys.stderr)
    if count:
        print(f"lint-comments: {count} found: delete it, put it back, or quote it with backticks", file=sys.stderr)
    return min(count, 1)


sys.exit(main())
