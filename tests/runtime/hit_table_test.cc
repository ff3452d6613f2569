#include "runtime/hit_table.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace kiln::internal {
namespace {

using Key = std::array<std::uint64_t, 3>;
Key key_of(std::uint64_t i) { return {i, i * 7919, ~i}; }
const void* value_of(std::uint64_t i) { return reinterpret_cast<const void*>(i * 16 + 16); }

TEST(HitTableTest, FindsWhatWasInsertedAndNothingElse) {
  HitTable table(3, 1, 4096);
  const void* value = nullptr;
  EXPECT_EQ(table.find(key_of(1).data(), 3, &value), -1);
  for (std::uint64_t i = 0; i < 500; ++i) {
    const void* v = value_of(i);
    table.insert(key_of(i).data(), 3, &v, 1);
  }
  for (std::uint64_t i = 0; i < 500; ++i) {
    ASSERT_EQ(table.find(key_of(i).data(), 3, &value), 1) << i;
    EXPECT_EQ(value, value_of(i));
  }
  EXPECT_EQ(table.find(key_of(500).data(), 3, &value), -1);
  EXPECT_EQ(table.find(key_of(1).data(), 2, &value), -1) << "a shorter key is another key";
}

TEST(HitTableTest, KeepsAtMostItsRowsWhateverComes) {
  HitTable table(3, 1, 256);
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const void* v = value_of(i);
    table.insert(key_of(i).data(), 3, &v, 1);
  }
  EXPECT_LE(table.rows(), 256u);
  const void* value = nullptr;
  EXPECT_EQ(table.find(key_of(99999).data(), 3, &value), 1) << "the newest row is there";
}

TEST(HitTableTest, ReplacesTheValueOfAKnownKeyAndForgetsAllOnClear) {
  HitTable table(3, 2, 256);
  const void* values[] = {value_of(1), value_of(2)};
  table.insert(key_of(9).data(), 3, values, 2);
  values[1] = value_of(3);
  table.insert(key_of(9).data(), 3, values, 2);
  EXPECT_EQ(table.rows(), 1u);
  const void* found[2] = {};
  ASSERT_EQ(table.find(key_of(9).data(), 3, found), 2);
  EXPECT_EQ(found[1], value_of(3));
  table.clear();
  EXPECT_EQ(table.find(key_of(9).data(), 3, found), -1);
}

TEST(HitTableTest, DoesNotKeepWhatIsTooLong) {
  HitTable table(2, 1, 64);
  const void* value = value_of(1);
  table.insert(key_of(1).data(), 3, &value, 1);
  EXPECT_EQ(table.rows(), 0u);
}

// Readers race with writers that replace rows: a reader gets its key's value or a miss, never
// another's.
TEST(HitTableTest, ReadersNeverSeeAnotherKeysValue) {
  HitTable table(3, 1, 64);
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> hits{0}, wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      for (std::uint64_t i = 0; !stop; i = (i + 1) % 300) {
        const void* value = nullptr;
        if (table.find(key_of(i).data(), 3, &value) != 1) continue;
        ++hits;
        if (value != value_of(i)) ++wrong;
      }
    });
  }
  for (std::uint64_t round = 0; round < 200; ++round) {
    for (std::uint64_t i = 0; i < 300; ++i) {
      const void* v = value_of(i);
      table.insert(key_of(i).data(), 3, &v, 1);
    }
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(hits, 0);
}

}  // namespace
}  // namespace kiln::internal
