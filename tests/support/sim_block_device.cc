#include "tests/support/sim_block_device.h"

#include "base/check.h"
#include "base/checksum.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn::testing {

using storage::IoCompletion;
using storage::IoId;
using storage::IoKind;

namespace {

constexpr Error kOff{ErrorCode::kIo, EIO, "sim: powered off"};
constexpr int kRubbish = 0xA5;

}  // namespace

SimBlockDevice::~SimBlockDevice() {
  if (is_off()) return;
  // What a real device waits for happens at once; a frozen one would never be left.
  disk_.thaw();
  std::vector<IoCompletion> ignored(disk_.options_.depth);
  const Deadline end = Deadline::after(disk_.clock_, Nanoseconds::max());
  while (!operations_.empty() && !is_off())
    static_cast<void>(poll(ignored, end));
  if (!is_off()) disk_.device_ = nullptr;
}

Status SimBlockDevice::accept(Operation operation) noexcept {
  if (is_off()) return kOff;
  const auto same = [&](const Operation& one) { return one.id == operation.id; };
  if (std::ranges::any_of(operations_, same)) return Error{ErrorCode::kExists, 0, "operation id"};
  if (operations_.size() == depth()) return Error{ErrorCode::kBusy, 0, "depth"};
  operation.fault = disk_.faults.next(operation.kind, disk_.random_);
  operation.due = disk_.clock_.now() + disk_.draw_latency();
  if (operation.fault == SimFault::kSlow)
    operation.due = operation.due + disk_.options_.slow_latency;
  if (!operation.into.empty()) std::memset(operation.into.data(), kRubbish, operation.into.size());
  operation.digest = crc32c(operation.from);
  operations_.push_back(operation);
  return {};
}

Status SimBlockDevice::submit_read(IoId id, ByteCount offset, std::span<std::byte> into) noexcept {
  CAIRN_TRY_STATUS(storage::check_io(offset, into, size()));
  return accept({.id = id, .kind = IoKind::kRead, .offset = offset, .into = into});
}

Status SimBlockDevice::submit_write(IoId id,
                                    ByteCount offset,
                                    std::span<const std::byte> from) noexcept {
  CAIRN_TRY_STATUS(storage::check_io(offset, from, size()));
  return accept({.id = id, .kind = IoKind::kWrite, .offset = offset, .from = from});
}

Status SimBlockDevice::sync(IoId id) noexcept {
  return accept({.id = id, .kind = IoKind::kSync});
}

void SimBlockDevice::cancel(IoId id) noexcept {
  for (Operation& operation : operations_) {
    if (operation.id != id || operation.is_cancelled) continue;
    operation.is_cancelled = true;
    operation.due = operation.due + disk_.options_.cancel_latency;
  }
}

std::size_t SimBlockDevice::poll(std::span<IoCompletion> out, Deadline until) noexcept {
  std::size_t count = 0;
  while (count < out.size()) {
    // Only the first is waited for.
    const auto due = count == 0 ? wait_for_due(until) : pick_due();
    if (!due) break;
    const Done done = perform(operations_[*due]);
    if (is_off()) {
      operations_.clear();
      break;
    }
    if (!done.is_complete) continue;
    out[count++] = {.id = operations_[*due].id, .result = done.result};
    if (operations_[*due].kind != IoKind::kSync) ++stats_.plain_operations;
    operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(*due));
  }
  return count;
}

std::optional<std::size_t> SimBlockDevice::wait_for_due(Deadline until) noexcept {
  for (;;) {
    if (is_off() || operations_.empty()) return std::nullopt;
    if (const auto due = pick_due()) return due;
    const MonotonicTime now = disk_.clock_.now();
    if (until.has_passed(now)) return std::nullopt;
    MonotonicTime next = until.at();
    for (const Operation& operation : operations_) {
      if (!disk_.is_frozen_) next = std::min(next, operation.due);
    }
    disk_.clock_.advance(next - now);
  }
}

std::optional<std::size_t> SimBlockDevice::pick_due() noexcept {
  if (is_off() || disk_.is_frozen_) return std::nullopt;
  std::vector<std::size_t> due;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (operations_[i].due <= disk_.clock_.now()) due.push_back(i);
  }
  if (due.empty()) return std::nullopt;
  return due[disk_.random_.below(due.size())];
}

SimBlockDevice::Done SimBlockDevice::perform(Operation& operation) noexcept {
  CAIRN_CHECK(crc32c(operation.from) == operation.digest);
  if (operation.is_cancelled && disk_.random_.below(2) == 0) return fail(operation, ECANCELED);
  switch (operation.fault) {
    case SimFault::kEio:
      return fail(operation, EIO);
    case SimFault::kTimeout:
      return fail(operation, ETIMEDOUT);
    case SimFault::kNoSpace:
      return {.result = storage::io_error(ENOSPC, "sim")};
    case SimFault::kShort:
      return move_part(operation);
    default:
      return move(operation);
  }
}

SimBlockDevice::Done SimBlockDevice::fail(Operation& operation, int sys) noexcept {
  if (operation.kind == IoKind::kWrite && disk_.random_.below(2) == 0) {
    const ByteCount part = random_part(ByteCount(operation.from.size()), SimMedia::kSector);
    if (part.value() > 0)
      static_cast<void>(disk_.write(operation.offset, operation.from.first(part.value())));
  }
  return {.result = storage::io_error(sys, "sim")};
}

SimBlockDevice::Done SimBlockDevice::move_part(Operation& operation) noexcept {
  const ByteCount whole(operation.into.size() + operation.from.size());
  const ByteCount part = random_part(whole, storage::kIoGranule);
  if (operation.kind == IoKind::kRead) {
    disk_.media.read(operation.offset, operation.into.first(part.value()));
  } else if (part.value() > 0) {
    static_cast<void>(disk_.write(operation.offset, operation.from.first(part.value())));
  }
  operation.moved = part;
  operation.fault = SimFault::kNone;
  operation.due = disk_.clock_.now() + disk_.draw_latency();
  ++stats_.continued_pieces;
  return {.is_complete = false};
}

SimBlockDevice::Done SimBlockDevice::move(Operation& operation) noexcept {
  switch (operation.kind) {
    case IoKind::kRead:
      return read(operation);
    case IoKind::kWrite:
      return write(operation);
    case IoKind::kSync:
      if (operation.fault != SimFault::kLost) disk_.media.sync();
      return {};
  }
  return {};
}

SimBlockDevice::Done SimBlockDevice::read(Operation& operation) noexcept {
  const std::span<std::byte> rest = operation.into.subspan(operation.moved.value());
  const ByteCount offset = operation.offset + operation.moved;
  if (operation.fault == SimFault::kStale) {
    disk_.media.read_stale(offset, rest);
  } else {
    disk_.media.read(offset, rest);
  }
  if (operation.fault == SimFault::kBitFlip)
    rest[disk_.random_.below(rest.size())] ^= std::byte{1} << disk_.random_.below(8);
  return {.result = ByteCount(operation.into.size())};
}

SimBlockDevice::Done SimBlockDevice::write(Operation& operation) noexcept {
  const ByteCount whole(operation.from.size());
  std::span<const std::byte> rest = operation.from.subspan(operation.moved.value());
  ByteCount offset = operation.offset + operation.moved;
  if (operation.fault == SimFault::kLost) return {.result = whole};
  if (operation.fault == SimFault::kTorn) {
    const ByteCount unit = disk_.random_.below(2) == 0 ? SimMedia::kSector : storage::kIoGranule;
    rest = rest.first(random_part(whole, unit).value());
  }
  if (operation.fault == SimFault::kMisdirected) {
    const std::uint64_t places = (size() - whole) / storage::kIoGranule + 1;
    offset = storage::kIoGranule * disk_.random_.below(places);
    // Never where it belongs, unless there is no other place.
    if (offset == operation.offset) offset = storage::kIoGranule * disk_.random_.below(places);
  }
  if (!disk_.write(offset, rest)) return {};
  if (operation.fault == SimFault::kBitFlip) {
    const ByteCount at = offset + ByteCount(disk_.random_.below(rest.size()));
    disk_.media.flip_bit(at, static_cast<unsigned>(disk_.random_.below(8)));
  }
  return {.result = whole};
}

ByteCount SimBlockDevice::random_part(ByteCount whole, ByteCount unit) noexcept {
  return unit * disk_.random_.below(divide_up(whole.value(), unit.value()));
}

void SimBlockDevice::lose_power() noexcept {
  for (const Operation& operation : operations_) {
    if (operation.kind != IoKind::kWrite) continue;
    // As if it had been in the cache, where its fate is drawn like that of the others; or it never
    // got there.
    const ByteCount rest(operation.from.size() - operation.moved.value());
    if (disk_.random_.below(2) == 0)
      disk_.media.write(operation.offset + operation.moved, operation.from.last(rest.value()));
  }
  operations_.clear();
}

}  // namespace cairn::testing
