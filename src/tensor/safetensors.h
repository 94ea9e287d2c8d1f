// The safetensors format: 8 bytes of header length (little endian), a JSON header with each
// tensor's position, then the tensors' bytes, row-major and without gaps.
// https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire {

// Longer headers are rejected, as in the format's own reader.
inline constexpr size_t kMaxSafetensorsHeader = 100'000'000;

// One tensor as described by the header; its bytes are inside the file.
struct SafetensorsEntry {
  std::string dtype;           // as spelled in the file
  std::vector<int64_t> shape;  // any rank
  std::span<const std::byte> bytes;
};

// The header of one file, checked as a whole: every range is inside the file, ranges neither
// overlap nor leave gaps, sizes agree with shapes, and names are unique. A type that Quire does not
// compute with is an error only when such a tensor is requested. Does not own the tensors' bytes.
class Safetensors {
 public:
  // `source` names the bytes in errors. They must outlive this object and its views.
  static Result<Safetensors> parse(std::span<const std::byte> bytes, std::string_view source);

  // Returns null if there is no such tensor.
  const SafetensorsEntry* find(std::string_view name) const;
  // Returns a view of an F32, F16, BF16, F8_E4M3, I8, I32, I64 or U8 tensor with at most four axes.
  // The format does not guarantee alignment, so the caller must check whether view.data is aligned
  // to the type.
  Result<TensorView> view(std::string_view name) const;
  // Names in the order of the file's bytes.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::string source_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, SafetensorsEntry> entries_;
};

}  // namespace quire
