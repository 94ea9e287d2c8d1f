#include "model/model_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/numbers.h"
#include "model/decoder.h"
#include "model/text_decoder.h"
#include "model/weights.h"

namespace quire {

Result<std::unique_ptr<Model>> load_model(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits, const LoadOptions& options) {
  QUIRE_CHECK(
      limits.max_num_tokens > 0 && limits.max_num_logit_rows > 0 && limits.max_model_len > 0,
      "[model] a limit is not set");
  return load_text_decoder(config, source, ops, limits, options);
}

void settle_tie(const WeightSource& checkpoint, ModelConfig& config) {
  const DecoderConfig& decoder = decoder_config(config);
  if (!decoder.assumes_tie || !stores(checkpoint, config.layout, "lm_head.weight")) return;
  auto untied = std::make_shared<DecoderConfig>(decoder);
  untied->tie_word_embeddings = false;
  config.family = std::move(untied);
}

namespace {

// Compares the first, the middle and the last row of two matrices: a head that was trained on its
// own differs in all of them.
bool are_rows_equal(const TensorView& a, const TensorView& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  const auto row_bytes = static_cast<size_t>(a.shape[1]) * dtype_bytes(a.dtype);
  const int64_t last = a.shape[0] - 1;
  return std::ranges::all_of(std::array<int64_t, 3>{0, last / 2, last}, [&](int64_t row) {
    const size_t first = static_cast<size_t>(row) * row_bytes;
    return std::memcmp(a.as<std::byte>() + first, b.as<std::byte>() + first, row_bytes) == 0;
  });
}

// As in transformers, a config.json that ties the head to the embedding wins over a stored head.
void warn_about_ignored_head(const ModelConfig& config, WeightSource& source) {
  constexpr std::string_view kHead = "lm_head.weight";
  constexpr std::string_view kEmbedding = "model.embed_tokens.weight";
  const bool is_tied = decoder_config(config).tie_word_embeddings && !config.embeds;
  const std::optional<Shape> shape = source.shape_of(kHead);
  if (!is_tied || !shape || shape->rank() != 2) return;
  bool is_same = false;
  if (shape == source.shape_of(kEmbedding)) {
    const Result<TensorView> head = source.tensor(kHead, *shape);
    const Result<TensorView> embedding = source.tensor(kEmbedding, *shape);
    is_same = head.ok() && embedding.ok() && are_rows_equal(*head, *embedding);
    if (head.ok()) source.release(kHead);
    if (embedding.ok()) source.release(kEmbedding);
  }
  if (is_same) return;
  log_warning(
      "[model] {}: tensor {} differs from the embedding and is ignored, because config.json sets "
      "tie_word_embeddings to true; set it to false if the stored head is the model's",
      source.file_of(kHead), quote_name(source.name_in_file(kHead)));
}

}  // namespace

Result<std::unique_ptr<WeightSource>> present_weights(std::unique_ptr<WeightSource> checkpoint,
                                                      ModelConfig& config) {
  settle_tie(*checkpoint, config);
  TensorLayout layout = config.layout;
  // Embedding models are usually saved without the head and without "model." before the names.
  if (config.embeds && checkpoint->has("embed_tokens.weight")) {
    layout.renames.push_back({.stored = "", .decoder = "model"});
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> presented,
                         apply_layout(std::move(checkpoint), layout, list_tensors(config)));
  warn_about_ignored_head(config, *presented);
  return presented;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& config) {
  return list_decoder_tensors(config);
}

int64_t num_parameters(const ModelConfig& config) {
  int64_t count = 0;
  for (const TensorSpec& tensor : list_tensors(config)) {
    if (!tensor.has_scales()) count += tensor.shape.num_elements();
  }
  return count;
}

KvScaleCounts count_kv_scales(const ModelConfig& config, const WeightSource& source) {
  const std::vector<std::string> listed = source.names();
  const std::set<std::string, std::less<>> names(listed.begin(), listed.end());
  KvScaleCounts counts;
  for (int layer = 0; layer < config.num_layers; ++layer) {
    if (!owns_cache(decoder_config(config), static_cast<size_t>(layer))) continue;
    ++counts.num_layers;
    counts.num_stored += std::ranges::any_of(key_scale_names(), [&](std::string_view scale) {
      return names.contains(fmt::format("model.layers.{}.self_attn.{}", layer, scale));
    });
  }
  return counts;
}

Status check_stored_tensors(const ModelConfig& config, const WeightSource& source) {
  return check_stored_tensors(list_tensors(config), source, config.architecture);
}

Status check_slices(const ModelConfig& config, WeightSource& source, const Ops& ops,
                    const Parallel& parallel) {
  return check_slices(list_tensors(config), source, ops.weights(), parallel);
}

Result<WeightPlan> plan_weights(const ModelConfig& config, const WeightSource& source,
                                const Ops& ops, const Parallel& parallel) {
  return plan_weights(list_tensors(config), source, ops.weights(), parallel);
}

namespace {

// Names the types of a source's quantized blocks; empty: it has none.
std::string describe_blocks(const ModelConfig& config, const WeightSource& source,
                            const WeightStore& store) {
  std::vector<std::string_view> kept;
  std::vector<std::string_view> expanded;
  for (const GgufBlockType* const type : source.block_types()) {
    const bool is_kept = store.quantized_bytes({{1, type->block_elements}, type}) > 0;
    (is_kept ? kept : expanded).emplace_back(type->name);
  }
  std::string text;
  if (!kept.empty()) {
    text = fmt::format("blocks of {}, computed as they are", fmt::join(kept, ", "));
  }
  if (!expanded.empty()) {
    text += fmt::format("{}{}, expanded to {} at load", kept.empty() ? "blocks of " : "; ",
                        fmt::join(expanded, ", "), dtype_name(config.dtype.value_or(DType::kF16)));
  }
  return text;
}

}  // namespace

std::string describe_quantization(const ModelConfig& config, const WeightSource& source,
                                  const Ops& ops, const WeightPlan& plan) {
  if (!config.format) return describe_blocks(config, source, ops.weights());
  const std::string format = describe(*config.format);
  const QuantizedMatrices& count = plan.quantized;
  if (count.num_all == 0) return format + ", of which the checkpoint has no matrix";
  if (count.num_expanded == 0) return format + ", computed as they are";
  const DType plain = ops.weights().linear_dtype(plain_scheme(config.format->scheme)).value();
  const std::string expanded = fmt::format("expanded to {} at load", dtype_name(plain));
  if (count.num_expanded == count.num_all) return fmt::format("{}, {}", format, expanded);
  return fmt::format("{}, computed as they are, except {} of {} matrices, which are {}", format,
                     count.num_expanded, count.num_all, expanded);
}

Result<int64_t> estimate_activation_bytes(const ModelConfig& config, const ModelLimits& limits,
                                          const Ops& ops) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t states, state_workspace_bytes(config, limits, ops));
  QUIRE_ASSIGN_OR_RETURN(const int64_t experts, experts_workspace_bytes(config, limits, ops));
  const int64_t others = decoder_activation_bytes(config, limits, ops);
  return (Saturated(others) + experts + states).get();
}

}  // namespace quire
