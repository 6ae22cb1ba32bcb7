"""The files that the rules look at, and C++ text with its comments and strings blanked out."""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property

TEXT_ENDINGS = (
    ".h",
    ".cc",
    ".py",
    ".sh",
    ".cmake",
    ".txt",
    ".md",
    ".toml",
    ".json",
    ".patch",
    ".yml",
    ".conf",
)
TEXT_NAMES = ("run", ".clang-format", ".clang-tidy", ".gitignore", ".shellcheckrc")
PRODUCT = ("base", "storage", "transport", "client", "server")


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


class Source:
    """One file: its path from the root, with forward slashes, and its text."""

    def __init__(self, path, text):
        self.path = path
        self.text = text

    @cached_property
    def lines(self):
        return self.text.splitlines()

    @cached_property
    def code(self):
        """The text with comments and the insides of literals blanked; lines stay where they are."""
        return blank(self.text)

    @property
    def folder(self):
        return self.path.split("/", 1)[0]

    def is_cpp(self):
        return self.path.endswith((".h", ".cc"))

    def is_header(self):
        return self.path.endswith(".h")

    def is_product(self):
        return self.is_cpp() and self.folder in PRODUCT

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1


class Tree:
    """All sources by path, and the .cc files that the build compiles (None: not known)."""

    def __init__(self, texts, compiled=None, without=()):
        self.sources = {path: Source(path, text) for path, text in sorted(texts.items())}
        self.compiled = compiled
        self.without = without

    def cpp(self):
        return [source for source in self.sources.values() if source.is_cpp()]

    def product(self):
        return [source for source in self.sources.values() if source.is_product()]

    def under(self, *prefixes):
        return [source for path, source in self.sources.items() if path.startswith(prefixes)]


def read_tree(root, build=None, without=()):
    """The files that git tracks or would, or all of them where there is no git."""
    try:
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = walk(root)
    texts = {}
    for path in listed:
        name = os.path.basename(path)
        full = os.path.join(root, path)
        if (name.endswith(TEXT_ENDINGS) or name in TEXT_NAMES) and os.path.isfile(full):
            with open(full, encoding="utf-8", errors="replace") as file:
                texts[path] = file.read()
    return Tree(texts, None if build is None else compiled_files(root, build), without)


def walk(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", "build", "__pycache__")]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def compiled_files(root, build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    root = os.path.realpath(root)
    return {os.path.relpath(os.path.realpath(entry["file"]), root) for entry in entries}


# Raw strings, then comments, then strings and characters; a quote inside a number is neither.
LITERAL = re.compile(
    r'R"(?P<mark>[^()\s\\]{0,16})\((?P<raw>.*?)\)(?P=mark)"'
    r"|//(?:\\\n|[^\n])*"
    r"|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def blank(text):
    included = [match.span(2) for match in INCLUDE.finditer(text)]

    def hide(match):
        if any(start <= match.end() - 1 and match.start() <= end for start, end in included):
            return match.group()
        found = match.group()
        kept = 0 if found.startswith("/") else 1
        inside = re.sub(r"[^\n]", " ", found[kept : len(found) - kept])
        return found[:kept] + inside + found[len(found) - kept :] if kept else inside

    return LITERAL.sub(hide, text)


@dataclass(frozen=True)
class Function:
    name: str
    line: int
    length: int


# What stands before the brace of a body that is not a function's.
SCOPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:(?:inline\s+)?namespace|class|struct|union|enum)\b")
LINKAGE = re.compile(r'^extern\s*"[^"]*"$')
# What may stand in front of a function's own words.
PREFIX = re.compile(r"^(?:(?:public|private|protected)\s*:\s*)+")


def opens_function(text):
    if ")" not in text or text.endswith(("=", ",", "(")):
        return False
    if SCOPE.match(text) or LINKAGE.match(text):
        return False
    head = re.sub(r"^template\s*<.*?>", "", PREFIX.sub("", text), flags=re.DOTALL)
    head = re.sub(r"\boperator\s*[^\s\w(]+", "operator", head)
    return "=" not in head.split("(")[0]


def without_directives(code):
    return re.sub(
        r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(r"[^\n]", " ", m.group()), code, flags=re.M
    )


def functions(source):
    """The outermost functions of a C++ source; a length counts signature and braces too."""
    code = without_directives(source.code)
    found = []
    scopes = []  # one for each open brace: where the text of its function begins, or None
    start = 0  # where the current declaration begins
    inside = 0  # how many of the open braces belong to a function
    for match in re.finditer(r"[{};]", code):
        mark, at = match.group(), match.start()
        if mark == "{":
            is_function = not inside and opens_function(code[start:at].strip())
            scopes.append(start if is_function else None)
            if inside or is_function:
                inside += 1
            else:
                start = at + 1
        elif mark == "}" and scopes:
            opened = scopes.pop()
            inside -= 1 if inside else 0
            # Before these the brace was one of an initialiser, and the declaration goes on.
            goes_on = code[at + 1 :].lstrip()[:1] in (",", "{", "(")
            if opened is not None and not goes_on:
                found.append(function_at(source, code, opened, at))
            if not inside and not goes_on:
                start = at + 1
        elif mark == ";" and not inside:
            start = at + 1
    return found


def function_at(source, code, start, end):
    text = code[start:end]
    begin = start + len(text) - len(text.lstrip())
    label = PREFIX.match(code[begin:end])
    begin += label.end() if label else 0
    first, last = source.line_of(begin), source.line_of(end)
    head = re.sub(r"\s+", " ", code[begin:end].split("{")[0])
    words = head.split("(")[0].split()
    name = words[-1] if words else "?"
    if name.startswith(("TEST", "TYPED_TEST")):
        name = head.split(")")[0] + ")"
    return Function(name, first, last - first + 1)
