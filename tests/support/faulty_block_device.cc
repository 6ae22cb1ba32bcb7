#include "tests/support/faulty_block_device.h"

#include <algorithm>
#include <utility>

namespace cairn::testing {

using storage::IoCompletion;
using storage::IoId;
using storage::IoKind;

FaultyBlockDevice::~FaultyBlockDevice() {
  // Taken out, for who uses the real device next does not know these ids. Nothing comes out of one
  // that is frozen.
  std::vector<IoCompletion> ignored(real_.depth());
  while (real_.in_flight() > 0) {
    if (real_.poll(ignored, Deadline::after(clock_, Milliseconds(1'000))) == 0) return;
  }
}

const IoFault* FaultyBlockDevice::fault_of(IoKind kind) const noexcept {
  const std::uint64_t of_kind = accepted_by_kind_[static_cast<std::size_t>(kind)];
  for (const IoFault& fault : faults_) {
    if (fault.kind && *fault.kind != kind) continue;
    if (fault.nth == (fault.kind ? of_kind : accepted_) + 1) return &fault;
  }
  return nullptr;
}

bool FaultyBlockDevice::is_held(IoId id) const noexcept {
  return std::ranges::any_of(held_, [id](const Held& one) { return one.completion.id == id; });
}

template <typename Submit>
Status FaultyBlockDevice::accept(IoKind kind, IoId id, Submit&& submit) noexcept {
  if (is_held(id)) return Error{ErrorCode::kExists, 0, "operation id"};
  if (in_flight() == depth()) return Error{ErrorCode::kBusy, 0, "depth"};
  const IoFault* const fault = fault_of(kind);
  if (fault != nullptr && fault->error) {
    held_.push_back(
        {.completion = {.id = id, .result = *fault->error}, .due = clock_.now() + fault->delay});
  } else {
    CAIRN_TRY_STATUS(submit());
    if (fault != nullptr) delayed_.push_back({.id = id, .delay = fault->delay});
  }
  ++accepted_;
  ++accepted_by_kind_[static_cast<std::size_t>(kind)];
  return {};
}

Status FaultyBlockDevice::submit_read(IoId id,
                                      ByteCount offset,
                                      std::span<std::byte> into) noexcept {
  CAIRN_TRY_STATUS(storage::check_io(offset, into, size()));
  return accept(IoKind::kRead, id, [&] { return real_.submit_read(id, offset, into); });
}

Status FaultyBlockDevice::submit_write(IoId id,
                                       ByteCount offset,
                                       std::span<const std::byte> from) noexcept {
  CAIRN_TRY_STATUS(storage::check_io(offset, from, size()));
  return accept(IoKind::kWrite, id, [&] { return real_.submit_write(id, offset, from); });
}

Status FaultyBlockDevice::sync(IoId id) noexcept {
  return accept(IoKind::kSync, id, [&] { return real_.sync(id); });
}

std::size_t FaultyBlockDevice::poll(std::span<IoCompletion> out, Deadline until) noexcept {
  const std::size_t held = take_due(out);
  if (held == out.size()) return held;
  Deadline end = held > 0 ? Deadline(clock_.now()) : until;
  for (const Held& one : held_)
    end = std::min(end, Deadline(one.due));
  const std::span<IoCompletion> rest = out.subspan(held);
  const std::size_t real = hold_back(rest, real_.poll(rest, end));
  return held + real + take_due(rest.subspan(real));
}

std::size_t FaultyBlockDevice::take_due(std::span<IoCompletion> out) noexcept {
  std::size_t count = 0;
  const MonotonicTime now = clock_.now();
  std::erase_if(held_, [&](const Held& one) {
    if (count == out.size() || one.due > now) return false;
    out[count++] = one.completion;
    return true;
  });
  return count;
}

std::size_t FaultyBlockDevice::hold_back(std::span<IoCompletion> out, std::size_t count) noexcept {
  std::size_t kept = 0;
  for (const IoCompletion& completion : out.first(count)) {
    const auto delayed = std::ranges::find(delayed_, completion.id, &Delayed::id);
    if (delayed == delayed_.end()) {
      out[kept++] = completion;
      continue;
    }
    held_.push_back({.completion = completion, .due = clock_.now() + delayed->delay});
    delayed_.erase(delayed);
  }
  return kept;
}

}  // namespace cairn::testing
