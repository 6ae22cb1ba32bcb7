#include "tests/support/sim_world.h"

#include "base/check.h"

#include <algorithm>

namespace cairn::testing {

SimWorld::SimWorld(std::uint64_t seed, const SimDaemonOptions& options)
    : random_(seed),
      network_(clock_, seed ^ 0x5EED),
      host_(network_),
      options_(options) {
  auto address = transport::Address::parse(options.unix_address);
  CAIRN_CHECK(address.has_value());
  address_ = *std::move(address);
  network_.set_step([this] { return step(); });
}

SimWorld::~SimWorld() {
  CAIRN_CHECK(residents_.empty());
  daemon_.reset();
}

void SimWorld::start_daemon() {
  CAIRN_CHECK(daemon_ == nullptr);
  options_.seed = random_.next_u64();
  daemon_ = std::make_unique<SimDaemon>(host_, clock_, options_);
}

void SimWorld::stop_daemon() {
  CAIRN_CHECK(daemon_ != nullptr);
  daemon_.reset();
  // The next daemon's boot is later than this one's.
  clock_.advance(Milliseconds(1));
}

void SimWorld::kill_daemon() {
  CAIRN_CHECK(daemon_ != nullptr);
  daemon_->kill();
  stop_daemon();
}

void SimWorld::add(SimResident& resident) {
  residents_.push_back(&resident);
}

void SimWorld::remove(SimResident& resident) {
  CAIRN_CHECK(std::erase(residents_, &resident) == 1);
}

void SimWorld::turn_residents() {
  // A turn may add and remove residents.
  const std::vector<SimResident*> residents = residents_;
  for (SimResident* const resident : residents) {
    if (std::ranges::count(residents_, resident) > 0) resident->turn();
  }
}

// Room that was made is used before time goes on, and what the step has brought is answered before
// anybody is asked whether it is ready.
bool SimWorld::step() {
  if (daemon_) daemon_->turn();
  turn_residents();
  const bool may_go_on = network_.step();
  if (daemon_) daemon_->turn();
  turn_residents();
  return may_go_on;
}

void SimWorld::run_for(Nanoseconds time) {
  const MonotonicTime until = clock_.now() + time;
  while (clock_.now() < until) {
    MonotonicTime next = until;
    for (SimResident* const resident : residents_) {
      const auto due = resident->next_due();
      if (due && *due > clock_.now()) next = std::min(next, *due);
    }
    network_.run_until(next);
  }
}

}  // namespace cairn::testing
