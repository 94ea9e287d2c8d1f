// Ids and texts against what the `tokenizers` and `sentencepiece` packages gave for them.
#include <fmt/format.h>

#include "tokenizer/golden_data.h"
#include "tokenizer/pre_tokenizer.h"

namespace quire {
namespace {

using testing::ids_of;
using testing::load_golden;
using testing::string_of;

TEST(TokenizerGolden, ComponentsEncode) {
  const std::vector<testing::NamedTokenizer> tokenizers = testing::component_tokenizers();
  size_t i = 0;
  for (const std::string_view file : testing::kTokenizerFiles) {
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
  const std::vector<testing::NamedTokenizer> tokenizers = testing::component_tokenizers();
  size_t i = 0;
  for (const std::string_view file : testing::kTokenizerFiles) {
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
    const auto tokenizer = Tokenizer::from_sentencepiece(testing::read_golden(name), name);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    for (const simdjson::dom::element test : simdjson::dom::array(entry["cases"])) {
      const std::string text = string_of(test, "text");
      EXPECT_EQ((*tokenizer)->encode(text, false).value(), ids_of(test, "ids"))
          << name << ": " << text;
    }
  }
}

// The text and the hashes are committed; the tokenizers themselves lie in the shared data.
TEST(TokenizerGolden, MixedTextWithRealTokenizers) {
  const std::string text = testing::read_golden("mixed.txt");
  const JsonDocument golden = load_golden("mixed.json");
  for (const simdjson::dom::element entry : simdjson::dom::array(golden.root())) {
    const std::string name = string_of(entry, "name");
    const auto directory = testing::shared_data_path("tokenizers") / name;
    QUIRE_REQUIRE_SHARED(directory);
    const auto tokenizer = Tokenizer::load(directory);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    const std::vector<int32_t> ids = (*tokenizer)->encode(text, false).value();
    EXPECT_EQ(ids.size(), uint64_t(entry["num_ids"])) << name;
    EXPECT_EQ(fmt::format("{:016x}", testing::fnv1a(ids)), string_of(entry, "ids_fnv1a")) << name;
    const std::string decoded = (*tokenizer)->decode(ids, false);
    EXPECT_EQ(fmt::format("{:016x}", testing::fnv1a(decoded)), string_of(entry, "decoded_fnv1a"))
        << name;
  }
}

}  // namespace
}  // namespace quire
