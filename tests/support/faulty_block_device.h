// A BlockDevice that fails or delays the operations that a test names, and forwards the others.
#pragma once

#include "storage/nvme/block_device.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace cairn::testing {

struct IoFault {
  // The operation of that kind (nullopt: of any) with this number, counted from 1 as accepted.
  std::optional<storage::IoKind> kind;
  std::uint64_t nth = 0;
  // It completes with this, and the device never sees it. nullopt: it is forwarded.
  std::optional<Error> error;
  // Its completion is held back this long after it could be had.
  Nanoseconds delay{0};
};

// One thread's, as the device it wraps; that and `clock` outlive it.
class FaultyBlockDevice final : public storage::BlockDevice {
 public:
  FaultyBlockDevice(storage::BlockDevice& real, const Clock& clock)
      : real_(real),
        clock_(clock) {}
  ~FaultyBlockDevice() override;
  FaultyBlockDevice(const FaultyBlockDevice&) = delete;
  FaultyBlockDevice& operator=(const FaultyBlockDevice&) = delete;

  void add(const IoFault& fault) { faults_.push_back(fault); }
  // Accepted so far, failed ones too.
  std::uint64_t operations() const noexcept { return accepted_; }

  const char* kind() const noexcept override { return real_.kind(); }
  ByteCount size() const noexcept override { return real_.size(); }
  std::uint32_t depth() const noexcept override { return real_.depth(); }
  std::uint32_t in_flight() const noexcept override {
    return real_.in_flight() + static_cast<std::uint32_t>(held_.size());
  }
  storage::IoStats stats() const noexcept override { return real_.stats(); }
  Status submit_read(storage::IoId id,
                     ByteCount offset,
                     std::span<std::byte> into) noexcept override;
  Status submit_write(storage::IoId id,
                      ByteCount offset,
                      std::span<const std::byte> from) noexcept override;
  Status sync(storage::IoId id) noexcept override;
  void cancel(storage::IoId id) noexcept override { real_.cancel(id); }
  // Comes back early when only held completions are left.
  std::size_t poll(std::span<storage::IoCompletion> out, Deadline until) noexcept override;
  Status register_memory(std::span<std::byte> memory) noexcept override {
    return real_.register_memory(memory);
  }

 private:
  struct Held {
    storage::IoCompletion completion;
    MonotonicTime due;
  };
  struct Delayed {
    storage::IoId id;
    Nanoseconds delay{0};
  };
  // `submit` forwards the operation, once it is known to be none that fails.
  template <typename Submit>
  Status accept(storage::IoKind kind, storage::IoId id, Submit&& submit) noexcept;
  const IoFault* fault_of(storage::IoKind kind) const noexcept;
  bool is_held(storage::IoId id) const noexcept;
  std::size_t take_due(std::span<storage::IoCompletion> out) noexcept;
  // Sets aside those of the first `count` that are to be held; how many are left.
  std::size_t hold_back(std::span<storage::IoCompletion> out, std::size_t count) noexcept;

  storage::BlockDevice& real_;
  const Clock& clock_;
  std::vector<IoFault> faults_;
  std::vector<Delayed> delayed_;  // in the real device
  std::vector<Held> held_;        // no longer in it
  std::uint64_t accepted_ = 0;
  std::vector<std::uint64_t> accepted_by_kind_ = std::vector<std::uint64_t>(3);
};

}  // namespace cairn::testing
