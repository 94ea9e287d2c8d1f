// The vocabularies of published tokenizers as GGUF metadata.
#include "tokenizer/gguf_vocabulary.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "support/shared_data.h"
#include "support/value_of.h"
#include "tokenizer/byte_level.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::shared_data_path;

std::string read(const fs::path& path) {
  const Result<std::string> text = read_file(path, size_t{64} << 20);
  return text.ok() ? *text : "";
}

Result<OwnedGgufVocabulary> vocabulary_of(const fs::path& folder, int num_tokens = 0) {
  const auto tokenizer = Tokenizer::load(folder).value();
  const std::string json = read(folder / "tokenizer.json");
  const std::string config = read(folder / "tokenizer_config.json");
  return gguf_vocabulary({"tokenizer.json", json, config}, *tokenizer,
                         {.num_tokens = num_tokens > 0 ? num_tokens : tokenizer->vocab_size()},
                         "test");
}

Result<OwnedGgufVocabulary> vocabulary_of_json(const std::string& json) {
  const auto tokenizer = Tokenizer::from_json(json, "test").value();
  return gguf_vocabulary({"tokenizer.json", json, ""}, *tokenizer,
                         {.num_tokens = tokenizer->vocab_size()}, "test");
}

struct Published {
  const char* folder;
  const char* model;
  const char* pre;
  bool add_bos;
};

class GgufVocabularies : public ::testing::TestWithParam<Published> {};

// gguf_vocabulary itself compares the ids of every token's text.
TEST_P(GgufVocabularies, ExpressTheTokenizer) {
  const fs::path folder = shared_data_path("tokenizers") / GetParam().folder;
  QUIRE_REQUIRE_SHARED(folder);
  const auto vocabulary = testing::value_of(vocabulary_of(folder));
  EXPECT_EQ(vocabulary.model, GetParam().model);
  EXPECT_EQ(vocabulary.pre, GetParam().pre);
  EXPECT_EQ(vocabulary.add_bos, GetParam().add_bos);
  const auto expected = Tokenizer::load(folder).value();
  const auto written = tokenizer_from_gguf(vocabulary.view()).value();
  for (const char* text :
       {"Once upon a time, in 1984, there weren't   two spaces.", "naïve — 日本 🍎\n\n\tx", "",
        "<|im_start|>user\nx<|eot_id|>", "def f(x):\n    return x[1:-1]\r\n"}) {
    EXPECT_EQ(written->encode(text, true).value(), expected->encode(text, true).value()) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufVocabularies,
                         ::testing::Values(Published{"gpt2", "gpt2", "gpt-2", false},
                                           Published{"llama2", "llama", "", true},
                                           Published{"llama3.2-instruct", "gpt2", "llama-bpe",
                                                     true},
                                           Published{"qwen2_5", "gpt2", "qwen2", false}),
                         [](const auto& published) {
                           std::string name = published.param.folder;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

TEST(GgufVocabulary, TakesTheScoresOfSentencePiece) {
  const fs::path folder = shared_data_path("models/stories15M");
  QUIRE_REQUIRE_SHARED(folder / "tokenizer.model");
  const std::string model = read(folder / "tokenizer.model");
  const auto tokenizer = Tokenizer::from_sentencepiece(model, "tokenizer.model").value();
  const auto vocabulary = testing::value_of(
      gguf_vocabulary({"tokenizer.model", model, ""}, *tokenizer, {.num_tokens = 32000}, "test"));
  EXPECT_EQ(vocabulary.model, "llama");
  EXPECT_EQ(vocabulary.add_space_prefix, true);
  EXPECT_EQ(vocabulary.unk_id, 0);
  EXPECT_EQ(vocabulary.types[0], kGgufUnknown);
  EXPECT_EQ(vocabulary.types[3], kGgufByte);
}

TEST(GgufVocabulary, HasOneTokenPerRowOfTheEmbedding) {
  const fs::path folder = testing::source_path("models/quire-abacus");
  const auto more = vocabulary_of(folder, 4100).value();
  ASSERT_EQ(more.tokens.size(), 4100U);
  EXPECT_EQ(more.types[4099], kGgufUnused);
  EXPECT_EQ(more.tokens[4099], "[PAD4099]");
  EXPECT_EQ(more.bos_id, 1);
  EXPECT_EQ(more.eos_id, 2);
  EXPECT_EQ(more.pad_id, 0);
  const auto fewer = testing::value_of(vocabulary_of(folder, 4000));
  EXPECT_EQ(fewer.tokens.size(), 4000U);
}

// A vocabulary of "ab" (0) and printable ASCII.
std::string byte_level(const std::string& pre_tokenizer, const std::string& normalizer,
                       const std::string& added) {
  std::string vocab = R"("ab": 0)";
  for (char c = ' '; c <= '~'; ++c) {
    const std::string spelling = spell_bytes({&c, 1});
    const bool is_escaped = c == '"' || c == '\\';
    vocab += fmt::format(R"(, "{}{}": {})", is_escaped ? "\\" : "", spelling, c - ' ' + 1);
  }
  return R"({"normalizer": )" + normalizer + R"(, "pre_tokenizer": )" + pre_tokenizer +
         R"(, "model": {"type": "BPE", "vocab": {)" + vocab + R"(}, "merges": ["a b"]},
            "added_tokens": [)" +
         added + "]}";
}

TEST(GgufVocabulary, OtherRulesAreRefused) {
  const std::string plain = R"({"type": "ByteLevel", "add_prefix_space": false})";
  const auto error_of = [](const std::string& json) {
    const auto vocabulary = vocabulary_of_json(json);
    return vocabulary.ok() ? "" : vocabulary.status().message();
  };
  EXPECT_EQ(error_of(byte_level(plain, "null", "")), "");
  EXPECT_THAT(
      error_of(byte_level(R"({"type": "ByteLevel", "add_prefix_space": true})", "null", "")),
      AllOf(HasSubstr("[tokenizer] test: "), HasSubstr("add_prefix_space true")));
  EXPECT_THAT(error_of(byte_level(plain, R"({"type": "Lowercase"})", "")),
              HasSubstr("normalizer; got \"Lowercase\", expected NFC or none"));
  EXPECT_THAT(error_of(byte_level(plain, R"({"type": "NFC"})", "")),
              HasSubstr("normalizer; got NFC, expected none, with the pre-tokenizer \"gpt-2\""));
  const std::string split =
      R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "x+"},
          "behavior": "Isolated", "invert": false},
          {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";
  EXPECT_THAT(error_of(byte_level(split, "null", "")), HasSubstr("the regexes \"x+\""));
  EXPECT_THAT(
      error_of(byte_level(plain, "null",
                          R"({"id": 96, "content": "<m>", "lstrip": true, "special": true})")),
      HasSubstr("added token \"<m>\"; got single_word, lstrip or rstrip"));
  const std::string unigram =
      R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1]]}})";
  EXPECT_THAT(error_of(unigram), HasSubstr("model; got \"Unigram\", expected BPE"));
}

}  // namespace
}  // namespace quire
