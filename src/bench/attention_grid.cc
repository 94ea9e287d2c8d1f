#include "bench/attention_grid.h"

#include <algorithm>
#include <utility>

namespace quire::bench {
namespace {

using Sizes = std::vector<int>;

constexpr int64_t kSeedPoolPages = 16'000;  // of BenchGrid::kSeed, as in vLLM's decode benchmark

AttentionWorkload prompts(int num_reqs, int num_tokens, int prefix_len = 0) {
  return full_workload(Phase::kPrefill, num_reqs, num_tokens, prefix_len + num_tokens);
}

Sizes powers_of_two(int first, int last) {
  Sizes sizes;
  for (int size = first; size <= last; size *= 2) sizes.push_back(size);
  return sizes;
}

Sizes or_default(const Sizes& sizes, Sizes fallback) {
  return sizes.empty() ? std::move(fallback) : sizes;
}

// Draws lengths as ragged_workload() does, and pages with replacement.
AttentionWorkload drawn_workload(int num_reqs, int q_len, int max_kv_len, uint64_t seed) {
  AttentionWorkload workload = ragged_workload(num_reqs, q_len, max_kv_len, seed);
  workload.pool_pages = kSeedPoolPages;
  return workload;
}

AttentionWorkload outlier_workload(int num_reqs, int q_len, int max_kv_len) {
  constexpr int kLengthRatio = 32;
  AttentionWorkload workload = full_workload(Phase::kDecode, num_reqs, q_len, max_kv_len);
  std::fill(workload.kv_lens.begin() + 1, workload.kv_lens.end(),
            std::max(q_len, max_kv_len / kLengthRatio));
  workload.ragged = num_reqs > 1;
  return workload;
}

std::vector<AttentionWorkload> prefill_grid(const BenchGridConfig& config) {
  std::vector<AttentionWorkload> workloads;
  if (config.num_seqs.empty() && config.kv_lens.empty()) {
    for (const int prefix_len : config.prefix_lens) {
      for (const auto& [num_reqs, num_tokens] :
           {std::pair(1, 2048), {1, 8192}, {4, 2048}, {16, 1024}}) {
        workloads.push_back(prompts(num_reqs, num_tokens, prefix_len));
      }
    }
    return workloads;
  }
  for (const int num_tokens : or_default(config.kv_lens, {2048})) {  // of a prompt, without prefix
    for (const int prefix_len : config.prefix_lens) {
      for (const int num_reqs : or_default(config.num_seqs, {1})) {
        workloads.push_back(prompts(num_reqs, num_tokens, prefix_len));
      }
    }
  }
  return workloads;
}

// Tuning measures decode batches of one query length with all combinations of these sizes.
struct DecodeSizes {
  Sizes num_reqs;
  Sizes kv_lens;
};

DecodeSizes decode_sizes(bool quick, int q_len, std::span<const int> q_lens) {
  constexpr int kQuickQLen = 5;  // stands for all longer queries
  const bool has_quick = std::ranges::find(q_lens, kQuickQLen) != q_lens.end();
  if (quick && q_len > 1 && q_len != kQuickQLen && has_quick) return {};
  if (quick) return {{1, 16, 256}, q_len == 1 ? Sizes{1024, 8192} : Sizes{8192}};
  const Sizes num_reqs = {1, 4, 8, 16, 32, 64, 128, 256};
  if (q_len > 1) return {num_reqs, {1024, 8192, 65'536}};
  Sizes kv_lens = powers_of_two(1024, 131'072);
  kv_lens.insert(kv_lens.begin(), 256);
  return {num_reqs, kv_lens};
}

}  // namespace

double num_kv_bytes(const AttentionShape& shape, const AttentionWorkload& workload) {
  double num_tokens = 0.0;
  for (const int32_t kv_len : workload.kv_lens) num_tokens += kv_len;
  return num_tokens * static_cast<double>(kv_layout(shape).page_bytes()) / shape.page_size;
}

double num_operations(const AttentionShape& shape, const AttentionWorkload& workload) {
  double num_visible = 0.0;
  for (const int32_t kv_len : workload.kv_lens) {
    num_visible += workload.q_len * (kv_len - (workload.q_len - 1) / 2.0);
  }
  return 2.0 * num_visible * shape.num_heads * (shape.head_dim + shape.head_dim_v);
}

std::vector<AttentionWorkload> tuning_grid(bool quick, std::span<const int> q_lens) {
  std::vector<AttentionWorkload> workloads;
  for (const int q_len : q_lens) {
    const DecodeSizes sizes = decode_sizes(quick, q_len, q_lens);
    for (const bool ragged : {false, true}) {
      for (const int kv_len : sizes.kv_lens) {
        for (const int num_reqs : sizes.num_reqs) {
          if (!ragged) {
            workloads.push_back(full_workload(Phase::kDecode, num_reqs, q_len, kv_len));
          } else if (num_reqs > 1) {  // is_ragged() is false for one request
            workloads.push_back(drawn_workload(num_reqs, q_len, kv_len, kWorkloadSeed));
          }
        }
      }
    }
  }
  // A run for longer queries alone (--q-len without 1) leaves the prompts out.
  if (std::ranges::find(q_lens, 1) == q_lens.end()) return workloads;
  for (const int num_tokens : quick ? Sizes{2048} : Sizes{512, 2048, 8192}) {
    workloads.push_back(prompts(1, num_tokens));
  }
  return workloads;
}

std::vector<AttentionWorkload> bench_grid(const BenchGridConfig& config) {
  if (config.grid == BenchGrid::kPrefill) return prefill_grid(config);
  std::vector<AttentionWorkload> workloads;
  for (const int q_len : config.q_lens) {
    for (const int kv_len : or_default(config.kv_lens, powers_of_two(1024, 131'072))) {
      if (kv_len < q_len) continue;
      for (const int num_reqs : or_default(config.num_seqs, {1, 4, 8, 16, 32, 64, 128, 256})) {
        if (config.grid == BenchGrid::kStrict) {
          workloads.push_back(full_workload(Phase::kDecode, num_reqs, q_len, kv_len));
        } else if (config.grid == BenchGrid::kOutlier) {
          workloads.push_back(outlier_workload(num_reqs, q_len, kv_len));
        } else {
          workloads.push_back(drawn_workload(num_reqs, q_len, kv_len, config.seed));
        }
      }
    }
  }
  return workloads;
}

}  // namespace quire::bench
