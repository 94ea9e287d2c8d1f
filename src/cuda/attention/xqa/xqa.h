// XQA: TensorRT-LLM's decode kernel, on Hopper. It serves decode of one query token per request.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "cuda/base/device_info.h"

namespace quire::cuda {

std::unique_ptr<AttentionBackend> make_xqa_attention(const DeviceInfo& info);

}  // namespace quire::cuda
