#!/usr/bin/env python3
"""Every rule on a good sample and on bad ones, so that a rule that cannot fail is noticed."""

import contextlib
import os
import subprocess
import sys
import tempfile
import unittest

import rules
import tidy
from sources import Source, Tree, blank, functions, read_tree

RESULT_H = (
    "#pragma once\nenum class ErrorCode : int {\n  kIo,  // the system failed\n  kBusy,\n};\n"
)

# A small project without a fault.
GOOD = {
    "base/CMakeLists.txt": "target_sources(b FILES result.h)\n",
    "base/result.h": RESULT_H,
    "base/result.cc": '#include "base/result.h"\n\n#include <cstdint>\n',
    "storage/CMakeLists.txt": "target_sources(s FILES store.h)\n",
    "storage/store.h": "// Reads.\n#pragma once\n// Errors: kIo (disk). Not kBusy.\nint read();\n",
    "storage/store.cc": '#include "storage/store.h"\n\n#include "base/result.h"\n'
    '#include <rocksdb/db.h>\nint read() {\n  return 1;  // "throw" in words is fine\n}\n',
    "tests/base/result_test.cc": '#include "base/result.h"\n#include <gtest/gtest.h>\n',
    "tests/storage/store_test.cc": "EXPECT_EQ(error, ErrorCode::kIo);\n",
    "bench/read_ratio.cc": "int main() {\n  return 0;\n}\n",
    "docs/claims.md": "Reads are quick: `bench/read_ratio`.\n",
}
COMPILED = {path for path in GOOD if path.endswith(".cc")}


def long_function(lines):
    return "int f() {\n" + "  ++n;\n" * (lines - 2) + "}\n"


# For each rule: what to lay over the good project, and the file that must then be found.
BAD = {
    "include_arrows": [
        (
            {"storage/store.cc": '#include "server/node.h"\n', "server/node.h": ""},
            "storage/store.cc",
        ),
        ({"base/result.cc": '#include "storage/store.h"\n'}, "base/result.cc"),
        ({"client/client.h": '#include "storage/store.h"\n'}, "client/client.h"),
        ({"server/a.cc": '#include "client/c.h"\n', "client/c.h": ""}, "server/a.cc"),
        ({"server/a.cc": '#include "client/cli/c.h"\n', "client/cli/c.h": ""}, "server/a.cc"),
        (
            {"transport/wire/a.h": '#include "transport/c.h"\n', "transport/c.h": ""},
            "transport/wire/a.h",
        ),
        ({"storage/store.cc": '#include "tests/fake.h"\n', "tests/fake.h": ""}, "storage/store.cc"),
        ({"storage/store.cc": '#include "store.h"\n'}, "storage/store.cc"),
        ({"server/a.cc": '#include "storage/tools/t.h"\n', "storage/tools/t.h": ""}, "server/a.cc"),
    ],
    "libraries": [
        ({"storage/store.h": "#include <rocksdb/db.h>\n"}, "storage/store.h"),
        ({"server/config.h": "#include <toml++/toml.h>\n"}, "server/config.h"),
        ({"server/metrics.h": "#include <prometheus/counter.h>\n"}, "server/metrics.h"),
        ({"server/log.h": "#include <spdlog/spdlog.h>\n"}, "server/log.h"),
        ({"server/loop.cc": "#include <boost/asio/io_context.hpp>\n"}, "server/loop.cc"),
        ({"base/result.cc": "#include <nlohmann/json.hpp>\n"}, "base/result.cc"),
        ({"storage/store.cc": "#include <gtest/gtest.h>\n"}, "storage/store.cc"),
    ],
    "file_sizes": [
        ({"storage/store.h": "#pragma once\n" + "\n" * 300}, "storage/store.h"),
        ({"storage/store.cc": "\n" * 501}, "storage/store.cc"),
        ({"tests/storage/store_test.cc": "\n" * 601}, "tests/storage/store_test.cc"),
        ({"scripts/run.sh": "\n" * 501}, "scripts/run.sh"),
    ],
    "function_lengths": [
        ({"storage/store.cc": long_function(71)}, "storage/store.cc"),
        (
            {"tests/storage/store_test.cc": "TEST(A, B) {\n" + "\n" * 70 + "}\n"},
            "tests/storage/store_test.cc",
        ),
        ({"storage/store.h": "struct A {\n  " + long_function(71) + "};\n"}, "storage/store.h"),
    ],
    "line_lengths": [
        ({"storage/store.cc": "//" + "x" * 99 + "\n"}, "storage/store.cc"),
        ({"scripts/run.sh": "#" * 101 + "\n"}, "scripts/run.sh"),
    ],
    "banned_words": [
        ({"storage/store.cc": code + "\n"}, "storage/store.cc")
        for code in (
            "throw 1;",
            "std::shared_ptr<int> p;",
            "std::make_shared<int>();",
            "std::weak_ptr<int> p;",
            "sleep_for(1s);",
            "usleep(1);",
            "steady_clock::now();",
            "std::chrono::system_clock::now();",
            "clock_gettime(a, b);",
            "std::function<void()> f;",
            'std::getenv("A");',
            "random_device r;",
            "std::mt19937 g;",
            "assert(x);",
            "std::mutex m;",
            "using namespace std;",
        )
    ],
    "markers": [
        ({"storage/store.cc": "// TODO: later\n"}, "storage/store.cc"),
        ({"docs/claims.md": "FIXME\n"}, "docs/claims.md"),
        ({"scripts/run.sh": "# XXX\n"}, "scripts/run.sh"),
    ],
    "machine_paths": [
        ({"docs/claims.md": "see /home/me/main\n"}, "docs/claims.md"),
        ({"storage/store.cc": 'open("/root/x");\n'}, "storage/store.cc"),
    ],
    "whitespace": [
        ({"storage/store.cc": "int a;"}, "storage/store.cc"),
        ({"storage/store.cc": "int a; \n"}, "storage/store.cc"),
        ({"storage/store.cc": "\tint a;\n"}, "storage/store.cc"),
    ],
    "header_guards": [
        ({"storage/store.h": "int read();\n"}, "storage/store.h"),
        ({"storage/store.h": "int read();\n#pragma once\n"}, "storage/store.h"),
    ],
    "file_names": [
        ({"storage/Store.cc": ""}, "storage/Store.cc"),
        ({"storage/a-b.h": ""}, "storage/a-b.h"),
    ],
    "in_a_target": [
        ({"storage/extra.cc": ""}, "storage/extra.cc"),
        ({"tests/storage/extra_test.cc": ""}, "tests/storage/extra_test.cc"),
        ({"storage/extra.h": "#pragma once\n"}, "storage/extra.h"),
        ({"storage/CMakeLists.txt": "# store.h\n"}, "storage/store.h"),
    ],
    "error_codes_tested": [
        ({"storage/store.h": "// Errors: kIo,\n// kBusy (full).\n"}, "storage/store.h"),
        ({"tests/storage/store_test.cc": "// kIo in words only\n"}, "storage/store.h"),
    ],
    "claims_and_benches": [
        ({"bench/other.cc": "int main() {}\n"}, "bench/other.cc"),
        ({"bench/other.cc": "BENCHMARK_MAIN();\n"}, "bench/other.cc"),
        ({"docs/claims.md": "`bench/read_ratio` and bench/gone\n"}, "docs/claims.md"),
    ],
    "tests_mirror_folders": [({"server/node.cc": ""}, "server")],
}


class Rules(unittest.TestCase):
    def test_every_rule_has_bad_samples(self):
        self.assertEqual({rule.__name__ for rule in rules.RULES}, set(BAD))

    def test_the_good_project_passes_every_rule(self):
        for rule in rules.RULES:
            found = [str(finding) for finding in rule(Tree(GOOD, COMPILED))]
            self.assertEqual(found, [], rule.__name__)

    def test_each_rule_finds_each_of_its_bad_samples(self):
        for rule in rules.RULES:
            for number, (overlay, path) in enumerate(BAD[rule.__name__]):
                with self.subTest(rule=rule.__name__, sample=number):
                    found = list(rule(Tree({**GOOD, **overlay}, COMPILED)))
                    self.assertIn(path, [finding.path for finding in found])

    def test_the_arrow_exceptions_hold_for_their_files_only(self):
        over = {"client/c.h": "#pragma once\n", "server/admin/probe.cc": '#include "client/c.h"\n'}
        self.assertEqual(list(rules.include_arrows(Tree({**GOOD, **over}))), [])

    def test_a_marker_with_an_issue_number_passes(self):
        tree = Tree({"storage/store.cc": "// TODO(#12): shrink\n"})
        self.assertEqual(list(rules.markers(tree)), [])

    def test_what_the_build_leaves_out_needs_no_target(self):
        tree = Tree({**GOOD, "bench/x.cc": ""}, COMPILED, without=("bench/",))
        self.assertEqual(list(rules.in_a_target(tree)), [])


class Exemptions(unittest.TestCase):
    BAD_TREE = Tree({**GOOD, "storage/store.cc": "throw 1;\n"}, COMPILED)

    def test_excuse_one_file_from_one_rule(self):
        exemption = tidy.Exemption("banned", "storage/store.cc", "a test")
        self.assertEqual(tidy.check(self.BAD_TREE, (exemption,)), ([], []))

    def test_that_excuse_nothing_are_reported(self):
        exemption = tidy.Exemption("banned", "storage/store.h", "a test")
        findings, unused = tidy.check(self.BAD_TREE, (exemption,))
        self.assertEqual([finding.rule for finding in findings], ["banned"])
        self.assertEqual(unused, [exemption])

    def test_all_have_a_reason(self):
        for exemption in tidy.EXEMPTIONS:
            self.assertGreater(len(exemption.reason), 10, exemption)


class Blanking(unittest.TestCase):
    def test_hides_comments_and_the_insides_of_literals(self):
        for text in (
            'f("throw");',
            "f(); // throw",
            "f(/* throw\n */);",
            'R"x(throw")x"',
            "f('throw');",
        ):
            self.assertNotIn("throw", blank(text), text)
            self.assertEqual(blank(text).count("\n"), text.count("\n"))
            self.assertEqual(len(blank(text)), len(text))

    def test_leaves_code_beside_them(self):
        for text in (
            "n = 1'000; throw 1'000;",
            '"\\""; throw',
            "'\"'; throw",
            "'\\''; throw",
            '"//"; throw',
        ):
            self.assertIn("throw", blank(text), text)

    def test_leaves_the_names_of_includes(self):
        self.assertIn('"base/result.h"', blank('#include "base/result.h"  // why\n'))


class Functions(unittest.TestCase):
    def names(self, text):
        return [(function.name, function.length) for function in functions(Source("a.cc", text))]

    def test_free_functions_and_tests(self):
        text = (
            "namespace a {\n\nint f(int x) {\n  if (x) {\n  }\n  return x;\n}\nTEST(A, B) {\n}\n}\n"
        )
        self.assertEqual(self.names(text), [("f", 5), ("TEST(A, B)", 2)])

    def test_methods_operators_templates_and_constructors(self):
        text = (
            "class A : public B {\n public:\n  A(int x)\n      : a_{x},\n        b_(x) {\n  }\n"
            "  bool operator==(A b) {\n  }\n  template <typename T = int>\n  T g() {\n  }\n"
            "  int a_{0};\n  int b_ = 1;\n};\n"
        )
        self.assertEqual(self.names(text), [("A", 4), ("operator==", 2), ("g", 3)])

    def test_initialisers_are_none(self):
        text = "constexpr A kA = {{f(1), 2}, {g(3), 4}};\nint b{f(1)};\nint h() {\n}\n"
        self.assertEqual(self.names(text)[-1], ("h", 2))
        self.assertTrue(all(length <= 2 for _, length in self.names(text)))

    def test_c_linkage(self):
        text = 'extern "C" int f(int) {\n  return 0;\n}\nextern "C" {\nint g() {\n}\n}\n'
        self.assertEqual(self.names(text), [("f", 3), ("g", 2)])


class CommandLine(unittest.TestCase):
    def run_tidy(self, texts):
        with tempfile.TemporaryDirectory() as root:
            for path, text in texts.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            with contextlib.suppress(FileNotFoundError):
                self.assertEqual(set(read_tree(root).sources), set(texts))
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tidy.py")
            return subprocess.run(
                [sys.executable, script, "--root", root],
                capture_output=True,
                text=True,
                check=False,
            )

    def test_names_file_and_line_and_fails(self):
        run = self.run_tidy({**GOOD, "storage/store.cc": "\n\nthrow 1;\n"})
        self.assertIn("storage/store.cc:3: [banned]", run.stdout)
        self.assertEqual(run.returncode, 1)


if __name__ == "__main__":
    unittest.main()
