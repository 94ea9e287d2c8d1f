#include "cuda/gemm/tail/tail_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/wall_timer.h"
#include "measure/rounds.h"

namespace quire::cuda {
namespace {

// With this many layers, even a small model's weights exceed any L2.
constexpr size_t kMaxLayers = 8;
constexpr int kRounds = 5;
// Attention of a short context takes about this many thread blocks and cycles (4 us at 1.98 GHz).
// Meanwhile the fused kernel fills its rings.
constexpr int64_t kAttentionBlocks = 64;
constexpr int64_t kAttentionCycles = 8000;
// An H200 that was idle needs up to 60 ms of work to reach its full memory speed. Until then the
// fused kernel takes up to 20 % longer, and the separate kernels up to 6 %.
constexpr double kWarmUpSeconds = 0.1;
constexpr int kWarmUpLaunches = 8;

LayerTail first_row(LayerTail layer) {
  for (TensorView* rows : {&layer.attention, &layer.residual, &layer.delta, &layer.qkv,
                           &layer.normed, &layer.gate_up_out, &layer.product}) {
    *rows = rows->rows(0, 1);
  }
  return layer;
}

// The key of the kept choice, which holds for all layers of a model. A matrix's size in bytes
// distinguishes its formats.
std::string choice_key(const LayerTail& layer, int num_ranks) {
  const auto describe = [](const Linear* w) {
    return w == nullptr
               ? std::string("none")
               : fmt::format("{}x{} {} bytes", w->out_features(), w->in_features(), w->num_bytes());
  };
  return fmt::format("{} ranks, {}, o {}, gate_up {}, down {}, qkv {}", num_ranks,
                     dtype_name(layer.attention.dtype), describe(layer.o), describe(layer.gate_up),
                     describe(layer.down), describe(layer.next_qkv));
}

constexpr std::string_view kFused = "fused";
constexpr std::string_view kSeparate = "separate";

}  // namespace

Result<LayerTailChoice> LayerTailChoice::create(const LaunchContext& context,
                                                const LayerTailOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<LayerTailKernel> kernel,
      LayerTailKernel::create(context, options.num_blocks,
                              options.peer_sums == nullptr ? 1 : options.num_ranks));
  LayerTailOptions own = options;
  if (own.choices == nullptr) own.choices = std::make_shared<MeasuredChoices>();
  return LayerTailChoice(context, std::move(kernel), std::move(own));
}

bool LayerTailChoice::try_run(const LayerTail& layer) {
  if (!chosen_.contains(layer.o) || !takes(layer)) return false;
  run(layer);
  return true;
}

bool LayerTailChoice::takes(const LayerTail& layer) const {
  if (kernel_ == nullptr || !kernel_->takes(layer)) return false;
  if (options_.num_ranks == 1) return true;
  const PeerSums* const sums = options_.peer_sums.get();
  return sums != nullptr && sums->method(layer.delta) == SumMethod::kOneStep;
}

void LayerTailChoice::run(const LayerTail& layer) {
  kernel_->run(
      layer, options_.num_ranks == 1 ? PeerInboxes() : options_.peer_sums->inboxes(options_.rank));
}

Result<bool> LayerTailChoice::try_launch(const LayerTail& layer) {
  // Reports errors of earlier work.
  QUIRE_RETURN_IF_ERROR(context_.stream->synchronize());
  kernel_->run(layer);
  const Status launched = context_.stream->synchronize();
  if (launched.ok()) return true;
  (void)cudaGetLastError();
  // A device fault makes this call fail too; a refusal does not.
  QUIRE_RETURN_IF_ERROR(context_.stream->synchronize());
  log_warning(
      "[ops] the device refused the cooperative launch of the fused layer tail; separate kernels "
      "are used instead, which is slower with one sequence: {}",
      launched.message());
  return false;
}

Status LayerTailChoice::tune(std::span<const LayerTail> recorded, Ops& ops) {
  MeasuredChoices& choices = *options_.choices;
  std::vector<LayerTail> layers;
  bool can_fuse = !recorded.empty() && choices.measures();
  for (const LayerTail& layer : recorded) {
    chosen_.erase(layer.o);
    layers.push_back(first_row(layer));
    can_fuse = can_fuse && takes(layers.back());
  }
  if (can_fuse) {
    QUIRE_ASSIGN_OR_RETURN(can_fuse, try_launch(layers.front()));
  }
  QUIRE_ASSIGN_OR_RETURN(can_fuse, options_.agreement.all_agree(can_fuse));
  if (!can_fuse) return {};
  // No rank adds a choice before all have looked for it, because they measure together.
  const std::string key = choice_key(layers.front(), options_.num_ranks);
  const std::optional<std::string> kept = choices.find(ChoiceKind::kLayerTail, key);
  bool is_fused = kept == kFused;
  if (!kept) {
    layers.resize(std::min(layers.size(), kMaxLayers));
    QUIRE_ASSIGN_OR_RETURN(is_fused, measure(layers, ops));
    choices.add(ChoiceKind::kLayerTail, key, is_fused ? kFused : kSeparate);
  }
  if (!is_fused) return {};
  for (const LayerTail& layer : recorded) chosen_.insert(layer.o);
  return {};
}

Result<bool> LayerTailChoice::measure(std::span<const LayerTail> layers, Ops& ops) {
  const MeasuredChoices::Timing timing(*options_.choices, ChoiceKind::kLayerTail);
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
  constexpr size_t kFusedIdx = 0;
  const auto time = [&](size_t i) -> Result<double> {
    const CudaGraph& graph = i == kFusedIdx ? fused : separate;
    QUIRE_RETURN_IF_ERROR(options_.agreement.wait());
    // An unmeasured run comes first. Its sums make the ranks' devices wait for each other, so that
    // the measured run does not include the time by which another rank's host is late.
    graph.launch(*context_.stream);
    return watch.time(*context_.stream, [&]() -> Status {
      graph.launch(*context_.stream);
      return {};
    });
  };
  QUIRE_ASSIGN_OR_RETURN(const Comparison compared,
                         compare(2, {.num_rounds = kRounds}, one_by_one_or_fail(time)));
  QUIRE_ASSIGN_OR_RETURN(const bool is_fused,
                         options_.agreement.all_agree(compared.fastest() == kFusedIdx));
  if (options_.agreement.is_first()) {
    const auto microseconds = [&](size_t i) {
      return compared.trials[i].median() / static_cast<double>(layers.size());
    };
    log_info(
        "[measure] with one token, a pause for attention and the rest of a layer take {:.1f} us as "
        "one fused kernel and {:.1f} us as separate kernels{}; {}",
        microseconds(kFusedIdx), microseconds(1), options_.agreement.is_alone() ? "" : " on rank 0",
        is_fused ? "the fused kernel is used" : "separate kernels are used");
  }
  return is_fused;
}

Status LayerTailChoice::warm_up(const CudaGraph& fused, const CudaGraph& separate) {
  const WallTimer timer;
  for (bool is_warm = false; !is_warm;) {
    QUIRE_RETURN_IF_ERROR(options_.agreement.wait());
    for (int i = 0; i < kWarmUpLaunches; ++i) {
      fused.launch(*context_.stream);
      separate.launch(*context_.stream);
    }
    QUIRE_RETURN_IF_ERROR(context_.stream->synchronize());
    QUIRE_ASSIGN_OR_RETURN(is_warm,
                           options_.agreement.all_agree(timer.seconds() >= kWarmUpSeconds));
  }
  return {};
}

}  // namespace quire::cuda
