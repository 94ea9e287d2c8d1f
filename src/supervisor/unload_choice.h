// Decides which models are unloaded to make room for another one. Pure functions of plain data.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace quire::supervisor {

// The planned memory of a model; see MemoryNeed in src/start.
struct PlannedMemory {
  bool is_on_gpu = false;
  int64_t num_bytes = 0;
};

// A model with a process.
struct LiveModel {
  size_t idx = 0;
  PlannedMemory memory = {};
  bool is_busy = false;     // starts, or has requests
  bool is_leaving = false;  // is being unloaded; its memory is still taken
  std::chrono::steady_clock::time_point last_used = {};
};

struct Capacity {
  int64_t host_bytes = 0;                 // free for further models
  std::optional<int64_t> gpu_bytes = {};  // of one GPU; absent: not known
  int max_models = 0;                     // with a process; 0: no limit
};

struct UnloadChoice {
  enum class Action {
    kStart,      // there is room
    kWait,       // until a model has left, or a busy one is idle
    kNeverFits,  // not even after all models have left
  };
  Action action = Action::kWait;
  int64_t bound_bytes = 0;          // of kNeverFits: the memory after all models have left
  std::vector<size_t> unload = {};  // idle models to unload now
  // Busy models that have to be unloaded next: they get no further requests until then, because a
  // model that always has some would never leave.
  std::vector<size_t> hold = {};
};

// Chooses the least recently used idle models, and no more of them than necessary. Without any
// model, a model is started even if it does not fit: its own start reports the reason.
UnloadChoice choose_unloads(std::span<const LiveModel> live, const PlannedMemory& wanted,
                            const Capacity& capacity);

}  // namespace quire::supervisor
