#include "model/gguf/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/json_writer.h"
#include "base/text.h"
#include "ops/expert_ops.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

struct Architecture {
  std::string_view name;          // in the file
  std::string_view architecture;  // in config.json
};

// A file's expert_count makes "llama" a Mixtral, and its gating function makes "deepseek2" a
// DeepSeek-V2 or V3.
constexpr std::array kArchitectures = {
    Architecture{"llama", "LlamaForCausalLM"},
    Architecture{"qwen2", "Qwen2ForCausalLM"},
    Architecture{"qwen3", "Qwen3ForCausalLM"},
    Architecture{"qwen3moe", "Qwen3MoeForCausalLM"},
    Architecture{"deepseek2", "DeepseekV2ForCausalLM"},
    Architecture{"gemma2", "Gemma2ForCausalLM"},
    Architecture{"gemma3", "Gemma3ForCausalLM"},
};

// The numbers of expert_gating_func; absent: softmax, as in files older than the field.
constexpr int64_t kSoftmax = 1;
constexpr int64_t kSigmoid = 2;

// The kind of pooling, which llama.cpp's converter writes only for embedding models. kLastToken:
// the embedding is the last token's hidden state.
constexpr std::string_view kPooling = "pooling_type";
constexpr int64_t kLastToken = 3;

constexpr int64_t kAnyInteger = std::numeric_limits<int32_t>::max();

// A key of the metadata, without the architecture before it, and its field in config.json.
struct Field {
  std::string_view key;
  std::string_view name;
};

constexpr std::array kFields = {
    Field{"embedding_length", "hidden_size"},
    Field{"feed_forward_length", "intermediate_size"},
    Field{"block_count", "num_hidden_layers"},
    Field{"attention.head_count", "num_attention_heads"},
    Field{"context_length", "max_position_embeddings"},
    Field{"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    Field{"rope.freq_base", "rope_theta"},
};

constexpr std::array kMlaFields = {
    Field{"attention.q_lora_rank", "q_lora_rank"},
    Field{"attention.kv_lora_rank", "kv_lora_rank"},
    Field{"rope.dimension_count", "qk_rope_head_dim"},
};

// Fields that are written by functions of their own. The table is for errors.
constexpr std::array kOtherFields = {
    Field{"attention.head_count_kv", "num_key_value_heads"},
    Field{"attention.key_length", "head_dim"},
    Field{"attention.sliding_window_pattern", "sliding_window_pattern"},
    Field{"rope.scaling.factor", "rope_scaling.factor"},
    Field{"rope.scaling.original_context_length", "rope_scaling.original_max_position_embeddings"},
    Field{"rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast"},
    Field{"rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow"},
    Field{"expert_feed_forward_length", "moe_intermediate_size"},
    Field{"expert_shared_count", "n_shared_experts"},
    Field{"leading_dense_block_count", "first_k_dense_replace"},
};

constexpr std::array kGemmaFields = {
    Field{"attention.sliding_window", "sliding_window"},
    Field{"attn_logit_softcapping", "attn_logit_softcapping"},
    Field{"final_logit_softcapping", "final_logit_softcapping"},
    Field{"rope.freq_base_swa", "rope_local_base_freq"},
};

// A field that changes the model's arithmetic in a way that is not served, unless it has one of two
// values.
struct UnservedField {
  std::string_view key;
  double served;
  double also_served;
};

constexpr std::array kUnservedFields = {
    UnservedField{"attention.causal", 1, 1},
    UnservedField{"attention.clamp_kqv", 0, 0},
    UnservedField{"attention.max_alibi_bias", 0, 0},
    UnservedField{"attention.scale", 0, 0},
    UnservedField{"attention.temperature_scale", 0, 0},
    UnservedField{"embedding_scale", 1, 0},
    UnservedField{"residual_scale", 1, 0},
    UnservedField{"logit_scale", 1, 0},
    UnservedField{"router_logit_softcapping", 0, 0},
    UnservedField{"rope.scaling.attn_factor", 1, 1},
    UnservedField{"rope.scaling.yarn_attn_factor", 1, 1},
    UnservedField{"rope.scaling.yarn_ext_factor", 1, -1},  // llama.cpp's -1 is its default, 1
    UnservedField{"expert_group_scale", 1, 0},
    UnservedField{"moe_every_n_layers", 1, 0},
    UnservedField{"swiglu_clamp_exp", 0, 0},
    UnservedField{"swiglu_clamp_shexp", 0, 0},
};

// Fields that Gemma alone has.
constexpr std::array kUnservedCaps = {
    UnservedField{"attn_logit_softcapping", 0, 0},
    UnservedField{"final_logit_softcapping", 0, 0},
};

// Writes the fields of one file's config.json; keeps the first error.
class ConfigWriter {
 public:
  ConfigWriter(const GgufModel& gguf, std::string_view architecture)
      : gguf_(gguf), architecture_(architecture) {}

  Result<std::string> write();

 private:
  const GgufValue* find(std::string_view key) const {
    return gguf_.find(fmt::format("{}.{}", architecture_, key));
  }
  std::optional<int64_t> integer(std::string_view key) const {
    const GgufValue* const value = find(key);
    return value == nullptr ? std::nullopt : value->integer();
  }
  // Returns an integer from `least` to `most`. An absent field returns `fallback`, if there is one.
  // Everything else is an error and returns `least`.
  int64_t integer(std::string_view key, int64_t least, int64_t most,
                  std::optional<int64_t> fallback = {});
  double number(std::string_view key, double fallback);
  // Also true if the field is not an integer; read_routing() reports that.
  bool has_experts() const {
    const GgufValue* const count = find("expert_count");
    return count != nullptr && count->integer() != 0;
  }
  bool is_deepseek() const { return architecture_ == "deepseek2"; }
  // The architecture in config.json.
  std::string_view hf_architecture() const;
  void write_field(const Field& field);
  void write_vocab_size();
  void write_rope();
  void refuse_divisor(float divisor);
  void write_yarn_magnitude();
  void write_gemma();
  void write_layer_types();
  void write_special_tokens();
  void write_head_dim();
  void write_mla();
  void check_divisors(int64_t rotated_dim);
  void check_unserved(std::span<const UnservedField> fields);
  void check_window();
  void check_pooling();
  void write_experts();
  void write_deepseek_experts(const ExpertRouting& routing);
  ExpertRouting read_routing();
  void fail(std::string_view key, std::string_view got, std::string_view expected) {
    if (!status_.ok()) return;
    status_ = unimplemented(fmt::format("[gguf] {}: metadata \"{}.{}\"; got {}, expected {}",
                                        gguf_.source(), architecture_, key, got, expected));
  }

  const GgufModel& gguf_;
  std::string_view architecture_;
  JsonWriter json_;
  Status status_;
};

void ConfigWriter::write_field(const Field& field) {
  const GgufValue* const value = find(field.key);
  if (value == nullptr) return;
  const bool is_list = value->numbers() || value->texts();
  if (!is_list && !value->text() && !std::isfinite(value->number().value_or(NAN))) {
    return fail(field.key, "an infinity, a NaN, or more than 2^63 - 1", "another number");
  }
  json_.key(field.name);
  value->write_json(json_);
}

// Takes the size from the embedding, because a vocabulary of another model may have replaced the
// list of tokens in the metadata.
void ConfigWriter::write_vocab_size() {
  const GgufTensor* const embedding = gguf_.tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    status_ = invalid_argument(fmt::format(
        "[gguf] {}: tensor \"token_embd.weight\"; got none with 2 dimensions, expected the "
        "embedding of a text model",
        gguf_.source()));
    return;
  }
  json_.field("vocab_size", embedding->shape[0]);
}

int64_t ConfigWriter::integer(std::string_view key, int64_t least, int64_t most,
                              std::optional<int64_t> fallback) {
  const GgufValue* const value = find(key);
  if (value == nullptr && fallback) return *fallback;
  const std::optional<int64_t> number = integer(key);
  if (number && *number >= least && *number <= most) return *number;
  fail(key,
       number             ? std::to_string(*number)
       : value == nullptr ? "nothing"
                          : "no integer",
       most == kAnyInteger && number < least ? fmt::format("at least {}", least)
                                             : fmt::format("{} to {}", least, most));
  return least;
}

double ConfigWriter::number(std::string_view key, double fallback) {
  const GgufValue* const value = find(key);
  if (value == nullptr) return fallback;
  const std::optional<double> number = value->number();
  if (!number || !std::isfinite(*number)) fail(key, "no number", "a number");
  return number.value_or(fallback);
}

// Also refuses what the families' code does not compute: heads that are rotated in part, or whose
// keys and values differ in size.
void ConfigWriter::write_head_dim() {
  write_field({"attention.head_count_kv", "num_key_value_heads"});
  const std::optional<int64_t> heads = integer("attention.head_count");
  const std::optional<int64_t> hidden = integer("embedding_length");
  if (!heads || !hidden || *heads < 1) return;  // the parser of config.json reports that
  const int64_t head_dim = integer("attention.key_length", 1, kAnyInteger, *hidden / *heads);
  json_.field("head_dim", head_dim);
  for (const std::string_view key : {"attention.value_length", "rope.dimension_count"}) {
    const int64_t got = integer(key, 0, kAnyInteger, head_dim);
    if (got != head_dim) fail(key, std::to_string(got), fmt::format("the head's, {}", head_dim));
  }
  check_divisors(head_dim);
}

void ConfigWriter::check_divisors(int64_t rotated_dim) {
  const GgufTensor* const divisors = gguf_.tensor("rope_freqs.weight");
  if (divisors == nullptr || divisors->shape == std::vector<int64_t>{rotated_dim / 2}) return;
  fail("rope.dimension_count", "tensor \"rope_freqs.weight\" of another size",
       fmt::format("one number per frequency, {}", rotated_dim / 2));
}

// A list has a value per layer.
void ConfigWriter::check_unserved(std::span<const UnservedField> fields) {
  for (const UnservedField& field : fields) {
    const GgufValue* const value = find(field.key);
    if (value == nullptr) continue;
    const std::vector<double> numbers =
        value->numbers().value_or(std::vector<double>{value->number().value_or(NAN)});
    const auto is_served = [&](double x) { return x == field.served || x == field.also_served; };
    const auto found = std::ranges::find_if_not(numbers, is_served);
    if (found == numbers.end()) continue;
    fail(field.key, value->text() ? "a text" : fmt::format("{:g}", *found),
         fmt::format(
             "{}{}: other values are not served", field.served,
             field.also_served == field.served ? "" : fmt::format(" or {}", field.also_served)));
  }
}

// llama.cpp's converter writes a window for Gemma alone. A window that is as long as the context
// changes nothing.
void ConfigWriter::check_window() {
  constexpr std::string_view kWindow = "attention.sliding_window";
  const int64_t window = integer(kWindow, 0, kAnyInteger, 0);
  const int64_t context = integer("context_length").value_or(kAnyInteger);
  if (window == 0 || window >= context) return;
  fail(kWindow, std::to_string(window),
       fmt::format("0, or at least the context of {} tokens: this architecture is served without "
                   "windows from GGUF files; use the checkpoint in safetensors",
                   context));
}

void ConfigWriter::check_pooling() {
  constexpr std::string_view kNames[] = {"none", "mean", "cls", "last", "rank"};
  const int64_t pooling = integer(kPooling, 0, std::ssize(kNames) - 1, 0);
  if (pooling == 0 || pooling == kLastToken) return;
  fail(kPooling, fmt::format("{} ({})", pooling, kNames[pooling]),
       "0 (none) or 3 (last): other kinds of pooling are not served, and models that rank are "
       "served only from safetensors");
}

// In newer files, key_length and value_length describe the cached vector, which is the only key of
// all heads, and other fields describe the heads. In older files, they describe the heads.
void ConfigWriter::write_mla() {
  for (const Field& field : kMlaFields) {
    if (find(field.key) != nullptr) json_.field(field.name, integer(field.key, 0, kAnyInteger));
  }
  const bool is_new = find("attention.key_length_mla") != nullptr;
  const std::string_view key = is_new ? "attention.key_length_mla" : "attention.key_length";
  const std::string_view value = is_new ? "attention.value_length_mla" : "attention.value_length";
  const int64_t rope_dim = integer("rope.dimension_count", 2, kAnyInteger);
  json_.field("qk_nope_head_dim", integer(key, rope_dim + 1, kAnyInteger) - rope_dim);
  json_.field("v_head_dim", integer(value, 1, kAnyInteger));
  check_divisors(rope_dim);
  if (integer("nextn_predict_layers", 0, kAnyInteger, 0) != 0) {
    fail("nextn_predict_layers", "layers that predict further tokens",
         "0: they are served from safetensors alone");
  }
}

ExpertRouting ConfigWriter::read_routing() {
  ExpertRouting routing;
  const int64_t num_experts = integer("expert_count", 1, kMaxExperts);
  routing.num_experts = static_cast<int>(num_experts);
  routing.top_k = static_cast<int>(integer("expert_used_count", 1, num_experts));
  const int64_t gating = integer("expert_gating_func", 0, kAnyInteger, kSoftmax);
  if (gating == kSigmoid) routing.scores = RouterScores::kSigmoid;
  if (gating > (is_deepseek() ? kSigmoid : kSoftmax)) {
    fail("expert_gating_func", std::to_string(gating),
         is_deepseek() ? "1 (softmax) or 2 (sigmoid)" : "1 (softmax)");
  }
  routing.num_groups =
      std::max(1, static_cast<int>(integer("expert_group_count", 0, num_experts, 1)));
  routing.top_groups =
      std::max(1, static_cast<int>(integer("expert_group_used_count", 0, num_experts, 1)));
  if (gating == kSigmoid) routing.group_scores = GroupScores::kTwoLargest;
  if (is_valid(routing)) return routing;
  fail("expert_group_count",
       fmt::format("{} of which {} are used, with {} experts and {} per token", routing.num_groups,
                   routing.top_groups, routing.num_experts, routing.top_k),
       "equal groups, of which the used ones have enough experts for a token");
  return routing;
}

// The weights of Mixtral and Qwen3-MoE are normalized: llama.cpp decides this by the architecture.
void ConfigWriter::write_experts() {
  const ExpertRouting routing = read_routing();
  json_.field("num_experts_per_tok", routing.top_k);
  if (is_deepseek()) return write_deepseek_experts(routing);
  const double scale = number("expert_weights_scale", 1.0);
  if (scale != 0.0 && scale != 1.0) {
    fail("expert_weights_scale", fmt::format("{}", scale), "1 for this architecture");
  }
  if (routing.num_groups != 1) {
    fail("expert_group_count", std::to_string(routing.num_groups), "1 for this architecture");
  }
  if (architecture_ == "llama") {
    json_.field("num_local_experts", routing.num_experts);
    return;
  }
  json_.field("num_experts", routing.num_experts);
  json_.field("moe_intermediate_size", integer("expert_feed_forward_length", 1, kAnyInteger));
  json_.field("norm_topk_prob", true);
}

// In files without groups, which are older than the field, the router chooses among all experts, as
// llama.cpp computes them. With groups, DeepSeek-V2 scores a group by its best expert, as its
// authors define it; llama.cpp takes the two best, as in V3.
void ConfigWriter::write_deepseek_experts(const ExpertRouting& routing) {
  const bool is_v3 = routing.scores == RouterScores::kSigmoid;
  json_.field("n_routed_experts", routing.num_experts);
  json_.field("moe_intermediate_size", integer("expert_feed_forward_length", 1, kAnyInteger));
  json_.field("n_shared_experts", integer("expert_shared_count", 0, kMaxExperts, 0));
  json_.field("first_k_dense_replace", integer("leading_dense_block_count", 0, kAnyInteger, 0));
  json_.field("scoring_func", is_v3 ? "sigmoid" : "softmax");
  const char* const v2_method = routing.num_groups > 1 ? "group_limited_greedy" : "greedy";
  json_.field("topk_method", is_v3 ? "noaux_tc" : v2_method);
  json_.field("n_group", routing.num_groups);
  json_.field("topk_group", routing.top_groups);
  const double scale = number("expert_weights_scale", 1.0);
  json_.field("routed_scaling_factor", scale == 0.0 ? 1.0 : scale);  // llama.cpp's 0 is no scale
  const GgufValue* const norm = find("expert_weights_norm");
  const std::optional<bool> normalizes = norm == nullptr ? false : norm->boolean();
  if (!normalizes) fail("expert_weights_norm", "no boolean", "a boolean");
  json_.field("norm_topk_prob", normalizes.value_or(false));
}

void ConfigWriter::refuse_divisor(float divisor) {
  if (!status_.ok()) return;
  status_ = invalid_argument(fmt::format(
      "[gguf] {}: tensor \"rope_freqs.weight\"; got {}, expected positive finite numbers: the "
      "file is damaged; download it again",
      gguf_.source(), divisor));
}

// llama.cpp stores the scaling of Llama 3 as a divisor per frequency in a tensor.
// llama.cpp takes a factor without a type as linear, also under the key of old files.
void ConfigWriter::write_rope() {
  constexpr std::string_view kFactor = "rope.scaling.factor";
  constexpr std::string_view kOldFactor = "rope.scale_linear";
  const std::string_view factor = find(kFactor) != nullptr ? kFactor : kOldFactor;
  const bool has_factor = find(factor) != nullptr;
  const GgufValue* const type_value = find("rope.scaling.type");
  const std::optional<std::string_view> type = type_value != nullptr ? type_value->text()
                                               : has_factor          ? "linear"
                                                                     : "none";
  const GgufTensor* const divisors = gguf_.tensor("rope_freqs.weight");
  if (!type || (*type != "none" && *type != "linear" && *type != "yarn")) {
    return fail("rope.scaling.type", type ? quote_name(*type) : "no text", "none, linear or yarn");
  }
  if (divisors != nullptr) {
    if (*type != "none") {
      return fail("rope.scaling.type", quote_name(*type),
                  "none beside tensor \"rope_freqs.weight\"");
    }
    json_.key("rope_scaling");
    json_.begin_object();
    json_.field("rope_type", "divisors");
    json_.key("divisors");
    json_.begin_array();
    std::vector<float> block(static_cast<size_t>(divisors->type->block_elements));
    const auto block_bytes = static_cast<size_t>(divisors->type->block_bytes);
    for (size_t at = 0; at < divisors->bytes.size(); at += block_bytes) {
      dequantize(*divisors->type, divisors->bytes.data() + at, block.data());
      for (const float divisor : block) {
        if (!(divisor > 0) || !std::isfinite(divisor)) return refuse_divisor(divisor);
        json_.value(double{divisor});
      }
    }
    json_.end_array();
    json_.end_object();
  } else if (*type != "none") {
    if (!has_factor) {
      return fail(kFactor, "nothing", fmt::format("a factor beside the type {}", *type));
    }
    json_.key("rope_scaling");
    json_.begin_object();
    json_.field("rope_type", *type);
    write_field({factor, "factor"});
    write_field({"rope.scaling.original_context_length", "original_max_position_embeddings"});
    write_field({"rope.scaling.yarn_beta_fast", "beta_fast"});
    write_field({"rope.scaling.yarn_beta_slow", "beta_slow"});
    if (is_deepseek()) write_yarn_magnitude();
    json_.end_object();
  }
}

// llama.cpp stores a tenth of mscale_all_dim, and takes mscale to be equal to it.
void ConfigWriter::write_yarn_magnitude() {
  const double tenth = number("rope.scaling.yarn_log_multiplier", 0.0);
  if (tenth == 0.0) return;
  json_.field("mscale", 10.0 * tenth);
  json_.field("mscale_all_dim", 10.0 * tenth);
}

// The pattern is the number of layers of which the last one has no window, or a flag per layer.
void ConfigWriter::write_layer_types() {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const GgufValue* const value = find(kPattern);
  const auto flags = value == nullptr ? std::nullopt : value->numbers();
  if (!flags) return write_field({kPattern, "sliding_window_pattern"});
  json_.key("layer_types");
  json_.begin_array();
  for (const double flag : *flags) json_.value(flag != 0 ? "sliding_attention" : "full_attention");
  json_.end_array();
}

void ConfigWriter::write_gemma() {
  for (const Field& field : kGemmaFields) write_field(field);
  write_layer_types();
  const std::optional<int64_t> heads = integer("attention.head_count");
  const std::optional<int64_t> hidden = integer("embedding_length");
  const std::optional<int64_t> head_dim = integer("attention.key_length");
  if (head_dim && heads && hidden && *heads > 0) {
    json_.field("query_pre_attn_scalar",
                gguf_gemma_query_scalar(architecture_, integer("block_count").value_or(0), *hidden,
                                        *heads, *head_dim));
  }
}

void ConfigWriter::write_special_tokens() {
  const auto token = [this](std::string_view name) -> std::optional<int64_t> {
    const GgufValue* const value = gguf_.find(fmt::format("tokenizer.ggml.{}_token_id", name));
    return value == nullptr ? std::nullopt : value->integer();
  };
  if (const auto bos = token("bos")) json_.field("bos_token_id", *bos);
  std::vector<int64_t> ends;
  for (const std::string_view name : {"eos", "eot", "eom"}) {
    const auto id = token(name);
    if (id && std::ranges::find(ends, *id) == ends.end()) ends.push_back(*id);
  }
  json_.key("eos_token_id");
  json_.begin_array();
  for (const int64_t id : ends) json_.value(id);
  json_.end_array();
}

std::string_view ConfigWriter::hf_architecture() const {
  if (architecture_ == "llama" && has_experts()) return "MixtralForCausalLM";
  if (is_deepseek() && integer("expert_gating_func") == kSigmoid) return "DeepseekV3ForCausalLM";
  return std::ranges::find(kArchitectures, architecture_, &Architecture::name)->architecture;
}

Result<std::string> ConfigWriter::write() {
  json_.begin_object();
  json_.key("architectures");
  json_.begin_array();
  json_.value(hf_architecture());
  json_.end_array();
  for (const Field& field : kFields) write_field(field);
  write_vocab_size();
  is_deepseek() ? write_mla() : write_head_dim();
  if (has_experts() || architecture_ == "qwen3moe") write_experts();
  write_rope();
  check_unserved(kUnservedFields);
  if (architecture_.starts_with("gemma")) {
    write_gemma();
  } else {
    check_unserved(kUnservedCaps);
    check_window();
  }
  check_pooling();
  json_.field("tie_word_embeddings", gguf_.tensor("output.weight") == nullptr);
  json_.field("attention_bias", gguf_.tensor("blk.0.attn_output.bias") != nullptr);
  json_.field("mlp_bias", gguf_.tensor("blk.0.ffn_down.bias") != nullptr);
  write_special_tokens();
  json_.field("torch_dtype", dtype_name(gguf_weight_dtype(gguf_)));
  json_.end_object();
  QUIRE_RETURN_IF_ERROR(status_);
  return json_.take();
}

// The key of a field of config.json; empty: none, or several.
std::string_view key_of(std::string_view name) {
  const std::span<const Field> tables[] = {kFields, kOtherFields, kMlaFields, kGemmaFields};
  for (const std::span<const Field> table : tables) {
    const auto field = std::ranges::find(table, name, &Field::name);
    if (field != table.end()) return field->key;
  }
  return {};
}

// An error of the parser of config.json, "[config] SOURCE: FIELD; …", with the keys of the file in
// place of the fields' names.
Status with_gguf_keys(const Status& status, std::string_view source,
                      std::string_view architecture) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_.";
  const std::string prefix = fmt::format("[config] {}: ", source);
  std::string_view rest = status.message();
  if (!rest.starts_with(prefix)) return status;
  rest.remove_prefix(prefix.size());
  std::string text = fmt::format("[gguf] {}: ", source);
  while (!rest.empty()) {
    const size_t size = std::min(rest.find_first_not_of(kLetters), rest.size());
    const std::string_view word = rest.substr(0, std::max<size_t>(size, 1));
    const std::string_view key = key_of(word);
    text += key.empty() ? std::string(word) : fmt::format("metadata \"{}.{}\"", architecture, key);
    rest.remove_prefix(word.size());
  }
  return Status(status.code(), std::move(text));
}

}  // namespace

Result<std::string_view> gguf_architecture(const GgufModel& gguf) {
  const GgufValue* const value = gguf.find("general.architecture");
  const std::optional<std::string_view> name = value == nullptr ? std::nullopt : value->text();
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name) return architecture.name;
    known += known.empty() ? "" : ", ";
    known += architecture.name;
  }
  return unimplemented(
      fmt::format("[gguf] {}: metadata \"general.architecture\"; got {}, expected one of {}",
                  gguf.source(), name ? quote_name(*name) : "nothing", known));
}

// llama.cpp derives the scale of the scores from the model's size: hidden_size / num_heads for the
// largest model of each generation, head_dim for the others.
int64_t gguf_gemma_query_scalar(std::string_view architecture, int64_t num_layers,
                                int64_t hidden_size, int64_t num_heads, int64_t head_dim) {
  const int64_t largest = architecture == "gemma2" ? 46 : 62;
  return num_layers == largest ? hidden_size / num_heads : head_dim;
}

DType gguf_weight_dtype(const GgufModel& gguf) {
  std::optional<DType> common;
  for (const GgufTensor* tensor : gguf.tensors()) {
    if (tensor->shape.size() < 2 || is_gguf_router(*tensor)) continue;
    const std::optional<DType> plain = tensor->type->plain;
    if (!plain || (common && *common != *plain)) return DType::kF16;
    common = plain;
  }
  return common.value_or(DType::kF32);
}

bool is_gguf_router(const GgufTensor& tensor) {
  return tensor.name.ends_with(".ffn_gate_inp.weight");
}

Result<std::string> gguf_config_json(const GgufModel& gguf) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view name, gguf_architecture(gguf));
  return ConfigWriter(gguf, name).write();
}

Result<ModelConfig> gguf_model_config(const GgufModel& gguf) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view architecture, gguf_architecture(gguf));
  QUIRE_ASSIGN_OR_RETURN(const std::string json, gguf_config_json(gguf));
  Result<ModelConfig> config = parse_model_config(json, gguf.source());
  const GgufValue* const pooling = gguf.find(fmt::format("{}.{}", architecture, kPooling));
  if (config.ok()) {
    config->embeds = pooling != nullptr && pooling->integer() == kLastToken;
    return config;
  }
  return with_gguf_keys(config.status(), gguf.source(), architecture);
}

}  // namespace quire
