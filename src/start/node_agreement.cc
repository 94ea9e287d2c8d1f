#include "start/node_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/byte_archive.h"
#include "base/text.h"
#include "kv/cache_dtype.h"
#include "start/draft_model.h"
#include "start/engine_plan.h"
#include "start/model_identity.h"

namespace quire {

Status check_same(Nodes* nodes, std::string_view what, std::string_view value) {
  if (nodes == nullptr) return {};
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> values, nodes->all_gather(what, value));
  for (size_t node = 1; node < values.size(); ++node) {
    if (values[node] == values[0]) continue;
    return invalid_argument(
        fmt::format("[nodes] node {} differs from node 0 in the {}: got {}, "
                    "expected {}",
                    node, what, one_line(values[node]), one_line(values[0])));
  }
  return {};
}

bool take_fewer(std::vector<int>& fewest, std::span<const int> other) {
  if (fewest.size() != other.size()) return false;
  std::ranges::transform(fewest, other, fewest.begin(),
                         [](int a, int b) { return std::min(a, b); });
  return true;
}

Result<std::vector<int>> agree_on_blocks(Nodes* nodes, Result<std::vector<int>> own) {
  if (nodes == nullptr) return own;
  ByteWriter writer;
  writer(static_cast<uint8_t>(own.status().code()), own.status().message(),
         own.ok() ? *own : std::vector<int>());
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                         nodes->all_gather("the plan of memory", writer.take()));
  std::vector<int> fewest;
  for (size_t node = 0; node < all.size(); ++node) {
    uint8_t code = 0;
    std::string message;
    std::vector<int> num_blocks;
    ByteReader reader(all[node]);
    reader(code, message, num_blocks);
    if (node == 0) fewest = num_blocks;
    const auto status_code = static_cast<StatusCode>(code);
    if (code > static_cast<uint8_t>(StatusCode::kUnavailable) || !reader.is_complete() ||
        (status_code == StatusCode::kOk && !take_fewer(fewest, num_blocks))) {
      return internal_error(fmt::format("[nodes] the memory plan of node {} is malformed", node));
    }
    if (status_code != StatusCode::kOk) {
      return Status(status_code, fmt::format("{} (on node {})", one_line(message), node));
    }
  }
  return fewest;
}

Status check_same_plan(Nodes* nodes, const EnginePlan& plan, const DraftModel* draft) {
  if (nodes == nullptr) return {};
  const auto text = [](auto value) { return fmt::format("{}", value); };
  const auto list = [](const std::vector<int>& values) {
    return fmt::format("{}", fmt::join(values, ", "));
  };
  const RunnerSizes& sizes = plan.sizes;
  const SchedulerConfig& scheduler = plan.scheduler;
  std::vector<int> num_blocks;
  for (const auto& table : scheduler.tables) num_blocks.push_back(table.num_blocks);
  const NodeSettings own = {
      {"max_model_len", text(scheduler.max_model_len)},
      {"max_num_seqs", text(scheduler.max_num_seqs)},
      {"max_num_rule_seqs", text(scheduler.max_num_rule_seqs)},
      {"max_num_batched_tokens", text(scheduler.max_num_batched_tokens)},
      {"block_size", text(scheduler.block_size)},
      {"number of KV blocks", list(num_blocks)},
      {"windows", list(sizes.windows)},
      {"number of drafts", text(scheduler.num_drafts)},
      {"tokens of decode steps", list(sizes.decode_q_lens)},
      {"kv_cache_dtype", std::string(kv_cache_dtype_name(sizes.limits.kv_dtype))},
      {"enforce_eager", text(sizes.enforce_eager)},
      {"model that drafts", draft == nullptr ? "none" : digest_of(draft->checkpoint())}};
  ByteWriter writer;
  writer(own);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                         nodes->all_gather("the plan of the engine", writer.take()));
  NodeSettings expected;
  for (size_t node = 0; node < all.size(); ++node) {
    NodeSettings got;
    ByteReader reader(all[node]);
    reader(got);
    if (!reader.is_complete()) {
      return internal_error(fmt::format("[nodes] the plan of node {} is malformed", node));
    }
    if (node == 0) expected = got;
    if (const auto difference = first_difference(got, expected)) {
      return invalid_argument(
          fmt::format("[nodes] node {} {}; the flags are the same, so compare the drafter's files, "
                      "the GPUs, memory and environment",
                      node, describe(*difference)));
    }
  }
  return {};
}

Status check_step_message(int64_t num_tokens, int64_t hidden_size, int num_ranks) {
  const int64_t bytes_per_token = hidden_size * num_ranks * int64_t{sizeof(float)};
  const auto most = static_cast<int64_t>(Nodes::kMaxMessageBytes) / bytes_per_token;
  // The heads of the messages take some bytes, so num_tokens must be smaller.
  if (num_tokens < most) return {};
  return invalid_argument(fmt::format(
      "[nodes] `max_num_batched_tokens`: got {}, expected less than {}: the {} ranks of a CPU "
      "exchange {} numbers per token in messages of at most {} MiB",
      num_tokens, most, num_ranks, hidden_size, Nodes::kMaxMessageBytes >> 20));
}

}  // namespace quire
