// The requirements that the GPU backends share, for their supports().
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "attn/requirements.h"

namespace quire::cuda {

struct GpuRequirements : Requirements {
  // has_kernels: whether the device's compute capability is one of `capabilities`.
  GpuRequirements(const AttentionShape& shape, const Device& device, bool has_kernels,
                  std::string_view capabilities)
      : Requirements(shape) {
    const bool is_gpu = device.kind == DeviceKind::kCuda;
    require(is_gpu, fmt::format("device is {}; it must be an NVIDIA GPU.",
                                device.name.empty() ? "a CPU" : device.name));
    require(!is_gpu || has_kernels, fmt::format("compute capability is {}; it must be {}.",
                                                device.compute_capability, capabilities));
  }

  // For kernels that read keys and values from separate memory.
  void require_separate_values(const AttentionShape& shape) {
    require(!shape.is_latent,
            "the cache is latent (multi-head latent attention); keys and values must be separate.");
  }

  // For kernels that write their output in the type of the queries.
  void require_output_type(const AttentionShape& shape) {
    require(shape.out == shape.q, fmt::format("out is {}; it must be the type of q, which is {}.",
                                              dtype_name(shape.out), dtype_name(shape.q)));
  }

  void require_no_chunks(const AttentionShape& shape) {
    require(!shape.chunked, "chunked is true; it must be false.");
  }

  void require_causal(const AttentionShape& shape) {
    require(shape.causal, "causal is false; it must be true.");
  }

  // For kernels that only compute decode, of up to max_q_len query tokens per request.
  void require_decode(const AttentionShape& shape, const AttentionUse& use, int max_q_len) {
    require(use.phase == Phase::kDecode, "the phase is prefill; it must be decode.");
    require_q_len(use, max_q_len);
    require_no_softcap(shape);
    require_equal_head_dims(shape);
  }

  void require_q_len(const AttentionUse& use, int max_q_len) {
    require(use.q_len <= max_q_len, fmt::format("q_len is {}; it must be {}{}.", use.q_len,
                                                max_q_len == 1 ? "" : "at most ", max_q_len));
  }

  void require_no_softcap(const AttentionShape& shape) {
    require(shape.softcap == 0.0F,
            fmt::format("softcap is {}; it must be 0 (off).", shape.softcap));
  }

  void require_equal_head_dims(const AttentionShape& shape) {
    require(shape.head_dim_v == shape.head_dim,
            fmt::format("head_dim_v is {}; it must be head_dim, which is {}.", shape.head_dim_v,
                        shape.head_dim));
  }
};

}  // namespace quire::cuda
