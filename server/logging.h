// Where log_event() writes: stderr, one line an event, "2026-01-31T08:15:00.123Z info event a=b".
#pragma once

#include "server/log.h"

#include <string_view>

namespace cairn::server {

// Events below `level` ("info", "warning", "error") are dropped. Before any other thread logs.
void configure_logging(std::string_view level) noexcept;
// Writes what is buffered; the daemon's last act.
void flush_log() noexcept;

}  // namespace cairn::server
