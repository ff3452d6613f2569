#ifndef KILN_BASE_MAPPING_H_
#define KILN_BASE_MAPPING_H_

#include <kiln/export.h>

#include <cstddef>
#include <string_view>
#include <utility>

namespace kiln {

// Owns a read-only view of a file's bytes; empty means none. Move-only; reading is thread-safe. The
// bytes are the file's own: who truncates it kills the reader, so only files that no other user can
// write are mapped.
class KILN_EXPORT Mapping {
 public:
  Mapping() = default;
  Mapping(void* data, std::size_t size) : data_(data), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping();

  // Reads what is not in memory yet, in large pieces: for who will look at most of it in no
  // order, where each first look would wait for the disk.
  void read_ahead() const;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace kiln

#endif  // KILN_BASE_MAPPING_H_
