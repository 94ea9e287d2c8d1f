// Finds the numbers of threads with which a CPU decodes and prefills fastest: `quire tune` on a
// CPU.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "bench/measurement.h"
#include "quire/config.h"
#include "start/tuned_threads.h"

namespace quire::bench {

struct ThreadTuneOptions {
  EngineConfig engine;  // the model, its types, and which cores take part
  bool quick = false;   // measures each number of threads once
};

// The shortest times with one number of threads, in seconds.
struct ThreadTimes {
  int num_threads = 0;
  double decode_s = 0.0;        // per token of one sequence
  double batch_decode_s = 0.0;  // per token of each of 8 sequences
  double prefill_s = 0.0;       // of one prompt
  // The share by which the second shortest time exceeds the shortest; the largest of the three.
  double scatter = 0.0;
};

struct ThreadTuneResult {
  std::string title;  // the model and the CPUs
  int prompt_len = 0;
  std::vector<ThreadTimes> times;  // ascending by threads
  StepThreads best;
  std::filesystem::path file;  // in which `best` is kept
};

// All logical CPUs, all physical cores, and up to three halvings of the physical cores; ascending.
// If num_cpus is not larger, the largest number is num_cores. With a quota, the caller passes it as
// both.
std::vector<int> thread_counts(int num_cores, int num_cpus);
// The default number of threads, which is one of `times`, unless another one is faster by more than
// 5 % and by more than the scatter of both. Among the numbers within 2 % of the shortest time,
// chooses the fewest threads, because they leave cores to other work. For decode, the time is the
// sum of the relative times of both batches.
StepThreads fastest_threads(std::span<const ThreadTimes> times, int default_threads);

// Loads the model with the largest number of threads, measures all numbers, and keeps the best for
// later starts. Fails with kCancelled after an interrupt, and for a model that embeds.
Result<ThreadTuneResult> tune_threads(const ThreadTuneOptions& options, const Hooks& hooks);
std::string to_table(const ThreadTuneResult& result);
std::string to_csv(const ThreadTuneResult& result);

}  // namespace quire::bench
