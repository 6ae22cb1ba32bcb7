// What a client is told about one key. Fixed numbers: they are on the wire and in metrics; new ones
// are added at the end and values never change meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cairn {

enum class BlockStatus : std::uint8_t {
  kOk = 0,
  kExists = 1,           // a put of a key that is already there; counted as a use, nothing changed
  kMiss = 2,             // not here, or a bad copy was found and dropped
  kCut = 3,              // a chain failed at an earlier key
  kBusy = 4,             // try again later, nothing changed; BusyReason says what is full
  kDeclined = 5,         // a put the store chose not to keep; not an error, do not retry
  kTimeout = 6,          // not done by the request's deadline
  kCancelled = 7,        // cancelled, or a reservation that did not survive a reconnect
  kCorrupt = 8,          // the client's own check failed on bytes that were delivered
  kPeerLost = 9,         // the daemon or peer that held the operation is gone
  kQuota = 10,           // a tenant, namespace or table limit
  kForbidden = 11,       // the session has no right to this namespace or call
  kWrongNamespace = 12,  // the namespace's epoch has moved on; open it again
  kTooLarge = 13,        // beyond a limit announced in the hello
  kInvalid = 14,         // a malformed key, size or option
};
inline constexpr std::uint8_t kBlockStatusCount = 15;

// What is full when the status is kBusy; kNone otherwise.
enum class BusyReason : std::uint8_t {
  kNone = 0,
  kFrames = 1,     // every frame is pinned or lent
  kLentLimit = 2,  // this process holds clients.lent_max already
  kWindow = 3,     // too many requests in flight
  kRate = 4,       // over a rate limit
};
inline constexpr std::uint8_t kBusyReasonCount = 5;

std::string_view block_status_name(BlockStatus status) noexcept;
std::string_view busy_reason_name(BusyReason reason) noexcept;
// nullopt for a number that names no status.
std::optional<BlockStatus> block_status_from(std::uint8_t number) noexcept;
std::optional<BusyReason> busy_reason_from(std::uint8_t number) noexcept;

}  // namespace cairn
