// A bare HTTP/1.1 endpoint for those who watch: GET /metrics and GET /healthz. It has its own
// thread, so a slow reader of metrics never delays a client.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "transport/channel.h"

#include <cstddef>
#include <memory>
#include <string>

namespace cairn::server {

inline constexpr std::size_t kAdminConnectionsMax = 32;  // more are closed at once
inline constexpr ByteCount kAdminRequestBytesMax = 8_KiB;
inline constexpr Milliseconds kAdminTimeout = Milliseconds(5'000);

// What it shows. Called on the endpoint's thread.
class AdminPages {
 public:
  AdminPages() = default;
  AdminPages(const AdminPages&) = delete;
  AdminPages& operator=(const AdminPages&) = delete;
  virtual ~AdminPages() = default;
  // Prometheus text.
  virtual std::string metrics() const = 0;
  // nullptr: it serves (200 "ok"); else why it does not (503).
  virtual const char* why_unhealthy() const = 0;
};

class AdminEndpoint {
 public:
  // Listens on `address` (TCP) and starts its thread; `pages` outlives it. A connection that takes
  // longer than `timeout` for its request or our reply is closed. Errors: kExists (the port is
  // taken), kPermission, kInvalid (no numeric host), kIo.
  static Result<std::unique_ptr<AdminEndpoint>> open(const transport::Address& address,
                                                     const AdminPages& pages,
                                                     Milliseconds timeout = kAdminTimeout) noexcept;
  // Closes every connection and waits for the thread.
  ~AdminEndpoint();
  AdminEndpoint(const AdminEndpoint&) = delete;
  AdminEndpoint& operator=(const AdminEndpoint&) = delete;

  // With the port that was chosen when it was 0.
  transport::Address address() const;

 private:
  class Impl;
  explicit AdminEndpoint(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::server
