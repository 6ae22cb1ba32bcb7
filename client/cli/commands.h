// The small commands: one question or change, one answer.
#pragma once

#include "client/cli/output.h"

#include <string>

namespace cairn::cli {

struct KeyOptions {
  std::string name_space = R"({"application":"cairn-cli"})";  // fingerprint, a JSON object
  std::string key;                                            // 32 to 64 hex digits, or text:NAME
};

int run_status(const CommonOptions& common);
int run_stat(const CommonOptions& common, const KeyOptions& options);
// `path`: "-" is standard input.
int run_put(const CommonOptions& common, const KeyOptions& options, const std::string& path);
// `path`: "-" is standard output.
int run_get(const CommonOptions& common, const KeyOptions& options, const std::string& path);
int run_remove(const CommonOptions& common, const KeyOptions& options);
int run_purge(const CommonOptions& common, const KeyOptions& options);

}  // namespace cairn::cli
