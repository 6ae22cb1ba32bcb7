#include "tests/support/sim_client.h"

#include "base/check.h"

namespace cairn::testing {

class SimClientProcess::Mapper final : public client::SlabMapper {
 public:
  Mapper(SimHost& host, SimProcessId process)
      : host_(host),
        process_(process) {}
  ~Mapper() override { CAIRN_CHECK(mappings_ == 0); }
  Mapper(const Mapper&) = delete;
  Mapper& operator=(const Mapper&) = delete;

  Result<std::span<std::byte>> map(int fd, ByteCount bytes) noexcept override {
    const auto what = host_.network().descriptor(fd);
    // The process may have been killed with the notice in its hands.
    if (!what || !host_.network().holds(process_, fd)) return Error{ErrorCode::kIo, 0, "sim: map"};
    CAIRN_CHECK(what->kind == SimDescriptorKind::kSlab);
    const std::span<std::byte> mapped = host_.map_slab(what->subject);
    CAIRN_CHECK(ByteCount(mapped.size()) == bytes);
    host_.network().close_descriptor(process_, fd);
    ++mappings_;
    return mapped;
  }
  void unmap(std::span<std::byte> bytes) noexcept override {
    SimHost::unmap_slab(bytes);
    --mappings_;
  }
  std::size_t mappings() const noexcept { return mappings_; }

 private:
  SimHost& host_;
  const SimProcessId process_;
  std::size_t mappings_ = 0;
};

class SimClientProcess::Watch final : public transport::ProcessWatch {
 public:
  Watch(SimNetwork& network, SimProcessId process)
      : network_(network),
        process_(process),
        inner_(network.make_process_watch(process)) {}

  Status verify(int fd, const transport::Channel::Peer& peer) noexcept override {
    return inner_->verify(fd, peer);
  }
  bool has_exited(int fd) noexcept override { return inner_->has_exited(fd); }
  void close(int fd) noexcept override {
    // A dead process has none left.
    if (network_.holds(process_, fd)) inner_->close(fd);
  }
  Result<int> open_own() noexcept override { return inner_->open_own(); }

 private:
  SimNetwork& network_;
  const SimProcessId process_;
  const std::unique_ptr<transport::ProcessWatch> inner_;
};

SimClientProcess::SimClientProcess(SimHost& host, ManualClock& clock, std::uint64_t seed)
    : network_(host.network()),
      clock_(clock),
      id_(network_.spawn()),
      random_(seed),
      connector_(network_.make_connector(id_)),
      mapper_(std::make_unique<Mapper>(host, id_)),
      watch_(std::make_unique<Watch>(network_, id_)) {}

SimClientProcess::~SimClientProcess() {
  if (state() != SimProcessState::kDead) network_.kill(id_);
}

client::Environment SimClientProcess::environment() {
  return {.clock = &clock_,
          .random = &random_,
          .connector = connector_.get(),
          .mapper = mapper_.get(),
          .process = watch_.get()};
}

std::size_t SimClientProcess::mappings() const noexcept {
  return mapper_->mappings();
}

}  // namespace cairn::testing
