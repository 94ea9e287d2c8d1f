// Compares ids and texts with those of the `tokenizers` and `sentencepiece` packages and with
// llama.cpp's vectors.
#include <fmt/format.h>

#include <sstream>

#include "support/value_of.h"
#include "tokenizer/golden_data.h"
#include "tokenizer/pre_tokenizer.h"

namespace quire::testing {
namespace {

TEST(TokenizerGolden, ComponentsEncode) {
  const std::vector<NamedTokenizer> tokenizers = component_tokenizers();
  size_t i = 0;
  for (const std::string_view file : kTokenizerFiles) {
    const JsonDocument golden = load_golden(file);
    for (const simdjson::dom::element entry : simdjson::dom::array(golden.root())) {
      ASSERT_LT(i, tokenizers.size());
      const auto& [name, tokenizer] = tokenizers[i++];
      for (const simdjson::dom::element test : simdjson::dom::array(entry["cases"])) {
        const std::string text = string_of(test, "text");
        EXPECT_EQ(tokenizer->encode(text, false).value(), ids_of(test, "ids"))
            << name << ": " << text;
        EXPECT_EQ(tokenizer->encode(text, true).value(), ids_of(test, "ids_with_special")) << name;
      }
    }
  }
  EXPECT_EQ(i, 9U);
}

TEST(TokenizerGolden, ComponentsDecode) {
  const std::vector<NamedTokenizer> tokenizers = component_tokenizers();
  size_t i = 0;
  for (const std::string_view file : kTokenizerFiles) {
    const JsonDocument golden = load_golden(file);
    for (const simdjson::dom::element entry : simdjson::dom::array(golden.root())) {
      ASSERT_LT(i, tokenizers.size());
      const auto& [name, tokenizer] = tokenizers[i++];
      for (const simdjson::dom::element test : simdjson::dom::array(entry["decodes"])) {
        const std::vector<int32_t> ids = ids_of(test, "ids");
        EXPECT_EQ(tokenizer->decode(ids, false), string_of(test, "text")) << name;
        EXPECT_EQ(tokenizer->decode(ids, true), string_of(test, "text_without_special")) << name;
      }
    }
  }
}

TEST(TokenizerGolden, PreTokenizersSplit) {
  const JsonDocument golden = load_golden("splits.json");
  for (const simdjson::dom::element entry : simdjson::dom::array(golden.root())) {
    const std::string name = string_of(entry, "name");
    const Result<PreTokenizer> pre_tokenizer =
        PreTokenizer::from_json(simdjson::dom::element(entry["pre_tokenizer"]));
    ASSERT_TRUE(pre_tokenizer.ok()) << name << ": " << pre_tokenizer.status().message();
    for (const simdjson::dom::element test : simdjson::dom::array(entry["cases"])) {
      const std::string text = string_of(test, "text");
      std::vector<std::string> pieces;
      SearchBudget budget(text.size());
      pre_tokenizer->run({text, true}, budget,
                         [&](Piece piece) { pieces.emplace_back(piece.text); });
      std::vector<std::string> expected;
      for (const std::string_view piece : simdjson::dom::array(test["pieces"])) {
        expected.emplace_back(piece);
      }
      EXPECT_EQ(pieces, expected) << name;
    }
  }
}

TEST(TokenizerGolden, SentencePieceModels) {
  const JsonDocument golden = load_golden("sentencepiece.json");
  for (const simdjson::dom::element entry : simdjson::dom::array(golden.root())) {
    const std::string name = string_of(entry, "model");
    const auto tokenizer = value_of(Tokenizer::from_sentencepiece(read_golden(name), name));
    for (const simdjson::dom::element test : simdjson::dom::array(entry["cases"])) {
      const std::string text = string_of(test, "text");
      EXPECT_EQ(tokenizer->encode(text, false).value(), ids_of(test, "ids"))
          << name << ": " << text;
    }
  }
}

// The text and the hashes are committed; the tokenizers are in the shared data.
TEST(TokenizerGolden, MixedTextWithRealTokenizers) {
  const std::string text = read_golden("mixed.txt");
  const JsonDocument golden = load_golden("mixed.json");
  for (const simdjson::dom::element entry : simdjson::dom::array(golden.root())) {
    const std::string name = string_of(entry, "name");
    const auto directory = shared_data_path("tokenizers") / name;
    QUIRE_REQUIRE_SHARED(directory);
    const auto tokenizer = value_of(Tokenizer::load(directory));
    const std::vector<int32_t> ids = tokenizer->encode(text, false).value();
    EXPECT_EQ(ids.size(), uint64_t(entry["num_ids"])) << name;
    EXPECT_EQ(fmt::format("{:016x}", fnv1a(ids)), string_of(entry, "ids_fnv1a")) << name;
    const std::string decoded = tokenizer->decode(ids, false);
    EXPECT_EQ(fmt::format("{:016x}", fnv1a(decoded)), string_of(entry, "decoded_fnv1a")) << name;
  }
}

// Uses llama.cpp's tokenizer vectors, and one vocabulary in two file formats.
std::vector<std::string> split_cases(const std::string& text) {
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> cases;
  size_t start = 0;
  for (size_t at = text.find(kSeparator); at != std::string::npos;
       at = text.find(kSeparator, start)) {
    cases.push_back(text.substr(start, at - start));
    start = at + kSeparator.size();
  }
  return cases;
}

std::vector<std::vector<int32_t>> read_ids(const std::string& text) {
  std::vector<std::vector<int32_t>> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream numbers(line);
    lines.emplace_back();
    for (int32_t id = 0; numbers >> id;) lines.back().push_back(id);
  }
  return lines;
}

void check_vectors(std::string_view vectors, const Tokenizer& tokenizer) {
  const auto stem = shared_data_path("tokenizer_vectors") / vectors;
  const auto input = read_file(stem.string() + ".gguf.inp", size_t{1} << 20);
  const auto output = read_file(stem.string() + ".gguf.out", size_t{1} << 20);
  ASSERT_TRUE(input.ok() && output.ok());
  const std::vector<std::string> cases = split_cases(*input);
  const std::vector<std::vector<int32_t>> ids = read_ids(*output);
  ASSERT_EQ(cases.size(), ids.size());
  ASSERT_GT(cases.size(), 40U);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(cases[i], false).value(), ids[i])
        << vectors << " case " << i << ": " << cases[i];
  }
}

struct VectorSet {
  const char* vectors;
  const char* tokenizer;
};

class TokenizerVectors : public ::testing::TestWithParam<VectorSet> {};

TEST_P(TokenizerVectors, Pass) {
  const auto directory = shared_data_path(GetParam().tokenizer);
  QUIRE_REQUIRE_SHARED(directory);
  const auto tokenizer = value_of(Tokenizer::load(directory));
  check_vectors(GetParam().vectors, *tokenizer);
}

// deepseek-llm and deepseek-coder have vectors, but their vocabularies are not in the shared data;
// ComponentsEncode checks their pre-tokenizers.
INSTANTIATE_TEST_SUITE_P(All, TokenizerVectors,
                         ::testing::Values(VectorSet{"ggml-vocab-gpt-2", "tokenizers/gpt2"},
                                           VectorSet{"ggml-vocab-llama-bpe",
                                                     "tokenizers/llama3.2-instruct"},
                                           VectorSet{"ggml-vocab-llama-spm", "tokenizers/llama2"},
                                           VectorSet{"ggml-vocab-llama-spm", "models/stories15M"},
                                           VectorSet{"ggml-vocab-qwen2", "tokenizers/qwen2_5"}));

TEST(SentencePieceModel, GivesTheIdsOfItsTokenizerJson) {
  const auto json_dir = shared_data_path("tokenizers/llama2");
  const auto model_dir = shared_data_path("models/stories15M");
  QUIRE_REQUIRE_SHARED(json_dir);
  QUIRE_REQUIRE_SHARED(model_dir);
  const auto from_json = Tokenizer::load(json_dir).value();
  const auto from_model = Tokenizer::load(model_dir).value();
  EXPECT_EQ(from_model->vocab_size(), from_json->vocab_size());
  std::istringstream lines(read_golden("mixed.txt"));
  size_t num_ids = 0;
  for (std::string line; std::getline(lines, line, '.');) {
    // llama2's tokenizer.json finds a special token only after a space; tokenizer.model finds it
    // anywhere.
    bool has_special = false;
    for (const std::string_view special : {"<s>", "</s>", "<unk>"}) {
      has_special = has_special || line.find(special) != std::string::npos;
    }
    if (has_special) continue;
    const std::vector<int32_t> ids = from_model->encode(line, true).value();
    EXPECT_EQ(ids, from_json->encode(line, true).value()) << line;
    EXPECT_EQ(from_model->decode(ids, true), from_json->decode(ids, true));
    num_ids += ids.size();
  }
  EXPECT_GT(num_ids, 10'000U);
  EXPECT_EQ(from_model->encode("a</s>b", true).value(), (std::vector<int32_t>{1, 263, 2, 289}));
}

}  // namespace
}  // namespace quire::testing
