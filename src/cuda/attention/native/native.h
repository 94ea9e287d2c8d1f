// Our own attention kernels for every GPU from sm_80 on: decode and prefill with every feature that
// the CPU backend has.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "cuda/base/device_info.h"

namespace quire::cuda {

// Any GQA ratio; head_dim and head_dim_v multiples of 8 from 8 to 256; q and out F32, F16 or BF16;
// K and V F32, F16, BF16 or FP8-e4m3 with scales on the device; any strides. Tensor cores where q
// is F16 or BF16 and the cache is of the same type or FP8; plain F32 arithmetic otherwise.
std::unique_ptr<AttentionBackend> make_native_attention(const DeviceInfo& device);

}  // namespace quire::cuda
