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

void share_ends(const DraftConfig& config, const Model& target, DecoderEnds& ends) {
  if (!config.has_embeddings) ends.shared_embed = target.embeddings();
  if (config.shares_lm_head()) ends.shared_lm_head = target.lm_head();
}

}  // namespace quire
