#include "start/gguf_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "model/gguf/gguf_config.h"
#include "tensor/tensor.h"
#include "tokenizer/tokenizer_gguf.h"

namespace quire {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";

// Reads values of the metadata; keeps the first error. Absent values are empty.
class Metadata {
 public:
  explicit Metadata(const GgufModel& gguf) : gguf_(gguf) {}

  template <typename T>
  std::optional<T> read(std::string_view key, std::optional<T> (GgufValue::*as)() const,
                        std::string_view expected) {
    const GgufValue* const value = gguf_.find(key);
    if (value == nullptr) return std::nullopt;
    std::optional<T> result = (value->*as)();
    if (!result && status_.ok()) {
      status_ = invalid_argument(
          fmt::format("[gguf] {}: metadata \"{}\"; got a value of another kind, expected {}",
                      gguf_.source(), key, expected));
    }
    return result;
  }
  std::optional<std::string_view> text(std::string_view key) {
    return read(key, &GgufValue::text, "a text");
  }
  std::vector<std::string_view> texts(std::string_view key) {
    return read(key, &GgufValue::texts, "a list of texts")
        .value_or(std::vector<std::string_view>());
  }
  std::vector<double> numbers(std::string_view key) {
    return read(key, &GgufValue::numbers, "a list of numbers").value_or(std::vector<double>());
  }
  std::optional<int64_t> integer(std::string_view key) {
    return read(key, &GgufValue::integer, "an integer");
  }
  std::optional<bool> boolean(std::string_view key) {
    return read(key, &GgufValue::boolean, "a boolean");
  }
  std::optional<double> number(std::string_view key) {
    const std::optional<double> number = read(key, &GgufValue::number, "a number");
    if (number && !std::isfinite(*number) && status_.ok()) {
      status_ = invalid_argument(
          fmt::format("[gguf] {}: metadata \"{}\"; got {}, expected a finite number",
                      gguf_.source(), key, *number));
    }
    return number;
  }
  std::vector<int64_t> types() {
    std::vector<int64_t> types;
    for (const double number : numbers(kTypes)) {
      types.push_back(number >= 0 && number <= 1e6 ? static_cast<int64_t>(number) : -1);
    }
    return types;
  }
  const Status& status() const { return status_; }

 private:
  const GgufModel& gguf_;
  Status status_;
};

// Fails unless the file lists one token per row of its embedding. If the embedding is padded,
// converters add unused tokens to the list, so a list of another length belongs to another
// vocabulary.
Status check_token_count(const GgufModel& gguf, size_t num_tokens) {
  const GgufTensor* const embedding = gguf.tensor("token_embd.weight");
  if (embedding == nullptr || std::cmp_equal(num_tokens, embedding->shape.front())) return {};
  return invalid_argument(fmt::format(
      "[tokenizer] {}: {}; got {} tokens, expected {}, one per row of tensor "
      "\"token_embd.weight\": the list is of another model; download the file again, or "
      "name the model's tokenizer by `tokenizer`",
      gguf.source(), kTokens, num_tokens, embedding->shape.front()));
}

}  // namespace

Result<ModelConfig> read_gguf_config(const GgufModel& gguf) {
  QUIRE_ASSIGN_OR_RETURN(ModelConfig config, gguf_model_config(gguf));
  Metadata metadata(gguf);
  const std::vector<std::string_view> tokens = metadata.texts(kTokens);
  QUIRE_RETURN_IF_ERROR(metadata.status());
  std::vector<int>& ends = config.eos_token_ids;
  for (const int end : gguf_reply_ends(tokens)) {
    if (std::ranges::find(ends, end) == ends.end()) ends.push_back(end);
  }
  return config;
}

std::string gguf_mixture_name(const GgufModel& gguf) {
  // The values of llama.cpp's llama_ftype.
  static constexpr std::pair<int64_t, std::string_view> kNames[] = {
      {0, "F32"},      {1, "F16"},      {2, "Q4_0"},      {3, "Q4_1"},    {7, "Q8_0"},
      {8, "Q5_0"},     {9, "Q5_1"},     {10, "Q2_K"},     {11, "Q3_K_S"}, {12, "Q3_K_M"},
      {13, "Q3_K_L"},  {14, "Q4_K_S"},  {15, "Q4_K_M"},   {16, "Q5_K_S"}, {17, "Q5_K_M"},
      {18, "Q6_K"},    {19, "IQ2_XXS"}, {20, "IQ2_XS"},   {21, "Q2_K_S"}, {22, "IQ3_XS"},
      {23, "IQ3_XXS"}, {24, "IQ1_S"},   {25, "IQ4_NL"},   {26, "IQ3_S"},  {27, "IQ3_M"},
      {28, "IQ2_S"},   {29, "IQ2_M"},   {30, "IQ4_XS"},   {31, "IQ1_M"},  {32, "BF16"},
      {36, "TQ1_0"},   {37, "TQ2_0"},   {38, "MXFP4_MOE"}};
  const GgufValue* const value = gguf.find("general.file_type");
  const std::optional<int64_t> type = value == nullptr ? std::nullopt : value->integer();
  for (const auto& [number, name] : kNames) {
    if (type == number) return std::string(name);
  }
  return "";
}

bool has_gguf_tokenizer(const GgufModel& gguf) {
  const GgufValue* const model = gguf.find("tokenizer.ggml.model");
  return model != nullptr && model->text() != "none" && model->text() != "no_vocab";
}

Result<std::shared_ptr<const Tokenizer>> read_gguf_tokenizer(const GgufModel& gguf) {
  Metadata metadata(gguf);
  GgufVocabulary vocabulary;
  vocabulary.model = metadata.text("tokenizer.ggml.model").value_or("");
  vocabulary.pre = metadata.text("tokenizer.ggml.pre").value_or("");
  vocabulary.tokens = metadata.texts(kTokens);
  vocabulary.types = metadata.types();
  vocabulary.scores = metadata.numbers("tokenizer.ggml.scores");
  vocabulary.merges = metadata.texts("tokenizer.ggml.merges");
  vocabulary.bos_id = metadata.integer("tokenizer.ggml.bos_token_id");
  vocabulary.eos_id = metadata.integer("tokenizer.ggml.eos_token_id");
  vocabulary.unk_id = metadata.integer("tokenizer.ggml.unknown_token_id");
  vocabulary.add_bos = metadata.boolean("tokenizer.ggml.add_bos_token");
  vocabulary.add_eos = metadata.boolean("tokenizer.ggml.add_eos_token");
  vocabulary.add_space_prefix = metadata.boolean("tokenizer.ggml.add_space_prefix");
  QUIRE_RETURN_IF_ERROR(metadata.status());
  Result<std::shared_ptr<const Tokenizer>> tokenizer = tokenizer_from_gguf(vocabulary);
  if (!tokenizer.ok()) {
    const Status& status = tokenizer.status();
    return Status(status.code(),
                  fmt::format("[tokenizer] {}: {}", gguf.source(), status.message()));
  }
  QUIRE_RETURN_IF_ERROR(check_token_count(gguf, vocabulary.tokens.size()));
  return tokenizer;
}

Result<std::string> gguf_tokenizer_config(const GgufModel& gguf) {
  Metadata metadata(gguf);
  const std::vector<std::string_view> tokens = metadata.texts(kTokens);
  JsonWriter json;
  json.begin_object();
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTokenIds = {{
      {"bos_token", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},
      {"pad_token", "tokenizer.ggml.padding_token_id"},
  }};
  for (const auto& [name, key] : kTokenIds) {
    const std::optional<int64_t> id = metadata.integer(key);
    if (!id || *id < 0 || *id >= static_cast<int64_t>(tokens.size())) continue;
    json.field(name, tokens[static_cast<size_t>(*id)]);
  }
  if (const auto chat = metadata.text("tokenizer.chat_template"))
    json.field("chat_template", *chat);
  QUIRE_RETURN_IF_ERROR(metadata.status());
  json.end_object();
  return json.take();
}

Result<std::string> gguf_generation_config(const GgufModel& gguf) {
  Metadata metadata(gguf);
  JsonWriter json;
  json.begin_object();
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNumbers = {{
      {"temperature", "general.sampling.temp"},
      {"top_k", "general.sampling.top_k"},
      {"top_p", "general.sampling.top_p"},
      {"min_p", "general.sampling.min_p"},
      {"repetition_penalty", "general.sampling.penalty_repeat"},
  }};
  for (const auto& [name, key] : kNumbers) {
    if (const auto number = metadata.number(key)) json.field(name, *number);
  }
  QUIRE_RETURN_IF_ERROR(metadata.status());
  json.end_object();
  return json.take();
}

}  // namespace quire
