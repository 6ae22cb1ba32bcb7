// What a person sets: conf/cairnd.toml and --set key=value. Everything wrong is told at once, each
// with its place, and nothing is touched before the whole is right.
#pragma once

#include "base/clock.h"
#include "base/units.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::server {

// One member a key of server/settings.h, which gives the meaning, default, unit and range.
struct Config {
  std::string data_dir;
  std::string listen_unix;   // empty: off
  std::string listen_tcp;    // empty: off
  std::string admin_listen;  // empty: off
  std::string pool_dir;
  ByteCount dram_size;
  std::string eviction_policy;
  ByteCount lent_max;  // 0: lent_max_for(dram_size)
  bool allow_weak_keys = false;
  std::uint32_t loops = 0;
  Nanoseconds spin{0};
  std::string log_level;
};

// Every key at its default.
Config default_config();

// A quarter of the pool, but room for two batches of 64 blocks of 4 MiB, and never more than the
// pool less 64 MiB (half of a pool that is smaller than 128 MiB).
ByteCount lent_max_for(ByteCount pool) noexcept;
ByteCount lent_max_limit(ByteCount pool) noexcept;

inline constexpr ByteCount kConfigFileBytesMax = 1_MiB;

struct ConfigSources {
  std::optional<std::string> file;
  std::vector<std::string> overrides;  // "key=value", over the file; the last one of a key counts
};

struct ConfigOutcome {
  Config config;
  // Each one line: "FILE:LINE: key = value: what is wrong (allowed: ...; default: ...)"; from an
  // override "--set: key ...". Empty: `config` is good.
  std::vector<std::string> errors;
  // Where a key was set: "FILE:LINE" or "--set"; a key at its default is not in it.
  std::map<std::string, std::string, std::less<>> origins;

  // "FILE:LINE", "--set" or "default".
  std::string origin(std::string_view key) const;
};

// Reads, checks each key and then what keys must be to one another. Touches nothing but the file.
ConfigOutcome load_config(const ConfigSources& sources) noexcept;

}  // namespace cairn::server
