// The types of a KV cache: their names for users, and which of them are quantized.
#pragma once

#include <string_view>

#include "tensor/dtype.h"

namespace quire {

// The name of the type in metrics, logs and messages, which is also a value of `kv_cache_dtype`.
inline std::string_view kv_cache_dtype_name(DType dtype) {
  return dtype == DType::kI8 ? "int8" : dtype_name(dtype);
}

// Whether a cache of this type has fewer bits than every type of activations.
constexpr bool is_quantized_cache(DType kv_dtype) {
  return kv_dtype == DType::kF8E4M3 || kv_dtype == DType::kI8;
}

}  // namespace quire
