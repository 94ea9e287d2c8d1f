#include "quantize/gguf_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "model/decoder_config.h"
#include "model/gguf/gguf_config.h"
#include "tokenizer/gguf_vocabulary.h"

namespace quire {
namespace {

Status no_field_for(std::string_view field, std::string_view got, std::string_view expected) {
  return unimplemented(
      fmt::format("[quantize] config.json: {}; got {}, expected {}: GGUF files cannot express it, "
                  "write a w4a16 checkpoint instead",
                  field, got, expected));
}

class ConfigFieldsWriter {
 public:
  ConfigFieldsWriter(const ModelConfig& config, std::string_view architecture, GgufWriter& writer)
      : config_(config),
        decoder_(decoder_config(config)),
        architecture_(architecture),
        writer_(writer) {}

  Status write();

 private:
  bool is_gemma() const { return architecture_.starts_with("gemma"); }
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  void integer(std::string_view name, int value) {
    writer_.number(key(name), static_cast<uint32_t>(value));
  }
  void real(std::string_view name, double value) {
    writer_.real(key(name), static_cast<float>(value));
  }
  void write_sizes();
  void write_context();
  Status write_scaling(const RopeConfig& rope);
  void write_divisors(const RopeConfig& rope);
  Status write_gemma();
  Status write_softcaps();
  Status write_window_pattern();

  const ModelConfig& config_;
  const DecoderConfig& decoder_;
  std::string_view architecture_;
  GgufWriter& writer_;
};

void ConfigFieldsWriter::write_sizes() {
  integer("block_count", config_.num_layers);
  integer("embedding_length", config_.hidden_size);
  integer("feed_forward_length", decoder_.intermediate_size);
  integer("attention.head_count", decoder_.num_heads);
  integer("attention.head_count_kv", decoder_.num_kv_heads);
  integer("attention.key_length", decoder_.head_dim);
  integer("attention.value_length", decoder_.head_dim);
  integer("rope.dimension_count", decoder_.head_dim);
  integer("vocab_size", config_.vocab_size);
  real("attention.layer_norm_rms_epsilon", decoder_.rms_norm_eps);
}

// In families other than Gemma, llama.cpp has no windows, so the file's context is limited to the
// window. There, a window has no effect.
void ConfigFieldsWriter::write_context() {
  int context = decoder_.max_position_embeddings;
  if (!is_gemma()) {
    for (const int window : decoder_.layer_windows) {
      if (window > 0) context = std::min(context, window);
    }
    if (context < decoder_.max_position_embeddings) {
      log_warning(
          "[quantize] llama.cpp's \"{}\" has no sliding window, so the file's context is the "
          "window, {} tokens, instead of {}",
          architecture_, context, decoder_.max_position_embeddings);
    }
  }
  integer("context_length", context);
}

void ConfigFieldsWriter::write_divisors(const RopeConfig& rope) {
  RopeConfig plain;
  plain.theta = rope.theta;
  const int positions = decoder_.max_position_embeddings;
  const RopeFrequencies before = rope_frequencies(plain, decoder_.head_dim, positions, positions);
  const RopeFrequencies after = rope_frequencies(rope, decoder_.head_dim, positions, positions);
  std::vector<float> divisors;
  for (size_t i = 0; i < before.inv_freq.size(); ++i) {
    divisors.push_back(static_cast<float>(before.inv_freq[i] / after.inv_freq[i]));
  }
  writer_.floats("rope_freqs.weight", {decoder_.head_dim / 2}, divisors);
}

Status ConfigFieldsWriter::write_scaling(const RopeConfig& rope) {
  switch (rope.type) {
    case RopeType::kDefault:
      return {};
    case RopeType::kLlama3:
      write_divisors(rope);
      return {};
    case RopeType::kLinear:
      writer_.text(key("rope.scaling.type"), "linear");
      real("rope.scaling.factor", rope.factor);
      return {};
    case RopeType::kYarn:
      if (rope.attention_factor || rope.mscale || rope.mscale_all_dim || !rope.truncate) {
        return no_field_for("rope_scaling of type yarn",
                            "attention_factor, mscale, mscale_all_dim or truncate", "none of them");
      }
      writer_.text(key("rope.scaling.type"), "yarn");
      real("rope.scaling.factor", rope.factor);
      integer("rope.scaling.original_context_length", rope.original_max_position_embeddings);
      real("rope.scaling.yarn_beta_fast", rope.beta_fast);
      real("rope.scaling.yarn_beta_slow", rope.beta_slow);
      return {};
    case RopeType::kNone:
    case RopeType::kDynamic:
    case RopeType::kLongRope:
    case RopeType::kDivisors:
    case RopeType::kProportional:
      break;
  }
  return no_field_for("rope_scaling", "type dynamic", "default, linear, yarn or llama3");
}

// Writes n, if every n-th layer has full attention.
Status ConfigFieldsWriter::write_window_pattern() {
  const std::vector<int>& windows = decoder_.layer_windows;
  const int num_layers = config_.num_layers;
  for (int period = 1; period <= num_layers + 1; ++period) {
    bool fits = true;
    for (int layer = 0; layer < num_layers; ++layer) {
      fits &= (windows[static_cast<size_t>(layer)] == 0) == ((layer + 1) % period == 0);
    }
    if (!fits) continue;
    integer("attention.sliding_window_pattern", period);
    const int window = *std::ranges::max_element(windows);
    if (window > 0) integer("attention.sliding_window", window);
    return {};
  }
  return no_field_for("layer_types", "full attention in other layers than every n-th",
                      "full attention in every n-th layer");
}

// If a file has no soft cap, llama.cpp assumes the soft caps of Gemma 2, but none for the scores of
// Gemma 3.
Status ConfigFieldsWriter::write_softcaps() {
  const float of_scores = decoder_.attention_softcap;
  const float of_logits = decoder_.logits_softcap;
  const bool is_gemma2 = architecture_ == "gemma2";
  if (is_gemma2 && (of_scores == 0 || of_logits == 0)) {
    return no_field_for("attn_logit_softcapping and final_logit_softcapping", "no soft cap",
                        "both");
  }
  if (!is_gemma2 && of_scores != 0) {
    return no_field_for("attn_logit_softcapping", fmt::format("{}", of_scores), "none");
  }
  if (is_gemma2) real("attn_logit_softcapping", of_scores);
  if (of_logits > 0) real("final_logit_softcapping", of_logits);
  return {};
}

Status ConfigFieldsWriter::write_gemma() {
  const auto scalar = static_cast<double>(
      gguf_gemma_query_scalar(*find_gguf_architecture(architecture_), config_.num_layers,
                              config_.hidden_size, decoder_.num_heads, decoder_.head_dim));
  const double scale = decoder_.attention_scale;
  if (std::abs(scale * std::sqrt(scalar) - 1) > 1e-4) {
    return no_field_for("query_pre_attn_scalar", fmt::format("{:.6g}", 1 / (scale * scale)),
                        fmt::format("{}, which llama.cpp assumes for this size", scalar));
  }
  QUIRE_RETURN_IF_ERROR(write_softcaps());
  if (decoder_.ropes.size() > 1) {
    if (decoder_.ropes[1].type != RopeType::kDefault) {
      return no_field_for("rope_parameters of sliding_attention", "a scaling", "none");
    }
    real("rope.freq_base_swa", decoder_.ropes[1].theta);
  }
  return write_window_pattern();
}

Status ConfigFieldsWriter::write() {
  write_sizes();
  write_context();
  const RopeConfig& rope = decoder_.ropes.front();
  real("rope.freq_base", rope.theta);
  QUIRE_RETURN_IF_ERROR(write_scaling(rope));
  return is_gemma() ? write_gemma() : Status();
}

// Writes the tokens that end a text, except the vocabulary's EOS. A file has fields for two.
void write_other_ends(const QuantizeSource& source, std::optional<int32_t> eos,
                      GgufWriter& writer) {
  std::vector<int> ends;
  for (const std::vector<int>* ids :
       {&source.files.config.eos_token_ids, &source.files.generation.eos_token_ids}) {
    for (const int id : *ids) {
      if (id != eos && std::ranges::find(ends, id) == ends.end()) ends.push_back(id);
    }
  }
  constexpr std::string_view kKeys[] = {"tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id"};
  for (size_t i = 0; i < std::min(ends.size(), std::size(kKeys)); ++i) {
    writer.number(kKeys[i], static_cast<uint32_t>(ends[i]));
  }
  for (size_t i = std::size(kKeys); i < ends.size(); ++i) {
    log_warning(
        "[quantize] token {} also ends a text, but a GGUF file has places for three such tokens: "
        "it ends a text only if llama.cpp recognizes its name",
        ends[i]);
  }
}

void write_id(std::string_view name, std::optional<int32_t> id, GgufWriter& writer) {
  if (!id) return;
  writer.number(fmt::format("tokenizer.ggml.{}_token_id", name), static_cast<uint32_t>(*id));
}

void write_vocabulary(const OwnedGgufVocabulary& vocabulary, GgufWriter& writer) {
  writer.text("tokenizer.ggml.model", vocabulary.model);
  if (!vocabulary.pre.empty()) writer.text("tokenizer.ggml.pre", vocabulary.pre);
  writer.texts("tokenizer.ggml.tokens", vocabulary.tokens);
  writer.numbers("tokenizer.ggml.token_type", vocabulary.types);
  if (!vocabulary.scores.empty()) writer.numbers("tokenizer.ggml.scores", vocabulary.scores);
  if (vocabulary.scores.empty()) writer.texts("tokenizer.ggml.merges", vocabulary.merges);
  write_id("bos", vocabulary.bos_id, writer);
  write_id("eos", vocabulary.eos_id, writer);
  write_id("unknown", vocabulary.unk_id, writer);
  write_id("padding", vocabulary.pad_id, writer);
  writer.flag("tokenizer.ggml.add_bos_token", vocabulary.add_bos);
  writer.flag("tokenizer.ggml.add_eos_token", vocabulary.add_eos);
  if (vocabulary.add_space_prefix) {
    writer.flag("tokenizer.ggml.add_space_prefix", *vocabulary.add_space_prefix);
  }
}

}  // namespace

Result<std::string_view> gguf_architecture_of(const ModelConfig& config) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"LlamaForCausalLM", "llama"},
      {"MistralForCausalLM", "llama"},
      {"Qwen2ForCausalLM", "qwen2"},
      {"Qwen3ForCausalLM", "qwen3"},
      {"Gemma2ForCausalLM", "gemma2"},
      {"Gemma3ForCausalLM", "gemma3"},
      {"Gemma3ForConditionalGeneration", "gemma3"}};
  std::string known;
  for (const auto& [architecture, name] : kNames) {
    if (config.architecture == architecture) return name;
    known += (known.empty() ? "" : ", ") + std::string(architecture);
  }
  return unimplemented(
      fmt::format("[quantize] config.json: architectures; got {}, expected one that GGUF files are "
                  "written for: {}",
                  config.architecture, known));
}

Status write_gguf_config(const ModelConfig& config, GgufWriter& writer) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view architecture, gguf_architecture_of(config));
  return ConfigFieldsWriter(config, architecture, writer).write();
}

Status write_gguf_tokenizer(const QuantizeSource& source, GgufWriter& writer) {
  const ModelFiles& files = source.files;
  VocabularyUse use;
  use.num_tokens = files.config.vocab_size;
  use.bos_id = files.config.bos_token_id;
  if (!files.config.eos_token_ids.empty()) use.eos_id = files.config.eos_token_ids.front();
  if (files.tokenizer == nullptr) {
    log_warning("[quantize] {} has no tokenizer, so the file has none", source.place);
    writer.text("tokenizer.ggml.model", "none");
    write_id("bos", use.bos_id, writer);
    write_id("eos", use.eos_id, writer);
    write_other_ends(source, use.eos_id, writer);
    return {};
  }
  QUIRE_ASSIGN_OR_RETURN(
      const OwnedGgufVocabulary vocabulary,
      gguf_vocabulary({source.tokenizer_file, source.tokenizer, source.tokenizer_config_json},
                      *files.tokenizer, use, source.place));
  write_vocabulary(vocabulary, writer);
  write_other_ends(source, vocabulary.eos_id, writer);
  if (files.chat) writer.text("tokenizer.chat_template", files.chat->source());
  return {};
}

}  // namespace quire
