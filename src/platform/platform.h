// What a kind of device brings. One folder implements it for each kind (cpu/, cuda/), and nothing
// above knows which one runs.
#pragma once

#include <memory>

#include "attn/backend_set.h"
#include "ops/ops.h"
#include "platform/runner.h"

namespace quire {

struct PlatformConfig {
  int num_threads = 0;  // of the host; 0: one a usable core
  int device_index = 0;
  DType weight_dtype = DType::kF32;  // a device may compute in it
};

class Platform {
 public:
  virtual ~Platform() = default;

  virtual const Device& device() const = 0;
  virtual const BackendSet& attention() const = 0;
  virtual Ops& ops() = 0;
  // Where weights and the KV cache will lie, right now.
  virtual int64_t free_memory_bytes() const = 0;
  virtual Result<Workspace> make_workspace(size_t arena_bytes) = 0;
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
