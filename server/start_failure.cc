#include "server/start_failure.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <system_error>

namespace cairn::server {
namespace {

// "1: FLOCK ADVISORY WRITE 1234 00:1a:5678 0 EOF", device and inode in the sixth word (proc(5)).
constexpr std::size_t kPidWord = 4;
constexpr std::size_t kFileWord = 5;
constexpr std::size_t kWordsMin = 6;

std::string place_of(const struct stat& file) {
  std::array<char, 64> text{};
  std::snprintf(text.data(),
                text.size(),
                "%02x:%02x:%llu",
                major(file.st_dev),
                minor(file.st_dev),
                static_cast<unsigned long long>(file.st_ino));
  return text.data();
}

std::string command_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

std::string describe_process(const std::string& pid) {
  const std::string command = command_of(pid);
  return command.empty() ? "pid " + pid : "pid " + pid + " (" + command + ")";
}

std::string problem_words(const DirectoryPlace& place, const Error& error) {
  switch (error.code) {
    case ErrorCode::kLocked: {
      const std::string holder = place.lock_file.empty() ? "" : lock_holder(place.lock_file);
      return holder.empty() ? "in use by another daemon" : "in use by another daemon, " + holder;
    }
    case ErrorCode::kPermission:
      return "this user may not write there (" + plain_words(error) + ")";
    case ErrorCode::kNotFound:
      return "no such directory, and its parent does not exist either";
    case ErrorCode::kUnsupported:
      return "its file system is neither tmpfs nor hugetlbfs";
    case ErrorCode::kVersion:
      return "written by a newer version of cairnd, which this one cannot read";
    case ErrorCode::kCorrupt:
      return "what is there is damaged (" + plain_words(error) +
             "); move it away to start with an empty one";
    case ErrorCode::kNoSpace:
      return "no space left there (" + plain_words(error) + ")";
    default:
      return plain_words(error);
  }
}

}  // namespace

std::string plain_words(const Error& error) {
  std::string words = error.what;
  words += ": ";
  if (error.sys > 0) return words + std::generic_category().message(error.sys);
  return words + error_code_name(error.code);
}

std::string lock_holder(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return "";
  const std::string wanted = place_of(file);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream text(line);
    std::array<std::string, kWordsMin> words;
    for (std::string& word : words)
      text >> word;
    if (words[kFileWord] != wanted || words[kPidWord].starts_with('-')) continue;
    return describe_process(words[kPidWord]);
  }
  return "";
}

StartFailure directory_failure(const DirectoryPlace& place, const Error& error) {
  const bool is_unavailable =
      error.code == ErrorCode::kLocked || error.code == ErrorCode::kPermission ||
      error.code == ErrorCode::kVersion || error.code == ErrorCode::kNotFound ||
      error.code == ErrorCode::kUnsupported || error.code == ErrorCode::kCorrupt;
  return {
      is_unavailable ? kExitUnavailable : kExitFailed,
      place.key + " = " + place.path + " (" + place.origin + "): " + problem_words(place, error)};
}

}  // namespace cairn::server
