#include "tensor/dtype.h"

#include <array>

namespace quire {
namespace {

struct DTypeName {
  DType dtype;
  std::string_view name;
};

// The first name of each type is the one used for output.
constexpr std::array kNames = {
    DTypeName{DType::kF32, "f32"},    DTypeName{DType::kF32, "float32"},
    DTypeName{DType::kF32, "float"},  DTypeName{DType::kF32, "F32"},
    DTypeName{DType::kF16, "f16"},    DTypeName{DType::kF16, "float16"},
    DTypeName{DType::kF16, "half"},   DTypeName{DType::kF16, "F16"},
    DTypeName{DType::kBF16, "bf16"},  DTypeName{DType::kBF16, "bfloat16"},
    DTypeName{DType::kBF16, "BF16"},  DTypeName{DType::kF8E4M3, "fp8_e4m3"},
    DTypeName{DType::kF8E4M3, "fp8"}, DTypeName{DType::kF8E4M3, "F8_E4M3"},
    DTypeName{DType::kI32, "i32"},    DTypeName{DType::kI32, "I32"},
    DTypeName{DType::kI64, "i64"},    DTypeName{DType::kI64, "I64"},
};

}  // namespace

size_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3:
      return 1;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kI64:
      return 8;
  }
  return 0;
}

std::string_view dtype_name(DType dtype) {
  for (const DTypeName& entry : kNames) {
    if (entry.dtype == dtype) return entry.name;
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeName& entry : kNames) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

}  // namespace quire
