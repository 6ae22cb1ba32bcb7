#!/usr/bin/env python3
"""Checks what compilers and linters do not: arrows, sizes, words, targets, promises kept by tests.

usage: tidy.py [--root FOLDER] [--build FOLDER] [--without PREFIX]...
"""

import argparse
import os
import sys
from dataclasses import dataclass

from rules import RULES
from sources import read_tree


@dataclass(frozen=True)
class Exemption:
    rule: str  # as in the finding's brackets
    path: str
    reason: str


# The only way round a rule. One that no longer excuses anything is itself a finding.
SESSION_OWNERS = "a session lives as long as its last queue; taken at opening, never per key"
ROCKSDB_FILES = "RocksDB takes its file systems by shared_ptr"

EXEMPTIONS = (
    Exemption("banned", "server/logging.cc", "spdlog owns its loggers and sinks by shared_ptr"),
    Exemption("banned", "server/admin.cc", "an Asio connection lives as long as its last handler"),
    Exemption("libraries", "storage/rocksdb_files.h", "RocksDB's own seam, for two .cc files"),
    Exemption("banned", "storage/rocksdb_files.h", ROCKSDB_FILES),
    Exemption("banned", "storage/rocksdb_files.cc", ROCKSDB_FILES),
    Exemption("banned", "storage/rocksdb_key_value.cc", ROCKSDB_FILES),
    Exemption("banned", "client/client.cc", SESSION_OWNERS),
    Exemption("banned", "client/client_impl.h", SESSION_OWNERS),
    Exemption("banned", "client/queue_close.cc", SESSION_OWNERS),
    Exemption("banned", "client/queue_core.cc", SESSION_OWNERS),
    Exemption("banned", "client/queue_core.h", SESSION_OWNERS),
    Exemption("banned", "client/queue_impl.h", SESSION_OWNERS),
)


def check(tree, exemptions=EXEMPTIONS):
    """All findings but the excused ones, and the exemptions that excuse nothing."""
    excused = {(exemption.rule, exemption.path): exemption for exemption in exemptions}
    unused = set(excused)
    findings = []
    for rule in RULES:
        for finding in rule(tree):
            if (finding.rule, finding.path) in excused:
                unused.discard((finding.rule, finding.path))
            else:
                findings.append(finding)
    return findings, [excused[key] for key in sorted(unused)]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(here)))
    parser.add_argument("--build", help="a build folder: then each .cc must be compiled there")
    parser.add_argument("--without", action="append", default=[], help="what that build leaves out")
    options = parser.parse_args()
    tree = read_tree(options.root, options.build, options.without)
    findings, unused = check(tree)
    for finding in findings:
        print(finding)
    for exemption in unused:
        print(f"tidy.py: {exemption.path} needs no exemption from '{exemption.rule}'")
    count = len(findings) + len(unused)
    print(f"tidy: {len(tree.sources)} files, {len(RULES)} rules, {count} findings")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
