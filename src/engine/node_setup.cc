#include "engine/node_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/build_info.h"
#include "base/byte_archive.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/build_identity.h"
#include "engine/model_files.h"
#include "engine/tuned_threads.h"
#include "kv/cache_dtype.h"
#include "nodes/node_place.h"
#include "tensor/forwarding_source.h"

namespace quire {
namespace {

std::string short_digest(std::string_view text) {
  const Sha256Digest digest = sha256_of(text);
  return to_hexadecimal(std::span(digest).first(8));
}

// A digest of the size of a file and, of a small one, of all bytes. Of a large one its begin, which
// has the names and shapes of tensors, and samples up to its end: all of a checkpoint would take
// minutes to read.
std::string digest_of_file(const MappedFile& mapped) {
  constexpr size_t kSmall = size_t{16} << 20;
  constexpr size_t kFirst = size_t{1} << 20;
  constexpr size_t kSample = size_t{16} << 10;
  constexpr size_t kNumSamples = 32;
  const void* const bytes = mapped.bytes().data();
  const std::string_view file(static_cast<const char*>(bytes), mapped.bytes().size());
  std::string text = fmt::format("{} bytes\n", file.size());
  if (file.size() <= kSmall) {
    text += file;
  } else {
    text += file.substr(0, kFirst);
    for (size_t i = 1; i <= kNumSamples; ++i) {
      text += file.substr((file.size() - kSample) * i / kNumSamples, kSample);
    }
  }
  return short_digest(text);
}

// A digest of the names of the tensors and of the files. The build identifies the embedded model.
std::string digest_of(const WeightSource& weights) {
  std::vector<std::string> names = weights.names();
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  for (const MappedFile* file : weights.files()) text += digest_of_file(*file);
  return short_digest(text);
}

// A digest of config.json, and of hf_quant_config.json if there is one. A GGUF file begins with its
// configuration, and the build identifies the embedded model: both give "none".
Result<std::string> digest_of_config_file(const EngineConfig& config) {
  if (is_embedded(config.model) || !find_gguf_file(config.model).empty()) {
    return std::string("none");
  }
  QUIRE_ASSIGN_OR_RETURN(const ConfigFile found, find_config(config.model, config));
  QUIRE_ASSIGN_OR_RETURN(std::string text, read_file(found.path, kMaxConfigBytes));
  const std::filesystem::path quantization = found.path.parent_path() / "hf_quant_config.json";
  QUIRE_ASSIGN_OR_RETURN(const bool is_there, path_exists(quantization));
  if (is_there) {
    QUIRE_ASSIGN_OR_RETURN(const std::string more, read_file(quantization, kMaxConfigBytes));
    text += more;
  }
  return short_digest(text);
}

// The keys and values of speculative_config, without the path of the drafter.
std::string describe_drafter(const std::string& speculative_config) {
  const Result<JsonDocument> document = JsonDocument::parse(speculative_config, "");
  simdjson::dom::object object;
  if (!document.ok() || document->root().get(object)) return speculative_config;
  std::vector<std::string> values;
  for (const auto [key, value] : object) {
    if (key != "model") values.push_back(fmt::format("{}: {}", key, simdjson::minify(value)));
  }
  std::ranges::sort(values);
  return fmt::format("{}", fmt::join(values, ", "));
}

// Every setting that changes a step, and `rank_timeout`, from which the interval of signs of life
// follows. Paths, threads, `gpu_memory_utilization` and settings of node 0's scheduler may differ.
Result<NodeSettings> settings_of(const EngineConfig& config, const ModelFiles& files) {
  const auto text = [](auto value) { return fmt::format("{}", value); };
  QUIRE_ASSIGN_OR_RETURN(const std::string config_digest, digest_of_config_file(config));
  return NodeSettings{{"version", std::string(version())},
                      {"build", std::string(build_identity())},
                      {"tensor_parallel_size", text(config.tensor_parallel_size)},
                      {"load_format", config.load_format},
                      {"dtype", config.dtype},
                      {"quantization", config.quantization},
                      {"kv_cache_dtype", config.kv_cache_dtype},
                      {"calculate_kv_scales", text(config.calculate_kv_scales)},
                      {"max_model_len", text(config.max_model_len)},
                      {"max_num_seqs", text(config.max_num_seqs)},
                      {"max_num_rule_seqs", text(config.max_num_rule_seqs)},
                      {"max_num_batched_tokens", text(config.max_num_batched_tokens)},
                      {"block_size", text(config.block_size)},
                      {"kv_cache_memory", text(config.kv_cache_memory)},
                      {"allow_long_max_model_len", text(config.allow_long_max_model_len)},
                      {"attention_backend", config.attention_backend},
                      {"prefill_attention_backend", config.prefill_attention_backend},
                      {"decode_attention_backend", config.decode_attention_backend},
                      {"speculative_config", describe_drafter(config.speculative_config)},
                      {"enforce_eager", text(config.enforce_eager)},
                      {"cpu_activations", config.cpu_activations},
                      {"rank_timeout", text(config.rank_timeout)},
                      // Behind the flags, of which the model's description has some.
                      {"model", model_key(config, files)},
                      {"model's config.json", config_digest},
                      {"model's weights", digest_of(*files.weights)}};
}

// The weights of a node, whose reads fail with the error of the nodes.
class NodeWeights final : public ForwardingSource {
 public:
  NodeWeights(std::unique_ptr<WeightSource> source, std::shared_ptr<Nodes> nodes)
      : ForwardingSource(std::move(source)), nodes_(std::move(nodes)) {}

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override {
    QUIRE_RETURN_IF_ERROR(nodes_->check_running());
    return ForwardingSource::tensor(name, expected);
  }
  Result<std::vector<int64_t>> integers(std::string_view name, int64_t count) override {
    QUIRE_RETURN_IF_ERROR(nodes_->check_running());
    return ForwardingSource::integers(name, count);
  }
  Result<std::optional<RepeatedTensor>> repeated(std::string_view name) override {
    QUIRE_RETURN_IF_ERROR(nodes_->check_running());
    return ForwardingSource::repeated(name);
  }
  Result<BlockMatrix> blocks(std::string_view name, const Shape& expected) override {
    QUIRE_RETURN_IF_ERROR(nodes_->check_running());
    return ForwardingSource::blocks(name, expected);
  }

 private:
  std::shared_ptr<Nodes> nodes_;
};

// Without the settings.
NodesConfig nodes_config(const EngineConfig& config) {
  const std::string& token = config.cluster_token;
  const char* const variable = std::getenv("QUIRE_CLUSTER_TOKEN");
  return {.place = {.num_nodes = config.nnodes,
                    .node = config.node_rank,
                    .master_addr = config.master_addr,
                    .master_port = config.master_port},
          .token = token.empty() && variable != nullptr ? variable : token,
          .settings = {},
          .silence_timeout = std::chrono::seconds(config.rank_timeout)};
}

}  // namespace

Result<EngineConfig> place_node(EngineConfig config) {
  QUIRE_ASSIGN_OR_RETURN(
      const NodePlace place,
      find_node_place({.nnodes = config.nnodes,
                       .node_rank = config.node_rank,
                       .master_addr = config.master_addr,
                       .master_port = config.master_port},
                      [](const char* name) -> const char* { return std::getenv(name); }));
  if (config.nnodes == 1 && config.tensor_parallel_size == 1 &&
      config.rank_timeout != EngineConfig().rank_timeout) {
    return invalid_argument(
        "[engine] `rank_timeout`: got it with one rank, which waits for no other, expected "
        "`nnodes` or `tensor_parallel_size` of at least 2 with it");
  }
  config.nnodes = place.num_nodes;
  config.node_rank = place.node;
  config.master_addr = place.master_addr;
  config.master_port = place.master_port;
  if (config.tensor_parallel_size % config.nnodes != 0) {
    return invalid_argument(
        fmt::format("[nodes] `tensor_parallel_size`: got {} with {} nodes, expected a multiple of "
                    "`nnodes`: the "
                    "ranks of all nodes together",
                    config.tensor_parallel_size, config.nnodes));
  }
  if (config.rank_timeout < 1 || config.rank_timeout > 3600) {
    return invalid_argument(
        fmt::format("[engine] rank_timeout: must be 1 to 3600 s, got {}", config.rank_timeout));
  }
  return config;
}

Result<std::shared_ptr<Nodes>> connect_nodes(const EngineConfig& config, const ModelFiles& files) {
  if (config.nnodes <= 1) return std::shared_ptr<Nodes>();
  NodesConfig nodes = nodes_config(config);
  QUIRE_ASSIGN_OR_RETURN(nodes.settings, settings_of(config, files));
  return Nodes::meet(nodes);
}

Result<std::string> check_own_node(const EngineConfig& config) {
  return check_rendezvous(nodes_config(config));
}

std::unique_ptr<WeightSource> stop_with_nodes(std::unique_ptr<WeightSource> source,
                                              std::shared_ptr<Nodes> nodes) {
  if (nodes == nullptr) return source;
  return std::make_unique<NodeWeights>(std::move(source), std::move(nodes));
}

Status check_step_message(int64_t num_tokens, int64_t hidden_size, int num_ranks) {
  const int64_t bytes_per_token = hidden_size * num_ranks * int64_t{sizeof(float)};
  const auto most = static_cast<int64_t>(Nodes::kMaxMessageBytes) / bytes_per_token;
  // Heads of the messages take some of it.
  if (num_tokens < most) return {};
  return invalid_argument(fmt::format(
      "[nodes] `max_num_batched_tokens`: got {}, expected less than {}: the {} ranks of a CPU "
      "exchange {} numbers per token in messages of at most {} MiB",
      num_tokens, most, num_ranks, hidden_size, Nodes::kMaxMessageBytes >> 20));
}

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

}  // namespace quire
