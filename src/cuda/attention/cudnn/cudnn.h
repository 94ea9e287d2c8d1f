// cuDNN's scaled-dot-product attention over the paged cache. It serves decode of one query token
// per request in 16-bit types. The library is opened at run time; if it is missing, supports()
// gives that as a reason.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "cuda/base/device_info.h"

namespace quire::cuda {

std::unique_ptr<AttentionBackend> make_cudnn_attention(const DeviceInfo& info);

}  // namespace quire::cuda
