// The interface to a kind of device. One folder per kind (cpu/, cuda/) implements it; the layers
// above do not depend on the kind.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/selection.h"
#include "base/thread_choice.h"
#include "measure/choices.h"
#include "nodes/nodes.h"
#include "ops/ops.h"
#include "platform/runner.h"
#include "quire/status.h"
#include "tensor/packed_weights.h"

namespace quire {

// The number of a CPU's threads that run a step, by the step's token rows; 0: all threads. Decode
// is limited by the memory bandwidth, which fewer threads may saturate.
struct StepThreads {
  int decode = 0;   // steps of up to kMaxDecodeRows token rows
  int prefill = 0;  // steps of more token rows

  friend bool operator==(const StepThreads&, const StepThreads&) = default;
};
// Geometric mean of 8 and 512, the numbers of token rows that `quire tune` measures.
inline constexpr int kMaxDecodeRows = 64;

struct PlatformConfig {
  // By rank of this process: the index of its GPU, or of its group of CPU threads (0, 1, …).
  std::vector<int> devices = {0};
  // The processes that share the model, with equal numbers of ranks; null: only this process.
  std::shared_ptr<Nodes> nodes = {};
  Parallel replica = {};                 // for a CPU, whose threads and memory the replicas share
  ThreadChoice threads = {};             // of a CPU; without places: the default choice
  StepThreads step_threads = {};         // of a CPU; more threads than it has: all its threads
  DType activation_dtype = DType::kF32;  // for a GPU; a CPU computes in F32
  InputRounding rounding = InputRounding::kNone;  // for a CPU
  // Null: packed weights are not kept. Only for a CPU with one rank on one NUMA node, because
  // several nodes each pack the part that they multiply into their own memory.
  std::shared_ptr<PackedWeights> packed_weights = {};
  double gpu_memory_utilization = 0.9;
  // The choices on devices of this kind. Null: the platform measures, and keeps nothing.
  std::shared_ptr<MeasuredChoices> choices = {};
};

// Defaults that suit the kind of device, for sizes that the user does not set.
struct PlatformDefaults {
  int max_num_seqs = 0;
  int max_num_rule_seqs = 0;  // sequences with sampling rules (sched/policy.h, has_rules)
  int max_num_batched_tokens = 0;
};

struct MemoryBudget {
  std::string_view owner = "machine";  // owner of the memory, for messages
  int64_t free_bytes = 0;              // for weights, buffers and KV cache together
  double kv_share = 1.0;     // the KV cache's fraction of the memory that weights and buffers leave
  bool kv_as_needed = true;  // limits the cache to max_num_seqs sequences of full length
};

struct RunnerBytes {
  int64_t buffers = 0;  // on a CPU an upper bound: scratch depends on the types of the matrices
  // Reserve for sizes that are not known ahead: graphs, the kernels that libraries load for them,
  // and the rounding of allocations. The log at start reports how much of it was used.
  int64_t reserve = 0;
};

// One device of a platform, with everything that belongs to this device alone. Several runners may
// share a context: their calls come from one thread at a time, and nothing is loaded while any of
// their steps is in flight. Different threads may use different contexts. Any thread may release a
// context's memory, plans and runners.
class DeviceContext {
 public:
  virtual ~DeviceContext() = default;

  // Makes the device current on the calling thread. A thread must call this before it loads,
  // allocates or makes plans there. Runners call it themselves.
  virtual Status bind_thread() = 0;
  virtual const Device& device() const = 0;
  virtual const BackendSet& attention() const = 0;
  virtual Ops& ops() = 0;
  // The memory available now for weights, KV cache and everything else on the device.
  virtual Result<MemoryBudget> memory_budget() const = 0;
  // Fails if the device lacks the memory, or cannot make the drafter.
  virtual Result<std::unique_ptr<Runner>> make_runner(const RunnerParts& parts) = 0;
  // Copies a tensor of the device to host memory of its size, after all work that is enqueued.
  virtual Status copy_to_host(const TensorView& device, void* host) = 0;
  // Device memory of a runner's drafter by lookup; 0 if the memory grows with the sequences.
  virtual int64_t lookup_drafter_bytes(const DrafterLimits& /*limits*/) const { return 0; }
  // This context's rank, and the number of contexts that share a model.
  virtual Parallel parallel() const { return {}; }
  // Waits until every rank has called it with its context, each on its own thread, and returns the
  // first error that a rank passed. A rank that fails must call it at once, to release the other
  // ranks from operations in which they wait for this rank.
  virtual Status join_ranks(const Status& status) { return status; }
  // Collectives that this process has finished, as a sign of progress; 0: not counted.
  virtual int64_t num_collectives() const { return 0; }

  // Returns at least num_bytes of scratch for attention, which all runners of the context use in
  // turn. The memory lives as long as the context, because graphs contain its address. A call for
  // more than the largest buffer allocates a new one.
  Result<std::span<std::byte>> workspace(size_t num_bytes);

 private:
  virtual Result<Buffer> allocate_workspace(size_t num_bytes) = 0;

  std::vector<Buffer> workspaces_;  // each is larger than the one before
};

class Platform {
 public:
  explicit Platform(std::shared_ptr<MeasuredChoices> choices = nullptr)
      : choices_(choices == nullptr ? std::make_shared<MeasuredChoices>() : std::move(choices)) {}
  virtual ~Platform() = default;

  // PlatformConfig::choices; never null.
  const std::shared_ptr<MeasuredChoices>& choices() const { return choices_; }

  // The contexts of this process's ranks, one per device of PlatformConfig::devices.
  virtual std::span<const std::unique_ptr<DeviceContext>> contexts() const = 0;
  virtual PlatformDefaults defaults() const = 0;
  // PlatformConfig::nodes.
  virtual Nodes* nodes() const { return nullptr; }
  // The memory that a runner takes on its device, without the logits. `attention` holds the
  // target's selectors.
  virtual RunnerBytes runner_bytes(const RunnerSizes& sizes,
                                   std::span<const AttentionSelector> attention) const = 0;
  // The query lengths of decode steps for which attention is planned, ascending; the last is
  // 1 + num_drafts. They begin with 1 if all decoding spans of a step have one length, which the
  // runner chooses for each step (Verification::is_adaptive).
  virtual std::vector<int> decode_q_lens(int num_drafts, bool /*is_adaptive*/) const {
    return {1 + num_drafts};
  }
  // The decode steps for which a runner selects a backend, in the ascending order that
  // AttentionSelector::decode_services expects.
  virtual std::vector<DecodeKey> decode_keys(int max_num_seqs, int max_model_len,
                                             std::span<const int> q_lens) const = 0;
  // Called once all weights are loaded.
  virtual void keep_packed_weights() {}
  // A CPU's threads, for reports; null on other devices.
  virtual const ThreadChoice* thread_choice() const { return nullptr; }
  virtual StepThreads step_threads() const { return {}; }
  // Sets the threads of later steps. Called while no step runs.
  virtual void set_step_threads(const StepThreads& /*threads*/) {}
  // kInvalidArgument when a request exceeds the capacity of the device's tables. Thread-safe.
  virtual Status check(const SamplingSpec& /*spec*/, int /*vocab_size*/,
                       int /*max_model_len*/) const {
    return {};
  }

 private:
  const std::shared_ptr<MeasuredChoices> choices_;
};

Result<std::unique_ptr<Platform>> make_cpu_platform(const PlatformConfig& config);
// Fails if a CPU has fewer threads than all replicas have ranks.
Status check_rank_threads(size_t num_ranks, size_t num_replicas, size_t num_threads);
// QUIRE_MAX_CPU_ISA, the highest instruction set that kernels may use; empty: not set.
std::string max_cpu_isa();
// Names the order in which this machine's kernels read weights: by its architecture and, if the
// kernels use it, AMX.
std::string cpu_weight_layout();

// Whether this build supports the kind of device.
bool is_built_for(DeviceKind device);

// GPU number `index`. Fails with kUnimplemented if this build has no CUDA, with kUnavailable if the
// machine has no usable GPU, and with kInvalidArgument if it has fewer GPUs.
Result<Device> find_gpu(int index);
// Ok if the GPU is usable, and otherwise the error of find_gpu().
Status cuda_status(int index = 0);
// The version of the GPU driver, for example "580.159.04"; "unknown" if the system does not report
// it.
std::string gpu_driver_version();
Result<std::unique_ptr<Platform>> make_cuda_platform(const PlatformConfig& config);

struct ProfileShare {
  std::string name;
  int64_t count = 0;  // number of kernels or copies; 0 for idle time
  double seconds = 0.0;
};

// Decode-only steps, replayed as graphs.
struct DecodeProfile {
  int64_t num_steps = 0;
  double seconds = 0.0;               // from one step's results to the next step's
  double idle_between_seconds = 0.0;  // around the copies that begin and end a step
  double idle_within_seconds = 0.0;   // between its kernels
};

struct DeviceProfile {
  double elapsed_s = 0.0;             // from start() to stop()
  std::vector<ProfileShare> shares;   // add up to elapsed_s: matrix products, …, idle
  std::vector<ProfileShare> kernels;  // by name, the largest total first
  DecodeProfile decode;
};

class DeviceProfiler {
 public:
  virtual ~DeviceProfiler() = default;
  virtual Status start() = 0;
  // Waits for the device. kUnavailable when the device ran nothing since start().
  virtual Result<DeviceProfile> stop() = 0;
};

// Profiles the GPU with this index; records of other devices are ignored. Create it before the
// engine; only one may exist at a time. Returns the error of cuda_status(device) if there is no
// such GPU, and kUnavailable without the profiling library.
Result<std::unique_ptr<DeviceProfiler>> make_device_profiler(int device);

}  // namespace quire
