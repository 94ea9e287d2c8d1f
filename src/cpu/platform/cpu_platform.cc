#include <limits>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "cpu/attention/reference.h"
#include "cpu/attention/simd.h"
#include "cpu/ops/cpu_ops.h"
#include "cpu/platform/host_runner.h"
#include "platform/platform.h"

namespace quire {
namespace {

class CpuPlatform final : public Platform {
 public:
  explicit CpuPlatform(int num_threads) : pool_(num_threads), ops_(make_cpu_ops(pool_)) {
    attention_.add(make_cpu_attention(pool_));
    attention_.add(make_reference_attention());
  }

  const Device& device() const override { return device_; }
  const BackendSet& attention() const override { return attention_; }
  Ops& ops() override { return *ops_; }
  PlatformDefaults defaults() const override {
    return {.max_num_seqs = 64,
            .max_num_rule_seqs = std::numeric_limits<int>::max(),
            .max_num_batched_tokens = 512};
  }
  Result<MemoryBudget> memory_budget() const override {
    return MemoryBudget{.free_bytes = free_memory_bytes(), .kv_share = 0.25};
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

  Result<std::span<std::byte>> make_workspace(size_t num_bytes) override {
    QUIRE_ASSIGN_OR_RETURN(workspace_, Buffer::host(num_bytes));
    return std::span(static_cast<std::byte*>(workspace_.data()), workspace_.num_bytes());
  }

  Result<std::unique_ptr<Runner>> make_runner(const RunnerParts& parts) override {
    return HostRunner::create(parts, *ops_, pool_);
  }

 private:
  const Device device_ = {.kind = DeviceKind::kCpu, .name = "cpu"};
  ThreadPool pool_;
  BackendSet attention_;
  std::unique_ptr<Ops> ops_;
  Buffer workspace_;
};

}  // namespace

Result<std::unique_ptr<Platform>> make_cpu_platform(const PlatformConfig& config) {
  return std::unique_ptr<Platform>(
      new CpuPlatform(config.num_threads > 0 ? config.num_threads : num_usable_cores()));
}

}  // namespace quire
