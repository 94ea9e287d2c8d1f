// Writes GGUF files (gguf.h): the header as bytes, and the positions of tensors whose bytes follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/numbers.h"

namespace quire {

class GgufWriter {
 public:
  // Each tensor's offset, which counts from the end of the header, is a multiple of this.
  static constexpr size_t kAlignment = 32;

  template <typename T>
  static std::string raw(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
  }
  static std::string raw_text(std::string_view text) {
    return raw<uint64_t>(text.size()) + std::string(text);
  }

  // One field: its key, the number of its kind, and the bytes of its value.
  GgufWriter& field(std::string_view key, uint32_t kind, std::string_view value) {
    fields_ += raw_text(key) + raw(kind) + std::string(value);
    ++num_fields_;
    return *this;
  }
  GgufWriter& text(std::string_view key, std::string_view value) {
    return field(key, 8, raw_text(value));
  }
  GgufWriter& number(std::string_view key, uint32_t value) { return field(key, 4, raw(value)); }
  GgufWriter& real(std::string_view key, float value) { return field(key, 6, raw(value)); }
  GgufWriter& flag(std::string_view key, bool value) {
    return field(key, 7, raw<uint8_t>(value ? 1 : 0));
  }
  GgufWriter& texts(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes = raw<uint32_t>(8) + raw<uint64_t>(values.size());
    for (const std::string& value : values) bytes += raw_text(value);
    return field(key, 9, bytes);
  }
  // Integers (kind 5) or floating-point numbers (kind 6).
  template <typename T>
  GgufWriter& numbers(std::string_view key, const std::vector<T>& values) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, int32_t>);
    std::string bytes = raw<uint32_t>(std::is_same_v<T, float> ? 6 : 5);
    bytes += raw<uint64_t>(values.size());
    for (const T value : values) bytes += raw(value);
    return field(key, 9, bytes);
  }

  // A tensor whose bytes this object keeps. `shape` is row-major; `type` is the number of the type
  // in the file.
  GgufWriter& tensor(std::string_view name, const std::vector<int64_t>& shape, uint32_t type,
                     std::string_view bytes) {
    tensor_at(name, shape, type, data_.size());
    data_ += bytes;
    data_.resize(round_up(data_.size(), kAlignment));
    return *this;
  }
  // A tensor whose bytes the caller writes after the header.
  GgufWriter& tensor_at(std::string_view name, const std::vector<int64_t>& shape, uint32_t type,
                        uint64_t offset) {
    tensors_ += raw_text(name) + raw(static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i-- > 0;) tensors_ += raw<uint64_t>(shape[i]);
    tensors_ += raw(type) + raw(offset);
    ++num_tensors_;
    return *this;
  }
  GgufWriter& floats(std::string_view name, const std::vector<int64_t>& shape,
                     const std::vector<float>& values) {
    return tensor(name, shape, 0,
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }

  // Everything before the first tensor's bytes.
  std::string header(uint32_t version = 3) const {
    std::string bytes = "GGUF" + raw(version) + raw(num_tensors_) + raw(num_fields_);
    bytes += fields_ + tensors_;
    bytes.resize(round_up(bytes.size(), kAlignment));
    return bytes;
  }
  // The bytes passed to tensor(), padded to the alignment.
  const std::string& data() const { return data_; }
  // The whole file, with these bytes.
  std::string file(uint32_t version = 3) const { return header(version) + data_; }

 private:
  std::string fields_;
  std::string tensors_;
  std::string data_;
  uint64_t num_fields_ = 0;
  uint64_t num_tensors_ = 0;
};

}  // namespace quire
