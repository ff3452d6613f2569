#ifndef KILN_RUNTIME_HIT_TABLE_H_
#define KILN_RUNTIME_HIT_TABLE_H_

#include <kiln/export.h>
#include <kiln/words.h>

#include "base/mutex.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::internal {

// Rows of words that find a few pointers: the table behind every hit. Thread-safe; readers take no
// lock, write nothing and never wait. Bounded: it doubles up to `max_rows`, then a new row takes an
// old one's place, so a key that grows with every call (a sequence length) costs rows, not memory.
// What the pointers name is owned elsewhere.
//
// Each row is a sequence lock: a reader that sees the row's version change under it takes it for a
// miss. All words are atomics, so a torn read is only ever a miss, never undefined.
class KILN_EXPORT HitTable {
 public:
  // Keys of at most `key_words` words, values of at most `value_words` pointers.
  HitTable(std::size_t key_words, std::size_t value_words, std::size_t max_rows);

  // Copies the row's values to `values` and returns how many there are; -1 when there is no such
  // row.
  int find(const std::uint64_t* key, std::size_t key_count, const void** values) const;
  // Adds a row, or replaces the values of the one that is there. Keys and values that are too long
  // are not kept.
  void insert(const std::uint64_t* key, std::size_t key_count, const void* const* values,
              std::size_t value_count);
  // Forgets all rows.
  void clear();
  std::size_t rows() const;

 private:
  using Word = std::atomic<std::uint64_t>;
  // A row: version, hash, counts, then key words, then values.
  struct Table {
    Table(std::size_t row_count, std::size_t row_words);
    Word* row(std::uint64_t hash, std::size_t probe) const {
      return &words[((hash + probe) & mask) * stride];
    }
    std::size_t mask;
    std::size_t stride;
    std::unique_ptr<Word[]> words;
  };
  static void write(Word* row, std::uint64_t hash, const std::uint64_t* key, std::size_t key_count,
                    const void* const* values, std::size_t value_count, std::size_t key_words);
  static bool matches(const Word* row, std::uint64_t hash, const std::uint64_t* key,
                      std::size_t key_count);
  Word* place_for(Table& table, std::uint64_t hash, const std::uint64_t* key, std::size_t key_count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void grow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t key_words_, value_words_, max_rows_;
  std::atomic<Table*> table_{nullptr};
  mutable Mutex mutex_;  // writers
  // The table in force is the last; readers may still be in the ones before it, which are no more
  // than it in sum.
  std::vector<std::unique_ptr<Table>> tables_ ABSL_GUARDED_BY(mutex_);
  std::size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t next_victim_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_HIT_TABLE_H_
