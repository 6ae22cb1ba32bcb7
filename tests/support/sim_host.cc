#include "tests/support/sim_host.h"

#include "base/check.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace cairn::testing {

namespace {

std::unique_ptr<storage::KeyValue> in_memory_key_value() {
  auto opened = storage::open_rocksdb({.directory = "", .in_memory = true});
  CAIRN_CHECK(opened.has_value());
  return *std::move(opened);
}

}  // namespace

SimHost::SimHost(SimNetwork& network)
    : network_(network),
      key_value_(in_memory_key_value()) {}

std::span<std::byte> SimHost::map_slab(std::uint64_t subject) {
  const SlabFile& slab = slabs_.at(subject);
  void* const address = ::mmap(
      nullptr, slab.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, slab.file.get(), 0);
  CAIRN_CHECK(address != MAP_FAILED);
  return {static_cast<std::byte*>(address), slab.bytes};
}

void SimHost::unmap_slab(std::span<std::byte> bytes) {
  CAIRN_CHECK(::munmap(bytes.data(), bytes.size()) == 0);
}

void SimHost::drop_free_locks() {
  std::erase_if(locks_, [this](const auto& lock) {
    return !network_.is_held({SimDescriptorKind::kSessionLock, lock.first});
  });
}

Result<std::unique_ptr<SimHostMemory>> SimHostMemory::start(SimHost& host, SimProcessId daemon) {
  CAIRN_TRY(auto inner, host.machine_.start_daemon());
  return std::unique_ptr<SimHostMemory>(new SimHostMemory(host, daemon, std::move(inner)));
}

SimHostMemory::SimHostMemory(SimHost& host,
                             SimProcessId daemon,
                             std::unique_ptr<SimPoolMemory> inner)
    : host_(host),
      daemon_(daemon),
      inner_(std::move(inner)) {}

SimHostMemory::~SimHostMemory() {
  close_sent_locks();
  host_.drop_free_locks();
}

void SimHostMemory::crash() {
  sent_locks_.clear();  // they went with the process
  inner_->crash();
}

void SimHostMemory::close_sent_locks() {
  for (const int fd : std::exchange(sent_locks_, {}))
    host_.network_.close_descriptor(daemon_, fd);
}

Result<storage::SlabMemory> SimHostMemory::create_slab(std::uint32_t slab,
                                                       ByteCount bytes) noexcept {
  CAIRN_TRY(const storage::SlabMemory made, inner_->create_slab(slab, bytes));
  const std::uint64_t subject = host_.next_slab_++;
  subjects_[slab] = subject;
  host_.slabs_[subject] = {storage::OwnedFd(::dup(made.fd)), made.bytes.size()};
  const int fd = host_.network_.open_descriptor(daemon_, {SimDescriptorKind::kSlab, subject});
  return storage::SlabMemory{.bytes = made.bytes, .fd = fd};
}

void SimHostMemory::discard_slab(std::uint32_t slab) noexcept {
  inner_->discard_slab(slab);
  host_.slabs_.erase(subjects_.at(slab));
  subjects_.erase(slab);
}

Result<storage::OwnedFd> SimHostMemory::create_session_lock(std::uint64_t id,
                                                            std::string_view description) noexcept {
  close_sent_locks();
  CAIRN_TRY(storage::OwnedFd lock, inner_->create_session_lock(id, description));
  host_.locks_[id] = std::move(lock);
  sent_locks_.push_back(
      host_.network_.open_descriptor(daemon_, {SimDescriptorKind::kSessionLock, id}));
  // Its destructor closes a number that is no real descriptor's, which does nothing.
  return storage::OwnedFd(sent_locks_.back());
}

void SimHostMemory::remove_session_lock(std::uint64_t id) noexcept {
  inner_->remove_session_lock(id);
}

Result<storage::PredecessorSlabs> SimHostMemory::reclaim_predecessors() noexcept {
  close_sent_locks();
  host_.drop_free_locks();
  return inner_->reclaim_predecessors();
}

}  // namespace cairn::testing
