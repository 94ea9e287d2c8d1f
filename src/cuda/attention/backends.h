// The attention backends on GPUs. Each has its own folder and library, and depends on no other.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "cuda/base/device_info.h"

namespace quire::cuda {

// Quire's own kernels for every GPU from sm_80 on: decode and prefill with every feature of the CPU
// backend. Supports any GQA ratio; head_dim and head_dim_v that are multiples of 8 from 8 to 576; q
// and out in F32, F16 or BF16; K and V in F32, F16, BF16 or FP8-e4m3 with scales on the device; any
// strides. It uses tensor cores if q is F16 or BF16, the cache has the same type or FP8, and no
// head_dim is above 256, or above 512 on Hopper and for decode of up to 8 query rows per KV head
// (heads times tokens), and F32 arithmetic otherwise.
std::unique_ptr<AttentionBackend> make_native_attention(const DeviceInfo& info);

// FlashInfer's kernels for paged caches.
// - FA2 serves decode and prefill on tensor cores: BF16 or F16 queries over a cache of their type
//   with head_dim 64, 128 or 256, and BF16 queries over an FP8 (E4M3) cache with head_dim 64 or
//   128; any group size, window, soft cap and sinks.
// - FA3 serves prompts on Hopper with head_dim 64 or 128 and neither window nor soft cap. It reads
//   pages if cache and queries have the same type. If gather_pays() is true (flashinfer/plan.h), it
//   reads contiguous copies of the contexts in the workspace; copying converts an FP8 cache. For
//   one prompt of 8192 tokens with 64 query and 8 KV heads of 128, an H200 reaches 640 TFLOP/s with
//   FA3 over copies, 547 with FA3 over pages, and 340 with FA2.
// - FlashInfer's MLA kernel, or for few rows per request a kernel of this project, serves latent
//   caches of 512 + 64 elements on Hopper: BF16 or F16 queries over a cache of their type, BF16
//   queries over an FP8 cache; 1 to 128 heads. Prompts with BF16 queries may be expanded, so that
//   FA3 computes their attention (attn/expansion.h), if keys and values have 192 and 128 elements
//   per head, or 256 and 256.
std::unique_ptr<AttentionBackend> make_flashinfer_attention(const DeviceInfo& info);

// XQA: TensorRT-LLM's decode kernels, on Hopper. They serve one query token per request, or up to 8
// if the cache has a 16-bit type and there is no window.
std::unique_ptr<AttentionBackend> make_xqa_attention(const DeviceInfo& info);

// cuDNN's scaled-dot-product attention in 16-bit types. It serves decode of one query token per
// request over pages. It serves prompts over contiguous copies of the contexts in the workspace, to
// which an FP8 cache is converted. The library is opened at run time; if it is missing, supports()
// reports that as the reason.
std::unique_ptr<AttentionBackend> make_cudnn_attention(const DeviceInfo& info);

}  // namespace quire::cuda
