#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "base/machine.h"
#include "cpu/attention/reference.h"
#include "cpu/attention/simd.h"
#include "cpu/ops/gemm_amx.h"
#include "cpu/ops/gemm_bf16.h"
#include "cpu/platform/host_runner.h"
#include "cpu/platform/lookup_drafter.h"
#include "cpu/platform/model_drafter.h"
#include "platform/platform.h"

namespace quire {
namespace {

class CpuContext final : public DeviceContext {
 public:
  CpuContext(std::vector<ThreadPlace> places, const StepThreads& threads,
             const CpuOpsOptions& options)
      : host_(std::move(places), threads, options) {
    attention_.add(make_cpu_attention(host_.pool));
    attention_.add(make_reference_attention());
  }

  StepThreads step_threads() {
    const std::lock_guard turn(host_.step_mutex);
    return host_.step_threads;
  }
  void set_step_threads(const StepThreads& threads) {
    const std::lock_guard turn(host_.step_mutex);
    host_.step_threads = threads;
  }

  Status bind_thread() override { return {}; }
  const Device& device() const override { return device_; }
  const BackendSet& attention() const override { return attention_; }
  Stream& stream() override { return host_.stream; }
  Ops& ops() override { return *host_.ops; }
  Result<MemoryBudget> memory_budget() const override {
    return MemoryBudget{.free_bytes = free_memory_bytes(), .kv_share = 0.25};
  }
  Result<std::unique_ptr<Runner>> make_runner(const RunnerParts& parts) override {
    return HostRunner::create(parts, host_);
  }
  Status copy_to_host(const TensorView& device, void* host) override {
    std::memcpy(host, device.data, device.num_bytes());
    return {};
  }
  Result<std::unique_ptr<Drafter>> make_lookup_drafter(const LookupConfig& config,
                                                       const DrafterLimits& limits) override {
    return quire::make_lookup_drafter(config, limits, host_.pool);
  }
  Result<std::unique_ptr<Drafter>> make_model_drafter(const DraftModelParts& parts,
                                                      const DrafterLimits& limits) override {
    return quire::make_model_drafter(parts, limits, host_);
  }

 private:
  Result<Buffer> allocate_workspace(size_t num_bytes) override { return Buffer::host(num_bytes); }

  const Device device_ = {.kind = DeviceKind::kCpu, .name = "cpu"};
  HostDevice host_;
  BackendSet attention_;
};

class CpuPlatform final : public Platform {
 public:
  explicit CpuPlatform(const PlatformConfig& config)
      : choice_(config.threads.places.empty() ? choose_threads(ThreadOptions()) : config.threads) {
    auto context = std::make_unique<CpuContext>(choice_.places, config.step_threads,
                                                CpuOpsOptions{.rounding = config.rounding});
    context_ = context.get();
    contexts_.push_back(std::move(context));
  }

  std::span<const std::unique_ptr<DeviceContext>> contexts() const override { return contexts_; }
  PlatformDefaults defaults() const override {
    return {.max_num_seqs = 64,
            .max_num_rule_seqs = std::numeric_limits<int>::max(),
            .max_num_batched_tokens = 512};
  }
  RunnerBytes runner_bytes(const RunnerSizes& /*sizes*/,
                           std::span<const AttentionSelector> /*attention*/) const override {
    return {};
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
  const ThreadChoice* thread_choice() const override { return &choice_; }
  StepThreads step_threads() const override { return context_->step_threads(); }
  void set_step_threads(const StepThreads& threads) override {
    context_->set_step_threads(threads);
  }

 private:
  ThreadChoice choice_;
  CpuContext* context_ = nullptr;
  std::vector<std::unique_ptr<DeviceContext>> contexts_;
};

}  // namespace

Result<std::unique_ptr<Platform>> make_cpu_platform(const PlatformConfig& config) {
  if (config.devices != std::vector{0}) {
    return invalid_argument(
        fmt::format("[cpu] the host's CPU is the only device; got a list of {} devices, expected "
                    "device 0 alone",
                    config.devices.size()));
  }
  if (config.rounding == InputRounding::kBf16 &&
      (!cpu::avx512_bf16_usable() || cpu::amx_usable())) {
    return invalid_argument(
        "[cpu] cpu_activations: got bf16 on a processor that has AMX or lacks AVX-512 BF16, "
        "expected f32, which is as fast there");
  }
  return std::unique_ptr<Platform>(new CpuPlatform(config));
}

}  // namespace quire
