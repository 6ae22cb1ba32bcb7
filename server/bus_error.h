// A file that is mapped and truncated under us is answered by SIGBUS at the next touch. There is no
// way on from there: the bytes are gone.
#pragma once

namespace cairn::server {

// From now on SIGBUS writes one line to stderr that names the file at the address that was touched,
// and ends the process with kExitFailed. Before other threads start.
void install_bus_error_handler() noexcept;

}  // namespace cairn::server
