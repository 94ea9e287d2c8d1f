// Tests properties of decoding: for any ids, streaming gives the same text as decoding them at
// once.
#include <fmt/format.h>

#include <random>

#include "base/text.h"
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

// Half of the draws are from the first 600 ids, where most byte tokens and special tokens are.
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

// A vocabulary like Llama 2's: <0xNN> is token NN + 3.
std::shared_ptr<const Tokenizer> byte_fallback_tokenizer() {
  std::string vocab = R"("<unk>":0,"<s>":1,"</s>":2)";
  for (int byte = 0; byte < 256; ++byte) {
    vocab += fmt::format(R"(,"<0x{:02X}>":{})", byte, byte + 3);
  }
  vocab += R"(,"a":259,"▁b":260)";
  return Tokenizer::from_json(fmt::format(R"({{
      "added_tokens":[{{"id":1,"content":"<s>","special":true}},
                      {{"id":2,"content":"</s>","special":true}}],
      "decoder":{{"type":"Sequence","decoders":[
          {{"type":"Replace","pattern":{{"String":"▁"}},"content":" "}},
          {{"type":"ByteFallback"}},{{"type":"Fuse"}},
          {{"type":"Strip","content":" ","start":1,"stop":0}}]}},
      "model":{{"type":"BPE","vocab":{{{}}},"merges":[],"byte_fallback":true,"unk_token":"<unk>"}}
      }})",
                                          vocab),
                              "byte_fallback.json")
      .value();
}

constexpr int32_t kBos = 1;
constexpr int32_t kEos = 2;
constexpr int32_t kA = 259;
constexpr int32_t kSpaceB = 260;

int32_t byte_id(int byte) {
  return byte + 3;
}

// Returns the ids of a text's bytes, each a <0xNN> token.
std::vector<int32_t> byte_ids(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(byte_id(static_cast<unsigned char>(c)));
  return ids;
}

std::vector<int32_t> joined(std::vector<int32_t> ids, const std::vector<int32_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

IncrementalDetokenizer primed(const Tokenizer& tokenizer, std::span<const int32_t> prompt) {
  IncrementalDetokenizer detokenizer(tokenizer, true);
  detokenizer.prime(prompt);
  EXPECT_EQ(detokenizer.pending(), "");
  return detokenizer;
}

std::string push_all(IncrementalDetokenizer& detokenizer, std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) text += detokenizer.push(id);
  return text + detokenizer.finish();
}

// A copy of a primed detokenizer gives the same output as the original, independently of it.
std::string output_after(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                         std::span<const int32_t> output) {
  IncrementalDetokenizer detokenizer = primed(tokenizer, prompt);
  IncrementalDetokenizer copy(detokenizer);
  const std::string text = push_all(detokenizer, output);
  EXPECT_EQ(push_all(copy, output), text);
  return text;
}

// Returns the prompt's part of the whole text, derived only from the runs of bytes and from
// decode().
std::string prompt_text(const Tokenizer& tokenizer, std::span<const int32_t> ids, size_t cut) {
  const auto is_byte = [](int32_t id) { return id >= byte_id(0) && id <= byte_id(255); };
  size_t begin = cut;
  size_t end = cut;
  while (begin > 0 && is_byte(ids[begin - 1])) --begin;
  while (begin < cut && end < ids.size() && is_byte(ids[end])) ++end;
  std::string run;
  for (size_t i = begin; i < end; ++i) run += static_cast<char>(ids[i] - byte_id(0));
  if (is_valid_utf8(run)) {
    return tokenizer.decode(ids.first(begin + complete_utf8_prefix(run.substr(0, cut - begin))),
                            true);
  }
  std::string text = tokenizer.decode(ids.first(begin), true);
  for (size_t i = begin; i < cut; ++i) text += "\uFFFD";
  return text;
}

TEST(IncrementalDetokenizer, ContinuesThePrimedPrompt) {
  std::mt19937 random(2);
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    for (int i = 0; i < 100; ++i) {
      const std::vector<int32_t> ids = random_ids(*tokenizer, random);
      const size_t cut = ids.empty() ? 0 : random() % ids.size();
      const std::span<const int32_t> prompt(ids.data(), cut);
      IncrementalDetokenizer unprimed(*tokenizer, true);
      std::string certain;
      for (const int32_t id : prompt) certain += unprimed.push(id);
      const std::string whole = tokenizer->decode(ids, true);
      const std::string after =
          output_after(*tokenizer, prompt, std::span<const int32_t>(ids).subspan(cut));
      EXPECT_TRUE(is_valid_utf8(after)) << name;
      ASSERT_TRUE(whole.ends_with(after)) << name;
      EXPECT_TRUE(whole.substr(0, whole.size() - after.size()).starts_with(certain)) << name;
      EXPECT_EQ(output_after(*tokenizer, ids, {}), "") << name;
    }
  }
}

// The texts are short, some have broken characters, and they are cut at every position.
TEST(IncrementalDetokenizer, PartsByteRunsBetweenPromptAndOutput) {
  const auto tokenizer = byte_fallback_tokenizer();
  const std::vector<std::vector<int32_t>> parts = {{kA},
                                                   {kSpaceB},
                                                   {byte_id('\n')},
                                                   {byte_id(' ')},
                                                   {byte_id(0xE4)},
                                                   byte_ids("\u00e9"),
                                                   byte_ids("\u4f60"),
                                                   byte_ids("\U0001F980")};
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int32_t> ids;
    for (size_t n = random() % 7; n > 0; --n) {
      // The broken part is drawn less often; otherwise few runs of bytes would be valid text.
      const std::vector<int32_t>& part = parts[random() % parts.size()];
      if (part[0] != byte_id(0xE4) || part.size() > 1 || random() % 2 == 0) ids = joined(ids, part);
    }
    const std::string whole = tokenizer->decode(ids, true);
    for (size_t cut = 0; cut <= ids.size(); ++cut) {
      const std::span<const int32_t> all(ids);
      const std::string before = prompt_text(*tokenizer, all, cut);
      const std::string after = output_after(*tokenizer, all.first(cut), all.subspan(cut));
      EXPECT_EQ(before + after, whole) << "cut at " << cut;
    }
  }
}

TEST(IncrementalDetokenizer, NeverReturnsThePromptsLineEnd) {
  const auto tokenizer = byte_fallback_tokenizer();
  const std::vector<int32_t> prompt = {kBos, kA, byte_id('\n')};
  EXPECT_EQ(primed(*tokenizer, prompt).push(kA), "a");
  EXPECT_EQ(primed(*tokenizer, prompt).push(kSpaceB), " b");
  EXPECT_EQ(primed(*tokenizer, prompt).push(kEos), "");
  EXPECT_EQ(primed(*tokenizer, prompt).finish(), "");
  EXPECT_EQ(output_after(*tokenizer, prompt, byte_ids("\n")), "\n");
  // The output makes the run of bytes invalid: the prompt's bytes become U+FFFD, which belongs to
  // the prompt.
  EXPECT_EQ(output_after(*tokenizer, prompt, byte_ids("\xFF")), "\uFFFD");
}

TEST(IncrementalDetokenizer, ShowsAGeneratedLineEndAsPending) {
  const auto tokenizer = byte_fallback_tokenizer();
  IncrementalDetokenizer detokenizer = primed(*tokenizer, std::vector<int32_t>{kA, byte_id('\n')});
  EXPECT_EQ(detokenizer.push(byte_id('\n')), "");
  EXPECT_EQ(detokenizer.pending(), "\n");
  EXPECT_EQ(detokenizer.push(byte_id(0xC3)), "");
  EXPECT_EQ(detokenizer.pending(), "\n");
  EXPECT_EQ(detokenizer.push(byte_id(0xA9)), "");
  EXPECT_EQ(detokenizer.pending(), "\n\u00e9");
  EXPECT_EQ(detokenizer.push(kA),
            "\n\u00e9"
            "a");
  EXPECT_EQ(detokenizer.pending(), "");
}

TEST(IncrementalDetokenizer, TurnsPendingTextOfABrokenRunToReplacements) {
  const auto tokenizer = byte_fallback_tokenizer();
  IncrementalDetokenizer detokenizer = primed(*tokenizer, std::vector<int32_t>{kA});
  EXPECT_EQ(detokenizer.push(byte_id('\n')), "");
  EXPECT_EQ(detokenizer.pending(), "\n");
  EXPECT_EQ(detokenizer.push(byte_id(0xFF)), "\uFFFD\uFFFD");
  EXPECT_EQ(detokenizer.pending(), "");
  EXPECT_EQ(detokenizer.push(byte_id('\n')), "\uFFFD");
  EXPECT_EQ(detokenizer.push(kA), "a");
  EXPECT_EQ(detokenizer.push(byte_id('\n')), "");
  EXPECT_EQ(detokenizer.push(byte_id(0xE4)), "");
  EXPECT_EQ(detokenizer.pending(), "\n");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD\uFFFD");
}

TEST(IncrementalDetokenizer, GivesTheOutputACharacterThatItCompletes) {
  const auto tokenizer = byte_fallback_tokenizer();
  const std::vector<int32_t> crab = byte_ids("\U0001F980");
  for (size_t cut = 1; cut < crab.size(); ++cut) {
    const auto middle = crab.begin() + static_cast<std::ptrdiff_t>(cut);
    // Special tokens are skipped, so they do not end the run of bytes.
    const std::vector<int32_t> prompt =
        joined(joined({kA, byte_id('\n')}, {crab.begin(), middle}), {kBos});
    IncrementalDetokenizer detokenizer = primed(*tokenizer, prompt);
    EXPECT_EQ(detokenizer.push(kEos), "");
    for (auto id = middle; id != crab.end(); ++id) {
      EXPECT_EQ(detokenizer.pending(), "");
      EXPECT_EQ(detokenizer.push(*id), "");
    }
    EXPECT_EQ(detokenizer.pending(), "\U0001F980");
    EXPECT_EQ(detokenizer.push(kA),
              "\U0001F980"
              "a");
    EXPECT_EQ(output_after(*tokenizer, prompt, std::vector<int32_t>{kA}), "a");
  }
}

TEST(IncrementalDetokenizer, StripsTheFirstSpaceOfWhateverComesFirst) {
  const auto tokenizer = byte_fallback_tokenizer();
  for (const std::vector<int32_t>& prompt : {std::vector<int32_t>{}, {kBos}, {-1, 9999}}) {
    IncrementalDetokenizer detokenizer = primed(*tokenizer, prompt);
    EXPECT_EQ(detokenizer.push(byte_id(' ')), "");
    EXPECT_EQ(detokenizer.pending(), "");
    EXPECT_EQ(detokenizer.push(byte_id('\n')), "");
    EXPECT_EQ(detokenizer.pending(), "\n");
    EXPECT_EQ(detokenizer.push(kSpaceB), "\n b");
  }
  // If special tokens are not skipped, the first one is the first text.
  IncrementalDetokenizer unskipped(*tokenizer, false);
  unskipped.prime(std::vector<int32_t>{kBos});
  EXPECT_EQ(unskipped.push(kSpaceB), " b");
  EXPECT_EQ(unskipped.push(kEos), "</s>");
}

TEST(IncrementalDetokenizer, KeepsToTheOutputWithSentencePiece) {
  const auto directory = testing::shared_data_path("models/stories15M");
  QUIRE_REQUIRE_SHARED(directory);
  const auto tokenizer = Tokenizer::load(directory).value();
  const std::vector<int32_t> prompt = tokenizer->encode("Once upon a time\n", true).value();
  ASSERT_EQ(tokenizer->id_to_token(prompt.back()), "<0x0A>");
  const std::vector<int32_t> word = tokenizer->encode("dog", false).value();
  EXPECT_EQ(output_after(*tokenizer, prompt, word), " dog");
  IncrementalDetokenizer detokenizer = primed(*tokenizer, prompt);
  EXPECT_EQ(detokenizer.push(prompt.back()), "");
  EXPECT_EQ(detokenizer.pending(), "\n");
  EXPECT_EQ(detokenizer.push(word[0]), "\n" + tokenizer->token_bytes(word[0]));
  // A character of four bytes that is not a single token.
  const std::vector<int32_t> crab = tokenizer->encode("\n\U0001F980", true).value();
  ASSERT_EQ(tokenizer->id_to_token(crab.back()), "<0x80>");
  for (size_t tail = 1; tail < 4; ++tail) {
    const std::span<const int32_t> ids(crab);
    EXPECT_EQ(output_after(*tokenizer, ids.first(ids.size() - tail), ids.last(tail)), "\U0001F980");
  }
}

TEST(IncrementalDetokenizer, PartsByteLevelCharactersBetweenPromptAndOutput) {
  const auto directory = testing::shared_data_path("tokenizers/gpt2");
  QUIRE_REQUIRE_SHARED(directory);
  const auto tokenizer = Tokenizer::load(directory).value();
  const std::vector<int32_t> ids = tokenizer->encode("\n\U0001F980", false).value();
  const std::vector<int32_t> word = tokenizer->encode("dog", false).value();
  ASSERT_GT(ids.size(), 2U);
  const std::span<const int32_t> all(ids);
  const auto prompt = all.first(ids.size() - 1);
  EXPECT_EQ(output_after(*tokenizer, prompt, all.last(1)), "\U0001F980");
  EXPECT_EQ(output_after(*tokenizer, prompt, word), "dog");
  EXPECT_EQ(output_after(*tokenizer, all.first(1), word), "dog");
  IncrementalDetokenizer detokenizer = primed(*tokenizer, word);
  EXPECT_EQ(detokenizer.push(ids[0]), "\n");
  EXPECT_EQ(detokenizer.push(ids[1]), "");
  EXPECT_EQ(detokenizer.pending(), "");
}

TEST(IncrementalDetokenizer, KeepsTheSpaceOfAContinuation) {
  const auto directory = testing::shared_data_path("tokenizers/llama2");
  QUIRE_REQUIRE_SHARED(directory);
  const auto tokenizer = Tokenizer::load(directory).value();
  const std::vector<int32_t> hello = tokenizer->encode("Hello", true).value();
  const std::vector<int32_t> world = tokenizer->encode("world", false).value();
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
  const std::vector<int32_t> ids = tokenizer->encode("\U0001F980", false).value();
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
    const std::vector<int32_t> x_ids = tokenizer->encode("x", false).value();
    for (const int32_t id : x_ids) bytes += tokenizer->token_bytes(id);
    const std::string prefix = bytes.substr(0, bytes.size() - 1);
    EXPECT_TRUE(prefix.empty() || prefix == " ") << name;
    bytes.clear();
    const std::string plain = "caf\u00e9 \u4f60\u597d \U0001F980\n\ttabs  and 123 \u0000 end";
    const std::vector<int32_t> plain_ids = tokenizer->encode(plain, false).value();
    for (const int32_t id : plain_ids) bytes += tokenizer->token_bytes(id);
    EXPECT_EQ(bytes, prefix + plain) << name;
  }
}

TEST(RoundTrip, TextsWithoutNormalizationComeBack) {
  const std::string text = testing::read_golden("mixed.txt");
  for (const char* name : {"tokenizers/gpt2", "tokenizers/llama3.2-instruct"}) {
    const auto directory = testing::shared_data_path(name);
    QUIRE_REQUIRE_SHARED(directory);
    const auto tokenizer = Tokenizer::load(directory).value();
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false).value(), false), text) << name;
  }
}

}  // namespace
}  // namespace quire
