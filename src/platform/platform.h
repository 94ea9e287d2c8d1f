// What a kind of device brings. One folder implements it for each kind (cpu/, cuda/), and nothing
// above knows which one runs.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "attn/backend_set.h"
#include "ops/ops.h"
#include "platform/runner.h"

namespace quire {

struct PlatformConfig {
  int num_threads = 0;                   // of the host; 0: one a usable core
  DType activation_dtype = DType::kF32;  // on a GPU; a CPU computes in F32
  double gpu_memory_utilization = 0.9;
};

// What a device does well with, where a user does not say.
struct PlatformDefaults {
  int max_num_seqs = 0;
  int max_num_rule_seqs = 0;  // sequences with sampling rules (sched/policy.h, has_rules)
  int max_num_batched_tokens = 0;
};

struct MemoryBudget {
  std::string_view owner = "machine";  // of the memory, for messages
  int64_t free_bytes = 0;              // for everything
  double kv_share = 1.0;               // of what weights and the rest leave, for the KV cache
  bool kv_as_needed = true;            // no more than max_num_seqs sequences of full length
};

// What a runner's own memory depends on.
struct RunnerSizes {
  ModelLimits limits;
  int max_num_seqs = 0;
  int max_num_rule_seqs = 0;
  int vocab_size = 0;
  int num_layers = 0;
  std::vector<int> windows = {0};  // by block table; 0: none
  bool enforce_eager = false;
};

struct RunnerBytes {
  int64_t buffers = 0;  // exact
  // For what cannot be known ahead: graphs, what libraries load for them, and what an allocator
  // rounds up. The runner says what became of it.
  int64_t reserve = 0;
};

class Platform {
 public:
  virtual ~Platform() = default;

  virtual const Device& device() const = 0;
  virtual const BackendSet& attention() const = 0;
  virtual Ops& ops() = 0;
  virtual PlatformDefaults defaults() const = 0;
  // Of where weights and the KV cache will lie, right now.
  virtual Result<MemoryBudget> memory_budget() const = 0;
  // What a runner takes for itself, beside the logits.
  virtual RunnerBytes runner_bytes(const RunnerSizes& sizes,
                                   std::span<const AttentionSelector> attention) const = 0;
  // The decode steps that a runner's choice of backend tells apart, ascending as
  // AttentionSelector::decode_services wants them.
  virtual std::vector<DecodeKey> decode_keys(int max_num_seqs, int max_model_len,
                                             std::span<const int> q_lens) const = 0;
  // kInvalidArgument where a request asks for more than the device's tables hold. Thread-safe.
  virtual Status check(const SamplingSpec& /*spec*/, int /*vocab_size*/,
                       int /*max_model_len*/) const {
    return {};
  }
  // Scratch for the attention of all KV groups in turn; the platform's own.
  virtual Result<std::span<std::byte>> make_workspace(size_t num_bytes) = 0;
  virtual Result<std::unique_ptr<Runner>> make_runner(const RunnerParts& parts) = 0;
};

Result<std::unique_ptr<Platform>> make_cpu_platform(const PlatformConfig& config);

// Whether this build can compute there at all.
bool is_built_for(DeviceKind device);

// Why there is no GPU to compute on, or ok: kUnimplemented where this build has no CUDA,
// kUnavailable where the machine has no usable GPU.
Status cuda_status();
Result<std::unique_ptr<Platform>> make_cuda_platform(const PlatformConfig& config);

}  // namespace quire
