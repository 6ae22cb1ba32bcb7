#include "client/exchange.h"

#include "base/check.h"

namespace cairn::client {
namespace {

// A power of two, twice the most that may be in flight.
constexpr std::size_t kPlaces = 2 * std::size_t{wire::kRequestsInFlightMax};
static_assert((kPlaces & (kPlaces - 1)) == 0);

}  // namespace

ExchangeTable::ExchangeTable()
    : places_(kPlaces) {}

bool ExchangeTable::is_full(std::uint64_t request_id, std::size_t limit) const noexcept {
  return size_ >= limit || places_[request_id & (kPlaces - 1)].request_id != 0;
}

Exchange& ExchangeTable::add(std::uint64_t request_id) {
  Exchange& exchange = place(request_id);
  CAIRN_CHECK(exchange.request_id == 0);
  exchange = Exchange{.request_id = request_id};
  ++size_;
  return exchange;
}

Exchange* ExchangeTable::find(std::uint64_t request_id) noexcept {
  if (request_id == 0) return nullptr;
  Exchange& exchange = place(request_id);
  return exchange.request_id == request_id ? &exchange : nullptr;
}

void ExchangeTable::remove(Exchange& exchange) noexcept {
  CAIRN_CHECK(exchange.request_id != 0);
  exchange = Exchange{};
  --size_;
}

void ExchangeTable::clear() noexcept {
  for (Exchange& exchange : places_)
    exchange = Exchange{};
  size_ = 0;
}

void ExchangeTable::disown(const Flow& flow) noexcept {
  for (Exchange& exchange : places_) {
    if (exchange.flow != &flow) continue;
    exchange.flow = nullptr;
    // The data of a get that is behind its reply may never come.
    if (exchange.is_answered) remove(exchange);
  }
}

}  // namespace cairn::client
