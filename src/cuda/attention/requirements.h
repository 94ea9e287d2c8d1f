// The requirements that the wrapped kernels share, for their backends' supports().
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "attn/backend.h"

namespace quire::cuda {

struct Requirements {
  Support support;

  // `has_kernels` says whether the device is one of `capabilities`.
  Requirements(const AttentionShape& shape, const Device& device, bool has_kernels,
               std::string_view capabilities)
      : support{shape_faults(shape)} {
    require(device.kind == DeviceKind::kCuda && has_kernels,
            fmt::format("the device's compute capability is {}; it must be {}.",
                        device.compute_capability, capabilities));
    require(shape.causal, "causal is false; it must be true.");
    require(shape.out == shape.q, fmt::format("out is {}; it must be q's type, which is {}.",
                                              dtype_name(shape.out), dtype_name(shape.q)));
  }

  void require(bool ok, std::string reason) {
    if (!ok) support.reasons.push_back(std::move(reason));
  }

  // For kernels that only compute decode of one query token per request.
  void require_single_token_decode(const AttentionShape& shape, const AttentionUse& use) {
    require(use.phase == Phase::kDecode, "the phase is prefill; it must be decode.");
    require(use.q_len == 1, fmt::format("q_len is {}; it must be 1.", use.q_len));
    require(shape.softcap == 0.0F,
            fmt::format("softcap is {}; it must be 0 (off).", shape.softcap));
    require(shape.head_dim_v == shape.head_dim,
            fmt::format("head_dim_v is {}; it must be head_dim, which is {}.", shape.head_dim_v,
                        shape.head_dim));
  }
};

}  // namespace quire::cuda
