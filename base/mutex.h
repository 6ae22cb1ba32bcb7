// A mutex that clang's thread-safety analysis understands. Lock order, where two are ever held, is
// written beside the members.
#pragma once

#include <mutex>

#if defined(__clang__)
#define CAIRN_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define CAIRN_THREAD_ANNOTATION(x)
#endif
#define CAIRN_CAPABILITY(x) CAIRN_THREAD_ANNOTATION(capability(x))
#define CAIRN_SCOPED_CAPABILITY CAIRN_THREAD_ANNOTATION(scoped_lockable)
#define CAIRN_GUARDED_BY(x) CAIRN_THREAD_ANNOTATION(guarded_by(x))
#define CAIRN_REQUIRES(...) CAIRN_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define CAIRN_ACQUIRE(...) CAIRN_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define CAIRN_RELEASE(...) CAIRN_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define CAIRN_EXCLUDES(...) CAIRN_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace cairn {

class CAIRN_CAPABILITY("mutex") Mutex {
 public:
  void lock() CAIRN_ACQUIRE() { mutex_.lock(); }
  void unlock() CAIRN_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class CAIRN_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) CAIRN_ACQUIRE(mutex)
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() CAIRN_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace cairn
