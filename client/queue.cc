#include "client/queue.h"

#include "client/get_flow.h"
#include "client/keys_flow.h"
#include "client/lookup_flow.h"
#include "client/object_flow.h"
#include "client/queue_core.h"
#include "client/queue_impl.h"
#include "client/requests.h"

#include <utility>

namespace cairn::client {

Queue::Queue(std::unique_ptr<Impl> impl) noexcept
    : impl_(std::move(impl)) {}
Queue::~Queue() = default;

Result<Ticket> Queue::submit(const LookupRequest& request) {
  return client::submit(impl_->core, request, impl_->core.deadline_of(request.call));
}
Result<Ticket> Queue::submit(const GetRequest& request) {
  return client::submit(impl_->core, request, impl_->core.deadline_of(request.call));
}
Result<Ticket> Queue::submit(const GetViewsRequest& request) {
  return client::submit(impl_->core, request, impl_->core.deadline_of(request.call));
}
Result<Ticket> Queue::submit(const PutRequest& request) {
  return client::submit(impl_->core, request, impl_->core.deadline_of(request.call));
}
Result<Ticket> Queue::submit(const ReserveRequest& request) {
  return client::submit(impl_->core, request, impl_->core.deadline_of(request.call));
}
Result<Ticket> Queue::submit(const CommitRequest& request) {
  return client::submit(impl_->core, request, impl_->core.deadline_of(request.call));
}
Result<Ticket> Queue::submit_remove(const KeysRequest& request) {
  return client::submit(impl_->core,
                        KeysCall{.request = request, .type = wire::MessageType::kRemove},
                        impl_->core.deadline_of(request.call));
}
Result<Ticket> Queue::submit_prefetch(const KeysRequest& request) {
  return client::submit(impl_->core,
                        KeysCall{.request = request, .type = wire::MessageType::kPrefetch},
                        impl_->core.deadline_of(request.call));
}
Result<Ticket> Queue::submit_retain(const KeysRequest& request, Milliseconds duration) {
  return client::submit(
      impl_->core,
      KeysCall{.request = request, .type = wire::MessageType::kRetain, .duration = duration},
      impl_->core.deadline_of(request.call));
}

void Queue::release(std::span<const BlockView> views) {
  impl_->core.release(views);
}
void Queue::abort(std::span<const BlockReservation> reservations) {
  impl_->core.abort(reservations);
}
void Queue::cancel(Ticket ticket) {
  impl_->core.cancel(ticket);
}
std::size_t Queue::poll(std::span<Completion> out) {
  return impl_->core.poll(out);
}
bool Queue::wait(Deadline until) {
  return impl_->core.wait(until.at());
}
int Queue::fd() const {
  return impl_->core.fd();
}
std::optional<MonotonicTime> Queue::next_due() const {
  return impl_->core.next_due();
}
std::size_t Queue::in_flight() const {
  return impl_->core.in_flight();
}

}  // namespace cairn::client
