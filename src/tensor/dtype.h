#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quire {

enum class DType : uint8_t { kF32, kF16, kBF16, kF8E4M3, kI32, kI64 };

size_t dtype_bytes(DType dtype);
// Returns "f32", "f16", "bf16", "fp8_e4m3", "i32" or "i64".
std::string_view dtype_name(DType dtype);
// Accepts the names above and those of torch ("bfloat16"), safetensors ("BF16") and vLLM ("fp8").
std::optional<DType> parse_dtype(std::string_view name);

}  // namespace quire
