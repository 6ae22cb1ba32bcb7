// Lends, waiting and the end of a queue.
#include "client/queue_core.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace cairn::client {
namespace {

// Lends given back in one message.
constexpr std::size_t kReturnsPerMessage = 4'096;
static_assert(kReturnsPerMessage <= wire::kLendsPerMessageMax);
// How long a queue that ends waits for answers that lend something.
constexpr Milliseconds kCloseTime(200);
// How often queued bytes are tried again by a caller that only polls for reading.
constexpr Milliseconds kFlushPause(1);

void watch(int set, int fd) {
  if (fd < 0) return;
  epoll_event event{};
  event.events = EPOLLIN;
  static_cast<void>(::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
}

}  // namespace

// ---- lends ----

Status QueueCore::adopt(const Session::Lent& lent, std::span<FramePieces> out) {
  const Status adopted = session_->adopt(connection_.generation(), lent, out);
  if (!adopted) give_back_grants(lent.grants, lent.is_reserved);
  return adopted;
}

void QueueCore::give_back_view(std::uint64_t lend, bool is_corrupt) {
  if (session_->give_back(lend) == LendEnd::kRemote) {
    releases_.push_back({.lend = lend, .found_corrupt = is_corrupt});
  }
}

void QueueCore::give_back_reservation(std::uint64_t lend) {
  if (session_->give_back(lend) == LendEnd::kRemote) aborts_.push_back(lend);
}

void QueueCore::release(std::span<const BlockView> views) {
  if (is_child()) return;
  for (const BlockView& view : views) {
    if (view.lend != 0) give_back_view(view.lend, false);
  }
  send_returns();
}

void QueueCore::abort(std::span<const BlockReservation> reservations) {
  if (is_child()) return;
  for (const BlockReservation& reservation : reservations) {
    if (reservation.lend != 0) give_back_reservation(reservation.lend);
  }
  send_returns();
}

void QueueCore::send_returns() {
  if (!connection_.is_ready()) return;
  for (const auto& backs : {connection_.take_back(), session_->take_deferred()}) {
    for (const GivenBack& back : backs) {
      if (back.is_reserved) aborts_.push_back(back.lend);
      if (!back.is_reserved) releases_.push_back({.lend = back.lend, .found_corrupt = false});
    }
  }
  while (!releases_.empty() && connection_.is_ready()) {
    const std::size_t count = std::min(releases_.size(), kReturnsPerMessage);
    const auto end = releases_.begin() + static_cast<std::ptrdiff_t>(count);
    scratch_.release.entries.assign(releases_.begin(), end);
    if (!tell(connection_.take_request_id(), scratch_.release)) return;
    releases_.erase(releases_.begin(), end);
  }
  while (!aborts_.empty() && connection_.is_ready()) {
    const std::size_t count = std::min(aborts_.size(), kReturnsPerMessage);
    const auto end = aborts_.begin() + static_cast<std::ptrdiff_t>(count);
    scratch_.abort.lends.assign(aborts_.begin(), end);
    if (!tell(connection_.take_request_id(), scratch_.abort)) return;
    aborts_.erase(aborts_.begin(), end);
  }
}

bool QueueCore::copy(CopyBatch& batch, Flow& flow) {
  batch.set_owner(&flow);
  return copier_.start(batch, flow.deadline);
}

// ---- waiting ----

bool QueueCore::wait(MonotonicTime until) {
  if (is_child()) return false;
  if (!ended_.empty()) return true;
  const auto due = next_due();
  const MonotonicTime stop = due ? std::min(until, *due) : until;
  if (stop <= now()) return due.has_value() && *due <= now();
  const bool is_there = copier_.is_idle() ? connection_.wait(stop) : copier_.wait(stop);
  return is_there || (due.has_value() && *due <= now());
}

std::optional<MonotonicTime> QueueCore::next_due() {
  if (is_child()) return std::nullopt;
  if (!ended_.empty()) return now();
  MonotonicTime due = earliest_;
  if (const auto step = connection_.next_due()) due = std::min(due, *step);
  transport::Channel* const channel = connection_.channel();
  const bool is_waiting =
      connection_.is_stale() || (channel != nullptr && channel->queued() > ByteCount());
  if (is_waiting) due = std::min(due, now() + kFlushPause);
  if (due == MonotonicTime{std::numeric_limits<std::int64_t>::max()}) return std::nullopt;
  return due;
}

int QueueCore::fd() {
  transport::Channel* const channel = connection_.channel();
  const int socket = channel != nullptr && !is_child() ? channel->fd() : -1;
  if (copier_.event_fd() < 0 || socket < 0) return socket;
  if (poll_set_ >= 0 && poll_set_serial_ == connection_.socket_serial()) return poll_set_;
  if (poll_set_ >= 0) ::close(poll_set_);
  poll_set_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (poll_set_ < 0) return socket;
  poll_set_serial_ = connection_.socket_serial();
  watch(poll_set_, socket);
  watch(poll_set_, copier_.event_fd());
  return poll_set_;
}

// ---- the end ----

QueueCore::~QueueCore() {
  if (poll_set_ >= 0) ::close(poll_set_);
  if (!is_child()) {
    close();
    return;
  }
  connection_.abandon();
  copier_.abandon();
  // The slabs are not mapped here, the copy threads do not exist, and the mutex may be held by a
  // thread that does not either: nothing of it may be destroyed.
  new std::shared_ptr<Session>(std::move(session_));
}

bool QueueCore::owes_lends() {
  bool owes = false;
  exchanges_.for_each([&](const Exchange& exchange) {
    owes = owes || exchange.request == wire::MessageType::kGet ||
           exchange.request == wire::MessageType::kReserve ||
           exchange.request == wire::MessageType::kCommit;
  });
  return owes;
}

void QueueCore::close() {
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (flows_[i]) end(*flows_[i], BlockStatus::kCancelled);
  }
  while (!copier_.is_idle()) {
    copier_.wait(now() + kCloseTime);
    collect_copies();
  }
  tell_parents();
  const MonotonicTime until = now() + kCloseTime;
  while (connection_.is_ready() && owes_lends() && now() < until) {
    connection_.wait(until);
    read_frames();
    // Room that there is is used, or it would end every wait at once.
    connection_.flush();
  }
  for (const GivenBack& back : session_->leave()) {
    if (back.is_reserved) give_back_reservation(back.lend);
    if (!back.is_reserved) give_back_view(back.lend, false);
  }
  send_returns();
  transport::Channel* channel = connection_.channel();
  while (channel != nullptr && channel->queued() > ByteCount() && now() < until) {
    connection_.wait(until);
    // What has come is taken, or it would end every wait at once.
    read_frames();
    connection_.flush();
    channel = connection_.channel();
  }
}

}  // namespace cairn::client
