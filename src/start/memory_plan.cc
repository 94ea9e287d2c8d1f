#include "start/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/numbers.h"
#include "sched/policy.h"

namespace quire {
namespace {

double mib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

struct SizeUnit {
  double num_bytes;
  std::string_view name;
};

// Small sizes are in KiB or bytes, because in MiB they would read as 0.0.
SizeUnit unit_of(int64_t bytes) {
  if (mib(std::abs(bytes)) >= 1024) return {1 << 30, "GiB"};
  if (mib(std::abs(bytes)) >= 0.1) return {1 << 20, "MiB"};
  if (std::abs(bytes) >= 1024) return {1 << 10, "KiB"};
  return {1, "bytes"};
}

// "12.3 MiB"
std::string size_text(int64_t bytes, const SizeUnit& unit) {
  if (unit.num_bytes == 1) return fmt::format("{} bytes", bytes);
  return fmt::format("{:.1f} {}", static_cast<double>(bytes) / unit.num_bytes, unit.name);
}
std::string size_text(int64_t bytes) {
  return size_text(bytes, unit_of(bytes));
}

// Returns "got 12.3 MiB, expected 14.0 MiB", both in the unit of the first, or in bytes if both
// would read the same.
std::string got_and_expected(int64_t got, int64_t expected) {
  const SizeUnit unit = unit_of(got);
  std::string got_text = size_text(got, unit);
  std::string expected_text = size_text(expected, unit);
  if (got_text == expected_text) {
    got_text = fmt::format("{} bytes", got);
    expected_text = fmt::format("{} bytes", expected);
  }
  return fmt::format("got {}, expected {}", got_text, expected_text);
}

Saturated bytes_beside_kv(const MemoryRequest& request) {
  return Saturated(request.weight_bytes) + request.activation_bytes + request.workspace_bytes +
         request.reserve_bytes;
}

// Returns the number of states: a padding page, the states of one sequence, and one more per N
// blocks of keys and values. N blocks take at least the bytes of one state, and hold at least
// kTokensPerState tokens. So states take at most about half of the memory.
int64_t num_states(const MemoryRequest& request, const KvTableBytes& states, int64_t num_blocks) {
  constexpr int64_t kTokensPerState = 32;
  int64_t kv_bytes = 0;  // of one block in all tables without a window
  for (const KvTableBytes& table : request.tables) {
    if (table.window == 0) kv_bytes += table.block_bytes;
  }
  const int64_t of_bytes = kv_bytes == 0 ? 1 : ceil_div(states.block_bytes, kv_bytes);
  const int64_t of_tokens = ceil_div(kTokensPerState, int64_t{request.sizes.block_size});
  return 1 + kMaxStatesHeld + num_blocks / std::max(of_bytes, of_tokens);
}

// Returns the blocks of a table if tables without a window have `num_blocks`. With a window, each
// sequence holds the blocks of its window, and all sequences together hold the blocks of one step.
int64_t blocks_of_table(const MemoryRequest& request, const KvTableBytes& table,
                        int64_t num_blocks) {
  if (table.holds_states) return num_states(request, table, num_blocks);
  if (table.window == 0) return num_blocks;
  const int64_t of_windows =
      (table.window / request.sizes.block_size + 2) * int64_t{request.sizes.max_num_seqs};
  const int64_t of_step = request.sizes.max_num_tokens / request.sizes.block_size + 1;
  return std::min(num_blocks, of_windows + of_step + 1);
}

Saturated bytes_of_tables(const MemoryRequest& request, int64_t num_blocks) {
  Saturated bytes = 0;
  for (const KvTableBytes& table : request.tables) {
    bytes = bytes + Saturated(blocks_of_table(request, table, num_blocks)) * table.block_bytes;
  }
  return bytes;
}

// The bytes of `num_seqs` sequences of max_model_len and the padding page.
Saturated bytes_of_seqs(const MemoryRequest& request, int64_t num_seqs) {
  const int64_t blocks_per_seq =
      ceil_div(int64_t{request.sizes.max_model_len}, request.sizes.block_size);
  return bytes_of_tables(request, blocks_per_seq * num_seqs + 1);
}

// The largest number of blocks, up to `most`, whose tables fit into num_bytes.
int64_t blocks_that_fit(const MemoryRequest& request, int64_t num_bytes, int64_t most) {
  int64_t fits = 0;
  for (int64_t beyond = most + 1; beyond - fits > 1;) {
    const int64_t middle = fits + (beyond - fits) / 2;
    (bytes_of_tables(request, middle).get() <= num_bytes ? fits : beyond) = middle;
  }
  return fits;
}

// If every table of keys and values has a window, sizes the widest one without a window, for the
// prefix cache.
MemoryRequest with_unwindowed_table(MemoryRequest request) {
  const auto is_less_wide = [](const KvTableBytes& a, const KvTableBytes& b) {
    if (a.holds_states != b.holds_states) return a.holds_states;
    return b.window == 0 || (a.window != 0 && a.window < b.window);
  };
  std::ranges::max_element(request.tables, is_less_wide)->window = 0;
  return request;
}

// Returns the largest number of blocks of a table of keys and values, without the padding page. A
// table without a window has it.
int num_kv_blocks(const MemoryRequest& request, const MemoryPlan& plan) {
  int most = 0;
  for (size_t t = 0; t < request.tables.size(); ++t) {
    if (!request.tables[t].holds_states) most = std::max(most, plan.num_blocks[t] - 1);
  }
  return most;
}

// A remedy for GPUs only, because the engine uses at most gpu_memory_utilization of their memory.
std::string_view gpu_remedy(const MemoryRequest& request) {
  return request.budget.owner == "GPU" ? "raise `gpu_memory_utilization`, " : "";
}

}  // namespace

Result<MemoryPlan> plan_memory(const MemoryRequest& wanted_request) {
  const MemoryRequest request = with_unwindowed_table(wanted_request);
  const int64_t blocks_per_seq =
      ceil_div(int64_t{request.sizes.max_model_len}, request.sizes.block_size);
  const Saturated taken = bytes_beside_kv(request);
  if (request.weight_bytes > request.budget.free_bytes) {
    return resource_exhausted(fmt::format(
        "[memory] the model does not fit: its weights take {}, and the {} has {} free; {}use a "
        "smaller model or more memory",
        size_text(request.weight_bytes), request.budget.owner, size_text(request.budget.free_bytes),
        gpu_remedy(request)));
  }
  const int64_t left_bytes = request.budget.free_bytes - taken.get();
  if (left_bytes <= 0 || request.kv_cache_memory > left_bytes) {
    return resource_exhausted(fmt::format(
        "[memory] the {} is too small; got {} free, expected {} (weights {}, activations {}, "
        "workspace {}, graphs and libraries {}, KV cache {}); {}use a smaller model "
        "or lower `kv_cache_memory` or `max_num_batched_tokens`",
        request.budget.owner, size_text(request.budget.free_bytes),
        size_text((taken + request.kv_cache_memory).get()), size_text(request.weight_bytes),
        size_text(request.activation_bytes), size_text(request.workspace_bytes),
        size_text(request.reserve_bytes), size_text(request.kv_cache_memory), gpu_remedy(request)));
  }
  const Saturated one_seq_bytes = bytes_of_seqs(request, 1);
  const Saturated all_seqs_bytes = bytes_of_seqs(request, request.sizes.max_num_seqs);
  const auto share =
      static_cast<int64_t>(static_cast<double>(left_bytes) * request.budget.kv_share);
  const int64_t planned =
      request.budget.kv_as_needed ? std::min(share, all_seqs_bytes.get()) : share;
  const int64_t wanted = request.kv_cache_memory > 0 ? request.kv_cache_memory : planned;
  const int64_t num_blocks = blocks_that_fit(request, wanted, INT32_MAX);
  if (num_blocks < blocks_per_seq + 1) {
    const int64_t fitting_len = (num_blocks - 1) * request.sizes.block_size;
    if (fitting_len <= 0) {
      return resource_exhausted(
          fmt::format("[memory] the KV cache is too small for any sequence; {}; raise "
                      "`kv_cache_memory`",
                      got_and_expected(wanted, one_seq_bytes.get())));
    }
    return resource_exhausted(fmt::format(
        "[memory] the KV cache is too small for one sequence of `max_model_len` {}; {}; raise "
        "`kv_cache_memory` or set `max_model_len` to at most {}",
        request.sizes.max_model_len, got_and_expected(wanted, one_seq_bytes.get()), fitting_len));
  }
  MemoryPlan plan;
  for (const KvTableBytes& table : request.tables) {
    plan.num_blocks.push_back(static_cast<int>(blocks_of_table(request, table, num_blocks)));
  }
  plan.kv_bytes = bytes_of_tables(request, num_blocks).get();
  plan.num_kv_tokens = (num_blocks - 1) * request.sizes.block_size;
  plan.left_bytes = left_bytes - plan.kv_bytes;
  return plan;
}

int64_t least_free_bytes(const MemoryRequest& wanted_request) {
  const MemoryRequest request = with_unwindowed_table(wanted_request);
  const Saturated taken = bytes_beside_kv(request);
  if (request.kv_cache_memory > 0) return (taken + request.kv_cache_memory).get();
  const auto num_shares = static_cast<int64_t>(std::ceil(1 / request.budget.kv_share));
  return (taken + bytes_of_seqs(request, 1) * num_shares).get();
}

void limit_blocks(const MemoryRequest& request, std::span<const int> num_blocks, MemoryPlan& plan) {
  for (size_t t = 0; t < num_blocks.size(); ++t) {
    const int64_t num_freed = std::max(plan.num_blocks[t] - num_blocks[t], 0);
    plan.num_blocks[t] -= static_cast<int>(num_freed);
    plan.kv_bytes -= num_freed * request.tables[t].block_bytes;
    plan.left_bytes += num_freed * request.tables[t].block_bytes;
  }
  plan.num_kv_tokens = num_kv_blocks(request, plan) * int64_t{request.sizes.block_size};
}

// The numbers of blocks leave out the padding page, as in the metrics.
std::string describe(const MemoryRequest& request, const MemoryPlan& plan) {
  const std::string reserve =
      request.reserve_bytes == 0
          ? ""
          : fmt::format(", graphs and libraries {:.1f} MiB", mib(request.reserve_bytes));
  std::string windows;
  for (size_t t = 0; t < request.tables.size(); ++t) {
    if (request.tables[t].holds_states) {
      windows += fmt::format("; {} states of {}", plan.num_blocks[t] - 1,
                             size_text(request.tables[t].block_bytes));
      continue;
    }
    if (request.tables[t].window == 0) continue;
    windows += fmt::format("; {} blocks for windows of {} tokens", plan.num_blocks[t] - 1,
                           request.tables[t].window);
  }
  return fmt::format(
      "[memory] weights {:.1f} MiB, KV cache {:.1f} MiB ({} blocks of {} tokens, {} tokens{}), "
      "activations {:.1f} MiB, workspace {:.1f} MiB{}; {:.0f} MiB of the {} stay free",
      mib(request.weight_bytes), mib(plan.kv_bytes), num_kv_blocks(request, plan),
      request.sizes.block_size, plan.num_kv_tokens, windows, mib(request.activation_bytes),
      mib(request.workspace_bytes), reserve, mib(plan.left_bytes), request.budget.owner);
}

}  // namespace quire
