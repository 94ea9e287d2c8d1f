#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/ascii.h"
#include "base/file.h"
#include "base/log.h"
#include "base/setting_name.h"
#include "cuda/attention/backends.h"
#include "cuda/base/device_info.h"
#include "cuda/base/memory.h"
#include "cuda/base/nccl.h"
#include "cuda/ops/cuda_ops.h"
#include "cuda/platform/cuda_runner.h"
#include "cuda/platform/lookup_drafter.h"
#include "cuda/platform/runner_bytes.h"
#include "cuda/sample/sampled_slots.h"
#include "cuda/step/decode_graphs.h"
#include "cuda/tune/attention_meter.h"
#include "platform/platform.h"
#include "platform/tune.h"

namespace quire {
namespace cuda {
namespace {

class CudaContext final : public DeviceContext {
 public:
  // ranks: null with one rank.
  static Result<std::unique_ptr<CudaContext>> open(int rank, std::shared_ptr<NcclRanks> ranks,
                                                   std::shared_ptr<PeerSums> peer_sums,
                                                   std::shared_ptr<MeasuredChoices> choices,
                                                   const PlatformConfig& config) {
    std::unique_ptr<CudaContext> context(
        new CudaContext(rank, std::move(ranks), config.gpu_memory_utilization));
    QUIRE_RETURN_IF_ERROR(context->open(std::move(peer_sums), std::move(choices), config));
    return context;
  }
  // Library handles must be released on their own device.
  ~CudaContext() override {
    if (stream_ != nullptr) (void)bind_thread();
  }

  Status bind_thread() override { return use_device(info_.device.index); }
  const Device& device() const override { return info_.device; }
  const BackendSet& attention() const override { return attention_; }
  CudaStream& stream() { return *stream_; }
  Ops& ops() override { return *ops_; }

  Result<MemoryBudget> memory_budget() const override {
    QUIRE_ASSIGN_OR_RETURN(const int64_t left_bytes, budget_left());
    return MemoryBudget{
        .owner = "GPU", .free_bytes = std::max<int64_t>(0, left_bytes), .kv_as_needed = false};
  }

  Result<std::unique_ptr<Runner>> make_runner(const RunnerParts& parts) override {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner,
                           CudaRunner::create(parts, *ops_, *stream_));
    QUIRE_RETURN_IF_ERROR(log_reserve_use(parts));
    return runner;
  }
  Status copy_to_host(const TensorView& device, void* host) override {
    stream_->copy_to_host(host, device.data, device.num_bytes());
    return stream_->synchronize();
  }
  Parallel parallel() const override {
    if (ranks_ == nullptr) return {};
    return {.rank = rank_, .size = ranks_->size()};
  }
  Status join_ranks(const Status& status) override {
    return ranks_ == nullptr ? status : ranks_->joint().join(status);
  }
  int64_t lookup_drafter_bytes(const DrafterLimits& limits) const override {
    return static_cast<int64_t>(cuda::lookup_drafter_bytes(limits));
  }

 private:
  CudaContext(int rank, std::shared_ptr<NcclRanks> ranks, double utilization)
      : rank_(rank), ranks_(std::move(ranks)), utilization_(utilization) {}

  Status open(std::shared_ptr<PeerSums> peer_sums, std::shared_ptr<MeasuredChoices> choices,
              const PlatformConfig& config) {
    const int first_rank = ranks_ == nullptr ? 0 : ranks_->first_rank();
    QUIRE_ASSIGN_OR_RETURN(info_,
                           open_device(config.devices[static_cast<size_t>(rank_ - first_rank)]));
    QUIRE_ASSIGN_OR_RETURN(stream_, CudaStream::create());
    QUIRE_ASSIGN_OR_RETURN(ops_, CudaOps::create(*stream_, config.activation_dtype,
                                                 {.ranks = ranks_,
                                                  .rank = rank_,
                                                  .peer_sums = std::move(peer_sums),
                                                  .choices = std::move(choices)}));
    // The order matters: if backends are equally fast, the first is selected. XQA gains the most
    // from pages that requests share.
    attention_.add(make_xqa_attention(info_));
    attention_.add(make_flashinfer_attention(info_));
    attention_.add(make_cudnn_attention(info_));
    attention_.add(make_native_attention(info_));
    return {};
  }

  Result<Buffer> allocate_workspace(size_t num_bytes) override {
    QUIRE_RETURN_IF_ERROR(bind_thread());
    return device_memory(num_bytes);
  }

  // The free memory minus the share that `gpu_memory_utilization` keeps free; may be negative.
  Result<int64_t> budget_left() const {
    QUIRE_ASSIGN_OR_RETURN(const int64_t free_bytes, free_device_bytes(info_.device.index));
    const double kept_free = static_cast<double>(info_.total_bytes) * (1.0 - utilization_);
    return free_bytes - static_cast<int64_t>(kept_free);
  }

  // Logs how much of the memory reserve the graphs and libraries took. A runner without a reserve
  // is temporary.
  Status log_reserve_use(const RunnerParts& parts) const {
    if (parts.reserve_bytes == 0) return {};
    QUIRE_ASSIGN_OR_RETURN(const int64_t left_bytes, budget_left());
    const int64_t taken = parts.left_bytes + parts.reserve_bytes - left_bytes;
    const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / double{1 << 20}; };
    log_info("[memory] CUDA graphs and libraries took {:.1f} MiB of the reserve of {:.1f} MiB",
             mib(taken), mib(parts.reserve_bytes));
    if (taken > parts.reserve_bytes) {
      log_warning(
          "[memory] CUDA graphs and libraries took {:.1f} MiB more than planned; lower {} if "
          "the GPU's memory runs out",
          mib(taken - parts.reserve_bytes), SettingName{"gpu_memory_utilization"});
    }
    return {};
  }

  // Members are declared in the order of their dependencies.
  const int rank_;
  std::shared_ptr<NcclRanks> ranks_;  // null: a single rank
  DeviceInfo info_;
  const double utilization_;  // maximum share of the device's memory that is used
  std::unique_ptr<CudaStream> stream_;
  BackendSet attention_;
  std::unique_ptr<CudaOps> ops_;
};

// Null if the GPUs cannot write to each other's memory.
Result<std::shared_ptr<PeerSums>> connect_peers(std::span<const int> devices, NcclRanks& ranks) {
  Result<std::shared_ptr<PeerSums>> peers = PeerSums::connect(devices);
  if (!peers.ok()) {
    if (peers.status().code() != StatusCode::kUnavailable) return peers.status();
    log_warning("[ranks] all sums use NCCL, which is slower: {}", peers.status().message());
    return std::shared_ptr<PeerSums>();
  }
  ranks.on_failure([sums = *peers] { sums->release(); });
  return peers;
}

void log_sums(const SumLimits& limits, const SumTimes& first) {
  if (std::max(limits.one_step, limits.two_steps) == 0) {
    return log_info(
        "[ranks] no sum uses peer memory; {} KiB and a norm take {:.1f} us there, {:.1f} us "
        "with NCCL",
        first.num_bytes / 1024, first.one_step_us, first.nccl_us);
  }
  log_info(
      "[ranks] peer memory is used for sums of up to {} KiB (one step) and {} KiB (two steps); "
      "{} KiB with a norm take {:.1f} us, {:.1f} us with NCCL",
      limits.one_step / 1024, limits.two_steps / 1024, first.num_bytes / 1024, first.one_step_us,
      first.nccl_us);
}

// Uses peer memory for the sizes that are faster there on every rank. Kept limits are only used
// after a few sums have shown that the GPUs receive what they write to each other.
Status choose_sums(std::span<CudaStream* const> streams, NcclRanks& ranks, PeerSums& peers,
                   std::span<const int> devices, MeasuredChoices& choices) {
  if (!choices.measures()) return {};
  const std::string key = fmt::format("GPUs {}", fmt::join(devices, " "));
  const std::optional<std::string> text = choices.find(ChoiceKind::kRankSum, key);
  const std::optional<SumLimits> kept = text ? sum_limits(*text) : std::nullopt;
  const std::vector<int64_t> rows = kept ? checked_sum_rows() : measured_sum_rows();
  std::optional<MeasuredChoices::Timing> timing;
  if (!kept) timing.emplace(choices, ChoiceKind::kRankSum);
  const Result<std::vector<SumTimes>> times = measure_sums(streams, ranks, peers, rows);
  if (times.status().code() == StatusCode::kUnavailable) {
    log_warning("[ranks] all sums use NCCL, which is slower: {}", times.status().message());
    return {};
  }
  QUIRE_RETURN_IF_ERROR(times.status());
  const SumLimits limits = kept ? *kept : best_limits(*times);
  peers.set_limits(limits);
  if (kept) return {};
  choices.add(ChoiceKind::kRankSum, key, to_text(limits));
  log_sums(limits, times->front());
  return {};
}

class CudaPlatform final : public Platform {
 public:
  using Platform::Platform;
  static Result<std::unique_ptr<Platform>> create(const PlatformConfig& config) {
    if (config.devices.empty()) {
      return invalid_argument("[cuda] no device was chosen; got 0 devices, expected at least 1");
    }
    std::shared_ptr<NcclRanks> ranks;
    std::shared_ptr<PeerSums> peer_sums;
    if (config.devices.size() > 1 || config.nodes != nullptr) {
      // NCCL's error would not name the missing device.
      for (const int device : config.devices) QUIRE_RETURN_IF_ERROR(open_device(device).status());
      QUIRE_ASSIGN_OR_RETURN(ranks, NcclRanks::connect(config.devices, config.nodes));
    }
    // Peer sums need mapped memory, which the GPUs of other processes do not have.
    if (ranks != nullptr && config.nodes == nullptr) {
      QUIRE_ASSIGN_OR_RETURN(peer_sums, connect_peers(config.devices, *ranks));
    }
    auto platform = std::make_unique<CudaPlatform>(config.choices);
    platform->nodes_ = config.nodes;
    std::vector<CudaStream*> streams;
    const int first_rank = ranks == nullptr ? 0 : ranks->first_rank();
    for (size_t i = 0; i < config.devices.size(); ++i) {
      QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<CudaContext> context,
                             CudaContext::open(first_rank + static_cast<int>(i), ranks, peer_sums,
                                               platform->choices(), config));
      streams.push_back(&context->stream());
      platform->contexts_.push_back(std::move(context));
    }
    if (peer_sums != nullptr) {
      QUIRE_RETURN_IF_ERROR(
          choose_sums(streams, *ranks, *peer_sums, config.devices, *platform->choices()));
    }
    return std::unique_ptr<Platform>(std::move(platform));
  }

  std::span<const std::unique_ptr<DeviceContext>> contexts() const override { return contexts_; }
  Nodes* nodes() const override { return nodes_.get(); }
  PlatformDefaults defaults() const override {
    return {.max_num_seqs = 256, .max_num_rule_seqs = 256, .max_num_batched_tokens = 8192};
  }

  RunnerBytes runner_bytes(const RunnerSizes& sizes,
                           std::span<const AttentionSelector> attention) const override {
    return cuda::runner_bytes(sizes, attention);
  }

  std::vector<int> decode_q_lens(int num_drafts, bool is_adaptive) const override {
    return cuda::decode_q_lens(num_drafts, is_adaptive);
  }

  std::vector<DecodeKey> decode_keys(int max_num_seqs, int max_model_len,
                                     std::span<const int> q_lens) const override {
    return cuda::graph_keys(max_num_seqs, max_model_len, q_lens);
  }

  Status check(const SamplingSpec& spec, int vocab_size, int max_model_len) const override {
    return check_sampling_spec(spec,
                               {.vocab_size = vocab_size, .max_tokens_per_seq = max_model_len});
  }

 private:
  std::shared_ptr<Nodes> nodes_;
  std::vector<std::unique_ptr<DeviceContext>> contexts_;
};

}  // namespace
}  // namespace cuda

bool is_built_for(DeviceKind /*device*/) {
  return true;
}

Result<Device> find_gpu(int index) {
  QUIRE_ASSIGN_OR_RETURN(const cuda::DeviceInfo info, cuda::open_device(index));
  return info.device;
}

Status cuda_status(int index) {
  return find_gpu(index).status();
}

Result<std::unique_ptr<Platform>> make_cuda_platform(const PlatformConfig& config) {
  return cuda::CudaPlatform::create(config);
}

std::string gpu_driver_version() {
  constexpr size_t kMaxBytes = 4096;
  const Result<std::string> text = read_file("/proc/driver/nvidia/version", kMaxBytes);
  if (!text.ok()) return "unknown";
  // The first line is for example "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue
  // ..."; the version is its first word that begins with a digit and has a point.
  std::istringstream words(*text);
  for (std::string word; words >> word;) {
    if (is_digit(word.front()) && word.find('.') != std::string::npos) return word;
  }
  return "unknown";
}

Status measure_attention(DeviceContext& context, std::span<AttentionBackend* const> backends,
                         const MeasureConfig& config, const OnMeasured& on_measured) {
  QUIRE_RETURN_IF_ERROR(context.bind_thread());
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<cuda::AttentionMeter> meter,
                         cuda::AttentionMeter::create(config));
  for (size_t i = 0; i < config.workloads.size(); ++i) {
    const AttentionWorkload& workload = config.workloads[i];
    std::vector<AttentionBackend*> candidates;
    for (AttentionBackend* backend : backends) {
      if (backend->supports(config.shape, use_of(workload), context.device()).ok()) {
        candidates.push_back(backend);
      }
    }
    QUIRE_ASSIGN_OR_RETURN(const MeasuredWorkload measured, meter->measure(workload, candidates));
    if (!on_measured(i, measured)) return {};
  }
  return {};
}

}  // namespace quire
