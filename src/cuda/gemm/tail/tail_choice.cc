#include "cuda/gemm/tail/tail_choice.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "base/log.h"

namespace quire::cuda {
namespace {

// With this many layers, even a small model's weights exceed any L2.
constexpr size_t kMaxLayers = 8;
constexpr int kRounds = 5;
// Attention of a short context takes about as many thread blocks, and as long: 4 us at 1.98 GHz.
// Meanwhile the fused kernel fills its rings.
constexpr int64_t kAttentionBlocks = 64;
constexpr int64_t kAttentionCycles = 8000;
// An H200 that was idle needs up to 60 ms of work to reach its full memory speed. Until then the
// fused kernel takes up to 20 % longer, and the separate kernels up to 6 %.
constexpr std::chrono::milliseconds kWarmUp(100);
constexpr int kWarmUpLaunches = 8;

LayerTail first_row(LayerTail layer) {
  for (TensorView* rows : {&layer.attention, &layer.residual, &layer.delta, &layer.qkv,
                           &layer.normed, &layer.gate_up_out, &layer.product}) {
    *rows = rows->rows(0, 1);
  }
  return layer;
}

double median(std::array<double, kRounds> times) {
  std::ranges::sort(times);
  return times[kRounds / 2];
}

}  // namespace

Result<LayerTailChoice> LayerTailChoice::create(const LaunchContext& context,
                                                const LayerTailOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<LayerTailKernel> kernel,
      LayerTailKernel::create(context, options.num_blocks,
                              options.peer_sums == nullptr ? 1 : options.ranks->size()));
  return LayerTailChoice(context, std::move(kernel), options);
}

bool LayerTailChoice::try_run(const LayerTail& layer) {
  if (!chosen_.contains(layer.o) || !takes(layer)) return false;
  run(layer);
  return true;
}

bool LayerTailChoice::takes(const LayerTail& layer) const {
  if (kernel_ == nullptr || !kernel_->takes(layer)) return false;
  if (ranks_ == nullptr) return true;
  return peer_sums_ != nullptr && peer_sums_->way(layer.delta) == SumWay::kOneStep;
}

void LayerTailChoice::run(const LayerTail& layer) {
  kernel_->run(layer, ranks_ == nullptr ? PeerInboxes() : peer_sums_->inboxes(rank_));
}

Result<bool> LayerTailChoice::try_launch(const LayerTail& layer) {
  // Reports errors of earlier work.
  QUIRE_RETURN_IF_ERROR(context_.stream->synchronize());
  kernel_->run(layer);
  const Status launched = context_.stream->synchronize();
  if (launched.ok()) return true;
  (void)cudaGetLastError();
  // A device fault persists, a refusal does not.
  QUIRE_RETURN_IF_ERROR(context_.stream->synchronize());
  log_warning(
      "[ops] the device refused the cooperative launch of the fused layer tail; separate kernels "
      "are used instead, which is slower with one sequence: {}",
      launched.message());
  return false;
}

Result<bool> LayerTailChoice::all_agree(bool agrees) const {
  return ranks_ == nullptr ? agrees : ranks_->all_agree(agrees);
}

Status LayerTailChoice::tune(std::span<const LayerTail> recorded, Ops& ops) {
  std::vector<LayerTail> layers;
  bool can_fuse = !recorded.empty();
  for (const LayerTail& layer : recorded) {
    chosen_.erase(layer.o);
    layers.push_back(first_row(layer));
    can_fuse = can_fuse && takes(layers.back());
  }
  if (can_fuse) {
    QUIRE_ASSIGN_OR_RETURN(can_fuse, try_launch(layers.front()));
  }
  QUIRE_ASSIGN_OR_RETURN(can_fuse, all_agree(can_fuse));
  if (!can_fuse) return {};
  layers.resize(std::min(layers.size(), kMaxLayers));
  QUIRE_ASSIGN_OR_RETURN(const Times times, measure(layers, ops));
  QUIRE_ASSIGN_OR_RETURN(const bool is_fused, all_agree(times.fused_us < times.separate_us));
  if (rank_ == 0) {
    const auto num_layers = static_cast<double>(layers.size());
    log_info(
        "[ops] with one token, a pause for attention and the rest of a layer take {:.1f} us as one "
        "fused kernel and {:.1f} us as separate kernels{}; {}",
        times.fused_us / num_layers, times.separate_us / num_layers,
        ranks_ == nullptr ? "" : " on rank 0",
        is_fused ? "the fused kernel is used" : "separate kernels are used");
  }
  if (!is_fused) return {};
  for (const LayerTail& layer : recorded) chosen_.insert(layer.o);
  return {};
}

Result<LayerTailChoice::Times> LayerTailChoice::measure(std::span<const LayerTail> layers,
                                                        Ops& ops) {
  const auto capture = [&](const auto& run_one) {
    return CudaGraph::capture(*context_.stream, [&]() -> Status {
      for (const LayerTail& layer : layers) {
        run_spin_kernel(context_, kAttentionBlocks, kAttentionCycles);
        run_one(layer);
      }
      return {};
    });
  };
  QUIRE_ASSIGN_OR_RETURN(const CudaGraph fused,
                         capture([&](const LayerTail& layer) { run(layer); }));
  QUIRE_ASSIGN_OR_RETURN(const CudaGraph separate,
                         capture([&](const LayerTail& layer) { run_layer_tail(ops, layer); }));
  QUIRE_RETURN_IF_ERROR(warm_up(fused, separate));
  QUIRE_ASSIGN_OR_RETURN(const Stopwatch watch, Stopwatch::create());
  const auto time = [&](const CudaGraph& graph) -> Result<double> {
    if (ranks_ != nullptr) QUIRE_RETURN_IF_ERROR(ranks_->join({}));
    // An unmeasured run comes first. Its sums make the ranks' devices wait for each other, so that
    // the measured run does not include the time by which another rank's host is late.
    graph.launch(*context_.stream);
    return watch.time(*context_.stream, [&]() -> Status {
      graph.launch(*context_.stream);
      return {};
    });
  };
  std::array<double, kRounds> fused_us = {};
  std::array<double, kRounds> separate_us = {};
  for (size_t i = 0; i < kRounds; ++i) {
    QUIRE_ASSIGN_OR_RETURN(fused_us[i], time(fused));
    QUIRE_ASSIGN_OR_RETURN(separate_us[i], time(separate));
  }
  return Times{.fused_us = median(fused_us), .separate_us = median(separate_us)};
}

Status LayerTailChoice::warm_up(const CudaGraph& fused, const CudaGraph& separate) {
  const auto start = std::chrono::steady_clock::now();
  for (bool is_warm = false; !is_warm;) {
    if (ranks_ != nullptr) QUIRE_RETURN_IF_ERROR(ranks_->join({}));
    for (int i = 0; i < kWarmUpLaunches; ++i) {
      fused.launch(*context_.stream);
      separate.launch(*context_.stream);
    }
    QUIRE_RETURN_IF_ERROR(context_.stream->synchronize());
    QUIRE_ASSIGN_OR_RETURN(is_warm, all_agree(std::chrono::steady_clock::now() - start >= kWarmUp));
  }
  return {};
}

}  // namespace quire::cuda
