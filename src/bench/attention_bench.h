// Measures the attention backends of a GPU: `quire bench attention` and `quire tune`.
#pragma once

#include <string>
#include <vector>

#include "bench/attention_bench_report.h"
#include "bench/attention_grid.h"
#include "bench/measurement.h"
#include "quire/config.h"

namespace quire::bench {

// Selects the attention to measure: a model's, or any numbers of heads.
struct AttentionShapeOptions {
  EngineConfig engine;  // the model, types and page size
  int num_heads = 0;    // 0: the model's attention
  int num_kv_heads = 0;
  int head_dim = 0;
  int latent_dim = 0;  // > 0: the cache is latent, and its values are this part of the keys
};

struct AttentionBenchOptions {
  AttentionShapeOptions shape;
  std::string grid = "seed";
  std::vector<int> num_seqs;
  std::vector<int> seq_lens;
  std::vector<int> q_lens = {1};
  std::vector<int> prefix_lens = {0};
  std::vector<std::string> backends;  // empty: all that support the shape
  std::string tuning_table;
  int num_iters_warmup = 10;
  int num_iters = 20;
  double peak = 0.0;  // GB/s for decode, TFLOP/s for prefill; 0: the data sheet's for an H200
  uint64_t seed = kWorkloadSeed;
};

// Fails without a GPU. After an interrupt, the report has the rows measured so far.
Result<AttentionReport> measure_attention(const AttentionBenchOptions& options, const Hooks& hooks);

struct TuneOptions {
  AttentionShapeOptions shape;
  bool quick = false;
  std::vector<int> q_lens = {std::begin(kTuningQLens), std::end(kTuningQLens)};
};

struct TuneResult {
  std::string title;  // the device and the shape
  std::vector<TuningRow> rows;
};

// Fails without a GPU, and with kCancelled after an interrupt.
Result<TuneResult> tune_attention(const TuneOptions& options, const Hooks& hooks);
std::string to_table(const TuneResult& result);
// Returns the text of a file for `--tuning-table`.
std::string to_csv(const TuneResult& result);

}  // namespace quire::bench
