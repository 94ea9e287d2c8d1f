#include "start/node_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/build_info.h"
#include "nodes/node_place.h"
#include "start/build_identity.h"
#include "start/model_files.h"
#include "start/model_identity.h"
#include "start/settings.h"
#include "start/tuned_threads.h"
#include "tensor/forwarding_source.h"

namespace quire {
namespace {

// Returns the settings that must be equal on all nodes, and the identity of the build and of the
// model.
Result<NodeSettings> settings_of(const EngineConfig& config, const ModelFiles& files) {
  QUIRE_ASSIGN_OR_RETURN(const std::string config_digest, digest_of_config_file(config));
  NodeSettings settings = {{"version", std::string(version())},
                           {"build", std::string(build_identity())}};
  for (const Setting& setting : all_settings()) {
    if (setting.nodes != NodeAgreement::kSame) continue;
    std::string text = setting.text(config);
    settings.emplace_back(setting.name, setting.compared_text == nullptr
                                            ? std::move(text)
                                            : setting.compared_text(text));
  }
  // The model comes after the settings, because its description repeats some of them.
  settings.emplace_back("model", model_key(config, files));
  settings.emplace_back("model's config.json", config_digest);
  settings.emplace_back("model's weights", digest_of(*files.weights));
  return settings;
}

// The weights of a node. Reads fail once the nodes have failed.
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

// The configuration of the connection; the settings are filled in later.
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
                    "`nnodes`: the ranks of all nodes together",
                    config.tensor_parallel_size, config.nnodes));
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

}  // namespace quire
