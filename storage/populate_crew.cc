#include "storage/populate_crew.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace cairn::storage {

PopulateCrew::~PopulateCrew() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  work_.notify_all();
  for (const pthread_t thread : threads_)
    CAIRN_CHECK(::pthread_join(thread, nullptr) == 0);
}

Status PopulateCrew::start(std::uint32_t threads) noexcept {
  int failure = 0;
  for (std::uint32_t i = 0; i < threads; ++i) {
    pthread_t thread{};
    failure = ::pthread_create(&thread, nullptr, &PopulateCrew::thread_main, this);
    if (failure != 0) break;
    threads_.push_back(thread);
  }
  if (threads > 0 && threads_.empty()) return Error{ErrorCode::kIo, failure, "pthread_create"};
  return {};
}

void* PopulateCrew::thread_main(void* crew) {
  static_cast<PopulateCrew*>(crew)->run_thread();
  return nullptr;
}

void PopulateCrew::run_thread() noexcept {
  for (;;) {
    Step step;
    {
      const MutexLock lock(mutex_);
      std::optional<Step> next = begin_step();
      while (!next && !is_stopping_) {
        work_.wait(mutex_);
        next = begin_step();
      }
      if (!next) return;
      step = *next;
    }
    do_step(step);
  }
}

std::optional<PopulateCrew::Step> PopulateCrew::begin_step() noexcept {
  if (is_stopping_) return std::nullopt;
  for (Job& job : jobs_) {
    if (job.begun == job.bytes || !job.status.has_value()) continue;
    const Step step{
        .slab = job.slab, .offset = job.begun, .bytes = std::min(kStep, job.bytes - job.begun)};
    job.begun += step.bytes;
    ++job.steps_running;
    return step;
  }
  return std::nullopt;
}

void PopulateCrew::do_step(const Step& step) noexcept {
  const Status status = memory_.populate(step.slab, step.offset, step.bytes);
  const MutexLock lock(mutex_);
  for (Job& job : jobs_) {
    if (job.slab != step.slab) continue;
    --job.steps_running;
    if (!status.has_value() && job.status.has_value()) job.status = status;
  }
}

void PopulateCrew::add(std::uint32_t slab, ByteCount bytes) noexcept {
  {
    const MutexLock lock(mutex_);
    jobs_.push_back({.slab = slab, .bytes = bytes, .begun = {}, .steps_running = 0, .status = {}});
  }
  work_.notify_all();
}

void PopulateCrew::do_one_step() noexcept {
  std::optional<Step> step;
  {
    const MutexLock lock(mutex_);
    step = begin_step();
  }
  if (step) do_step(*step);
}

std::vector<PopulateCrew::Finished> PopulateCrew::take_finished() noexcept {
  const MutexLock lock(mutex_);
  std::vector<Finished> finished;
  while (!jobs_.empty() && jobs_.front().is_finished()) {
    finished.push_back({.slab = jobs_.front().slab, .status = jobs_.front().status});
    jobs_.pop_front();
  }
  return finished;
}

}  // namespace cairn::storage
