// A KeyValue that fails when a test says so and forwards everything else.
#pragma once

#include "storage/key_value.h"

#include <atomic>
#include <cstdint>
#include <limits>

namespace cairn::testing {

class FaultyKeyValue final : public storage::KeyValue {
 public:
  // `real` outlives it.
  explicit FaultyKeyValue(storage::KeyValue& real)
      : real_(real) {}

  // After this many more calls of the kind, each one fails with `error` and changes nothing.
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  void fail_reads_after(std::uint64_t calls, Error error = kFault) noexcept;
  void fail_writes_after(std::uint64_t calls, Error error = kFault) noexcept;
  // From now on each write is done and then fails.
  void fail_writes_after_they_are_done() noexcept { is_late_ = true; }
  void heal() noexcept;
  // Writes that reached the real one, and those of them that asked to be synced.
  std::uint64_t writes() const noexcept { return writes_; }
  std::uint64_t synced_writes() const noexcept { return synced_writes_; }

  Result<std::optional<std::string>> get(storage::Table table,
                                         std::string_view key) noexcept override;
  Status write(const std::vector<storage::KeyValueWrite>& writes, bool sync) noexcept override;
  Result<std::vector<std::pair<std::string, std::string>>> scan(
      storage::Table table) noexcept override;

 private:
  static constexpr Error kFault{ErrorCode::kIo, 5, "injected"};
  struct Countdown {
    std::atomic<std::uint64_t> left{kNever};
    Error error = kFault;
    bool is_due() noexcept;
  };

  storage::KeyValue& real_;
  Countdown reads_;
  Countdown write_faults_;
  std::atomic<bool> is_late_{false};
  std::atomic<std::uint64_t> writes_{0};
  std::atomic<std::uint64_t> synced_writes_{0};
};

}  // namespace cairn::testing
