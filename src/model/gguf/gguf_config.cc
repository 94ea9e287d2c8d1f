#include "model/gguf/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "model/decoder_config.h"
#include "model/families.h"
#include "model/gguf/gguf_config_writer.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

// The kind of pooling, which llama.cpp's converter writes only for embedding models. kLastToken:
// the embedding is the last token's hidden state.
constexpr std::string_view kPooling = "pooling_type";
constexpr int64_t kLastToken = 3;

constexpr std::string_view kMtp = "nextn_predict_layers";
constexpr std::string_view kWindow = "attention.sliding_window";

constexpr std::array kFields = {
    GgufField{"embedding_length", "hidden_size"},
    GgufField{"context_length", "max_position_embeddings"},
    GgufField{"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
};

constexpr std::array kMlaFields = {
    GgufField{"attention.q_lora_rank", "q_lora_rank"},
    GgufField{"attention.kv_lora_rank", "kv_lora_rank"},
    GgufField{"rope.dimension_count", "qk_rope_head_dim"},
};

// Granite's multipliers. In llama.cpp, 0 stands for no multiplier.
constexpr std::array kMultipliers = {
    GgufField{"embedding_scale", "embedding_multiplier"},
    GgufField{"residual_scale", "residual_multiplier"},
    GgufField{"logit_scale", "logits_scaling"},
};

// Fields that functions of their own write. The table is for the names in errors.
constexpr std::array kWrittenFields = {
    GgufField{"attention.head_count", "num_attention_heads"},
    GgufField{"block_count", "num_hidden_layers"},
    GgufField{kKvHeads, "num_key_value_heads"},
    GgufField{"attention.key_length", "head_dim"},
    GgufField{"attention.scale", "attention_multiplier"},
    GgufField{kWindow, "sliding_window"},
    GgufField{"attention.sliding_window_pattern", "sliding_window_pattern"},
    GgufField{"rope.freq_base", "rope_theta"},
    GgufField{"rope.freq_base", "rope_parameters.full_attention.rope_theta"},
    GgufField{"rope.freq_base_swa", "rope_parameters.sliding_attention.rope_theta"},
    GgufField{"rope.scaling.type", "rope_parameters"},
    GgufField{"rope.dimension_count", "partial_rotary_factor"},
    GgufField{"rope.scaling.factor", "rope_scaling.factor"},
    GgufField{"rope.scaling.original_context_length",
              "rope_scaling.original_max_position_embeddings"},
    GgufField{"rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast"},
    GgufField{"rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow"},
    GgufField{"rope.scaling.attn_factor", "rope_scaling.attention_factor"},
    GgufField{"rope.scaling.yarn_log_multiplier", "rope_scaling.mscale_all_dim"},
    GgufField{"attention.temperature_scale", "rope_scaling.llama_4_scaling_beta"},
    GgufField{"expert_feed_forward_length", "moe_intermediate_size"},
    GgufField{"expert_shared_count", "n_shared_experts"},
    GgufField{"expert_weights_scale", "routed_scaling_factor"},
    GgufField{"leading_dense_block_count", "first_k_dense_replace"},
    GgufField{"ssm.inner_size", "linear_value_head_dim"},
    GgufField{"full_attention_interval", "full_attention_interval"},
};

// A field that changes the model's arithmetic. If the code of the file's architecture does not read
// it, only one of two values is served.
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
    UnservedField{"attn_logit_softcapping", 0, 0},
    UnservedField{"final_logit_softcapping", 0, 0},
    UnservedField{"router_logit_softcapping", 0, 0},
    UnservedField{"rope.dimension_sections", 0, 0},
    UnservedField{"rope.scaling.attn_factor", 1, 1},
    UnservedField{"rope.scaling.yarn_attn_factor", 1, 1},
    UnservedField{"rope.scaling.yarn_ext_factor", 1, -1},  // llama.cpp's -1 is its default, 1
    UnservedField{kExpertCount, 0, 0},
    UnservedField{"expert_group_scale", 1, 0},
    UnservedField{"moe_every_n_layers", 1, 0},
    UnservedField{"swiglu_clamp_exp", 0, 0},
    UnservedField{"swiglu_clamp_shexp", 0, 0},
};

}  // namespace

void GgufConfigWriter::write_field(const GgufField& field) {
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
void GgufConfigWriter::write_vocab_size() {
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

int64_t GgufConfigWriter::integer(std::string_view key, int64_t least, int64_t most,
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

double GgufConfigWriter::number(std::string_view key, double fallback) {
  const GgufValue* const value = find(key);
  if (value == nullptr) return fallback;
  const std::optional<double> number = value->number();
  if (!number || !std::isfinite(*number)) fail(key, "no number", "a number");
  return number.value_or(fallback);
}

bool GgufConfigWriter::boolean(std::string_view key, bool fallback) {
  const GgufValue* const value = find(key);
  if (value == nullptr) return fallback;
  const std::optional<bool> flag = value->boolean();
  if (!flag) fail(key, "no boolean", "a boolean");
  return flag.value_or(fallback);
}

// The last blocks may be layers that predict further tokens. A file may lack their tensors.
void GgufConfigWriter::write_num_layers() {
  const int64_t num_mtp = integer(kMtp, 0, kMaxLayers, 0);
  if (num_mtp == 0) return write_field({"block_count", "num_hidden_layers"});
  const int64_t num_blocks = integer("block_count", num_mtp + 1, kAnyInteger);
  json_.field("num_hidden_layers", num_blocks - num_mtp);
  for (int64_t block = num_blocks - num_mtp; block < num_blocks; ++block) {
    if (!has(fmt::format("blk.{}.attn_norm.weight", block)) ||
        has(fmt::format("blk.{}.nextn.eh_proj.weight", block))) {
      continue;
    }
    return fail(kMtp, fmt::format("{}, and block {} has no tensor of such a layer", num_mtp, block),
                "the number of blocks that have \"nextn.eh_proj.weight\"");
  }
}

void GgufConfigWriter::write_sizes() {
  constexpr std::string_view kTheta = "rope.freq_base";
  for (const GgufField& field : kFields) write_field(field);
  write_heads();
  write_num_layers();
  write_vocab_size();
  if (row_.is_gemma4) return write_gemma4();
  write_field({row_.width_key, "intermediate_size"});
  if (find(kTheta) != nullptr) {
    write_field({kTheta, "rope_theta"});
  } else {
    json_.field("rope_theta", 10000.0);  // the families' defaults differ
  }
  row_.has_latents ? write_mla() : write_head_dim();
  write_rope();
}

int64_t GgufConfigWriter::num_layers() const {
  // write_sizes() has reported invalid numbers.
  const auto valid = [](std::optional<int64_t> number) {
    return number && *number >= 0 && *number <= kAnyInteger ? *number : 0;
  };
  return valid(integer("block_count")) - valid(integer(kMtp));
}

std::optional<int64_t> GgufConfigWriter::num_heads() const {
  const GgufValue* const value = find(kHeads);
  const auto list = value == nullptr ? std::nullopt : value->numbers();
  if (!list || list->empty() || row_.layer_heads.empty()) return integer(kHeads);
  const double most = std::ranges::max(*list);
  return most >= 1.0 && most <= kAnyInteger ? std::optional(static_cast<int64_t>(most))
                                            : std::nullopt;
}

void GgufConfigWriter::write_heads() {
  const GgufValue* const value = find(kHeads);
  if (row_.layer_heads.empty() || value == nullptr || !value->numbers()) {
    return write_field({kHeads, "num_attention_heads"});
  }
  json_.field("num_attention_heads", num_heads().value_or(0));
  write_field({kHeads, row_.layer_heads});
}

// The numbers of KV heads of both kinds of layers, their sinks, and the width of values. The lists
// of the metadata also have the layers that predict further tokens.
void GgufConfigWriter::write_hybrid() {
  const GgufValue* const heads = find(kKvHeads);
  const GgufValue* const pattern = find(kPattern);
  const auto counts = heads == nullptr ? std::nullopt : heads->numbers();
  const auto flags = pattern == nullptr ? std::nullopt : pattern->numbers();
  const int64_t count = num_layers();
  if (!counts || !flags || std::ssize(*counts) < count || std::ssize(*flags) < count) {
    return fail(kKvHeads, "no list, or none of windows", "a number for each layer in both");
  }
  const auto write = [&](bool has_window, const char* of_heads, const char* of_sinks) {
    std::set<double> numbers;
    std::set<bool> sinks;
    for (int64_t layer = 0; layer < count; ++layer) {
      if (((*flags)[static_cast<size_t>(layer)] != 0) != has_window) continue;
      numbers.insert((*counts)[static_cast<size_t>(layer)]);
      sinks.insert(has(fmt::format("blk.{}.attn_sinks.weight", layer)));
    }
    if (numbers.size() > 1 || sinks.size() > 1) {
      fail(kKvHeads, "different numbers, or sinks in some layers",
           "the same in all layers with a window, and in all others");
    }
    const double number = numbers.empty() ? 1.0 : *numbers.begin();
    json_.field(of_heads, integer_of(number));
    json_.field(of_sinks, sinks.contains(true));
  };
  write(false, "num_key_value_heads", "add_full_attention_sink_bias");
  write(true, "swa_num_key_value_heads", "add_swa_attention_sink_bias");
  json_.field("v_head_dim", integer("attention.value_length", 1, kAnyInteger, head_dim_));
  const double scale = number("attention.value_scale", 0.0);
  json_.field("attention_value_scale", scale == 0.0 ? 1.0 : scale);
}

// Also refuses heads whose keys and values differ in size, and heads that are rotated in part if
// llama.cpp does not compute them for the architecture.
void GgufConfigWriter::write_head_dim() {
  constexpr std::string_view kRotated = "rope.dimension_count";
  if (row_.has_convs) {
    write_convs();
  } else if (!row_.is_hybrid) {
    write_field({find(kKvHeads) != nullptr ? kKvHeads : kHeads, "num_key_value_heads"});
  }
  const std::optional<int64_t> heads = num_heads();
  const std::optional<int64_t> hidden = integer("embedding_length");
  if (!heads || !hidden || *heads < 1) return;  // the parser of config.json reports that
  head_dim_ = integer("attention.key_length", 1, kAnyInteger, *hidden / *heads);
  json_.field("head_dim", head_dim_);
  if (row_.is_hybrid) {
    write_hybrid();
  } else {
    expect_head_dim("attention.value_length", head_dim_);
  }
  expect_head_dim("rope.dimension_count_swa", head_dim_);
  rotated_dim_ = head_dim_;
  if (row_.rotates_part) {
    rotated_dim_ = integer(kRotated, 2, std::max<int64_t>(head_dim_, 2), head_dim_);
    json_.field("partial_rotary_factor",
                static_cast<double>(rotated_dim_) / static_cast<double>(head_dim_));
  } else {
    expect_head_dim(kRotated, head_dim_);
  }
}

void GgufConfigWriter::expect_head_dim(std::string_view key, int64_t head_dim) {
  const int64_t got = integer(key, 0, kAnyInteger, head_dim);
  if (got != head_dim) fail(key, std::to_string(got), fmt::format("the head's, {}", head_dim));
}

// If the field is a list, which has a value per layer, checks each value.
void GgufConfigWriter::check_unserved() {
  for (const UnservedField& field : kUnservedFields) {
    if (read_.contains(field.key)) continue;
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

// A window that is as long as the context changes nothing.
void GgufConfigWriter::check_window() {
  const int64_t window = integer(kWindow, 0, kAnyInteger, 0);
  const int64_t context = integer("context_length").value_or(kAnyInteger);
  if (window == 0 || window >= context) return;
  fail(kWindow, std::to_string(window),
       fmt::format("0, or at least the context of {} tokens: this architecture is served without "
                   "windows from GGUF files; use the checkpoint in safetensors",
                   context));
}

// The files do not state the chunks: llama.cpp has their size and their layers in its code, and
// they are the defaults of config.json.
void GgufConfigWriter::check_chunks() {
  if (integer(kWindow, 0, kAnyInteger, 1) == 0) {
    fail(kWindow, "0", "another number, or nothing: models without chunks are not served");
  }
  integer(kPattern, 4, 4, 4);
}

void GgufConfigWriter::check_pooling() {
  constexpr std::string_view kNames[] = {"none", "mean", "cls", "last", "rank"};
  const int64_t pooling = integer(kPooling, 0, std::ssize(kNames) - 1, 0);
  if (pooling == 0 || pooling == kLastToken) return;
  fail(kPooling, fmt::format("{} ({})", pooling, kNames[pooling]),
       "0 (none) or 3 (last): other kinds of pooling are not served, and models that rank are "
       "served only from safetensors");
}

// In newer files, key_length and value_length describe the cached vector, which is the only key of
// all heads, and other fields describe the heads. In older files, they describe the heads.
void GgufConfigWriter::write_mla() {
  for (const GgufField& field : kMlaFields) {
    if (find(field.key) != nullptr) json_.field(field.name, integer(field.key, 0, kAnyInteger));
  }
  const bool is_new = find("attention.key_length_mla") != nullptr;
  const std::string_view key = is_new ? "attention.key_length_mla" : "attention.key_length";
  const std::string_view value = is_new ? "attention.value_length_mla" : "attention.value_length";
  rotated_dim_ = integer("rope.dimension_count", 2, kAnyInteger);
  json_.field("qk_nope_head_dim", integer(key, rotated_dim_ + 1, kAnyInteger) - rotated_dim_);
  json_.field("v_head_dim", integer(value, 1, kAnyInteger));
}

// Writes a null for a model without windows. A Gemma whose file lacks the window has the family's
// default.
void GgufConfigWriter::write_windows() {
  if (has_chunks()) return check_chunks();
  if (row_.windows == GgufWindows::kNone) return check_window();
  const int64_t window = integer(kWindow, 0, kAnyInteger, 0);
  const bool has_default = is_gemma() && find(kWindow) == nullptr;
  if (window > 0) {
    json_.field("sliding_window", window);
  } else if (!has_default) {
    json_.key("sliding_window");
    json_.null();
  }
  if (row_.windows == GgufWindows::kByLayer && (window > 0 || has_default)) write_layer_types();
}

// The pattern is a flag per layer, or a period: the last layer of each period has no window.
void GgufConfigWriter::write_layer_types() {
  const GgufValue* const value = find(kPattern);
  const auto flags = value == nullptr ? std::nullopt : value->numbers();
  if (!flags && !row_.begins_without_window) {
    return write_field({kPattern, "sliding_window_pattern"});
  }
  const int64_t period = flags ? 1 : integer(kPattern, 1, kAnyInteger, 4);
  int64_t count = flags ? std::ssize(*flags) : std::min<int64_t>(num_layers(), kMaxLayers);
  if (row_.is_hybrid) count = std::clamp<int64_t>(num_layers(), 0, count);
  json_.key("layer_types");
  json_.begin_array();
  for (int64_t i = 0; i < count; ++i) {
    const bool has_window = flags ? (*flags)[static_cast<size_t>(i)] != 0 : i % period != 0;
    json_.value(has_window ? "sliding_attention" : "full_attention");
  }
  json_.end_array();
}

void GgufConfigWriter::write_query_scalar() {
  const std::optional<int64_t> heads = integer(kHeads);
  const std::optional<int64_t> hidden = integer("embedding_length");
  const std::optional<int64_t> head_dim = integer("attention.key_length");
  if (head_dim && heads && hidden && *heads > 0) {
    json_.field("query_pre_attn_scalar",
                gguf_gemma_query_scalar(row_, integer("block_count").value_or(0), *hidden, *heads,
                                        *head_dim));
  }
}

// Without attention.scale, or with 0, llama.cpp uses the scale of other architectures.
void GgufConfigWriter::write_multipliers() {
  constexpr std::string_view kScale = "attention.scale";
  constexpr std::string_view kPositions = "rope.scaling.finetuned";
  for (const GgufField& field : kMultipliers) {
    const double multiplier = number(field.key, 0.0);
    json_.field(field.name, multiplier == 0.0 ? 1.0 : multiplier);
  }
  const double scale = number(kScale, 0.0);
  json_.field("attention_multiplier",
              scale == 0.0 ? 1.0 / std::sqrt(static_cast<double>(head_dim_)) : scale);
  if (!boolean(kPositions, true)) {
    fail(kPositions, "false", "true: this architecture is served with rotations alone");
  }
}

// Sets the family's switches by the tensors that the file has.
void GgufConfigWriter::write_switches() {
  const FamilyTraits* const family = find_family(hf_architecture(), {});
  QUIRE_CHECK(family != nullptr, "[gguf] the table of architectures has an unknown family");
  const auto write = [this](std::string_view key, bool value) {
    if (!key.empty()) json_.field(key, value);
  };
  json_.field("tie_word_embeddings", !has("output.weight"));
  write(family->o_bias.key, has("blk.0.attn_output.bias"));
  if (family->qkv_bias.key != family->o_bias.key) {
    write(family->qkv_bias.key, has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias"));
  }
  if (family->mlp_bias.key != family->o_bias.key) {
    write(family->mlp_bias.key, has("blk.0.ffn_down.bias"));
  }
  // llama.cpp identifies Llama 4 without norms of queries and keys by its 128 experts.
  constexpr int64_t kExpertsWithoutNorms = 128;
  write(family->has_qk_norm.key, has_chunks() ? integer(kExpertCount) != kExpertsWithoutNorms
                                              : has("blk.0.attn_q_norm.weight"));
  if (row_.adds_qk_norm_weights) write("has_qk_norm_weights", true);
  // Calls find() so that check_unserved() accepts the key: the sections have positions of their
  // own, which are equal in a text. If the checkpoint's model rotates neighbours, files with this
  // key have the rows of heads in another order, so they are refused.
  if (family->rotary_pairs == RotaryPairs::kHalves) find("rope.dimension_sections");
}

void GgufConfigWriter::write_special_tokens() {
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

std::string_view GgufConfigWriter::hf_architecture() const {
  if (!row_.variant_key.empty() && is_set(row_.variant_key)) return row_.variant;
  const bool is_v3 = row_.has_latents && has_sigmoid_router();
  return is_v3 ? "DeepseekV3ForCausalLM" : row_.architecture;
}

Result<std::string> GgufConfigWriter::write() {
  json_.begin_object();
  json_.key("architectures");
  json_.begin_array();
  json_.value(hf_architecture());
  json_.end_array();
  write_sizes();
  if (has_experts()) write_experts();
  write_windows();
  for (const GgufField& field : row_.fields) write_field(field);
  if (is_gemma()) write_query_scalar();
  if (row_.has_multipliers) write_multipliers();
  if (row_.deltas != GgufDeltas::kNone) write_deltas();
  write_switches();
  check_unserved();
  check_pooling();
  write_special_tokens();
  json_.field("torch_dtype", dtype_name(gguf_weight_dtype(gguf_)));
  json_.end_object();
  QUIRE_RETURN_IF_ERROR(status_);
  return json_.take();
}

namespace {

// The key of a field of config.json; empty: none, or several.
std::string_view key_of(std::string_view name, const GgufArchitecture& row) {
  const std::span<const GgufField> tables[] = {row.fields, kFields,      kWrittenFields,
                                               kMlaFields, kMultipliers, kGgufDeltaFields};
  if (name == "intermediate_size") return row.width_key;
  if (name == "layer_types") {
    if (row.deltas != GgufDeltas::kNone) return kDeltaLayers;
    return row.has_convs ? kKvHeads : kPattern;
  }
  for (const std::span<const GgufField> table : tables) {
    const auto field = std::ranges::find(table, name, &GgufField::name);
    if (field != table.end()) return field->key;
  }
  return {};
}

// Returns an error of the parser of config.json, "[config] SOURCE: FIELD; …", with the file's keys
// instead of the fields' names.
Status with_gguf_keys(const Status& status, std::string_view source, const GgufArchitecture& row) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_.";
  const std::string prefix = fmt::format("[config] {}: ", source);
  std::string_view rest = status.message();
  if (!rest.starts_with(prefix)) return status;
  rest.remove_prefix(prefix.size());
  std::string text = fmt::format("[gguf] {}: ", source);
  while (!rest.empty()) {
    const size_t size = std::min(rest.find_first_not_of(kLetters), rest.size());
    const std::string_view word = rest.substr(0, std::max<size_t>(size, 1));
    const std::string_view key = key_of(word, row);
    text += key.empty() ? std::string(word) : fmt::format("metadata \"{}.{}\"", row.name, key);
    rest.remove_prefix(word.size());
  }
  return Status(status.code(), std::move(text));
}

}  // namespace

Result<const GgufArchitecture*> gguf_architecture(const GgufModel& gguf) {
  const GgufValue* const value = gguf.find("general.architecture");
  const std::optional<std::string_view> name = value == nullptr ? std::nullopt : value->text();
  const GgufArchitecture* const row = name ? find_gguf_architecture(*name) : nullptr;
  if (row != nullptr) return row;
  return unimplemented(
      fmt::format("[gguf] {}: metadata \"general.architecture\"; got {}, expected one of {}",
                  gguf.source(), name ? quote_name(*name) : "nothing", gguf_architectures()));
}

// llama.cpp derives the scale of the scores from the model's size: hidden_size / num_heads for the
// largest model of each generation, head_dim for the others.
int64_t gguf_gemma_query_scalar(const GgufArchitecture& gemma, int64_t num_layers,
                                int64_t hidden_size, int64_t num_heads, int64_t head_dim) {
  return num_layers == gemma.layers_of_largest_gemma ? hidden_size / num_heads : head_dim;
}

int64_t num_gguf_mtp_layers(const GgufModel& gguf, const GgufArchitecture& row) {
  const GgufValue* const value = gguf.find(fmt::format("{}.{}", row.name, kMtp));
  return value == nullptr ? 0 : value->integer().value_or(0);
}

DType gguf_weight_dtype(const GgufModel& gguf) {
  std::optional<DType> common;
  for (const GgufTensor* tensor : gguf.tensors()) {
    if (tensor->shape.size() < 2 || keeps_gguf_type(*tensor)) continue;
    const std::optional<DType> plain = tensor->type->plain;
    if (!plain || (common && *common != *plain)) return DType::kF16;
    common = plain;
  }
  return common.value_or(DType::kF32);
}

bool keeps_gguf_type(const GgufTensor& tensor) {
  constexpr std::string_view kEnds[] = {".ffn_gate_inp.weight", ".ffn_gate_inp_shexp.weight",
                                        ".ssm_conv1d.weight", ".shortconv.conv.weight"};
  return std::ranges::any_of(kEnds,
                             [&](std::string_view end) { return tensor.name.ends_with(end); });
}

Result<std::string> gguf_config_json(const GgufModel& gguf) {
  QUIRE_ASSIGN_OR_RETURN(const GgufArchitecture* const row, gguf_architecture(gguf));
  return GgufConfigWriter(gguf, *row).write();
}

Result<ModelConfig> gguf_model_config(const GgufModel& gguf) {
  QUIRE_ASSIGN_OR_RETURN(const GgufArchitecture* const row, gguf_architecture(gguf));
  QUIRE_ASSIGN_OR_RETURN(const std::string json, gguf_config_json(gguf));
  Result<ModelConfig> config = parse_model_config(json, gguf.source());
  const GgufValue* const pooling = gguf.find(fmt::format("{}.{}", row->name, kPooling));
  if (config.ok()) {
    config->embeds = pooling != nullptr && pooling->integer() == kLastToken;
    return config;
  }
  return with_gguf_keys(config.status(), gguf.source(), *row);
}

}  // namespace quire
