#!/usr/bin/env python3
"""Runs clang-tidy over the .cc files of a build, the one changed last first, within a time."""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time

ONE_FILE_SECONDS_MAX = 180


def git(*arguments):
    return subprocess.run(
        ["git", *arguments], check=True, capture_output=True, text=True
    ).stdout.splitlines()


def files_by_age(since):
    """The .cc files in question, the one changed last first."""
    if since is not None:
        names = git("diff", "--name-only", "--diff-filter=d", since, "--", "*.cc")
    else:
        names = git("diff", "--name-only", "--diff-filter=d", "HEAD", "--", "*.cc")
        names += git("log", "--format=", "--name-only", "--", "*.cc")
    return list(dict.fromkeys(name for name in names if name))


def compiled(names, build):
    """Those of `names` that `build` compiles."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        known = {os.path.realpath(entry["file"]) for entry in json.load(file)}
    return [name for name in names if os.path.realpath(name) in known]


def check(name, build, until):
    """None if there was no time for it, else (name, what clang-tidy complains about)."""
    if time.monotonic() >= until:
        return None
    try:
        run = subprocess.run(
            ["clang-tidy", "--quiet", "-p", build, name],
            capture_output=True,
            text=True,
            timeout=ONE_FILE_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return name, f"took more than {ONE_FILE_SECONDS_MAX} s"
    return name, run.stdout.strip() or run.stderr.strip() if run.returncode != 0 else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="a build folder with compile_commands.json")
    parser.add_argument("--since", help="only files that differ from this commit")
    parser.add_argument("--seconds", type=int, default=240, help="start no file after this time")
    options = parser.parse_args()
    try:
        names = compiled(files_by_age(options.since), options.build)
    except subprocess.CalledProcessError as error:
        sys.exit(f"clang_tidy.py: {error.stderr.strip()}")
    until = time.monotonic() + options.seconds
    seen = 0
    refused = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for result in pool.map(lambda name: check(name, options.build, until), names):
            if result is None:
                continue
            seen += 1
            if result[1]:
                refused += 1
                print(f"clang-tidy refuses {result[0]}:\n{result[1]}")
    print(f"clang-tidy looked at {seen} of {len(names)} files, {refused} refused")
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
