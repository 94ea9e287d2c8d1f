// Properties of decoding: whatever the ids, streaming gives the text of the whole.
#include <random>

#include "base/utf8.h"
#include "tokenizer/golden_data.h"

namespace quire {
namespace testing {

std::string decode_incrementally(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                                 bool skip_special_tokens) {
  IncrementalDetokenizer detokenizer(tokenizer, skip_special_tokens);
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = detokenizer.push(id);
    EXPECT_TRUE(is_valid_utf8(piece));
    text += piece;
  }
  text += detokenizer.finish();
  return text;
}

}  // namespace testing

namespace {

std::vector<testing::NamedTokenizer> all_tokenizers() {
  std::vector<testing::NamedTokenizer> result = testing::component_tokenizers();
  for (const char* name : {"tokenizers/gpt2", "tokenizers/llama2", "models/stories15M"}) {
    const auto directory = testing::shared_data_path(name);
    if (std::filesystem::exists(directory)) {
      result.push_back({name, Tokenizer::load(directory).value()});
    }
  }
  return result;
}

// Half of the draws come from the first 600 ids, where bytes and special tokens are dense.
std::vector<int32_t> random_ids(const Tokenizer& tokenizer, std::mt19937& random) {
  std::uniform_int_distribution<int32_t> low(0, std::min(600, tokenizer.vocab_size()));
  std::uniform_int_distribution<int32_t> any(-1, tokenizer.vocab_size());
  std::vector<int32_t> ids(random() % 40);
  for (int32_t& id : ids) id = random() % 2 == 0 ? low(random) : any(random);
  return ids;
}

TEST(IncrementalDetokenizer, EqualsWholeDecodingOfRandomIds) {
  std::mt19937 random(1);
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    for (int i = 0; i < 300; ++i) {
      const std::vector<int32_t> ids = random_ids(*tokenizer, random);
      for (const bool skip : {false, true}) {
        const std::string whole = tokenizer->decode(ids, skip);
        EXPECT_TRUE(is_valid_utf8(whole));
        EXPECT_EQ(testing::decode_incrementally(*tokenizer, ids, skip), whole) << name;
      }
    }
  }
}

TEST(IncrementalDetokenizer, ContinuesWhatItWasPrimedWith) {
  std::mt19937 random(2);
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    for (int i = 0; i < 100; ++i) {
      const std::vector<int32_t> ids = random_ids(*tokenizer, random);
      const size_t cut = ids.empty() ? 0 : random() % ids.size();
      const std::span<const int32_t> prompt(ids.data(), cut);
      IncrementalDetokenizer unprimed(*tokenizer, false);
      std::string before;
      for (const int32_t id : prompt) before += unprimed.push(id);
      IncrementalDetokenizer detokenizer(*tokenizer, false);
      detokenizer.prime(prompt);
      std::string after;
      for (size_t j = cut; j < ids.size(); ++j) after += detokenizer.push(ids[j]);
      after += detokenizer.finish();
      EXPECT_EQ(before + after, tokenizer->decode(ids, false)) << name;
    }
  }
}

TEST(IncrementalDetokenizer, KeepsTheSpaceOfAContinuation) {
  const auto directory = testing::shared_data_path("tokenizers/llama2");
  QUIRE_REQUIRE_SHARED(directory);
  const auto tokenizer = Tokenizer::load(directory).value();
  const std::vector<int32_t> hello = tokenizer->encode("Hello", true);
  const std::vector<int32_t> world = tokenizer->encode("world", false);
  IncrementalDetokenizer at_start(*tokenizer, true);
  EXPECT_EQ(at_start.push(world[0]), "world");
  IncrementalDetokenizer continued(*tokenizer, true);
  continued.prime(hello);
  EXPECT_EQ(continued.push(world[0]), " world");
}

TEST(IncrementalDetokenizer, HoldsBackHalfACharacter) {
  const auto directory = testing::shared_data_path("tokenizers/gpt2");
  QUIRE_REQUIRE_SHARED(directory);
  const auto tokenizer = Tokenizer::load(directory).value();
  const std::vector<int32_t> ids = tokenizer->encode("\U0001F980", false);
  ASSERT_GT(ids.size(), 1U);
  IncrementalDetokenizer detokenizer(*tokenizer, false);
  for (size_t i = 0; i + 1 < ids.size(); ++i) EXPECT_EQ(detokenizer.push(ids[i]), "");
  EXPECT_EQ(detokenizer.push(ids.back()), "\U0001F980");
  EXPECT_EQ(detokenizer.push(ids[0]), "");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
}

TEST(TokenBytes, AddUpToTheText) {
  std::string text = testing::read_golden("mixed.txt").substr(0, 20'000);
  text.resize(complete_utf8_prefix(text));
  for (const char* name :
       {"tokenizers/gpt2", "tokenizers/llama3.2-instruct", "models/stories15M"}) {
    const auto directory = testing::shared_data_path(name);
    QUIRE_REQUIRE_SHARED(directory);
    const auto tokenizer = Tokenizer::load(directory).value();
    std::string bytes;
    for (const int32_t id : tokenizer->encode("x", false)) bytes += tokenizer->token_bytes(id);
    const std::string prefix = bytes.substr(0, bytes.size() - 1);
    EXPECT_TRUE(prefix.empty() || prefix == " ") << name;
    bytes.clear();
    const std::string plain = "caf\u00e9 \u4f60\u597d \U0001F980\n\ttabs  and 123 \u0000 end";
    for (const int32_t id : tokenizer->encode(plain, false)) bytes += tokenizer->token_bytes(id);
    EXPECT_EQ(bytes, prefix + plain) << name;
  }
}

TEST(RoundTrip, TextsWithoutNormalizationComeBack) {
  const std::string text = testing::read_golden("mixed.txt");
  for (const char* name : {"tokenizers/gpt2", "tokenizers/llama3.2-instruct"}) {
    const auto directory = testing::shared_data_path(name);
    QUIRE_REQUIRE_SHARED(directory);
    const auto tokenizer = Tokenizer::load(directory).value();
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false), false), text) << name;
  }
}

}  // namespace
}  // namespace quire
