#include "server/settings.h"

#include "base/check.h"
#include "base/human.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace cairn::server {
namespace {

constexpr std::size_t kComparedKeyBytesMax = 128;

constexpr std::array<Setting, 12> kSettings = {{
    {"data_dir",
     SettingKind::kDirectory,
     &Config::data_dir,
     R"("/var/lib/cairn")",
     0,
     0,
     "",
     "What must outlive a restart: namespaces, their epochs, the boot number. Small, on a disk. "
     "Created (mode 0700) if its parent exists. One daemon at a time."},
    {"listen.unix",
     SettingKind::kSocketPath,
     &Config::listen_unix,
     R"("/run/cairn/cairnd.sock")",
     0,
     0,
     "",
     "The socket of clients on this machine, which may map the pool. Its directory is created if "
     "the parent of that exists. Only this user can connect (mode 0600)."},
    {"listen.tcp",
     SettingKind::kLoopback,
     &Config::listen_tcp,
     R"("")",
     0,
     0,
     "",
     "The address of clients that get their bytes through the socket. Only loopback addresses: "
     "there is no encryption yet. Port 0 picks a free port."},
    {"admin.listen",
     SettingKind::kLoopback,
     &Config::admin_listen,
     R"("127.0.0.1:9464")",
     0,
     0,
     "",
     "The HTTP address of /metrics and /healthz. Only loopback addresses: it has no login yet. "
     "Port 0 picks a free port."},
    {"pool.dir",
     SettingKind::kDirectory,
     &Config::pool_dir,
     R"("/dev/shm/cairn")",
     0,
     0,
     "",
     "Where the pool's slab files lie: on tmpfs, or on hugetlbfs for huge pages. Another kind of "
     "file system is refused. Created (mode 0700) if its parent exists. One daemon at a time."},
    {"tiers.dram.size",
     SettingKind::kBytes,
     &Config::dram_size,
     R"("1GiB")",
     (64_MiB).value(),
     (16'384_GiB).value(),
     "",
     "Memory of the pool, in bytes or with a unit. All of it is made resident at the start."},
    {"eviction.policy",
     SettingKind::kChoice,
     &Config::eviction_policy,
     R"("lru")",
     0,
     0,
     "lru",
     "Which block leaves first when the pool is full. lru: the one that was not used for longest, "
     "the end of a chain before its beginning."},
    {"clients.lent_max",
     SettingKind::kBytes,
     &Config::lent_max,
     R"("auto")",
     (1_MiB).value(),
     (16'384_GiB).value(),
     "auto",
     "Bytes of the pool that one client process may hold at a time, for reading in place or for "
     "writing; beyond it the client is told busy. auto: a quarter of the pool, or 513MiB if that "
     "is more, and at most the pool less 64MiB (half of a pool under 128MiB)."},
    {"keys.allow_weak",
     SettingKind::kSwitch,
     &Config::allow_weak_keys,
     "false",
     0,
     0,
     "",
     "Takes block digests under 16 bytes, whose collisions would hand one request's blocks to "
     "another."},
    {"threads.loops",
     SettingKind::kInteger,
     &Config::loops,
     "1",
     1,
     64,
     "",
     "Threads that serve clients; each client belongs to one of them."},
    {"threads.spin",
     SettingKind::kDuration,
     &Config::spin,
     R"("50us")",
     0,
     1'000'000,
     "",
     "How long a loop looks for the next message before it sleeps, after a wait that was as short; "
     "0s: never. Saves a busy client the time of a wake-up for each message."},
    {"log.level",
     SettingKind::kChoice,
     &Config::log_level,
     R"("info")",
     0,
     0,
     "info|warning|error",
     "The least serious events that are written to stderr."},
}};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string joined_choices(std::string_view choices) {
  std::string text(choices);
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at)) {
    const bool is_last = text.find('|', at + 1) == std::string::npos;
    text.replace(at, 1, is_last ? " or " : ", ");
  }
  return text;
}

std::string kind_text(SettingKind kind) {
  switch (kind) {
    case SettingKind::kDirectory:
    case SettingKind::kSocketPath:
      return "path";
    case SettingKind::kLoopback:
      return "address";
    case SettingKind::kBytes:
      return "bytes";
    case SettingKind::kDuration:
      return "duration";
    case SettingKind::kInteger:
      return "number";
    case SettingKind::kSwitch:
      return "switch";
    case SettingKind::kChoice:
      return "choice";
  }
  return "";
}

// `text` in lines of at most `width` characters, each after `prefix`.
std::string wrapped(std::string_view text, std::string_view prefix, std::size_t width) {
  std::string out;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (prefix.size() + end > width) {
      end = text.rfind(' ', width - prefix.size());
      if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
    }
    out += prefix;
    out += text.substr(0, end);
    out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::span<const Setting> settings() noexcept {
  return kSettings;
}

const Setting* find_setting(std::string_view key) noexcept {
  const auto* found = std::find_if(
      kSettings.begin(), kSettings.end(), [&](const Setting& s) { return s.key == key; });
  return found == kSettings.end() ? nullptr : found;
}

const Setting& nearest_setting(std::string_view key) {
  const std::string_view compared = key.substr(0, kComparedKeyBytesMax);
  const auto distance = [&](const Setting& s) { return edit_distance(compared, s.key); };
  return *std::min_element(
      kSettings.begin(), kSettings.end(), [&](const Setting& a, const Setting& b) {
        return distance(a) < distance(b);
      });
}

bool is_settings_table(std::string_view key) noexcept {
  return std::any_of(kSettings.begin(), kSettings.end(), [&](const Setting& s) {
    return s.key.size() > key.size() && s.key.starts_with(key) && s.key[key.size()] == '.';
  });
}

std::string exact_bytes_text(ByteCount bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::uint64_t value = bytes.value();
  std::size_t unit = 0;
  while (value != 0 && value % 1024 == 0 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return std::to_string(value) + std::string(kUnits[unit]);
}

std::string range_text(const Setting& setting) {
  const auto duration_text = [](std::uint64_t ns) {
    return ns == 0 ? "0s" : format_duration(Nanoseconds(static_cast<std::int64_t>(ns)));
  };
  switch (setting.kind) {
    case SettingKind::kDirectory:
      return "an absolute path";
    case SettingKind::kSocketPath:
      return "an absolute path of at most 107 bytes, or empty: off";
    case SettingKind::kLoopback:
      return "HOST:PORT with a host of 127.0.0.0/8 or [::1] and a port of 0 to 65535, or empty: "
             "off";
    case SettingKind::kBytes: {
      const std::string range = exact_bytes_text(ByteCount(setting.min)) + " to " +
                                exact_bytes_text(ByteCount(setting.max));
      return setting.choices.empty() ? range : range + ", or " + std::string(setting.choices);
    }
    case SettingKind::kDuration:
      return duration_text(setting.min) + " to " + duration_text(setting.max);
    case SettingKind::kInteger:
      return std::to_string(setting.min) + " to " + std::to_string(setting.max);
    case SettingKind::kSwitch:
      return "true or false";
    case SettingKind::kChoice:
      return joined_choices(setting.choices);
  }
  return "";
}

Config default_config() {
  Config config;
  for (const Setting& setting : kSettings) {
    const RawValue raw{std::string(setting.default_text), "", true};
    CAIRN_CHECK(!assign_setting(setting, raw, config).has_value());
  }
  return config;
}

std::string settings_markdown() {
  std::string out = "| key | unit | default | allowed | meaning |\n|---|---|---|---|---|\n";
  for (const Setting& setting : kSettings) {
    out += "| `" + std::string(setting.key) + "` | " + kind_text(setting.kind) + " | `" +
           std::string(setting.default_text) + "` | " + range_text(setting) + " | " +
           std::string(setting.text) + " |\n";
  }
  return out;
}

std::string settings_toml() {
  constexpr std::size_t kWidth = 100;
  std::string out =
      "# cairnd: every key, at its default. `cairnd --check --config FILE` tests a file without\n"
      "# starting; `--set key=value` changes one key of one start. A key that is not known is an\n"
      "# error. Sizes are bytes or carry a unit: 512MiB, 1.5GiB, 10GB (GB is 10^9). Durations "
      "carry one\n"
      "# of us, ms, s, m, h, d.\n";
  std::string_view table;
  for (const Setting& setting : kSettings) {
    const std::size_t dot = setting.key.rfind('.');
    const std::string_view in = dot == std::string_view::npos ? "" : setting.key.substr(0, dot);
    out += '\n';
    if (in != table) out += "[" + std::string(in) + "]\n";
    table = in;
    const std::string_view name = setting.key.substr(in.empty() ? 0 : dot + 1);
    out += wrapped(setting.text, "# ", kWidth);
    out += wrapped("Unit: " + kind_text(setting.kind) + ". Allowed: " + range_text(setting) + ".",
                   "# ",
                   kWidth);
    out += std::string(name) + " = " + std::string(setting.default_text) + "\n";
  }
  return out;
}

}  // namespace cairn::server
