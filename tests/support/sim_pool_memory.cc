#include "tests/support/sim_pool_memory.h"

#include "base/check.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cairn::testing {
namespace {

using storage::OwnedFd;

OwnedFd new_file(const char* name) {
  OwnedFd file(::memfd_create(name, MFD_CLOEXEC));
  CAIRN_CHECK(file.get() >= 0);
  return file;
}

// Another open file description of the same file: locks belong to descriptions.
OwnedFd open_anew(const OwnedFd& file) {
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  OwnedFd other(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  CAIRN_CHECK(other.get() >= 0);
  return other;
}

OwnedFd lock_shared(const OwnedFd& file) {
  OwnedFd lock = open_anew(file);
  CAIRN_CHECK(::flock(lock.get(), LOCK_SH | LOCK_NB) == 0);
  return lock;
}

bool is_free(const OwnedFd& file) {
  const OwnedFd probe = open_anew(file);
  return ::flock(probe.get(), LOCK_EX | LOCK_NB) == 0;
}

std::span<std::byte> map_anonymous(ByteCount bytes) {
  void* const address = ::mmap(nullptr,
                               bytes.value(),
                               PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                               -1,
                               0);
  CAIRN_CHECK(address != MAP_FAILED);
  return {static_cast<std::byte*>(address), bytes.value()};
}

}  // namespace

Result<std::unique_ptr<SimPoolMemory>> SimMachine::start_daemon() {
  if (has_daemon_) return Error{ErrorCode::kLocked, 0, "pool.dir"};
  return std::make_unique<SimPoolMemory>(*this);
}

std::uint64_t SimMachine::add_predecessor(ByteCount bytes, std::string_view holder) {
  Leftover left;
  left.id = next_id_++;
  left.bytes = bytes;
  left.resident = bytes;
  left.sessions.push_back({left.id, std::string(holder), new_file("session")});
  left.scripted_holder = lock_shared(left.sessions.back().file);
  {
    const MutexLock lock(mutex_);
    resident_ += bytes;
  }
  leftovers_.push_back(std::move(left));
  return leftovers_.back().id;
}

void SimMachine::release_predecessor(std::uint64_t id) {
  for (Leftover& left : leftovers_) {
    if (left.id == id) left.scripted_holder = OwnedFd();
  }
}

ByteCount SimMachine::resident() const {
  const MutexLock lock(mutex_);
  return resident_;
}

SimPoolMemory::SimPoolMemory(SimMachine& machine)
    : machine_(machine) {
  CAIRN_CHECK(!machine.has_daemon_);
  machine_.has_daemon_ = true;
}

SimPoolMemory::~SimPoolMemory() {
  stop(true);
}

void SimPoolMemory::crash() {
  stop(false);
}

void SimPoolMemory::unmap_all() {
  for (const SimSlab& slab : slabs_)
    CAIRN_CHECK(::munmap(slab.bytes.data(), slab.bytes.size()) == 0);
  if (!records_.empty()) CAIRN_CHECK(::munmap(records_.data(), records_.size()) == 0);
}

void SimPoolMemory::stop(bool is_orderly) {
  if (std::exchange(has_stopped_, true)) return;
  unmap_all();
  machine_.has_daemon_ = false;
  machine_.records_resident_ -= records_resident_;
  SimMachine::Leftover left;
  left.id = machine_.next_id_++;
  for (const SimSlab& slab : slabs_) {
    left.bytes += ByteCount(slab.bytes.size());
    left.resident += slab.resident;
  }
  for (SimMachine::Session& session : sessions_) {
    if (!is_orderly || !is_free(session.file)) left.sessions.push_back(std::move(session));
  }
  if (!is_orderly || !left.sessions.empty()) {
    machine_.leftovers_.push_back(std::move(left));
    return;
  }
  const MutexLock lock(machine_.mutex_);
  machine_.resident_ -= left.resident;
}

Result<storage::SlabMemory> SimPoolMemory::create_slab(std::uint32_t slab,
                                                       ByteCount bytes) noexcept {
  if (std::ranges::find(used_numbers_, slab) != used_numbers_.end())
    return Error{ErrorCode::kExists, EEXIST, "slab"};
  if (used_numbers_.size() >= machine_.faults.creates_max)
    return Error{ErrorCode::kIo, EIO, "slab"};
  used_numbers_.push_back(slab);
  SimSlab made{.number = slab, .bytes = {}, .file = new_file("slab"), .resident = {}};
  CAIRN_CHECK(::ftruncate(made.file.get(), static_cast<off_t>(bytes.value())) == 0);
  void* const address = ::mmap(nullptr,
                               bytes.value(),
                               PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_NORESERVE,
                               made.file.get(),
                               0);
  CAIRN_CHECK(address != MAP_FAILED);
  made.bytes = {static_cast<std::byte*>(address), bytes.value()};
  slabs_.push_back(std::move(made));
  return storage::SlabMemory{.bytes = slabs_.back().bytes, .fd = slabs_.back().file.get()};
}

Status SimPoolMemory::populate(std::uint32_t slab, ByteCount offset, ByteCount bytes) noexcept {
  const MutexLock lock(machine_.mutex_);
  const auto found = std::find_if(
      slabs_.begin(), slabs_.end(), [slab](const SimSlab& s) { return s.number == slab; });
  CAIRN_CHECK(found != slabs_.end());
  CAIRN_CHECK((offset + bytes).value() <= found->bytes.size());
  if (machine_.populates_ >= machine_.faults.populates_max)
    return Error{ErrorCode::kIo, EIO, "populate"};
  if (machine_.resident_ + machine_.records_resident_ + bytes > machine_.faults.space)
    return Error{ErrorCode::kNoSpace, ENOSPC, "populate"};
  ++machine_.populates_;
  machine_.resident_ += bytes;
  found->resident += bytes;
  return {};
}

void SimPoolMemory::discard_slab(std::uint32_t slab) noexcept {
  const MutexLock lock(machine_.mutex_);
  const auto found = std::find_if(
      slabs_.begin(), slabs_.end(), [slab](const SimSlab& s) { return s.number == slab; });
  CAIRN_CHECK(found != slabs_.end());
  CAIRN_CHECK(::munmap(found->bytes.data(), found->bytes.size()) == 0);
  machine_.resident_ -= found->resident;
  slabs_.erase(found);
}

Result<storage::RecordsMemory> SimPoolMemory::create_records(ByteCount bytes) noexcept {
  CAIRN_CHECK(records_.empty());
  records_ = map_anonymous(bytes);
  return storage::RecordsMemory{.bytes = records_, .owner = this};
}

Status SimPoolMemory::populate_records(ByteCount, ByteCount bytes) noexcept {
  const MutexLock lock(machine_.mutex_);
  if (machine_.resident_ + machine_.records_resident_ + bytes > machine_.faults.space)
    return Error{ErrorCode::kNoSpace, ENOSPC, "populate"};
  machine_.records_resident_ += bytes;
  records_resident_ += bytes;
  return {};
}

Result<OwnedFd> SimPoolMemory::create_session_lock(std::uint64_t id,
                                                   std::string_view description) noexcept {
  for (const SimMachine::Session& other : sessions_) {
    if (other.id == id) return Error{ErrorCode::kExists, EEXIST, "session"};
  }
  sessions_.push_back({id, std::string(description), new_file("session")});
  return lock_shared(sessions_.back().file);
}

void SimPoolMemory::remove_session_lock(std::uint64_t id) noexcept {
  std::erase_if(sessions_, [id](const SimMachine::Session& s) { return s.id == id; });
}

Result<storage::PredecessorSlabs> SimPoolMemory::reclaim_predecessors() noexcept {
  storage::PredecessorSlabs held;
  for (SimMachine::Leftover& left : machine_.leftovers_) {
    std::erase_if(left.sessions, [](const SimMachine::Session& s) { return is_free(s.file); });
    if (left.sessions.empty()) {
      const MutexLock lock(machine_.mutex_);
      machine_.resident_ -= left.resident;
      continue;
    }
    held.bytes += left.bytes;
    for (const SimMachine::Session& session : left.sessions)
      held.holders.push_back(session.description);
  }
  std::erase_if(machine_.leftovers_,
                [](const SimMachine::Leftover& left) { return left.sessions.empty(); });
  return held;
}

}  // namespace cairn::testing
