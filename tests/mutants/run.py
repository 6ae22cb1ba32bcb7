#!/usr/bin/env python3
"""Applies each bug in tests/mutants to a copy of the project and demands that its tests notice.

A mutant is a patch, NAME.patch, that begins with lines such as

    # Serves a block without checking its checksum.
    # tests: cairn_client_tests|cairn_system_tests

`tests:` is a regular expression of ctest names. All the rest is as `git diff` writes it. A mutant
survives when those tests still pass; then, or when one does not apply or build, this fails.

usage: run.py [--only REGEX] [--jobs N] [--seconds N] [--keep]
"""

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TESTS_LINE = re.compile(r"^# tests: (\S.*)$", re.MULTILINE)
BUILD_SECONDS_MAX = 3600
FAILED_TEST = re.compile(r"^\s*\d+ - (\S+) \((.+)\)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    path: str
    title: str
    tests: str


@dataclasses.dataclass(frozen=True)
class Outcome:
    mutant: Mutant
    verdict: str  # caught, survived, or what went wrong
    seconds: float
    detail: str = ""

    def is_caught(self):
        return self.verdict == "caught"


def read_mutants(folder, only):
    mutants = []
    for file_name in sorted(os.listdir(folder)):
        if not file_name.endswith(".patch"):
            continue
        name, path = file_name[: -len(".patch")], os.path.join(folder, file_name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        tests = TESTS_LINE.search(text)
        if tests is None:
            sys.exit(f"{path}: has no line '# tests: REGEX'")
        title = text.splitlines()[0].removeprefix("#").strip()
        if re.search(only, name):
            mutants.append(Mutant(name, path, title, tests.group(1)))
    return mutants


def run(command, folder, seconds):
    """(exit code, output); the code is None when the time was up."""
    with tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace") as output:
        child = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            # Its group too: a test may have started daemons.
            os.killpg(child.pid, 9)
            child.wait()
            code = None
        output.seek(0)
        return code, output.read()


class Copy:
    """A worktree of HEAD with a build folder, to which mutants are applied one after another."""

    def __init__(self, folder, options):
        self.tree = os.path.join(folder, "tree")
        self.build = os.path.join(folder, "build")
        self.options = options

    def make(self):
        self.must("git", "-C", ROOT, "worktree", "add", "--detach", "--quiet", self.tree, "HEAD")
        # Debug: a mutant may be caught by a CAIRN_DCHECK, and it builds faster.
        self.must(
            *("cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja"),
            *("-DCMAKE_BUILD_TYPE=Debug", "-DCAIRN_BENCH=OFF"),
        )

    def must(self, *command):
        code, output = run(command, ROOT, 600)
        if code != 0:
            sys.exit(f"failed: {' '.join(command)}\n{output[-3000:]}")

    def remove(self):
        run(["git", "-C", ROOT, "worktree", "remove", "--force", self.tree], ROOT, 60)
        run(["git", "-C", ROOT, "worktree", "prune"], ROOT, 60)

    def targets(self, regex):
        """What the tests that `regex` selects are built from; None if there are none."""
        script = os.path.join(ROOT, "scripts", "test_targets.py")
        code, output = run([script, self.build, "--regex", regex], ROOT, 60)
        return output.split() if code == 0 else None

    def build_targets(self, targets):
        command = ["ninja", "-C", self.build, "-j", str(self.options.jobs), *targets]
        return run(command, ROOT, BUILD_SECONDS_MAX)

    def ctest(self, regex):
        command = ["ctest", "--test-dir", self.build, "-R", regex, "-LE", "^nightly$"]
        return run(
            command + ["--output-on-failure", "--stop-on-failure"], ROOT, self.options.seconds
        )

    def reset(self):
        self.must("git", "-C", self.tree, "checkout", "--quiet", "--", ".")
        self.must("git", "-C", self.tree, "clean", "-fdq")


def judge(copy, mutant):
    """(verdict, detail) of one mutant; the copy is reset by the caller."""
    targets = copy.targets(mutant.tests)
    if targets is None:
        return "no such tests", mutant.tests
    code, output = run(["git", "-C", copy.tree, "apply", mutant.path], ROOT, 60)
    if code != 0:
        return "does not apply", output
    code, output = copy.build_targets(targets)
    if code != 0:
        return "does not build", output
    code, output = copy.ctest(mutant.tests)
    if code == 0:
        return "survived", mutant.tests
    failed = FAILED_TEST.search(output)
    # Not to end in time is a way to be noticed: the daemon hung, and its test waited.
    return "caught", failed.group(1) if failed else "by its time"


def check_clean_tests(copy, mutants):
    """Tests that fail without a mutant would seem to catch all of them."""
    regex = "|".join(f"({mutant.tests})" for mutant in mutants)
    code, output = copy.build_targets(copy.targets(regex) or [])
    if code != 0:
        sys.exit(f"the build fails without any mutant\n{output[-3000:]}")
    code, output = copy.ctest(regex)
    if code != 0:
        sys.exit(f"tests fail without any mutant\n{output[-3000:]}")


def print_table(outcomes):
    width = max(len(outcome.mutant.name) for outcome in outcomes)
    print(f"\n{'mutant':{width}}  {'verdict':14}  {'s':>5}  by / why")
    for outcome in outcomes:
        detail = (outcome.detail.strip().splitlines() or [""])[-1][:80]
        line = f"{outcome.mutant.name:{width}}  {outcome.verdict:14}  {outcome.seconds:5.0f}"
        print(f"{line}  {detail}")
    caught = sum(outcome.is_caught() for outcome in outcomes)
    print(f"\nmutants: {caught} passed, {len(outcomes) - caught} failed of {len(outcomes)}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mutants whose name matches this")
    parser.add_argument("--mutants", default=HERE, help="the folder of patches")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at once")
    parser.add_argument("--seconds", type=int, default=1200, help="time for one mutant's tests")
    parser.add_argument("--keep", action="store_true", help="leave the copy for a look")
    return parser.parse_args()


def main():
    options = parse_options()
    mutants = read_mutants(options.mutants, options.only)
    if not mutants:
        sys.exit("there are no mutants to run")
    folder = tempfile.mkdtemp(prefix="cairn-mutants.")
    # Paths below the folder are hashed as relative ones, so that the next copy finds its objects.
    os.environ.update(CCACHE_BASEDIR=folder, CCACHE_NOHASHDIR="1")
    copy = Copy(folder, options)
    outcomes = []
    try:
        copy.make()
        check_clean_tests(copy, mutants)
        for mutant in mutants:
            start = time.monotonic()
            verdict, detail = judge(copy, mutant)
            copy.reset()
            outcomes.append(Outcome(mutant, verdict, time.monotonic() - start, detail))
            print(f"{mutant.name}: {verdict}", flush=True)
    finally:
        if options.keep:
            print(f"the copy is in {folder}")
        else:
            copy.remove()
            shutil.rmtree(folder, ignore_errors=True)
    print_table(outcomes)
    for outcome in outcomes:
        if outcome.verdict in ("does not apply", "does not build"):
            print(f"\n{outcome.mutant.name} {outcome.verdict}:\n{outcome.detail[-2000:]}")
    sys.exit(0 if all(outcome.is_caught() for outcome in outcomes) else 1)


if __name__ == "__main__":
    main()
