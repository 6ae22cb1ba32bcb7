#include "tests/support/faulty_key_value.h"

namespace cairn::testing {

bool FaultyKeyValue::Countdown::is_due() noexcept {
  if (left == kNever) return false;
  if (left == 0) return true;
  --left;
  return false;
}

void FaultyKeyValue::fail_reads_after(std::uint64_t calls, Error error) noexcept {
  reads_.error = error;
  reads_.left = calls;
}

void FaultyKeyValue::fail_writes_after(std::uint64_t calls, Error error) noexcept {
  write_faults_.error = error;
  write_faults_.left = calls;
}

void FaultyKeyValue::heal() noexcept {
  reads_.left = kNever;
  write_faults_.left = kNever;
  is_late_ = false;
}

Result<std::optional<std::string>> FaultyKeyValue::get(storage::Table table,
                                                       std::string_view key) noexcept {
  if (reads_.is_due()) return reads_.error;
  return real_.get(table, key);
}

Status FaultyKeyValue::write(const std::vector<storage::KeyValueWrite>& writes,
                             bool sync) noexcept {
  if (write_faults_.is_due()) return write_faults_.error;
  ++writes_;
  if (sync) ++synced_writes_;
  const Status written = real_.write(writes, sync);
  if (is_late_) return kFault;
  return written;
}

Result<std::vector<std::pair<std::string, std::string>>> FaultyKeyValue::scan(
    storage::Table table) noexcept {
  if (reads_.is_due()) return reads_.error;
  return real_.scan(table);
}

}  // namespace cairn::testing
