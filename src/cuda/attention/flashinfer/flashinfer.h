// FlashInfer's FA2 kernels for paged caches, with tensor cores for decode too: BF16 or F16 of one
// type throughout, head_dim 64, 128 or 256, any group size, window, soft cap and sinks.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "cuda/base/device_info.h"

namespace quire::cuda {

std::unique_ptr<AttentionBackend> make_flashinfer_attention(const DeviceInfo& info);

}  // namespace quire::cuda
