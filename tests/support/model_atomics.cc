#include "tests/support/model_atomics.h"

#include "base/check.h"
#include "base/units.h"

#include <ucontext.h>

#include <algorithm>
#include <memory>

namespace cairn::testing {
namespace {

constexpr std::size_t kStackBytes = (256_KiB).value();

struct Choice {
  std::uint32_t taken = 0;
  std::uint32_t count = 1;
};

// One execution at a time; the path of choices is carried from one to the next.
class World {
 public:
  explicit World(const ModelOptions& options)
      : options_(options) {
    for (auto& fiber : fibers_)
      fiber.stack.resize(kStackBytes);
  }

  void run(ModelCase& model_case);
  void begin() {
    locations_ = 0;
    at_ = 0;
    sleeping_ = {};
    is_pruned_ = false;
    count_ = 0;
    current_ = kMain;
    main_view_ = {};
    sc_view_ = {};
    schedule_.clear();
  }
  // The next path in depth-first order; false when all have been taken.
  bool advance() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().count)
      path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }

  std::uint32_t choose(std::uint32_t count) {
    if (count == 1) return 0;
    if (at_ == path_.size()) path_.push_back({0, count});
    CAIRN_CHECK(path_[at_].count == count);
    return path_[at_++].taken;
  }
  void point(model::Operation operation);
  void block_until(model::Operation operation, const std::function<bool()>& is_ready);
  void fail(const char* what) {
    if (!failure_.empty()) return;
    failure_ = what;
    failure_ += "; steps:";
    for (const int step : schedule_) {
      failure_ += ' ';
      failure_ += std::to_string(step);
    }
  }

  std::uint8_t new_location() {
    CAIRN_CHECK(locations_ < kModelLocationsMax);
    return static_cast<std::uint8_t>(locations_++);
  }
  ModelView& view() { return current_ == kMain ? main_view_ : fibers_[current_].view; }
  ModelView& sc_view() { return sc_view_; }
  std::size_t thread() const { return current_; }
  const std::string& failure() const { return failure_; }

 private:
  static constexpr std::size_t kMain = kModelThreadsMax;
  struct Fiber {
    std::vector<char> stack;
    ucontext_t context{};
    std::function<void()> body;
    ModelView view{};
    bool is_done = true;
    model::Operation next{};
    const std::function<bool()>* waits_for = nullptr;
  };

  static void enter();
  bool can_run(std::size_t i) const {
    const Fiber& fiber = fibers_[i];
    return !fiber.is_done && (fiber.waits_for == nullptr || (*fiber.waits_for)());
  }
  // The thread to run next, the present one first; kMain when none can.
  std::size_t pick();
  void switch_to(std::size_t next);

  ModelOptions options_;
  std::array<Fiber, kModelThreadsMax> fibers_;
  ucontext_t main_context_{};
  std::size_t count_ = 0;
  std::size_t current_ = kMain;
  ModelView main_view_{};
  ModelView sc_view_{};
  std::size_t locations_ = 0;
  std::vector<Choice> path_;
  std::size_t at_ = 0;
  // Threads whose next operation was tried here already, in an execution that differs only by what
  // has been done since.
  std::array<bool, kModelThreadsMax> sleeping_{};
  bool is_pruned_ = false;
  bool is_starting_ = false;
  std::vector<int> schedule_;
  std::string failure_;
};

World* world = nullptr;

void World::enter() {
  Fiber& self = world->fibers_[world->current_];
  self.body();
  self.is_done = true;
  world->switch_to(world->is_starting_ ? kMain : world->pick());
}

std::size_t World::pick() {
  std::array<std::size_t, kModelThreadsMax> able{};
  std::size_t count = 0;
  bool has_sleeper = false;
  const auto consider = [&](std::size_t i) {
    if (!can_run(i)) return;
    if (sleeping_[i]) {
      has_sleeper = true;
    } else {
      able[count++] = i;
    }
  };
  if (current_ != kMain) consider(current_);
  for (std::size_t i = 0; i < count_; ++i)
    if (i != current_) consider(i);
  if (count == 0) {
    is_pruned_ = has_sleeper;
    return kMain;
  }
  const std::uint32_t taken = choose(static_cast<std::uint32_t>(count));
  const std::size_t next = able[taken];
  for (std::uint32_t earlier = 0; earlier < taken; ++earlier)
    sleeping_[able[earlier]] = true;
  for (std::size_t i = 0; i < count_; ++i) {
    const model::Operation& left = fibers_[i].next;
    const model::Operation& right = fibers_[next].next;
    const bool is_independent = left.location != right.location || (left.is_load && right.is_load);
    sleeping_[i] = sleeping_[i] && is_independent;
  }
  return next;
}

void World::switch_to(std::size_t next) {
  if (next == current_) return;
  ucontext_t& from = current_ == kMain ? main_context_ : fibers_[current_].context;
  ucontext_t& to = next == kMain ? main_context_ : fibers_[next].context;
  current_ = next;
  CAIRN_CHECK(swapcontext(&from, &to) == 0);
}

void World::point(model::Operation operation) {
  if (current_ == kMain) return;
  fibers_[current_].next = operation;
  switch_to(is_starting_ ? kMain : pick());
  ++view()[kModelLocationsMax + current_];
  schedule_.push_back(static_cast<int>(current_));
}

void World::block_until(model::Operation operation, const std::function<bool()>& is_ready) {
  if (current_ == kMain) return;
  fibers_[current_].waits_for = &is_ready;
  point(operation);
  fibers_[current_].waits_for = nullptr;
}

void World::run(ModelCase& model_case) {
  const auto bodies = model_case.threads();
  CAIRN_CHECK(bodies.size() <= kModelThreadsMax);
  count_ = bodies.size();
  for (std::size_t i = 0; i < count_; ++i) {
    Fiber& fiber = fibers_[i];
    fiber.body = bodies[i];
    fiber.view = main_view_;
    fiber.view[kModelLocationsMax + i] = 1;  // what precedes its first step counts as well
    fiber.is_done = false;
    fiber.waits_for = nullptr;
    CAIRN_CHECK(getcontext(&fiber.context) == 0);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &World::enter, 0);
  }
  is_starting_ = true;
  for (std::size_t i = 0; i < count_; ++i)
    switch_to(i);
  is_starting_ = false;
  switch_to(pick());
  if (is_pruned_) return;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!fibers_[i].is_done) fail("a thread waits for ever");
    model::join(main_view_, fibers_[i].view);
  }
  model_case.finish();
}

}  // namespace

ModelResult explore(const ModelOptions& options,
                    const std::function<std::unique_ptr<ModelCase>()>& make_case) {
  World explored(options);
  world = &explored;
  ModelResult result;
  bool has_more = true;
  while (has_more && result.executions < options.executions_max && explored.failure().empty()) {
    explored.begin();
    const std::unique_ptr<ModelCase> model_case = make_case();
    explored.run(*model_case);
    ++result.executions;
    has_more = explored.advance();
  }
  result.is_complete = !has_more;
  result.failure = explored.failure();
  world = nullptr;
  return result;
}

void model_expect(bool condition, const char* what) {
  if (!condition) world->fail(what);
}

namespace model {

std::uint8_t new_location() {
  return world->new_location();
}
void scheduling_point(Operation operation) {
  world->point(operation);
}
std::uint32_t choose(std::uint32_t count) {
  return world->choose(count);
}
std::size_t thread() {
  return world->thread();
}
ModelView& view() {
  return world->view();
}
ModelView& sc_view() {
  return world->sc_view();
}
void join(ModelView& into, const ModelView& from) {
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}
void block_until(Operation operation, const std::function<bool()>& is_ready) {
  world->block_until(operation, is_ready);
}

}  // namespace model

void ModelMutex::lock() {
  model::block_until({location_, false}, [this] { return !is_held_; });
  is_held_ = true;
  model::join(model::view(), released_);
}

void ModelMutex::unlock() {
  model::scheduling_point({location_, false});
  is_held_ = false;
  released_ = model::view();
}

}  // namespace cairn::testing
