// Requests of one queue that the daemon has not answered yet.
#pragma once

#include "transport/wire/frame.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::client {

class Flow;

struct Exchange {
  std::uint64_t request_id = 0;  // 0: a free place
  // nullptr: nobody waits any more, but what the answer lends has to be given back.
  Flow* flow = nullptr;
  wire::MessageType request{};
  std::uint32_t part = 0;         // the flow's own
  std::uint64_t inline_left = 0;  // payload bytes that still come in InlineData frames
  bool is_answered = false;       // only those are awaited
};

// Places by request id: ids of a queue count up, so a place is free again long before its turn.
class ExchangeTable {
 public:
  ExchangeTable();
  std::size_t size() const noexcept { return size_; }
  // True when `request_id` cannot be added: `limit` is reached or its place is taken.
  bool is_full(std::uint64_t request_id, std::size_t limit) const noexcept;
  Exchange& add(std::uint64_t request_id);
  Exchange* find(std::uint64_t request_id) noexcept;
  void remove(Exchange& exchange) noexcept;
  void clear() noexcept;
  // Nobody waits for what `flow` has asked. Exchanges that have their reply are removed.
  void disown(const Flow& flow) noexcept;
  template <typename Visit>
  void for_each(Visit visit) {
    for (Exchange& exchange : places_) {
      if (exchange.request_id != 0) visit(exchange);
    }
  }

 private:
  Exchange& place(std::uint64_t request_id) noexcept {
    return places_[request_id & (places_.size() - 1)];
  }
  std::vector<Exchange> places_;
  std::size_t size_ = 0;
};

}  // namespace cairn::client
