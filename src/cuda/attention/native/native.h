// Quire's own attention kernels for every GPU from sm_80 on: decode and prefill with every feature
// of the CPU backend.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "cuda/base/device_info.h"

namespace quire::cuda {

// Supports any GQA ratio; head_dim and head_dim_v that are multiples of 8 from 8 to 256; q and out
// in F32, F16 or BF16; K and V in F32, F16, BF16 or FP8-e4m3 with scales on the device; any
// strides. It uses tensor cores if q is F16 or BF16 and the cache has the same type or FP8, and F32
// arithmetic otherwise.
std::unique_ptr<AttentionBackend> make_native_attention(const DeviceInfo& device);

}  // namespace quire::cuda
