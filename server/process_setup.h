// What the process as a whole needs: its signals and its limits.
#pragma once

namespace cairn::server {

// From now on SIGTERM, SIGINT and SIGHUP wait for wait_for_stop_signal(). Before other threads
// start: they take the mask over. SIGPIPE is ignored.
void hold_stop_signals() noexcept;
// Returns when the first one has come; the next one ends the process by its default action.
void wait_for_stop_signal() noexcept;

// Raises the limit of open descriptors to what the system allows: a connection is one, and so is a
// slab.
void raise_descriptor_limit() noexcept;

}  // namespace cairn::server
