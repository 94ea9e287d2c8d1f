#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "model/config_fields.h"
#include "model/families.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

constexpr int kMaxId = std::numeric_limits<int>::max();
constexpr size_t kMaxEosIds = 1024;

// The family of an architecture's layers without lm_head, as sentence-transformers saves embedding
// models: "Qwen3Model" for Qwen3ForCausalLM. Null: no such family.
const FamilyTraits* find_headless_family(std::string_view architecture) {
  constexpr std::string_view kSuffix = "Model";
  if (!architecture.ends_with(kSuffix)) return nullptr;
  architecture.remove_suffix(kSuffix.size());
  return find_family(std::string(architecture) + "ForCausalLM", {});
}

// `text_type` is the model_type in text_config.
Result<const FamilyTraits*> read_family(ConfigFields& fields, std::string_view text_type,
                                        std::string_view source, ModelConfig& config) {
  const std::vector<std::string> architectures = fields.texts("architectures", 16);
  QUIRE_RETURN_IF_ERROR(fields.status());
  for (const std::string& architecture : architectures) {
    if (const FamilyTraits* family = find_family(architecture, text_type)) return family;
    if (const FamilyTraits* family = find_headless_family(architecture)) {
      config.is_headless = true;
      return family;
    }
  }
  const std::string got = architectures.empty() ? "nothing" : quote_name(architectures.front());
  const std::string_view remedy =
      fields.has("draft_vocab_size")
          ? "; the checkpoint is a draft head: `speculative_config` names it beside its target"
          : "";
  return unimplemented(
      fmt::format("[config] {}: unsupported architectures; got {}, expected one of the {} that "
                  "docs/models.md lists, such as LlamaForCausalLM{}",
                  source, got, num_architectures(), remedy));
}

// Fields that change the computation of any decoder whose architecture has them. A family that does
// not read one would compute something else, unless the field has the value that changes nothing.
struct ComputedField {
  std::string_view key;
  double plain = 0.0;  // the value that changes nothing; false is 0
};
constexpr ComputedField kComputedFields[] = {{"attn_logit_softcapping"},
                                             {"final_logit_softcapping"},
                                             {"router_logit_softcapping"},
                                             {"logit_scale", 1.0},
                                             {"logits_scaling", 1.0},
                                             {"embedding_multiplier", 1.0},
                                             {"residual_multiplier", 1.0},
                                             {"attention_multiplier", 1.0},
                                             {"scale_emb", 1.0},
                                             {"scale_depth", 1.0},
                                             {"clip_qkv"},
                                             {"alibi"},
                                             {"index_topk"},
                                             {"attention_chunk_size"},
                                             {"swiglu_limit"},
                                             {"use_parallel_residual"}};

// Fields that do not concern a decoder's computation.
constexpr std::string_view kInertFields[] = {
    "_name_or_path",       "attention_dropout", "auto_map",
    "embd_pdrop",          "initializer_range", "model_type",
    "pad_token_id",        "pretraining_tp",    "resid_pdrop",
    "residual_dropout",    "torch_dtype",       "transformers_version",
    "use_cache",           "vision_config",     "dtype",
    "image_token_id",      "image_token_index", "video_token_id",
    "output_router_logits"};

// Refuses unread fields that change the computation. Returns the others that may matter.
std::vector<std::string> check_unread(ConfigFields& fields) {
  std::vector<std::string> unread = fields.unread_keys();
  for (const ComputedField& field : kComputedFields) {
    if (std::erase(unread, field.key) == 0) continue;
    fields.expect_value(field.key, field.plain,
                        "nothing: this architecture is computed without it");
  }
  std::erase_if(unread, [](const std::string& key) {
    return std::ranges::find(kInertFields, key) != std::end(kInertFields);
  });
  return unread;
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view json, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, kConfigLimits));
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object object, root_object(document, source));
  ConfigFields fields(object, source);
  ModelConfig config;
  std::optional<ConfigFields> text = fields.object("text_config");
  const std::string text_type = text ? text->optional_text("model_type").value_or("") : "";
  QUIRE_ASSIGN_OR_RETURN(const FamilyTraits* const family,
                         read_family(fields, text_type, source, config));
  config.architecture = family->architecture;
  if (family->place == FieldsPlace::kRoot) text.reset();
  if (family->place == FieldsPlace::kTextConfig && !text) {
    fields.fail("text_config", "nothing", "an object");
  }
  QUIRE_RETURN_IF_ERROR(fields.status());
  ConfigFields& decoder = text ? *text : fields;
  // Both objects may have these fields, and files differ in which one does.
  const auto holder_of = [&](std::string_view key) -> ConfigFields& {
    return decoder.has(key) ? decoder : fields;
  };
  ConfigFields& quantized = holder_of("quantization_config");
  config.layout.has_mxfp4_experts = family->read_moe != nullptr && read_mxfp4_experts(quantized);
  if (!config.layout.has_mxfp4_experts) config.format = read_quantization(quantized, source);
  if (text && text->has("quantization_config") && fields.has("quantization_config") &&
      read_quantization(fields, source) != config.format) {
    fields.fail("quantization_config", "another scheme than in text_config", "one scheme");
  }
  config.family = read_family_config(*family, decoder, fields, config);
  config.dtype = read_dtype(fields.has("dtype") || fields.has("torch_dtype") ? fields : decoder);
  // The published config.json of gpt-oss states no type. The tensors besides the experts have BF16.
  if (!config.dtype && config.layout.has_mxfp4_experts) config.dtype = DType::kBF16;
  set_dequantized_dtype(config.dtype, config.format);
  config.bos_token_id = holder_of("bos_token_id").optional_integer("bos_token_id", 0, kMaxId);
  config.eos_token_ids = holder_of("eos_token_id").integers("eos_token_id", 0, kMaxId, kMaxEosIds);
  config.unread_fields = check_unread(decoder);
  if (text) fields.keep(text->status());
  QUIRE_RETURN_IF_ERROR(fields.status());
  return config;
}

Result<GenerationConfig> parse_generation_config(std::string_view json, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, kConfigLimits));
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object object, root_object(document, source));
  ConfigFields fields(object, source);
  const auto optional_float = [&fields](std::string_view key, double min,
                                        double max) -> std::optional<float> {
    const std::optional<double> number = fields.optional_number(key, min, max);
    return number ? std::optional(static_cast<float>(*number)) : std::nullopt;
  };
  GenerationConfig config;
  config.bos_token_id = fields.optional_integer("bos_token_id", 0, kMaxId);
  config.eos_token_ids = fields.integers("eos_token_id", 0, kMaxId, kMaxEosIds);
  config.do_sample = fields.optional_boolean("do_sample");
  config.temperature = optional_float("temperature", 0.0, 1e3);
  config.top_p = optional_float("top_p", 0.0, 1.0);
  config.top_k = fields.optional_integer("top_k", -1, kMaxId);
  config.min_p = optional_float("min_p", 0.0, 1.0);
  if (config.top_p == 0.0F) fields.fail("top_p", "0", "a number above 0, at most 1");
  config.repetition_penalty = optional_float("repetition_penalty", 1e-3, 1e3);
  QUIRE_RETURN_IF_ERROR(fields.status());
  return config;
}

}  // namespace quire
