// Runs every interleaving of a few threads over the code that ships, which takes its atomics as a
// policy (base/atomics.h). Threads are fibers; each atomic operation is a point where any other may
// run instead. Memory orders are modelled by views, as in the release/acquire fragment of C++: a
// location keeps all its values, a load may return any that its thread has not yet moved past, and
// an acquire load of a release store takes over what the storing thread had seen. So a missing
// acquire or release is found, not only a wrong order of steps.
//
// Of executions that differ only in the order of operations that do not concern each other (other
// locations, or loads alone), one is run (sleep sets, Godefroid 1996). What threads share besides
// atomics is only seen at those operations.
//
// What is not atomic goes into a ModelPlain. Not modelled: fences, stores that enter a location's
// order before an older one, and speculation (a load that sees a store not yet executed). seq_cst
// is modelled a location at a time: such a load sees no value older than the last seq_cst store to
// the same location.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cairn::testing {

inline constexpr std::size_t kModelLocationsMax = 96;
inline constexpr std::size_t kModelThreadsMax = 4;

// For each location, the number of the oldest value that may still be read; behind them, for each
// thread, how many of its steps have happened before.
using ModelView = std::array<std::uint8_t, kModelLocationsMax + kModelThreadsMax + 1>;

struct ModelOptions {
  // Exploring stops here, and the result says that it is not complete.
  std::uint64_t executions_max = 5'000'000;
};

struct ModelResult {
  std::uint64_t executions = 0;
  bool is_complete = false;
  // Empty if none failed; else the condition and the thread numbers in the order of their steps.
  std::string failure;
};

// One execution's threads and what must hold when they have ended. A case is made afresh for each.
class ModelCase {
 public:
  ModelCase() = default;
  ModelCase(const ModelCase&) = delete;
  ModelCase& operator=(const ModelCase&) = delete;
  virtual ~ModelCase() = default;
  virtual std::vector<std::function<void()>> threads() = 0;
  virtual void finish() {}
};

ModelResult explore(const ModelOptions& options,
                    const std::function<std::unique_ptr<ModelCase>()>& make_case);

// Inside a case: ends exploring with a failure when false.
void model_expect(bool condition, const char* what);

namespace model {

std::uint8_t new_location();
// What a thread is about to do.
struct Operation {
  std::uint8_t location = 0;
  bool is_load = false;
};
// Another thread may run here, before the operation.
void scheduling_point(Operation operation);
// A number in [0, count): all are tried. 0 comes first.
std::uint32_t choose(std::uint32_t count);
// Of the running thread; kModelThreadsMax for the code before and after the threads.
std::size_t thread();
ModelView& view();
ModelView& sc_view();
void join(ModelView& into, const ModelView& from);
void block_until(Operation operation, const std::function<bool()>& is_ready);

constexpr bool acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
constexpr bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

template <typename T>
class Atomic {
 public:
  Atomic()
      : Atomic(T{}) {}
  explicit Atomic(T value) { values_.push_back({value, view()}); }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;
  ~Atomic() = default;

  T load(std::memory_order order) const {
    scheduling_point({location_, true});
    std::uint32_t oldest = view()[location_];
    if (order == std::memory_order_seq_cst)
      oldest = std::max<std::uint32_t>(oldest, sc_view()[location_]);
    const auto newest = static_cast<std::uint32_t>(values_.size() - 1);
    const std::uint32_t number = newest - choose(newest - oldest + 1);
    read(number, order);
    return values_[number].value;
  }
  void store(T value, std::memory_order order) {
    scheduling_point({location_, false});
    append(value, order, {});
  }
  T fetch_add(T by, std::memory_order order) {
    return change(order, [by](T value) { return static_cast<T>(value + by); });
  }
  T fetch_sub(T by, std::memory_order order) {
    return change(order, [by](T value) { return static_cast<T>(value - by); });
  }
  bool compare_exchange_strong(T& expected,
                               T desired,
                               std::memory_order success,
                               std::memory_order failure) {
    scheduling_point({location_, false});
    const auto newest = static_cast<std::uint32_t>(values_.size() - 1);
    const T value = values_[newest].value;
    if (value != expected) {
      read(newest, failure);
      expected = value;
      return false;
    }
    read(newest, success);
    append(desired, success, values_[newest].released);
    return true;
  }
  bool compare_exchange_weak(T& expected,
                             T desired,
                             std::memory_order success,
                             std::memory_order failure) {
    return compare_exchange_strong(expected, desired, success, failure);
  }

 private:
  struct Value {
    T value;
    ModelView released;  // what an acquire load takes over
  };

  template <typename Change>
  T change(std::memory_order order, Change&& next) {
    scheduling_point({location_, false});
    const auto newest = static_cast<std::uint32_t>(values_.size() - 1);
    const T old = values_[newest].value;
    read(newest, order);
    append(next(old), order, values_[newest].released);
    return old;
  }
  void read(std::uint32_t number, std::memory_order order) const {
    view()[location_] = static_cast<std::uint8_t>(number);
    if (acquires(order)) join(view(), values_[number].released);
  }
  // `inherited` is what the value before it released, when this one was made from it.
  void append(T value, std::memory_order order, ModelView inherited) {
    const auto number = static_cast<std::uint8_t>(values_.size());
    view()[location_] = number;
    if (releases(order)) join(inherited, view());
    inherited[location_] = number;
    if (order == std::memory_order_seq_cst) sc_view()[location_] = number;
    values_.push_back({value, inherited});
  }

  std::uint8_t location_ = new_location();
  std::vector<Value> values_;
};

}  // namespace model

struct ModelAtomics {
  template <typename T>
  using Atomic = model::Atomic<T>;
};

// Memory that is not atomic, as a frame's bytes are: an access that no release and acquire puts in
// order with a write by another thread ends exploring with a failure.
template <typename T>
class ModelPlain {
 public:
  T read() const {
    model_expect(has_happened(writer_, written_at_), "a read races with a write");
    reads_[model::thread()] = model::view()[clock(model::thread())];
    return value_;
  }
  void write(T value) {
    model_expect(has_happened(writer_, written_at_), "a write races with a write");
    for (std::size_t i = 0; i < reads_.size(); ++i)
      model_expect(has_happened(i, reads_[i]), "a write races with a read");
    writer_ = model::thread();
    written_at_ = model::view()[clock(writer_)];
    value_ = value;
  }

 private:
  static std::size_t clock(std::size_t thread) { return kModelLocationsMax + thread; }
  // Main, which has no clock, runs before and after all threads.
  static bool has_happened(std::size_t thread, std::uint8_t at) {
    return thread == model::thread() || thread >= kModelThreadsMax ||
           model::view()[clock(thread)] >= at;
  }

  T value_{};
  std::size_t writer_ = kModelThreadsMax;
  std::uint8_t written_at_ = 0;
  mutable std::array<std::uint8_t, kModelThreadsMax + 1> reads_{};
};

// A mutex among modelled threads: a thread that waits is not run.
class ModelMutex {
 public:
  ModelMutex()
      : location_(model::new_location()) {}
  void lock();
  void unlock();

 private:
  std::uint8_t location_;
  bool is_held_ = false;
  ModelView released_{};
};

}  // namespace cairn::testing
