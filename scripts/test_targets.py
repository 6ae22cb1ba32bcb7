#!/usr/bin/env python3
"""Prints the targets that some tests of a configured build are made from, one a line.

Prints nothing, which stands for the whole build, when one of them is no program of the build (but
a script, say). A test is the program that it runs, or the one that it is named after if that is not
built yet.
"""

import argparse
import json
import os
import subprocess
import sys


def selected(build, labels, regex):
    command = ["ctest", "--test-dir", build, "-R", regex, "-LE", "^nightly$", "--show-only=json-v1"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for test in json.loads(output)["tests"]:
        values = {item["name"]: item["value"] for item in test.get("properties", [])}
        if not labels or set(labels) & set(values.get("LABELS", [])):
            yield test


def is_target(build, name):
    query = ["ninja", "-C", build, "-t", "query", name]
    return subprocess.run(query, capture_output=True, check=False).returncode == 0


def target_of(build, test):
    # ctest gives no command while the program is not there.
    program = test.get("command", [os.path.join(build, "bin", test["name"])])[0]
    name = os.path.basename(program)
    is_ours = os.path.dirname(program) == os.path.join(build, "bin")
    return name if is_ours and is_target(build, name) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--label", action="append", default=[])
    parser.add_argument("--regex", default=".")
    options = parser.parse_args()
    build = os.path.realpath(options.build)
    targets = {target_of(build, test) for test in selected(build, options.label, options.regex)}
    if not targets:
        sys.exit("test_targets.py: no such tests")
    if None not in targets:
        print("\n".join(sorted(targets)))


if __name__ == "__main__":
    main()
