// What stands behind Queue.
#pragma once

#include "client/queue.h"
#include "client/queue_core.h"

#include <memory>
#include <utility>

namespace cairn::client {

class Queue::Impl {
 public:
  explicit Impl(std::shared_ptr<Session> session)
      : core(std::move(session)) {}
  QueueCore core;
};

}  // namespace cairn::client
