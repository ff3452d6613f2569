#ifndef KILN_BASE_STRIPED_COUNTER_H_
#define KILN_BASE_STRIPED_COUNTER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kiln {

// A counter for what many threads do all the time: each adds to a line of the cache that it shares
// with few others, as one line for all would be handed from core to core at every step. The value
// need not be of one moment. Thread-safe.
class StripedCounter {
 public:
  void add() { stripes_[own_stripe()].value.fetch_add(1, std::memory_order_relaxed); }
  std::int64_t value() const {
    std::int64_t sum = 0;
    for (const Stripe& stripe : stripes_) sum += stripe.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  static constexpr std::size_t kStripes = 32;
  struct alignas(64) Stripe {
    std::atomic<std::int64_t> value{0};
  };

  static std::size_t own_stripe() {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t own = threads.fetch_add(1, std::memory_order_relaxed) % kStripes;
    return own;
  }

  std::array<Stripe, kStripes> stripes_;
};

}  // namespace kiln

#endif  // KILN_BASE_STRIPED_COUNTER_H_
