// FlashInfer's kernels for paged caches. FA2 uses tensor cores for decode too. It serves BF16 or
// F16 of one type throughout with head_dim 64, 128 or 256, and BF16 over an FP8 (E4M3) cache with
// head_dim 64 or 128; any group size, window, soft cap and sinks. On Hopper FA3 serves prompts if
// cache and queries have one type, head_dim is 64 or 128, and there is neither window nor soft cap.
// For one prompt of 8192 tokens with 64:8 heads of 128, an H200 reaches 614 TFLOP/s with FA3 and
// 340 with FA2.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "cuda/base/device_info.h"

namespace quire::cuda {

std::unique_ptr<AttentionBackend> make_flashinfer_attention(const DeviceInfo& info);

}  // namespace quire::cuda
