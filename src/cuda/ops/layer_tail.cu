#include "cuda/base/launch.h"
#include "cuda/base/memory.h"
#include "cuda/base/stream.h"
#include "cuda/ops/cuda_linear.h"
#include "cuda/ops/dispatch.h"
#include "cuda/ops/layer_tail.h"
#include "cuda/ops/layer_tail_kernel.cuh"
#include "cuda/ops/layer_tail_plan.h"

namespace quire::cuda {
namespace {

TailPhase phase_of(const TensorView& w, const TensorView& out, int64_t n) {
  TailPhase phase;
  phase.w = w.data;
  phase.out = out.data;
  phase.n = static_cast<int>(n);
  phase.k = static_cast<int>(w.shape[1]);
  phase.rows_per_column = static_cast<int>(w.shape[0] / n);
  return phase;
}

TailParams params_of(const LayerTailCall& call, int num_blocks,
                     const TailSharedMemory& shared_memory) {
  TailParams p;
  const auto add = [&](const TensorView& w, const TensorView& out, int64_t n) {
    add_tail_phase(p, phase_of(w, out, n), num_blocks);
  };
  add(call.o, call.delta, call.o.shape[0]);
  add(call.gate_up, call.product, call.gate_up.shape[0] / 2);
  add(call.down, call.delta, call.down.shape[0]);
  if (call.next_qkv.data != nullptr) add(call.next_qkv, call.qkv, call.next_qkv.shape[0]);
  p.hidden = static_cast<int>(call.residual.shape[1]);
  p.attention = call.attention.data;
  p.residual = call.residual.data;
  p.norms[0] = call.post_norm;
  p.norms[1] = call.next_norm;
  p.eps = call.eps;
  fit_tail_rings(p, shared_memory);
  return p;
}

bool has_types_and_places(const LayerTailCall& call) {
  const auto fits = [&](const TensorView& w) {
    return w.dtype == call.residual.dtype && w.shape[1] % tail::kVec == 0 && w.shape[0] % 2 == 0 &&
           w.shape.num_elements() <= INT32_MAX && is_aligned({w.data}, 16);
  };
  if (call.residual.dtype != DType::kF16 && call.residual.dtype != DType::kBF16) return false;
  if (call.residual.shape[0] != 1 || !fits(call.o) || !fits(call.gate_up) || !fits(call.down)) {
    return false;
  }
  if (call.next_qkv.data != nullptr && !fits(call.next_qkv)) return false;
  return is_aligned({call.attention.data, call.residual.data, call.delta.data, call.product.data,
                     call.post_norm, call.next_norm},
                    16);
}

// A cooperative launch guarantees that all thread blocks are resident at once, whatever other
// streams run. The grid barrier needs that.
template <typename T>
void launch_tail(const LaunchContext& context, int num_blocks, const TailParams& p) {
  const LaunchShape shape = {.grid = static_cast<unsigned>(num_blocks),
                             .block = tail::kThreads,
                             .shared_bytes = tail_layout(p).num_bytes,
                             .overlap_start = context.overlap_start,
                             .cooperative = true};
  QUIRE_LAUNCH(*context.stream, tail::layer_tail_gemm_kernel<T>, shape, p);
}

}  // namespace

Result<std::unique_ptr<LayerTailKernel>> LayerTailKernel::create(const LaunchContext& context,
                                                                 int num_blocks) {
  int device = 0;
  int major = 0;
  int num_sms = 0;
  int block_bytes = 0;
  int multiprocessor_bytes = 0;
  int reserved_bytes = 0;  // reserved by the driver, per thread block
  int cooperates = 0;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  const auto ask = [&](cudaDeviceAttr attribute, int* value) {
    return cudaDeviceGetAttribute(value, attribute, device);
  };
  QUIRE_CUDA_RETURN_IF_ERROR(ask(cudaDevAttrComputeCapabilityMajor, &major));
  QUIRE_CUDA_RETURN_IF_ERROR(ask(cudaDevAttrMultiProcessorCount, &num_sms));
  QUIRE_CUDA_RETURN_IF_ERROR(ask(cudaDevAttrMaxSharedMemoryPerBlockOptin, &block_bytes));
  QUIRE_CUDA_RETURN_IF_ERROR(
      ask(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &multiprocessor_bytes));
  QUIRE_CUDA_RETURN_IF_ERROR(ask(cudaDevAttrReservedSharedMemoryPerBlock, &reserved_bytes));
  QUIRE_CUDA_RETURN_IF_ERROR(ask(cudaDevAttrCooperativeLaunch, &cooperates));
  if (major < 9 || cooperates == 0) return std::unique_ptr<LayerTailKernel>();
  QUIRE_ASSIGN_OR_RETURN(Buffer arrivals, device_memory(sizeof(uint64_t)));
  context.stream->set_zero(arrivals.data(), sizeof(uint64_t));
  constexpr size_t kStaticBytes = 128;  // static shared memory of block_sum
  const auto beside = static_cast<size_t>(multiprocessor_bytes - 2 * reserved_bytes);
  const TailSharedMemory shared_memory = {
      .per_block = static_cast<size_t>(block_bytes) - kStaticBytes,
      .beside_attention = beside - kTailAttentionBytes - kStaticBytes};
  return std::unique_ptr<LayerTailKernel>(new LayerTailKernel(
      context, std::move(arrivals), num_blocks > 0 ? num_blocks : num_sms, shared_memory));
}

std::optional<LayerTailCall> layer_tail_call(const LayerTail& tail) {
  LayerTailCall call;
  const auto add = [](const Linear* linear, TensorView& weights) {
    if (linear == nullptr) return true;
    weights = as_cuda(*linear).weights();
    return as_cuda(*linear).bias().data == nullptr;
  };
  if (!add(tail.o, call.o) || !add(tail.gate_up, call.gate_up) || !add(tail.down, call.down) ||
      !add(tail.next_qkv, call.next_qkv)) {
    return std::nullopt;
  }
  call.post_norm = tail.post_attention_norm;
  call.next_norm = tail.next_norm;
  call.eps = tail.norm_eps;
  call.attention = tail.attention;
  call.residual = tail.residual;
  call.delta = tail.delta;
  call.product = tail.product;
  call.qkv = tail.qkv;
  return call;
}

bool LayerTailKernel::run(const LayerTailCall& call) {
  if (!has_types_and_places(call)) return false;
  TailParams p = params_of(call, num_blocks_, shared_memory_);
  if (p.num_stages == 0) return false;
  p.arrivals = static_cast<uint64_t*>(arrivals_.data());
  if (call.residual.dtype == DType::kF16) {
    launch_tail<__half>(context_, num_blocks_, p);
  } else {
    launch_tail<__nv_bfloat16>(context_, num_blocks_, p);
  }
  return true;
}

}  // namespace quire::cuda
