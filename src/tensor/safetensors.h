// The safetensors format: 8 bytes of header length (little endian), a JSON header that says where
// each tensor lies, then the tensors' bytes, row-major, without gaps.
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

// Longer headers are refused, as by the format's own reader.
inline constexpr size_t kMaxSafetensorsHeader = 100'000'000;

// One tensor as the header describes it; its bytes are known to lie inside the file.
struct SafetensorsEntry {
  std::string dtype;           // as spelled in the file
  std::vector<int64_t> shape;  // any rank
  std::span<const std::byte> bytes;
};

// What the header of one file says, checked as a whole: every range lies inside the file, ranges
// neither overlap nor leave holes, sizes agree with shapes, names are unique. Types that Quire does
// not compute with are an error only when such a tensor is asked for. Owns no tensor bytes.
class Safetensors {
 public:
  // `source` names the bytes in errors. They must outlive this object and the views it gives.
  static Result<Safetensors> parse(std::span<const std::byte> bytes, std::string_view source);

  // Nothing when there is no such tensor.
  const SafetensorsEntry* find(std::string_view name) const;
  // A view of an F32, F16, BF16 or F8_E4M3 tensor of at most four axes. The format promises no
  // alignment: view.data may not be aligned to the type, which is the caller's to look at.
  Result<TensorView> view(std::string_view name) const;
  // In the order of the file's bytes.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::string source_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, SafetensorsEntry> entries_;
};

}  // namespace quire
