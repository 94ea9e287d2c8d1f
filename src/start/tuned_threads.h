// The numbers of threads that `quire tune` measured to be the fastest on a CPU, kept for later
// starts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_choice.h"
#include "platform/platform.h"
#include "quire/config.h"

namespace quire {

struct ModelFiles;

inline constexpr int kMaxTunedThreads = 1024;  // as EngineConfig::num_threads

// One row per machine and model. The file is CSV:
//   cpus,model,decode_threads,prefill_threads
//   64 cores 128 CPUs 2 nodes 64 threads pinned,LlamaForCausalLM 32x4096 8030261248 bf16 f32,32,64
struct TunedThreads {
  std::string cpus;   // the CPUs that the process may use, by cpus_key()
  std::string model;  // the shape of the model, by model_key()
  StepThreads threads;
};

// The key of the CPUs. `choice`: made with ThreadOptions::num_threads = 0.
std::string cpus_key(const ThreadChoice& choice);
// The key of a model: its shape and the types of its weights and activations, on which its speed
// depends.
std::string model_key(const EngineConfig& config, const ModelFiles& files);

// The file of this CPU's model and this version of Quire; empty: there is no cache directory.
std::filesystem::path tuned_threads_file();
// Fails if the file is malformed. A missing file has no rows.
Result<std::vector<TunedThreads>> read_tuned_threads(const std::filesystem::path& file);
// Adds a row to the file, or replaces the row with its keys. The file is not locked: of two
// processes that measure at the same time, which disturbs both, one may lose its row.
Status keep_tuned_threads(const std::filesystem::path& file, const TunedThreads& row);

// The kept threads of this machine and model. A file that cannot be read is reported by a warning.
std::optional<StepThreads> find_tuned_threads(const ThreadChoice& choice,
                                              const EngineConfig& config, const ModelFiles& files);

}  // namespace quire
