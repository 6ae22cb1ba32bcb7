#include "client/object_flow.h"

#include "client/queue_core.h"

namespace cairn::client {

bool ObjectFlow::send(QueueCore& core) {
  if (is_begun_) return true;
  is_begun_ = true;
  begin(core);
  return true;
}

Answered ObjectFlow::receive(QueueCore& /*core*/,
                             Exchange& /*exchange*/,
                             const wire::FrameView& /*frame*/) {
  return Answered::kBroken;  // it asks nothing itself
}

void ObjectFlow::reset() noexcept {
  child_ = nullptr;
  is_begun_ = false;
  ended_.reset();
}

void ObjectFlow::run(QueueCore& core, Flow& child) {
  child_ = &child;
  core.accept_child(child, *this, deadline);
}

// The child ends with the same status, and child_done() then concludes.
void ObjectFlow::end(QueueCore& core, BlockStatus status) {
  ended_ = status;
  if (!is_begun_) send(core);
  if (child_ != nullptr) core.end(*child_, status);
}

}  // namespace cairn::client
