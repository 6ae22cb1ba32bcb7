// Why the daemon could not start, in one line for people, and what it then ends with.
#pragma once

#include "base/result.h"

#include <tl/expected.hpp>

#include <string>
#include <string_view>

namespace cairn::server {

// What cairnd ends with.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;       // it could not start or go on
inline constexpr int kExitConfig = 2;       // the command line or the configuration is wrong
inline constexpr int kExitUnavailable = 3;  // a directory is locked, not writable or newer

struct StartFailure {
  int exit_code = kExitFailed;
  std::string message;
};

template <typename T>
using Started = tl::expected<T, StartFailure>;

// "pool.dir = /x (cairnd.toml:3): in use by another daemon, pid 12 (cairnd)". `origin` is where the
// key was set; `lock_file` names whose lock kLocked is about, empty if that cannot be found out.
struct DirectoryPlace {
  std::string key;
  std::string path;
  std::string origin;
  std::string lock_file;
};
StartFailure directory_failure(const DirectoryPlace& place, const Error& error);

// "bind: Address already in use": an error that has no better words.
std::string plain_words(const Error& error);

// The process that holds a lock on `path`, as the kernel shows it: "pid 12 (cairnd)"; empty when
// nobody does or it cannot be seen from here.
std::string lock_holder(const std::string& path);

}  // namespace cairn::server
