"""The rules. Each takes a Tree and yields Findings; RULES at the end names them all."""

import re

from sources import INCLUDE, PRODUCT, Finding, functions

# Which folders a folder may include, beside itself. A longer path goes before a shorter one.
ARROWS = {
    "transport/wire": ("base",),
    "storage/tools": ("storage", "base"),
    "client/cli": ("client", "transport", "base"),
    "base": (),
    "storage": ("base",),
    "transport": ("base", "transport/wire"),
    "client": ("transport", "transport/wire", "base"),
    "server": ("storage", "transport", "transport/wire", "base"),
}
# The includes against the arrows: (file, folder) and why.
ARROW_EXCEPTIONS = {
    ("server/admin/probe.cc", "client"): "the readiness probe is a client of its own daemon",
    ("client/cli/main.cc", "storage/tools"): "the command carries the storage tools",
}
# Libraries that stay out of headers: one such include costs seconds in every file that sees it.
HEAVY = ("boost/", "rocksdb/", "toml++/", "prometheus/", "spdlog/", "fmt/", "CLI/", "openssl/")
ASIO_FILES = ("transport/control/asio_poller.cc", "server/admin.cc")
TEST_LIBRARIES = ("gtest/", "gmock/", "benchmark/")
# What base may include beside the standard library (no dot) and the system's own headers.
BASE_INCLUDES = re.compile(
    r"[a-z_0-9]+$|tl/expected\.hpp$|isa-l/\w+\.h$|isa-l\.h$|xxhash\.h$|(sys|linux)/\w+\.h$"
    r"|(unistd|fcntl|sched|signal|pthread|poll|x86intrin|immintrin)\.h$"
)

LINE_LENGTH_MAX = 100
HEADER_LINES_MAX = 300
SOURCE_LINES_MAX = 500
TEST_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

# (words, what to do instead, files where it is right). All of product code.
BANNED = (
    (r"\bthrow\b", "return a Result", ()),
    (r"\b(shared_ptr|make_shared|weak_ptr)\b", "give it one owner, lend references", ()),
    (r"\b(sleep_for|sleep_until|usleep|nanosleep)\b", "wait on a descriptor with a deadline", ()),
    (r"\b(steady|system|high_resolution)_clock::now\b", "take a Clock&", ("base/clock.cc",)),
    (r"\b(clock_gettime|gettimeofday)\b", "take a Clock&", ("base/clock.cc",)),
    (r"\bstd::function\b", "return data, or take a template parameter", ()),
    (r"\b(secure_)?getenv\b", "make it an option", ()),
    (r"\b(random_device|mt19937(_64)?|srand|rand)\b", "take a Random&", ()),
    (r"\bassert\s*\(", "use CAIRN_CHECK for bugs, Result for the world", ()),
    (r"\bstd::(mutex|lock_guard|unique_lock|scoped_lock)\b", "use Mutex", ("base/mutex.h",)),
    (r"\busing\s+namespace\s+std\b", "name what is used", ()),
)
MARKER = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(root|home)/")
FILE_NAME = re.compile(r"[a-z0-9_]+\.(h|cc)$")


def module_of(path):
    return next((module for module in ARROWS if path.startswith(module + "/")), None)


def include_arrows(tree):
    """A folder includes only those that its arrows reach; nothing includes tests or bench."""
    for source in tree.cpp():
        module = module_of(source.path)
        for match in INCLUDE.finditer(source.code):
            if match.group(1) != '"':
                continue
            included, line = match.group(2), source.line_of(match.start(2))
            if included not in tree.sources:
                text = f'"{included}" is no path from the root'
                yield Finding(source.path, line, "includes", text)
                continue
            target = module_of(included)
            if module is None or target == module:
                continue
            if target in ARROWS[module] or (source.path, target) in ARROW_EXCEPTIONS:
                continue
            where = target or included.split("/", 1)[0]
            yield Finding(source.path, line, "includes", f"{module} may not include {where}")


def libraries(tree):
    """Heavy libraries stay in .cc files, Asio in a few of them; base is bare; tests do not ship."""
    for source in tree.cpp():
        for match in INCLUDE.finditer(source.code):
            if match.group(1) != "<":
                continue
            problem = library_problem(source, match.group(2))
            if problem:
                line = source.line_of(match.start(2))
                yield Finding(source.path, line, "libraries", f"<{match.group(2)}>: {problem}")


def library_problem(source, included):
    if source.is_product() and included.startswith(TEST_LIBRARIES):
        return "test code never ships"
    if source.is_header() and included.startswith(HEAVY):
        return "stays in .cc files"
    if source.is_product() and included.startswith("boost/asio") and source.path not in ASIO_FILES:
        return "Asio is confined to the files in ASIO_FILES (rules.py)"
    if source.folder == "base" and not BASE_INCLUDES.match(included):
        return "base knows std, tl::expected, ISA-L and xxHash only"
    return None


def file_sizes(tree):
    for source in tree.sources.values():
        if not source.path.endswith((".h", ".cc", ".py", ".sh")):
            continue
        most = SOURCE_LINES_MAX
        if source.folder == "tests":
            most = TEST_LINES_MAX
        elif source.is_header():
            most = HEADER_LINES_MAX
        if len(source.lines) > most:
            text = f"{len(source.lines)} lines, at most {most}"
            yield Finding(source.path, most + 1, "file size", text)


def function_lengths(tree):
    for source in tree.cpp():
        for function in functions(source):
            if function.length > FUNCTION_LINES_MAX:
                text = f"{function.name} has {function.length} lines, at most {FUNCTION_LINES_MAX}"
                yield Finding(source.path, function.line, "function length", text)


def line_lengths(tree):
    for source in tree.sources.values():
        if not source.path.endswith((".h", ".cc", ".py", ".sh")):
            continue
        for number, line in enumerate(source.lines, 1):
            if len(line) > LINE_LENGTH_MAX and "http" not in line:
                text = f"{len(line)} columns, at most {LINE_LENGTH_MAX}"
                yield Finding(source.path, number, "line length", text)


def banned_words(tree):
    for source in tree.product():
        for pattern, instead, right_in in BANNED:
            if source.path in right_in:
                continue
            for match in re.finditer(pattern, source.code):
                text = f"'{match.group().strip()}': {instead}"
                yield Finding(source.path, source.line_of(match.start()), "banned", text)


def markers(tree):
    """A thing left to do carries the number of its issue, or is not left."""
    yield from matches(tree, MARKER, "markers", "carries no issue number")


def machine_paths(tree):
    """Nothing names a folder of the machine that it was written on."""
    yield from matches(tree, MACHINE_PATH, "machine paths", "is a folder of one machine")


def matches(tree, pattern, rule, text):
    for source in tree.sources.values():
        if source.path.startswith("tests/tidy/"):
            continue
        for match in pattern.finditer(source.text):
            line = source.line_of(match.start())
            yield Finding(source.path, line, rule, f"'{match.group()}' {text}")


def whitespace(tree):
    for source in tree.sources.values():
        if source.path.endswith(".patch"):
            continue
        if source.text and not source.text.endswith("\n"):
            yield Finding(source.path, len(source.lines), "whitespace", "no newline at the end")
        for number, line in enumerate(source.lines, 1):
            if line != line.rstrip() or "\t" in line:
                yield Finding(source.path, number, "whitespace", "a tab, or a blank at the end")


def header_guards(tree):
    for source in tree.cpp():
        if source.is_header() and source.code.split(maxsplit=2)[:2] != ["#pragma", "once"]:
            yield Finding(
                source.path, 1, "pragma once", "comes first in a header, after its comment"
            )


def file_names(tree):
    for source in tree.cpp():
        if not FILE_NAME.match(source.path.rsplit("/", 1)[1]):
            yield Finding(source.path, 1, "file names", "are snake_case.h and snake_case.cc")


def in_a_target(tree):
    """Every .cc is compiled by the build, every product header is in a header set."""
    if tree.compiled is not None:
        for source in tree.cpp():
            if source.is_header() or source.path in tree.compiled:
                continue
            if not source.path.startswith(tuple(tree.without)):
                yield Finding(source.path, 1, "targets", "no target compiles it")
    listed = {
        (name if folder == "" else f"{folder}/{name}")
        for folder, text in cmake_files(tree)
        for name in re.findall(r"[\w/.-]+\.h\b", re.sub(r"#.*", "", text))
    }
    for source in tree.product():
        if source.is_header() and source.path not in listed:
            text = "no FILE_SET of a CMakeLists.txt names it, so nothing compiles it alone"
            yield Finding(source.path, 1, "targets", text)


def cmake_files(tree):
    for path, source in tree.sources.items():
        if path == "CMakeLists.txt" or path.endswith("/CMakeLists.txt"):
            yield path.rpartition("/")[0], source.text


def error_codes_tested(tree):
    """Each ErrorCode that a header promises is produced in a test of that folder."""
    result = tree.sources.get("base/result.h")
    body = re.search(r"enum class ErrorCode[^{]*{([^}]*)}", result.code) if result else None
    codes = set(re.findall(r"\bk\w+", body.group(1))) if body else set()
    for source in tree.product():
        if not source.is_header():
            continue
        module = source.folder
        tests = tree.under(f"tests/{module}/", "tests/contract/")
        words = (re.findall(r"\bk\w+", test.code) for test in tests if test.is_cpp())
        seen = {word for found in words for word in found}
        for line, promised in promised_codes(source):
            for code in sorted(set(promised) & codes - seen):
                text = f"{code} is promised, and no test in tests/{module} names it"
                yield Finding(source.path, line, "error codes", text)


def promised_codes(source):
    """(line, codes) of each comment with 'Errors:', up to the end of its sentence."""
    for match in re.finditer(r"//[^\n]*\bErrors:(?:[^\n]|\n[ \t]*//)*", source.text):
        text = re.sub(r"\n[ \t]*//", " ", match.group().split("Errors:", 1)[1])
        sentence = re.split(r"\.(?:\s|$)", re.sub(r"\([^)]*\)", "", text))[0]
        yield source.line_of(match.start()), re.findall(r"\bk[A-Z]\w+", sentence)


def claims_and_benches(tree):
    """Every program in bench/ stands in docs/claims.md, and every one named there exists."""
    claims = tree.sources.get("docs/claims.md")
    if claims is None:
        return
    programs = set()
    for source in tree.under("bench/"):
        if source.path.endswith(".cc") and re.search(r"\bint main\s*\(|_MAIN\s*\(", source.code):
            programs.add(source.path[len("bench/") : -len(".cc")])
    named = set(re.findall(r"\bbench/(\w+(?:/\w+)*)\b(?!\.h)", claims.text))
    for program in sorted(programs - named):
        yield Finding(f"bench/{program}.cc", 1, "claims", "docs/claims.md does not name it")
    for program in sorted(named - programs):
        yield Finding("docs/claims.md", 1, "claims", f"there is no program bench/{program}")


def tests_mirror_folders(tree):
    """A product folder with sources has tests."""
    for folder in PRODUCT:
        has_code = any(source.path.endswith(".cc") for source in tree.under(folder + "/"))
        tests = tree.under(f"tests/{folder}/")
        has_test = any(source.path.endswith("_test.cc") for source in tests)
        if has_code and not has_test:
            yield Finding(folder, 1, "tests", f"tests/{folder} has no test")


RULES = (
    include_arrows,
    libraries,
    file_sizes,
    function_lengths,
    line_lengths,
    banned_words,
    markers,
    machine_paths,
    whitespace,
    header_guards,
    file_names,
    in_a_target,
    error_codes_tested,
    claims_and_benches,
    tests_mirror_folders,
)
