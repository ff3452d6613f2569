#include "runtime/hit_table.h"

namespace kiln::internal {
namespace {
constexpr std::size_t kFirstRows = 64;
constexpr std::size_t kProbes = 8;
constexpr std::size_t kVersion = 0, kHash = 1, kCounts = 2, kKey = 3;

std::uint64_t pack_counts(std::size_t keys, std::size_t values) { return keys << 8 | values; }
}  // namespace

HitTable::HitTable(std::size_t key_words, std::size_t value_words, std::size_t max_rows)
    : key_words_(key_words), value_words_(value_words), max_rows_(max_rows) {}

HitTable::Table::Table(std::size_t row_count, std::size_t row_words)
    : mask(row_count - 1), stride(row_words), words(new Word[row_count * row_words]{}) {}

bool HitTable::matches(const Word* row, std::uint64_t hash, const std::uint64_t* key,
                       std::size_t key_count) {
  if (row[kHash].load(std::memory_order_acquire) != hash) return false;
  if (row[kCounts].load(std::memory_order_acquire) >> 8 != key_count) return false;
  for (std::size_t i = 0; i < key_count; ++i) {
    if (row[kKey + i].load(std::memory_order_acquire) != key[i]) return false;
  }
  return true;
}

int HitTable::find(const std::uint64_t* key, std::size_t key_count, const void** values) const {
  const Table* table = table_.load(std::memory_order_acquire);
  if (table == nullptr) return -1;
  const std::uint64_t hash = mix_words(key, key_count);
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    const Word* row = table->row(hash, probe);
    const std::uint64_t version = row[kVersion].load(std::memory_order_acquire);
    if (version == 0)
      return -1;  // rows are never emptied one by one, so nothing lies behind a free one
    if (version % 2 != 0 || !matches(row, hash, key, key_count)) continue;
    const int count = static_cast<int>(row[kCounts].load(std::memory_order_acquire) & 0xff);
    const Word* from = row + kKey + key_words_;
    for (int i = 0; i < count; ++i) {
      values[i] = reinterpret_cast<const void*>(from[i].load(std::memory_order_acquire));
    }
    // The acquires above keep this load behind them: an unchanged version means nothing was written
    // in between.
    if (row[kVersion].load(std::memory_order_relaxed) == version) return count;
  }
  return -1;
}

void HitTable::write(Word* row, std::uint64_t hash, const std::uint64_t* key, std::size_t key_count,
                     const void* const* values, std::size_t value_count, std::size_t key_words) {
  const std::uint64_t version = row[kVersion].load(std::memory_order_relaxed);
  row[kVersion].store(version + 1, std::memory_order_relaxed);
  // Release on each store keeps it behind the odd version.
  row[kHash].store(hash, std::memory_order_release);
  row[kCounts].store(pack_counts(key_count, value_count), std::memory_order_release);
  for (std::size_t i = 0; i < key_count; ++i)
    row[kKey + i].store(key[i], std::memory_order_release);
  for (std::size_t i = 0; i < value_count; ++i) {
    row[kKey + key_words + i].store(reinterpret_cast<std::uint64_t>(values[i]),
                                    std::memory_order_release);
  }
  row[kVersion].store(version + 2, std::memory_order_release);
}

HitTable::Word* HitTable::place_for(Table& table, std::uint64_t hash, const std::uint64_t* key,
                                    std::size_t key_count) {
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Word* row = table.row(hash, probe);
    if (row[kVersion].load(std::memory_order_relaxed) == 0) {
      ++used_;
      return row;
    }
    if (matches(row, hash, key, key_count)) return row;
  }
  return nullptr;
}

void HitTable::grow() {
  const Table* old = tables_.empty() ? nullptr : tables_.back().get();
  const std::size_t rows = old == nullptr ? kFirstRows : (old->mask + 1) * 2;
  auto table = std::make_unique<Table>(rows, kKey + key_words_ + value_words_);
  used_ = 0;
  for (std::size_t r = 0; old != nullptr && r <= old->mask; ++r) {
    const Word* from = &old->words[r * old->stride];
    if (from[kVersion].load(std::memory_order_relaxed) == 0) continue;
    std::vector<std::uint64_t> key;
    std::vector<const void*> values;
    const std::uint64_t counts = from[kCounts].load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < counts >> 8; ++i)
      key.push_back(from[kKey + i].load(std::memory_order_relaxed));
    for (std::size_t i = 0; i < (counts & 0xff); ++i) {
      values.push_back(reinterpret_cast<const void*>(
          from[kKey + key_words_ + i].load(std::memory_order_relaxed)));
    }
    const std::uint64_t hash = from[kHash].load(std::memory_order_relaxed);
    if (Word* row = place_for(*table, hash, key.data(), key.size())) {
      write(row, hash, key.data(), key.size(), values.data(), values.size(), key_words_);
    }
  }
  table_.store(table.get(), std::memory_order_release);
  tables_.push_back(std::move(table));
}

void HitTable::insert(const std::uint64_t* key, std::size_t key_count, const void* const* values,
                      std::size_t value_count) {
  if (key_count > key_words_ || value_count > value_words_) return;
  const std::uint64_t hash = mix_words(key, key_count);
  MutexLock lock(mutex_);
  if (tables_.empty()) grow();
  Word* row = nullptr;
  while ((row = place_for(*tables_.back(), hash, key, key_count)) == nullptr &&
         tables_.back()->mask + 1 < max_rows_) {
    grow();
  }
  if (row == nullptr) row = tables_.back()->row(hash, next_victim_++ % kProbes);
  write(row, hash, key, key_count, values, value_count, key_words_);
}

void HitTable::clear() {
  MutexLock lock(mutex_);
  for (const auto& table : tables_) {
    for (std::size_t r = 0; r <= table->mask; ++r) {
      Word* row = &table->words[r * table->stride];
      if (row[kVersion].load(std::memory_order_relaxed) == 0) continue;
      write(row, ~std::uint64_t{0}, nullptr, 0, nullptr, 0, key_words_);
    }
  }
}

std::size_t HitTable::rows() const {
  MutexLock lock(mutex_);
  return used_;
}

}  // namespace kiln::internal
