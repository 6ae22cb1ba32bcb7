// A store against a model of it that is too simple to be wrong: the same requests, the same hits.
#include "base/random.h"
#include "tests/storage/store_fixture.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>

namespace cairn::storage {
namespace {

using Chain = std::vector<std::uint64_t>;

// Leaf-first LRU over a number of equal blocks. A request gets its leading run, whose blocks are
// used leaf first, then puts the rest: what it lacks takes the place of the coldest.
class ModelCache {
 public:
  explicit ModelCache(std::size_t capacity)
      : capacity_(capacity) {}

  std::size_t request(const Chain& chain) {
    std::size_t run = 0;
    while (run < chain.size() && at_.contains(chain[run]))
      ++run;
    use(chain, run);
    // Blocks behind the gap that are there already count as used by the put.
    use_present(chain, run);
    std::size_t lacking = 0;
    for (std::size_t i = run; i < chain.size(); ++i)
      if (!at_.contains(chain[i])) ++lacking;
    while (order_.size() + lacking > capacity_) {
      at_.erase(order_.front());
      order_.pop_front();
    }
    use(chain, chain.size());
    return run;
  }
  // Coldest first.
  Chain order() const { return {order_.begin(), order_.end()}; }

 private:
  void touch(std::uint64_t number) {
    if (const auto found = at_.find(number); found != at_.end()) order_.erase(found->second);
    at_[number] = order_.insert(order_.end(), number);
  }
  void use(const Chain& chain, std::size_t count) {
    for (std::size_t i = count; i > 0; --i)
      touch(chain[i - 1]);
  }
  void use_present(const Chain& chain, std::size_t run) {
    bool has_any = false;
    for (std::size_t i = chain.size(); i > run; --i) {
      if (!at_.contains(chain[i - 1])) continue;
      touch(chain[i - 1]);
      has_any = true;
    }
    if (has_any) use(chain, run);
  }

  std::size_t capacity_;
  std::list<std::uint64_t> order_;
  std::map<std::uint64_t, std::list<std::uint64_t>::iterator> at_;
};

// Conversations over a common root: a request continues one of them or begins a new one.
class Conversations {
 public:
  explicit Conversations(std::uint64_t seed)
      : random_(seed) {}
  Chain next() {
    if (chains_.empty() || random_.below(4) == 0) chains_.push_back({1, 2});
    const std::size_t recent = std::min<std::size_t>(chains_.size(), 12);
    Chain& chain = chains_[chains_.size() - 1 - random_.below(recent)];
    const std::uint64_t added = 1 + random_.below(4);
    for (std::uint64_t i = 0; i < added; ++i)
      chain.push_back(++last_);
    return chain;
  }

 private:
  SeededRandom random_;
  std::vector<Chain> chains_;
  std::uint64_t last_ = 2;
};

TEST(StoreTrace, HitsAndVictimsAreThoseOfLeafFirstLru) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  for (const std::uint32_t capacity : {80U, 150U, 300U}) {
    StoreFixture f({.frames = capacity});
    ModelCache model(capacity);
    Conversations conversations(seed + capacity);
    std::size_t hits = 0;
    std::size_t asked = 0;
    for (int i = 0; i < 500; ++i) {
      const Chain chain = conversations.next();
      if (chain.size() > capacity / 2) continue;
      const std::size_t run = f.get_then_put(chain);
      ASSERT_EQ(run, model.request(chain)) << "request " << i << " of capacity " << capacity;
      hits += run;
      asked += chain.size();
    }
    EXPECT_GT(hits, asked / 10);
    EXPECT_LT(hits, asked);
    const Chain order = model.order();
    EXPECT_EQ(f.victims(order), order);
  }
}

}  // namespace
}  // namespace cairn::storage
