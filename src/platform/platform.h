// The interface to a kind of device. One folder implements it for each kind (cpu/, cuda/), and
// nothing above depends on which one runs.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "attn/backend_set.h"
#include "ops/ops.h"
#include "platform/runner.h"

namespace quire {

struct PlatformConfig {
  std::vector<int> devices = {0};        // indices within the kind of device, by rank
  int num_threads = 0;                   // of the host; 0: one per usable core
  DType activation_dtype = DType::kF32;  // on a GPU; a CPU computes in F32
  double gpu_memory_utilization = 0.9;
};

// The sizes that suit the kind of device, where a user does not set them.
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

struct RunnerBytes {
  int64_t buffers = 0;  // exact
  // For what cannot be known ahead: graphs, kernels that libraries load for them, and the rounding
  // up of allocations. The log at start says how much of it was used.
  int64_t reserve = 0;
};

// One device of a platform, and all that belongs to this device alone. Several runners may share a
// context: their calls come from one thread at a time, and nothing is loaded there while a step of
// any of them is in flight. Contexts are independent of each other, so different threads may use
// them. Any thread may release a context's memory, plans and runners.
class DeviceContext {
 public:
  virtual ~DeviceContext() = default;

  // Makes the device current on the calling thread, which loads, allocates and makes plans there
  // only after this call. Runners call it themselves.
  virtual Status bind_thread() = 0;
  virtual const Device& device() const = 0;
  virtual const BackendSet& attention() const = 0;
  virtual Stream& stream() = 0;
  virtual Ops& ops() = 0;
  // For weights, KV cache and everything else on the device, at the time of the call.
  virtual Result<MemoryBudget> memory_budget() const = 0;
  virtual Result<std::unique_ptr<Runner>> make_runner(const RunnerParts& parts) = 0;

  // At least num_bytes of scratch for attention, which all runners of the context use in turn. It
  // lives as long as the context, because graphs contain its address: a call for more than there is
  // gets new memory.
  Result<std::span<std::byte>> workspace(size_t num_bytes);

 private:
  virtual Result<Buffer> allocate_workspace(size_t num_bytes) = 0;

  std::vector<Buffer> workspaces_;  // each larger than the one before
};

class Platform {
 public:
  virtual ~Platform() = default;

  // One per device of PlatformConfig::devices, by rank.
  virtual std::span<const std::unique_ptr<DeviceContext>> contexts() const = 0;
  virtual PlatformDefaults defaults() const = 0;
  // The memory that a runner takes on its device, beside the logits. `attention` is its target's.
  virtual RunnerBytes runner_bytes(const RunnerSizes& sizes,
                                   std::span<const AttentionSelector> attention) const = 0;
  // The decode steps for which a runner selects a backend, in the ascending order of
  // AttentionSelector::decode_services.
  virtual std::vector<DecodeKey> decode_keys(int max_num_seqs, int max_model_len,
                                             std::span<const int> q_lens) const = 0;
  // kInvalidArgument where a request asks for more than the device's tables hold. Thread-safe.
  virtual Status check(const SamplingSpec& /*spec*/, int /*vocab_size*/,
                       int /*max_model_len*/) const {
    return {};
  }
};

Result<std::unique_ptr<Platform>> make_cpu_platform(const PlatformConfig& config);

// Whether this build can compute there at all.
bool is_built_for(DeviceKind device);

// Why there is no GPU `device` to compute on, or ok: kUnimplemented where this build has no CUDA,
// kUnavailable where the machine has no usable GPU, kInvalidArgument where it has fewer.
Status cuda_status(int device = 0);
Result<std::unique_ptr<Platform>> make_cuda_platform(const PlatformConfig& config);

}  // namespace quire
