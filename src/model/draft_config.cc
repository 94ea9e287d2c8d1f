#include "model/draft_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/config_fields.h"
#include "model/quantization.h"

namespace quire {

Result<ModelConfig> parse_draft_config(
    std::string_view json, std::string_view source, std::string_view architecture,
    const std::function<void(ConfigFields&, ModelConfig&)>& read) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, kConfigLimits));
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object object, root_object(document, source));
  ConfigFields fields(object, source);
  refuse_quantized(fields, source);
  ModelConfig config;
  config.architecture = architecture;
  read(fields, config);
  config.dtype = read_dtype(fields);
  QUIRE_RETURN_IF_ERROR(fields.status());
  return config;
}

void require_architecture(ConfigFields& fields, std::initializer_list<std::string_view> served) {
  const std::vector<std::string> names = fields.texts("architectures", 16);
  const bool is_served = names.empty() || std::ranges::find_first_of(names, served) != names.end();
  if (is_served) return;
  fields.fail("architectures", quote_name(names.front()),
              served.size() == 1 ? std::string(*served.begin())
                                 : fmt::format("one of {}", fmt::join(served, ", ")));
}

Status refuse_target(const ModelConfig& drafter, std::string_view what, int got, int expected) {
  return invalid_argument(
      fmt::format("[model] {}'s {} is not that of the target; got {}, expected {}; use a drafter "
                  "that was trained for this model",
                  drafter.architecture, what, got, expected));
}

Status check_shared_ends(const ModelConfig& drafter, const DraftConfig& config,
                         const ModelConfig& target) {
  if (decoder_config(target).residual_scale != 1.0) {
    return unimplemented(fmt::format(
        "[model] {} reads hidden states of its target, which are computed in another scale; got {} "
        "with residual_multiplier {}, expected 1; use method ngram or suffix",
        drafter.architecture, target.architecture, decoder_config(target).residual_scale));
  }
  const auto lacks = [&](std::string_view tensor, std::string_view size, int got, int expected) {
    return invalid_argument(
        fmt::format("[model] {}'s checkpoint has no tensor \"{}\", and the target's has another "
                    "{}; got {}, expected {}",
                    drafter.architecture, tensor, size, got, expected));
  };
  if (!config.has_embeddings && drafter.hidden_size != target.hidden_size) {
    return lacks("embed_tokens.weight", "hidden_size", target.hidden_size, drafter.hidden_size);
  }
  if (config.has_lm_head) return {};
  if (drafter.vocab_size != target.vocab_size) {
    return lacks("lm_head.weight", "vocabulary", target.vocab_size, drafter.vocab_size);
  }
  if (config.shares_lm_head() && drafter.hidden_size != target.hidden_size) {
    return lacks("lm_head.weight", "hidden_size", target.hidden_size, drafter.hidden_size);
  }
  return {};
}

namespace {

constexpr std::string_view kDraftIds = "d2t";

// Appends the place and the remedy of a broken mapping.
Status refuse_draft_ids(const DraftConfig& config, const Status& error) {
  return Status(error.code(),
                fmt::format("{}; use a drafter that was trained for this model, or get the "
                            "checkpoint beside {} again",
                            error.message(), config.source));
}

}  // namespace

Result<std::vector<int32_t>> read_target_ids(const ModelConfig& drafter, const DraftConfig& config,
                                             WeightSource& source) {
  const int target_size = config.target_vocab_size;
  if (drafter.vocab_size == target_size && !source.has(kDraftIds)) return std::vector<int32_t>();
  const Result<std::vector<int64_t>> differences = source.integers(kDraftIds, drafter.vocab_size);
  if (!differences.ok()) return refuse_draft_ids(config, differences.status());
  std::vector<int32_t> ids;
  std::vector<bool> is_taken(static_cast<size_t>(target_size), false);
  for (const int64_t difference : *differences) {
    const auto draft_id = static_cast<int64_t>(ids.size());
    // draft_id + difference could overflow.
    if (difference < -draft_id || difference >= target_size - draft_id) {
      return refuse_draft_ids(
          config,
          invalid_argument(fmt::format("[model] tensor {} maps draft id {} outside of the target's "
                                       "{} tokens; got a difference of {}, expected {} to {}",
                                       quote_name(kDraftIds), draft_id, target_size, difference,
                                       -draft_id, target_size - draft_id - 1)));
    }
    const int64_t id = draft_id + difference;
    if (is_taken[static_cast<size_t>(id)]) {
      return refuse_draft_ids(
          config, invalid_argument(fmt::format(
                      "[model] tensor {} maps two draft ids to one token; got {} for draft id {} "
                      "and for one before it, expected each token once",
                      quote_name(kDraftIds), id, draft_id)));
    }
    is_taken[static_cast<size_t>(id)] = true;
    ids.push_back(static_cast<int32_t>(id));
  }
  const bool is_same = std::ranges::all_of(*differences, [](int64_t d) { return d == 0; });
  if (is_same && drafter.vocab_size == target_size) ids.clear();
  return ids;
}

void share_ends(const DraftConfig& config, const Model& target, DecoderEnds& ends) {
  if (!config.has_embeddings) ends.shared_embed = target.embeddings();
  if (config.shares_lm_head()) ends.shared_lm_head = target.lm_head();
}

}  // namespace quire
