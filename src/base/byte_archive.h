// Writes plain data as bytes and reads it back, with every length checked. A type lists its members
// once for both directions, in a function fields(archive, value).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace quire {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are stored");

template <typename T>
concept PlainNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

class ByteWriter {
 public:
  template <typename... T>
  void operator()(const T&... values) {
    (write(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <PlainNumber T>
  void write(const T& number) {
    append(&number, sizeof number);
  }
  void write(const bool& value) { bytes_.push_back(value ? '\1' : '\0'); }
  void write(const std::string& text) {
    write(static_cast<uint32_t>(text.size()));
    bytes_ += text;
  }
  template <typename T>
  void write(const std::vector<T>& items) {
    write(static_cast<uint32_t>(items.size()));
    if constexpr (PlainNumber<T>) {
      append(items.data(), items.size() * sizeof(T));
    } else {
      for (const T& item : items) write(item);
    }
  }
  template <typename T>
  void write(const std::optional<T>& item) {
    write(item.has_value());
    if (item) write(*item);
  }
  template <typename A, typename B>
  void write(const std::pair<A, B>& item) {
    (*this)(item.first, item.second);
  }
  template <typename T>
  requires std::is_class_v<T>
  void write(const T& value) { fields(*this, value); }

  void append(const void* data, size_t size) {
    if (size > 0) bytes_.append(static_cast<const char*>(data), size);
  }

  std::string bytes_;
};

// After the first error, every read yields zeros or empty values. The memory that reads allocate is
// bounded by the bytes of the input, not by the lengths stated in them.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename... T>
  void operator()(T&... values) {
    (read(values), ...);
  }
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  bool ok() const { return ok_; }
  // Whether all bytes were read, and no read failed.
  bool is_complete() const { return ok_ && rest_.empty(); }

 private:
  template <PlainNumber T>
  void read(T& number) {
    number = T();
    copy(&number, sizeof number);
  }
  void read(bool& value) {
    uint8_t byte = 0;
    read(byte);
    if (byte > 1) fail();
    value = byte == 1;
  }
  void read(std::string& text) {
    const size_t size = count(1);
    text.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  template <typename T>
  void read(std::vector<T>& items) {
    items.clear();
    if constexpr (PlainNumber<T>) {
      items.resize(count(sizeof(T)));
      copy(items.data(), items.size() * sizeof(T));
    } else {
      const size_t num_items = count(1);
      for (size_t i = 0; i < num_items && ok_; ++i) read(items.emplace_back());
      if (!ok_) items.clear();
    }
  }
  template <typename T>
  void read(std::optional<T>& item) {
    bool is_there = false;
    read(is_there);
    item.reset();
    if (is_there) read(item.emplace());
  }
  template <typename A, typename B>
  void read(std::pair<A, B>& item) {
    (*this)(item.first, item.second);
  }
  template <typename T>
  requires std::is_class_v<T>
  void read(T& value) { fields(*this, value); }

  // The length of a list whose items take at least `item_bytes` each.
  size_t count(size_t item_bytes) {
    uint32_t size = 0;
    read(size);
    if (size > rest_.size() / item_bytes) fail();
    return ok_ ? size : 0;
  }
  void copy(void* to, size_t size) {
    if (size > rest_.size()) return fail();
    if (size > 0) std::memcpy(to, rest_.data(), size);
    rest_.remove_prefix(size);
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace quire
