// Keys a second of Store::lookup and Store::lookup_run in this process, in batches of 512: hot,
// over blocks whose records and buckets fit the cache, and cold, over so many that most keys miss
// it. Frames have no memory behind them: a lookup never looks at one.
#include "base/clock.h"
#include "base/random.h"
#include "storage/frame_tier.h"
#include "storage/lazy_memory.h"
#include "storage/store.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <vector>

namespace cairn::storage {
namespace {

constexpr std::size_t kBatch = 512;
constexpr std::uint32_t kBlockBytes = 4096;

struct Options {
  std::uint32_t hot_blocks = 8'192;
  std::uint32_t cold_blocks = 1'000'000;
  double seconds = 0.5;          // a measurement
  int rounds = 5;                // measurements, of which the median is told
  double misses = 0;             // share of keys that are not there, in lookup only
  bool has_small_pages = false;  // records on small pages, as on a tmpfs without huge pages
  bool is_json = false;
};

// The DRAM tier's books over address space; every frame shares one header page.
class UntouchedTier final : public FrameTier {
 public:
  UntouchedTier(LazyMemory& memory, std::uint32_t slabs)
      : FrameTier({.granule = 4_KiB, .header_granules = 1},
                  {.slab_bytes = 1_GiB, .slabs_max = slabs}) {
    const auto slab = static_cast<std::size_t>((1_GiB).value());
    for (std::uint32_t n = 0; n < slabs; ++n)
      add_memory(n, 1, {.address = memory.bytes().data() + n * slab, .bytes = slab});
  }
  TierKind kind() const noexcept override { return TierKind::kDram; }
  std::span<std::byte> header_page(const ExtentList&) const noexcept override { return page_; }

 private:
  mutable std::array<std::byte, 4096> page_{};
};

BlockDigest digest_of(std::uint64_t number) {
  std::array<std::byte, kBlockDigestBytesMax> bytes{};
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(number)) {
    const std::uint64_t word = splitmix64(number);
    std::memcpy(bytes.data() + at, &word, sizeof(word));
  }
  return *BlockDigest::from(bytes);
}

template <typename T>
T must(Result<T> result, const char* what) {
  if (result.has_value()) return std::move(*result);
  std::fprintf(stderr, "index_lookup: %s: %s\n", what, error_code_name(result.error().code));
  std::_Exit(1);
}

// A store of `blocks` committed blocks.
class World {
 public:
  World(std::uint32_t blocks, LazyPages pages)
      : slabs_(static_cast<std::uint32_t>(
            divide_up(std::uint64_t{blocks} * 2 * kBlockBytes, (1_GiB).value()))),
        frames_(must(LazyMemory::map(1_GiB * slabs_), "frames")),
        tier_(frames_, slabs_) {
    const StoreOptions options{.records_max = blocks + 64, .pool_bytes = 1_GiB * slabs_};
    records_ = must(LazyMemory::map(Store::records_bytes(options), pages), "records");
    store_ = must(Store::open(options,
                              tier_,
                              {.bytes = records_.bytes()},
                              make_eviction_policy("lru", options.records_max),
                              clock_),
                  "store");
    store_->set_epoch(scope_.slot, scope_.epoch);
    for (std::uint32_t at = 0; at < blocks; at += 64)
      put(at, std::min(at + 64, blocks));
  }

  const Store& store() const { return *store_; }
  const Scope& scope() const { return scope_; }

 private:
  void put(std::uint32_t first, std::uint32_t last) {
    std::vector<ReserveItem> items;
    for (std::uint32_t n = first; n < last; ++n)
      items.push_back({digest_of(n), kBlockBytes});
    std::vector<ReserveOutcome> reserved(items.size());
    store_->reserve({.scope = scope_, .items = items, .is_chain = false}, reserved);
    const std::array<std::uint32_t, 1> checksums = {0};
    std::vector<CommitItem> commits;
    commits.reserve(reserved.size());
    for (const ReserveOutcome& outcome : reserved)
      commits.push_back({.ref = outcome.ref, .checksums = checksums});
    std::vector<BlockStatus> out(commits.size());
    store_->commit(scope_, commits, out);
    const bool is_whole = std::all_of(
        out.begin(), out.end(), [](BlockStatus status) { return status == BlockStatus::kOk; });
    if (!is_whole) std::_Exit(1);
  }

  std::uint32_t slabs_;
  LazyMemory frames_;
  UntouchedTier tier_;
  LazyMemory records_;
  SystemClock clock_;
  Scope scope_{.slot = NamespaceSlot(1), .epoch = 1, .digest = {}};
  std::unique_ptr<Store> store_;
};

struct Rates {
  double median = 0;
  double low = 0;
  double high = 0;
};

// Keys in random order, so that neither the key array's neighbours nor the records' help.
std::vector<BlockDigest> keys_of(std::uint32_t blocks, double misses) {
  SeededRandom random(1);
  std::vector<BlockDigest> keys;
  const std::size_t count = std::max<std::size_t>(kBatch, std::min<std::size_t>(blocks, 262'144));
  for (std::size_t i = 0; i < count / kBatch * kBatch; ++i) {
    const bool is_miss = random.unit() < misses;
    keys.push_back(digest_of(random.below(blocks) + (is_miss ? std::uint64_t{1} << 40U : 0)));
  }
  return keys;
}

template <typename Ask>
Rates measure(const Options& options, std::size_t keys, Ask&& ask) {
  std::vector<double> rates;
  for (int round = 0; round < options.rounds + 1; ++round) {
    const std::clock_t begin = std::clock();
    std::uint64_t asked = 0;
    double seconds = 0;
    std::size_t at = 0;
    while (seconds < options.seconds) {
      ask(at);
      asked += kBatch;
      at = at + kBatch == keys ? 0 : at + kBatch;
      if (asked % (kBatch * 16) == 0)
        seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    }
    if (round > 0) rates.push_back(static_cast<double>(asked) / seconds);  // the first one warms up
  }
  std::sort(rates.begin(), rates.end());
  return {rates[rates.size() / 2], rates.front(), rates.back()};
}

struct Outcome {
  Rates lookup;
  Rates run;
};

Outcome measure_world(const Options& options, std::uint32_t blocks) {
  const World world(blocks, options.has_small_pages ? LazyPages::kSmall : LazyPages::kHuge);
  const std::vector<BlockDigest> mixed = keys_of(blocks, options.misses);
  const std::vector<BlockDigest> present = keys_of(blocks, 0);
  std::array<LookupHit, kBatch> hits;
  std::uint64_t found = 0;
  Outcome out;
  out.lookup = measure(options, mixed.size(), [&](std::size_t at) {
    world.store().lookup(world.scope(), std::span(mixed).subspan(at, kBatch), hits);
    found += hits[0].length;
  });
  out.run = measure(options, present.size(), [&](std::size_t at) {
    const std::size_t run =
        world.store().lookup_run(world.scope(), std::span(present).subspan(at, kBatch), hits);
    if (run != kBatch) std::_Exit(1);
    found += run;
  });
  if (found == 0) std::_Exit(1);
  return out;
}

void print_text(const char* name, std::uint32_t blocks, const Outcome& outcome) {
  const auto line = [&](const char* call, const Rates& rates) {
    std::printf("%-5s %-11s %8u blocks  %6.1f M keys/s (%.1f to %.1f)\n",
                name,
                call,
                blocks,
                rates.median / 1e6,
                rates.low / 1e6,
                rates.high / 1e6);
  };
  line("lookup", outcome.lookup);
  line("lookup_run", outcome.run);
}

void print_json(const Options& options, const Outcome& hot, const Outcome& cold) {
  const auto member = [](const char* name, std::uint32_t blocks, const Outcome& o) {
    std::printf(
        "\"%s\":{\"blocks\":%u,\"lookup_keys_per_s\":%.0f,\"lookup_keys_per_s_min\":%.0f,"
        "\"lookup_run_keys_per_s\":%.0f,\"lookup_run_keys_per_s_min\":%.0f}",
        name,
        blocks,
        o.lookup.median,
        o.lookup.low,
        o.run.median,
        o.run.low);
  };
  std::printf("{\"batch\":%zu,\"misses\":%.3f,", kBatch, options.misses);
  member("hot", options.hot_blocks, hot);
  std::printf(",");
  member("cold", options.cold_blocks, cold);
  std::printf("}\n");
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--json" || name == "--small-pages") {
      (name == "--json" ? options.is_json : options.has_small_pages) = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const char* const value = argv[++i];
    if (name == "--hot-blocks") {
      options.hot_blocks = static_cast<std::uint32_t>(std::strtoul(value, nullptr, 10));
    } else if (name == "--cold-blocks") {
      options.cold_blocks = static_cast<std::uint32_t>(std::strtoul(value, nullptr, 10));
    } else if (name == "--seconds") {
      options.seconds = std::strtod(value, nullptr);
    } else if (name == "--rounds") {
      options.rounds = static_cast<int>(std::strtol(value, nullptr, 10));
    } else if (name == "--misses") {
      options.misses = std::strtod(value, nullptr);
    } else {
      return false;
    }
  }
  return options.hot_blocks > 0 && options.cold_blocks > 0 && options.rounds > 0;
}

}  // namespace

int run_program(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: index_lookup [--hot-blocks N] [--cold-blocks N] [--seconds S] [--rounds N]"
                 " [--misses SHARE] [--small-pages] [--json]\n");
    return 2;
  }
  const Outcome hot = measure_world(options, options.hot_blocks);
  const Outcome cold = measure_world(options, options.cold_blocks);
  if (options.is_json) {
    print_json(options, hot, cold);
  } else {
    print_text("hot", options.hot_blocks, hot);
    print_text("cold", options.cold_blocks, cold);
  }
  return 0;
}

}  // namespace cairn::storage

int main(int argc, char** argv) {
  return cairn::storage::run_program(argc, argv);
}
