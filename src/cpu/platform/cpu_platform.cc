#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/numbers.h"
#include "cpu/attention/reference.h"
#include "cpu/attention/simd.h"
#include "cpu/ops/gemm_amx.h"
#include "cpu/ops/gemm_bf16.h"
#include "cpu/ops/isa.h"
#include "cpu/platform/host_runner.h"
#include "platform/platform.h"

namespace quire {
namespace {

class CpuContext final : public DeviceContext {
 public:
  CpuContext(std::vector<ThreadPlace> places, const CpuOpsOptions& options, int num_replicas)
      : host_(std::move(places), {}, options), num_replicas_(num_replicas) {
    attention_.add(make_cpu_attention(host_.pool));
    attention_.add(make_reference_attention());
  }

  void set_step_threads(const StepThreads& threads) {
    const std::lock_guard turn(host_.step_mutex);
    host_.step_threads = threads;
  }

  int num_threads() const { return host_.pool.num_threads(); }

  Status bind_thread() override { return {}; }
  const Device& device() const override { return device_; }
  const BackendSet& attention() const override { return attention_; }
  Ops& ops() override { return *host_.ops; }
  // All ranks of a process, over all replicas, share the machine's memory.
  Result<MemoryBudget> memory_budget() const override {
    const int num_ranks = host_.ranks == nullptr ? 1 : host_.ranks->num_local();
    const bool is_shared = num_ranks * num_replicas_ > 1;
    return MemoryBudget{.owner = is_shared ? "rank's share of the machine" : "machine",
                        .free_bytes = free_memory_bytes() / num_ranks / num_replicas_,
                        .kv_share = 0.25};
  }
  Result<std::unique_ptr<Runner>> make_runner(const RunnerParts& parts) override {
    return HostRunner::create(parts, host_);
  }
  Status copy_to_host(const TensorView& device, void* host) override {
    std::memcpy(host, device.data, device.num_bytes());
    return {};
  }
  Parallel parallel() const override {
    if (host_.ranks == nullptr) return {};
    return {.rank = host_.rank, .size = host_.ranks->size()};
  }
  Status join_ranks(const Status& status) override {
    return host_.ranks == nullptr ? status : host_.ranks->join(status);
  }
  int64_t num_collectives() const override {
    return host_.ranks == nullptr ? 0 : host_.ranks->num_collectives();
  }

 private:
  Result<Buffer> allocate_workspace(size_t num_bytes) override { return Buffer::host(num_bytes); }

  const Device device_ = {.kind = DeviceKind::kCpu, .name = "cpu"};
  HostDevice host_;
  const int num_replicas_;
  BackendSet attention_;
};

// Returns the places of one rank, or of one replica with all its ranks. They are adjacent in the
// order of nodes, so that a rank is on one node if the number of ranks is a multiple of the number
// of nodes.
std::vector<ThreadPlace> places_of_rank(std::vector<ThreadPlace> places, const Parallel& parallel) {
  std::ranges::stable_sort(places, {}, &ThreadPlace::node);
  const auto count = std::ssize(places);
  const auto first = places.begin() + count * parallel.rank / parallel.size;
  return {first, places.begin() + count * (parallel.rank + 1) / parallel.size};
}

class CpuPlatform final : public Platform {
 public:
  // `threads` has at least one place per rank of all replicas.
  CpuPlatform(const PlatformConfig& config, ThreadChoice threads)
      : Platform(config.choices),
        choice_(std::move(threads)),
        nodes_(config.nodes),
        ranks_(static_cast<int>(config.devices.size()), config.nodes),
        packed_weights_(config.packed_weights) {
    choice_.places = places_of_rank(std::move(choice_.places), config.replica);
    QUIRE_CHECK(packed_weights_ == nullptr || (ranks_.size() == 1 && is_on_one_node(choice_)),
                "[cpu] packed weights are kept for several ranks or nodes");
    CpuOpsOptions options = {.rounding = config.rounding, .kept = packed_weights_.get()};
    if (ranks_.size() > 1) options.ranks = &ranks_;
    for (int i = 0; i < ranks_.num_local(); ++i) {
      const Parallel parallel = {.rank = i, .size = ranks_.num_local()};
      options.rank = ranks_.first_rank() + i;
      contexts_.push_back(std::make_unique<CpuContext>(places_of_rank(choice_.places, parallel),
                                                       options, config.replica.size));
    }
    set_step_threads({.decode = ceil_div(config.step_threads.decode, config.replica.size),
                      .prefill = ceil_div(config.step_threads.prefill, config.replica.size)});
  }

  std::span<const std::unique_ptr<DeviceContext>> contexts() const override { return contexts_; }
  Nodes* nodes() const override { return nodes_.get(); }
  PlatformDefaults defaults() const override {
    return {.max_num_seqs = 64,
            .max_num_rule_seqs = std::numeric_limits<int>::max(),
            .max_num_batched_tokens = 512};
  }
  // The buffers are the scratch of the operations, which grows while weights are loaded.
  RunnerBytes runner_bytes(const RunnerSizes& sizes,
                           std::span<const AttentionSelector> /*attention*/) const override {
    int num_threads = 0;  // of the rank with the most threads
    for (const auto& context : contexts_) {
      num_threads = std::max(num_threads, static_cast<const CpuContext&>(*context).num_threads());
    }
    return {.buffers = cpu_scratch_bytes(sizes.max_columns, num_threads) +
                       cpu_head_scratch_bytes(sizes.latent_head_width)};
  }

  std::vector<DecodeKey> decode_keys(int max_num_seqs, int max_model_len,
                                     std::span<const int> q_lens) const override {
    std::vector<DecodeKey> keys;
    for (const int q_len : q_lens) {
      for (const int num_reqs : {1, max_num_seqs}) {
        keys.push_back(
            {.num_reqs = num_reqs, .max_kv_len = max_model_len, .eager = true, .q_len = q_len});
      }
    }
    return keys;
  }
  void keep_packed_weights() override {
    if (packed_weights_ != nullptr) packed_weights_->save();
  }
  const ThreadChoice* thread_choice() const override { return &choice_; }
  StepThreads step_threads() const override { return step_threads_; }
  void set_step_threads(const StepThreads& threads) override {
    step_threads_ = threads;
    const auto share = [&](int count) { return ceil_div(count, ranks_.num_local()); };
    for (const auto& context : contexts_) {
      static_cast<CpuContext&>(*context).set_step_threads(
          {.decode = share(threads.decode), .prefill = share(threads.prefill)});
    }
  }

 private:
  ThreadChoice choice_;
  StepThreads step_threads_;  // of all ranks of this process together
  std::shared_ptr<Nodes> nodes_;
  RankGroup ranks_;
  std::shared_ptr<PackedWeights> packed_weights_;  // null: packed weights are not kept
  std::vector<std::unique_ptr<DeviceContext>> contexts_;
};

}  // namespace

std::string max_cpu_isa() {
  return std::string(cpu::max_isa());
}

std::string cpu_weight_layout() {
  utsname system = {};
  const bool is_known = ::uname(&system) == 0;
  return fmt::format("{}{}", is_known ? system.machine : "unknown",
                     cpu::amx_usable() ? "-amx" : "");
}

Status check_rank_threads(size_t num_ranks, size_t num_replicas, size_t num_threads) {
  const size_t num_wanted = num_ranks * num_replicas;
  if (num_threads >= num_wanted) return {};
  const bool has_replicas = num_replicas > 1;
  return invalid_argument(fmt::format(
      "[cpu] {}: got {}{} ranks for {} threads, expected at least one thread per rank; set "
      "`num_threads`, or take fewer {}ranks",
      has_replicas ? "data_parallel_size" : "tensor_parallel_size",
      has_replicas ? fmt::format("{} replicas with ", num_replicas) : "", num_wanted, num_threads,
      has_replicas ? "replicas or " : ""));
}

Result<std::unique_ptr<Platform>> make_cpu_platform(const PlatformConfig& config) {
  QUIRE_RETURN_IF_ERROR(cpu::apply_max_isa());
  if (!cpu::max_isa().empty()) {
    log_info("[cpu] kernels use no instructions above {}, as QUIRE_MAX_CPU_ISA says",
             cpu::max_isa());
  }
  const auto num_ranks = config.devices.size();
  std::vector<int> expected(std::max<size_t>(num_ranks, 1));
  std::iota(expected.begin(), expected.end(), 0);
  if (config.devices != expected) {
    return invalid_argument(
        fmt::format("[cpu] the ranks of a CPU are its groups of threads; got a list of {} devices, "
                    "expected 0, 1, … for at least one rank",
                    num_ranks));
  }
  if (config.rounding == InputRounding::kBf16 && !cpu::avx512_bf16_usable()) {
    return invalid_argument(
        "[cpu] cpu_activations: got bf16, which needs AVX-512 BF16, expected f32; quire doctor "
        "says "
        "why it is missing");
  }
  ThreadChoice threads =
      config.threads.places.empty() ? choose_threads(ThreadOptions()) : config.threads;
  const auto num_replicas = static_cast<size_t>(config.replica.size);
  QUIRE_RETURN_IF_ERROR(check_rank_threads(num_ranks, num_replicas, threads.places.size()));
  return std::unique_ptr<Platform>(new CpuPlatform(config, std::move(threads)));
}

}  // namespace quire
