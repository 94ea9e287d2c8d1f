// Collects all reasons against a shape and a use, for a backend's supports().
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "attn/backend.h"
#include "kv/cache_dtype.h"

namespace quire {

struct Requirements {
  Support support;

  explicit Requirements(const AttentionShape& shape) : support{shape_faults(shape)} {}

  void require(bool ok, std::string reason) {
    if (!ok) support.reasons.push_back(std::move(reason));
  }

  // For kernels that compute any head dimension up to `max`.
  void require_head_dims(const AttentionShape& shape, int max = 256) {
    require_head_dim("head_dim", shape.head_dim, max);
    require_head_dim("head_dim_v", shape.head_dim_v, max);
  }

  // For kernels that convert every type of cache except 8-bit integers.
  void require_float_cache(const AttentionShape& shape) {
    require(is_float(shape.kv), fmt::format("kv is {}; it must be f32, f16, bf16 or fp8_e4m3.",
                                            kv_cache_dtype_name(shape.kv)));
  }

  // For kernels that convert every type of cache.
  void require_cache(const AttentionShape& shape) {
    require(is_float(shape.kv) || shape.kv == DType::kI8,
            fmt::format("kv is {}; it must be f32, f16, bf16, fp8_e4m3 or int8.",
                        kv_cache_dtype_name(shape.kv)));
  }

 private:
  static bool is_float(DType dtype) { return dtype <= DType::kF8E4M3; }

  void require_head_dim(const char* field, int value, int max) {
    require(value >= 8 && value <= max && value % 8 == 0,
            fmt::format("{} is {}; it must be a multiple of 8 from 8 to {}.", field, value, max));
  }
};

}  // namespace quire
