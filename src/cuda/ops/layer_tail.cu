#include "base/check.h"
#include "cuda/base/launch.h"
#include "cuda/base/memory.h"
#include "cuda/base/stream.h"
#include "cuda/ops/cuda_linear.h"
#include "cuda/ops/layer_tail.h"
#include "cuda/ops/layer_tail_kernel.cuh"

namespace quire::cuda {
namespace {

bool has_supported_operands(const LayerTail& layer) {
  const DType dtype = layer.residual.dtype;
  const auto is_supported = [&](const Linear* linear) {
    if (linear == nullptr) return true;
    const TensorView& w = as_cuda(*linear).weights();
    return as_cuda(*linear).bias().data == nullptr && w.dtype == dtype &&
           w.shape[1] % tail::kVec == 0 && w.shape[0] % 2 == 0 &&
           w.shape.num_elements() <= INT32_MAX && is_aligned({w.data}, 16);
  };
  return (dtype == DType::kF16 || dtype == DType::kBF16) && layer.residual.shape[0] == 1 &&
         is_supported(layer.o) && is_supported(layer.gate_up) && is_supported(layer.down) &&
         is_supported(layer.next_qkv) &&
         is_aligned({layer.attention.data, layer.residual.data, layer.delta.data,
                     layer.product.data, layer.post_attention_norm, layer.next_norm},
                    16);
}

// A cooperative launch guarantees that all thread blocks are resident at once, whatever other
// streams run. The grid barrier needs that.
template <typename T, int kRanks>
void launch(const LaunchContext& context, int num_blocks, const tail::Params& p) {
  const LaunchShape shape = {.grid = static_cast<unsigned>(num_blocks),
                             .block = tail::kThreads,
                             .shared_bytes = shared_layout(p).num_bytes,
                             .overlap_start = context.overlap_start,
                             .cooperative = true};
  QUIRE_LAUNCH(*context.stream, (tail::layer_tail_gemm_kernel<T, kRanks>), shape, p);
}

// Calls body(type, ranks) with the element type and the compiled number of ranks.
template <typename Body>
void with_kernel(DType dtype, int num_ranks, const Body& body) {
  const auto with_ranks = [&](auto ranks) {
    if (dtype == DType::kF16) return body(std::type_identity<__half>(), ranks);
    body(std::type_identity<__nv_bfloat16>(), ranks);
  };
  if (num_ranks <= 1) return with_ranks(std::integral_constant<int, 1>());
  with_max_ranks(num_ranks, with_ranks);
}

Status load_kernels(int num_ranks) {
  KernelLoader loader;
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    with_kernel(dtype, num_ranks, [&](auto type, auto ranks) {
      using T = typename decltype(type)::type;
      loader.load(&tail::layer_tail_gemm_kernel<T, ranks.value>);
    });
  }
  return loader.status();
}

}  // namespace

Result<std::unique_ptr<LayerTailKernel>> LayerTailKernel::create(const LaunchContext& context,
                                                                 int num_blocks, int num_ranks) {
  const LaunchLimits& device = context.stream->limits();
  int block_bytes = 0;
  int sm_bytes = 0;
  int reserved_bytes = 0;  // reserved by the driver, per thread block
  int cooperates = 0;
  const auto read_attribute = [&](cudaDeviceAttr attribute, int* value) {
    return cudaDeviceGetAttribute(value, attribute, device.device);
  };
  QUIRE_CUDA_RETURN_IF_ERROR(read_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, &block_bytes));
  QUIRE_CUDA_RETURN_IF_ERROR(
      read_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &sm_bytes));
  QUIRE_CUDA_RETURN_IF_ERROR(
      read_attribute(cudaDevAttrReservedSharedMemoryPerBlock, &reserved_bytes));
  QUIRE_CUDA_RETURN_IF_ERROR(read_attribute(cudaDevAttrCooperativeLaunch, &cooperates));
  if (device.compute_capability < 90 || cooperates == 0) return std::unique_ptr<LayerTailKernel>();
  if (num_ranks > 1) QUIRE_RETURN_IF_ERROR(load_kernels(num_ranks));
  QUIRE_ASSIGN_OR_RETURN(Buffer arrivals, device_memory(sizeof(uint64_t)));
  context.stream->set_zero(arrivals.data(), sizeof(uint64_t));
  constexpr size_t kStaticBytes = 128;  // static shared memory of block_sum
  const auto beside = static_cast<size_t>(sm_bytes - 2 * reserved_bytes);
  const tail::SharedMemoryLimits limits = {
      .per_block = static_cast<size_t>(block_bytes) - kStaticBytes,
      .beside_attention = beside - tail::kAttentionBytes - kStaticBytes};
  return std::unique_ptr<LayerTailKernel>(
      new LayerTailKernel(context, std::move(arrivals),
                          num_blocks > 0 ? num_blocks : device.num_sms, num_ranks, limits));
}

tail::Params LayerTailKernel::params_of(const LayerTail& layer, const PeerInboxes& peers) const {
  tail::Params p;
  const int delta_unit = num_ranks_ > 1 ? 2 : 1;  // an inbox receives words of two columns
  const auto add = [&](const Linear* linear, const TensorView& out, int rows_per_column,
                       int column_unit) {
    if (linear == nullptr) return;
    const TensorView& w = as_cuda(*linear).weights();
    add_gemm(p,
             {.w = w.data,
              .out = out.data,
              .n = static_cast<int>(w.shape[0]) / rows_per_column,
              .k = static_cast<int>(w.shape[1]),
              .rows_per_column = rows_per_column,
              .column_unit = column_unit},
             num_blocks_);
  };
  add(layer.o, layer.delta, 1, delta_unit);
  add(layer.gate_up, layer.product, 2, 1);
  add(layer.down, layer.delta, 1, delta_unit);
  add(layer.next_qkv, layer.qkv, 1, 1);
  p.hidden = static_cast<int>(layer.residual.shape[1]);
  p.max_own_columns = max_range_columns(p.gemms[tail::kO], num_blocks_);
  p.attention = layer.attention.data;
  p.residual = layer.residual.data;
  p.norms[0] = layer.post_attention_norm;
  p.norms[1] = layer.next_norm;
  p.eps = layer.norm_eps;
  p.arrivals = static_cast<uint64_t*>(arrivals_.data());
  p.peers = peers;
  fit_rings(p, limits_);
  return p;
}

bool LayerTailKernel::takes(const LayerTail& layer) const {
  return has_supported_operands(layer) && params_of(layer, {}).num_stages > 0;
}

void LayerTailKernel::run(const LayerTail& layer, const PeerInboxes& peers) {
  const tail::Params p = params_of(layer, peers);
  QUIRE_CHECK(p.num_stages > 0, "[ops] the fused layer tail does not take this layer");
  with_kernel(layer.residual.dtype, peers.num_ranks, [&](auto type, auto ranks) {
    using T = typename decltype(type)::type;
    launch<T, ranks.value>(context_, num_blocks_, p);
  });
}

}  // namespace quire::cuda
